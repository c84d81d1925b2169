"""How one object is doing, judged from what it says about itself: the general rule, and rules that a Sync adds in CEL."""
