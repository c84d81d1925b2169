"""The page as the daemon serves it: people who sign in with a token of the cluster, and see and do what that token may."""
