"""How one object is doing, judged from what it says about itself: the general rule, rules of popular kinds as data, and rules that a Sync adds in CEL."""
