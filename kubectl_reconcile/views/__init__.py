"""What is shown of plans, Syncs and objects, the same for the command line, the web UI and tests.

A document is a Struct, made by a function from what the engine returns; its JSON Schema comes from the Struct. What may not be
seen of a Secret is decided here, in ``masking``, and nowhere else.

Knows of no terminal, no browser and no flag.
"""
