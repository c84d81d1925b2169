"""Several daemons on one cluster: how they know of each other, share the work, and keep from writing what is another's."""
