"""Small programs in Go that work on what is hostile, behind a fence: what they share, and how they are found, run and limited."""
