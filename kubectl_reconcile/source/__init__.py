"""Where desired state comes from: a Git repository or a local folder, read as revisions of files."""
