"""What a bearer token says of itself. Nothing here checks one; that is the server's business."""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import json


def expiry_of(authorization: str) -> dt.datetime | None:
    """Return when the JSON web token of an ``Authorization`` header expires; None for any other header or token."""
    scheme, _, token = authorization.partition(" ")
    parts = token.strip().split(".")
    if scheme.lower() != "bearer" or len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        return dt.datetime.fromtimestamp(claims["exp"], dt.UTC)
    except (binascii.Error, ValueError, KeyError, TypeError, OverflowError, OSError):
        return None
