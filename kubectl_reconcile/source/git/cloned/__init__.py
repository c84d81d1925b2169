"""A repository's clone on this machine: how it is made and filled, and what is read from it, object by object."""
