"""Certificates that an operator issues itself: ``state`` is what is known of their Secrets, ``decision`` says what is to be done about them, ``outlook`` what follows from that; ``worth`` is what a Secret that people make is good for.

Pure. Keys are drawn, and Secrets read and written, by ``keys``, which loads cryptography.
"""
