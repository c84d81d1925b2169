"""Certificates that an EtcdCluster issues itself: ``kinds`` are what members, the daemon and clients show, ``decision`` says what is to be done about them, ``driver`` does it."""
