"""Ed25519 on what is hashed first, by the vector of RFC 8032 (7.3), and what isn't a signature."""

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from kubectl_reconcile.core.resources.oci.ed25519ph import verify

SECRET = Ed25519PrivateKey.from_private_bytes(
    bytes.fromhex("833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42")
)
PUBLIC = SECRET.public_key().public_bytes_raw()
SIGNATURE = bytes.fromhex(
    "98a70222f0b8121aa9d30f813d683f809e462b469c7ff87639499bb94e6dae41"
    "31f85042463c2a355a2003d062adf5aaa10b8c61e636062aaad11c2a26083406"
)
ORDER = 2**252 + 27742317777372353535851937790883648493


def flipped(data, at):
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def test_the_vector_of_the_specification_is_good():
    assert verify(PUBLIC, SIGNATURE, b"abc")


NONE = {
    "on something else": (PUBLIC, SIGNATURE, b"abd"),
    "by another key": (Ed25519PrivateKey.generate().public_key().public_bytes_raw(), SIGNATURE, b"abc"),
    "by a key that is no point": (b"\2" + bytes(31), SIGNATURE, b"abc"),
    "by a key that could be written otherwise": (b"\xff" * 31 + b"\x7f", SIGNATURE, b"abc"),
    "by a short key": (PUBLIC[:31], SIGNATURE, b"abc"),
    "a short one": (PUBLIC, SIGNATURE[:63], b"abc"),
    "one with another point": (PUBLIC, flipped(SIGNATURE, 3), b"abc"),
    "one with another number": (PUBLIC, flipped(SIGNATURE, 40), b"abc"),
    "one with the number written otherwise": (
        PUBLIC,
        SIGNATURE[:32] + (int.from_bytes(SIGNATURE[32:], "little") + ORDER).to_bytes(32, "little"),
        b"abc",
    ),
    "one of plain Ed25519": (PUBLIC, SECRET.sign(b"abc"), b"abc"),
    "nothing": (PUBLIC, b"", b"abc"),
}


@pytest.mark.parametrize(("public", "signature", "data"), NONE.values(), ids=NONE)
def test_anything_else_is_none(public, signature, data):
    assert not verify(public, signature, data)
