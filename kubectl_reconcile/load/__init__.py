"""Load on a server: requests that come when they are due whether earlier ones were answered or not, and how long each took from then."""
