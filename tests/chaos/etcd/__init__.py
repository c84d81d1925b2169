"""Faults that befall a real EtcdCluster, one after the other, while somebody writes to it all the time."""
