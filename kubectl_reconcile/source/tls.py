"""Why a server's certificate isn't trusted: git says no more than that where it is built with GnuTLS, as Debian's is.

Asked only once git has refused a server, with the same certificates to trust, and only to word the refusal.
"""

from __future__ import annotations

import os
import socket
import ssl
from urllib.parse import urlsplit

_TIMEOUT_S = 10.0

_REASONS = {
    9: "certificate is not yet valid",
    10: "certificate has expired",
    62: "certificate subject name does not match target host name",
    64: "certificate subject name does not match target host name",
}
"""Codes of X509_verify_cert_error_string(3), in the words of a git that is built with OpenSSL."""


def why_untrusted(url: str, ca_bundle: str) -> str:
    """Return why the certificate of the server at *url* is refused by who trusts *ca_bundle*; empty if nothing tells.

    Without a bundle the system's certificates count. Blocks for ten seconds at most.
    """
    parts = urlsplit(url)
    if parts.scheme != "https" or parts.hostname is None or _has_proxy():
        return ""
    try:
        context = ssl.create_default_context(cadata=ca_bundle or None)
        with (
            socket.create_connection((parts.hostname, parts.port or 443), _TIMEOUT_S) as connection,
            context.wrap_socket(connection, server_hostname=parts.hostname),
        ):
            return ""
    except ssl.SSLCertVerificationError as error:
        return reason_of(error)
    except (OSError, ValueError):  # the bundle is none, or the server is gone by now
        return ""


def reason_of(error: ssl.SSLCertVerificationError) -> str:
    """Return why a certificate was refused, in git's words; empty where git has no word of its own."""
    return _REASONS.get(error.verify_code, "")


def _has_proxy() -> bool:
    return any(os.environ.get(name) for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"))
