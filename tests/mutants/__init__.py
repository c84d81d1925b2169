"""Whether the tests of the pure core bite: a mutation tester over a copy of the tree."""
