"""Domain modules that come with the product: one file per CR kind, pure functions from CR to children."""
