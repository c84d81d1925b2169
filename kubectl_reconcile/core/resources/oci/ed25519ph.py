"""Ed25519 on what is hashed first (Ed25519ph, RFC 8032): cosign signs so with keys of Ed25519, and the library that verifies all else doesn't know it.

It only verifies, and all of that is public: nothing here has to take the same time for whatever it is given. As in Go's library the equation is the one without cofactors, and a number
that could be written in another way is refused.

Pure: bytes in, verdict out.
"""

from __future__ import annotations

import hashlib
from typing import Final, NamedTuple

_P: Final = 2**255 - 19
_ORDER: Final = 2**252 + 27742317777372353535851937790883648493
_D: Final = -121665 * pow(121666, -1, _P) % _P
_ROOT: Final = pow(2, (_P - 1) // 4, _P)
_DOMAIN: Final = b"SigEd25519 no Ed25519 collisions\x01\x00"


class _Point(NamedTuple):
    """A point of the curve in extended coordinates."""

    x: int
    y: int
    z: int
    t: int


def verify(public: bytes, signature: bytes, data: bytes) -> bool:
    """Tell whether *signature* is one on *data* by the key *public*, both as RFC 8032 encodes them."""
    if len(public) != 32 or len(signature) != 64:
        return False
    key, number = _decoded(public), int.from_bytes(signature[32:], "little")
    if key is None or number >= _ORDER:
        return False
    hashed = hashlib.sha512(_DOMAIN + signature[:32] + public + hashlib.sha512(data).digest()).digest()
    negative = _Point(_P - key.x, key.y, key.z, _P - key.t)
    found = _add(_times(number, _BASE), _times(int.from_bytes(hashed, "little") % _ORDER, negative))
    return _encoded(found) == signature[:32]


def _add(one: _Point, other: _Point) -> _Point:
    a, b = (one.y - one.x) * (other.y - other.x) % _P, (one.y + one.x) * (other.y + other.x) % _P
    c, d = 2 * one.t * other.t * _D % _P, 2 * one.z * other.z % _P
    e, f, g, h = b - a, d - c, d + c, b + a
    return _Point(e * f % _P, g * h % _P, f * g % _P, e * h % _P)


def _times(number: int, point: _Point) -> _Point:
    found = _Point(0, 1, 1, 0)
    while number:
        if number & 1:
            found = _add(found, point)
        point = _add(point, point)
        number >>= 1
    return found


def _encoded(point: _Point) -> bytes:
    inverse = pow(point.z, -1, _P)
    x, y = point.x * inverse % _P, point.y * inverse % _P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def _decoded(data: bytes) -> _Point | None:
    number = int.from_bytes(data, "little")
    sign, y = number >> 255, number & (2**255 - 1)
    if y >= _P:
        return None
    square = (y * y - 1) * pow(_D * y * y + 1, -1, _P) % _P
    x = pow(square, (_P + 3) // 8, _P)
    if (x * x - square) % _P:
        x = x * _ROOT % _P
    if (x * x - square) % _P or (x == 0 and sign):
        return None
    x = _P - x if x & 1 != sign else x
    return _Point(x, y, 1, x * y % _P)


def _base() -> _Point:
    found = _decoded((4 * pow(5, -1, _P) % _P).to_bytes(32, "little"))
    assert found is not None  # noqa: S101 - for the type checker: it is on the curve
    return found


_BASE: Final = _base()
