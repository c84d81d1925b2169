"""Certificates that a module issues itself: ``state`` is what is known of their Secrets, ``decision`` says what is to be done about them, ``outlook`` what follows from that.

Keys are drawn, and Secrets read and written, by ``kubectl_reconcile.certificates``.
"""
