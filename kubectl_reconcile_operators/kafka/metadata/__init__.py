"""What the controllers keep of a cluster: in which version of its metadata they write it down, and who of them votes.

Pure.
"""
