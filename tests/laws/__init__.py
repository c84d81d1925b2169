"""Laws: what the product says before it acts, held against what a real control plane does then."""
