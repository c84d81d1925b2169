"""Why a server's certificate isn't trusted: git says no more than that where it is built with GnuTLS, as Debian's is.

Asked only once git has refused a server, with the same certificates to trust, and only to word the refusal.
"""

from __future__ import annotations

import os
import socket
import ssl

from kubectl_reconcile.source.destination import Destination, UnresolvedError
from kubectl_reconcile.source.errors import SourceError

_TIMEOUT_S = 10.0

_REASONS = {
    9: "certificate is not yet valid",
    10: "certificate has expired",
    62: "certificate subject name does not match target host name",
    64: "certificate subject name does not match target host name",
}
"""Codes of X509_verify_cert_error_string(3), in the words of a git that is built with OpenSSL."""


def why_untrusted(there: Destination, ca_bundle: str) -> str:
    """Return why the certificate of the server *there* is refused by who trusts *ca_bundle*; empty if nothing tells.

    Without a bundle the system's certificates count. Blocks for ten seconds at most.
    """
    try:
        place = there.place
        if place.scheme != "https" or _has_proxy():
            return ""
        host = place.host.strip("[]")
        address = there.one_that_answers()
        context = ssl.create_default_context(cadata=ca_bundle or None)
        with (
            socket.create_connection((address, place.port), _TIMEOUT_S) as connection,
            context.wrap_socket(connection, server_hostname=host),
        ):
            return ""
    except ssl.SSLCertVerificationError as error:
        return reason_of(error.verify_code)
    except (OSError, ValueError, UnresolvedError, SourceError):  # the bundle is none, or the server is gone by now
        return ""


def reason_of(verify_code: int) -> str:
    """Return why a certificate was refused, in git's words; empty where git has no word of its own."""
    return _REASONS.get(verify_code, "")


def _has_proxy() -> bool:
    return any(os.environ.get(name) for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"))
