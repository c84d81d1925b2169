"""What a release consists of, and how it is made: ``make dist`` and ``make release``. Nothing here travels with the program."""
