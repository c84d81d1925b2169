"""What is decided while a plan is carried out: what a failure stops, when an object may be recreated, and how it all ended.

``progress`` knows how far a run has come and what that means for what is left; ``replace`` reads a server's refusals;
``results`` turns how each change ended into the report of the pass. Whoever writes (``engine/apply``) asks here.
"""
