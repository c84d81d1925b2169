"""What is rendered before it is applied: which way a path goes, what a rendering consulted, and what is said when it fails."""
