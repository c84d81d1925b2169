"""What says whether an operator's real tests have to run: ``PROVEN.json`` holds what they were run with, and passed.

Vocabulary: a *part* of an operator is a file that decides how it behaves (its own, what those import, the engine that carries out what
it says, its images and CRDs, its tests), or a distribution that those import, as it is locked. An operator is *proven* where each part is
as it was when all of its real tests passed. A *scenario* is one of
those tests, or a module of them that share a database; a *smoke* test is one that always runs.
"""
