"""How the tests are run: dealt out to workers while programs are still being built, in any order, under stress, measured.

Loaded by ``make test`` (``pytest -p tests.running.plugin``); a pytest that is started by hand does without it.
"""
