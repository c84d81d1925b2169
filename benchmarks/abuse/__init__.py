"""What one tenant who abuses everything at once costs three quiet ones: ``make abuse MINUTES=10``."""
