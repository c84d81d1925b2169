"""The inner loop: the tests that a change concerns, the nearest first, until two minutes are over."""
