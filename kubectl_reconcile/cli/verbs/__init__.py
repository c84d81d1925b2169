"""What each verb is called with: arguments, flags and help. What it does is in the module of the same name beside this room.

Nothing here imports what talks to a cluster, so that ``--help`` and completion answer in an instant.
"""
