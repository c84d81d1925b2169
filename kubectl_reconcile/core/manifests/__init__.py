"""Files of a repository -> manifests, each with its file and line; and changes written back into such files.

What can't be read is a problem with a place, and never hides the rest.
"""
