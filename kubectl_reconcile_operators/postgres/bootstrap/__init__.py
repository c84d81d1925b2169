"""How a database begins that isn't there yet: empty, with a backup, or with a copy of a server that runs.

``spec`` is the part of the spec, ``children`` is the Job that fills the volume of the first instance, ``beginning`` the way from that to a first instance.
"""
