"""Certificates in Secrets: ``pairs`` draws, signs and reads them, ``kept`` reads and writes the Secrets of a custom resource that issues its own, ``given`` looks at one that a person made; ``reading`` bounds what it takes to read what strangers wrote.

It loads cryptography, which takes megabytes: who needs it for some custom resources alone imports this where it is needed.
"""
