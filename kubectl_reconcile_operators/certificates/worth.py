"""What a Secret that people make is worth: ok, absent, or what is wrong with it, which goes on from "Secret NAME".

Pure.
"""

from __future__ import annotations

from collections.abc import Mapping

SECRET_OK = "ok"  # noqa: S105 - a word
SECRET_ABSENT = "absent"  # noqa: S105 - a word
SECRET_EXPIRED = "has a certificate that expired on"  # noqa: S105 - words
"""How it begins what is said of a Secret with a certificate that would do otherwise."""


def password_worth(values: Mapping[str, str]) -> str:
    """Return what a Secret with a password is worth."""
    password = values.get("password", "")
    if not password:
        return "lacks the key password (hint: put one in, or delete the Secret: it is recreated)"
    if not (password.isascii() and password.isprintable()):
        return "has a password with other characters than printable ASCII (hint: put in another)"
    return SECRET_OK
