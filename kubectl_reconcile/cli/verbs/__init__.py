"""The verbs, one a file: arguments, flags, help, and what it does.

What takes time to import (all that talks to a cluster, or knows what is applied) is imported in the functions that use it, so that
``--help`` and completion answer in an instant; types that are only named stand under ``TYPE_CHECKING``.
A test loads all verbs, and holds that none of it was imported.
"""
