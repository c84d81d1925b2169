"""Charts from Helm repositories: fetched by exact version and digest, kept by digest, and shown as part of a tree of files."""
