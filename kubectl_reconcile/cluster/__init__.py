"""The API server: verbs and errors, kinds and schemas, and caches of live objects.

Importing aiohttp makes two TLS contexts and has each read all certificates of the system, a quarter of what a command takes
before its first request. Most never use them: a kubeconfig names its cluster's own. So here aiohttp is imported in a way that
leaves the certificates until the first connection that asks for them.
"""

from __future__ import annotations

import ssl
import sys
from typing import Any


class _CertificatesWhenUsed(ssl.SSLContext):
    """A context that reads the system's certificates when the first connection is made with it, and is an ordinary one from then on."""

    def wrap_bio(self, *arguments: Any, **options: Any) -> ssl.SSLObject:
        return self._with_certificates().wrap_bio(*arguments, **options)

    def wrap_socket(self, *arguments: Any, **options: Any) -> ssl.SSLSocket:
        return self._with_certificates().wrap_socket(*arguments, **options)

    def _with_certificates(self) -> ssl.SSLContext:
        ssl.SSLContext.set_default_verify_paths(self)
        self.__class__ = ssl.SSLContext  # type: ignore[assignment]  # the same in memory, without these methods
        return self


def _import_aiohttp() -> None:
    """Import aiohttp, and have contexts that were to read certificates meanwhile do so when they are used."""
    made: list[ssl.SSLContext] = []

    def later(context: ssl.SSLContext) -> None:
        made.append(context)

    ssl.SSLContext.set_default_verify_paths = later  # type: ignore[assignment, method-assign]
    try:
        import aiohttp  # noqa: F401, PLC0415 - here, and nowhere before
    finally:
        del ssl.SSLContext.set_default_verify_paths  # what it has of its base comes to light again
    for context in made:
        if context.verify_mode is not ssl.CERT_NONE:
            context.__class__ = _CertificatesWhenUsed


if "aiohttp" not in sys.modules:
    _import_aiohttp()
