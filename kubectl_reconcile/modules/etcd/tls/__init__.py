"""Certificates that an EtcdCluster issues itself: an authority of its own, and what members, the daemon and clients show.

``state`` is what is known of the Secrets, ``decision`` says what is to be done about them, ``outlook`` what follows from that. ``driver`` reads and writes them, and
``certificates`` is the only file that draws keys.
"""
