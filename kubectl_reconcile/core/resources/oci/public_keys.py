"""Public keys whose signatures on artifacts a Sync trusts, as they stand in a Secret or ConfigMap: PEM, in entries of any name.

Keys are ECDSA on the curves of NIST, Ed25519, and RSA of at least 2048 bits. Whatever can't be meant is refused as a whole: half a list of keys is nobody's wish.

Pure: text in, verdicts out.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from typing import Any, Final, Self

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from msgspec import Struct

from kubectl_reconcile.core.resources.oci import ed25519ph
from kubectl_reconcile.core.resources.signatures import Signature
from kubectl_reconcile.core.resources.trusted_keys import KeysError

MOST_BYTES: Final = 256 * 1024
"""How much text all entries may have together."""
MOST_KEYS: Final = 20

_BLOCK: Final = re.compile(r"-----BEGIN (RSA )?PUBLIC KEY-----[A-Za-z0-9+/=\s]*-----END (?:RSA )?PUBLIC KEY-----")
_CURVES: Final = (ec.SECP256R1, ec.SECP384R1, ec.SECP521R1)
_LEAST_RSA_BITS: Final = 2048
_MOST_RSA_BITS: Final = 8192


class PublicKey(Struct, frozen=True):
    """One key, which stands in the entry *name*."""

    name: str
    key: Any

    @property
    def signature(self) -> Signature:
        """What a good signature by it is called."""
        der = self.key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        digest = base64.b64encode(hashlib.sha256(der).digest()).decode().rstrip("=")
        return Signature(self.name, f"{_type_of(self.key)} SHA256:{digest}")

    def signed(self, signature: bytes, data: bytes) -> bool:
        """Tell whether *signature* is one by this key on *data*; by Ed25519 also on what is hashed first."""
        if isinstance(self.key, ed25519.Ed25519PublicKey) and ed25519ph.verify(
            self.key.public_bytes_raw(), signature, data
        ):
            return True
        return any(self._verify(signature, data, each) for each in _hashes_of(self.key))

    def _verify(self, signature: bytes, data: bytes, digest: hashes.HashAlgorithm) -> bool:
        try:
            if isinstance(self.key, ed25519.Ed25519PublicKey):
                self.key.verify(signature, data)
            elif isinstance(self.key, ec.EllipticCurvePublicKey):
                self.key.verify(signature, data, ec.ECDSA(digest))
            else:
                self.key.verify(signature, data, padding.PKCS1v15(), digest)
        except InvalidSignature:
            return False
        return True


def _hashes_of(key: Any) -> tuple[hashes.HashAlgorithm, ...]:
    """Return what signatures by a key may hash with: SHA-256; on a longer curve also what is as long as that."""
    size = key.curve.key_size if isinstance(key, ec.EllipticCurvePublicKey) else 0
    longer: dict[int, hashes.HashAlgorithm] = {384: hashes.SHA384(), 521: hashes.SHA512()}
    return (hashes.SHA256(), longer[size]) if size in longer else (hashes.SHA256(),)


class PublicKeys(Struct, frozen=True):
    """Keys that were read; *digest* is another one whenever a key is another one."""

    keys: tuple[PublicKey, ...]
    digest: str

    @classmethod
    def of(cls, entries: Mapping[str, str]) -> Self:
        """Read the entries of a Secret or ConfigMap.

        Raises:
            KeysError: one can't be meant so, or there is no key at all.
        """
        if sum(map(len, entries.values())) > MOST_BYTES:
            raise KeysError(f"holds more than {MOST_BYTES // 1024} KiB", "keep only the keys of those who sign")
        found = [each for name, text in sorted(entries.items()) for each in _keys(name, text)]
        if not found:
            raise KeysError("holds no key", "put public keys into it, as cosign.pub: -----BEGIN PUBLIC KEY-----")
        if len(found) > MOST_KEYS:
            raise KeysError(f"holds more than {MOST_KEYS} keys", "keep only the keys of those who sign")
        digest = hashlib.sha256(repr(sorted(entries.items())).encode()).hexdigest()
        return cls(tuple(found), digest)

    def signer_of(self, signature: bytes, data: bytes) -> Signature | None:
        """Return who made a signature on *data*, None where none of the keys did."""
        return next((each.signature for each in self.keys if each.signed(signature, data)), None)


def _keys(name: str, text: str) -> list[PublicKey]:
    if "PRIVATE KEY" in text:
        hint = "keep only public keys there; anyone who could read this one can sign as its owner, so replace that key"
        raise KeysError(f"entry {name} holds a private key", hint)
    blocks = [match[0] for match in _BLOCK.finditer(text)]
    if not blocks:
        raise KeysError(f"entry {name} holds no public key", "write it as cosign.pub: -----BEGIN PUBLIC KEY-----")
    return [PublicKey(name, _read(name, each)) for each in blocks]


def _read(name: str, block: str) -> Any:
    try:
        key = serialization.load_pem_public_key(block.encode())
    except (ValueError, UnsupportedAlgorithm):
        raise KeysError(f"entry {name} holds a public key that can't be read") from None
    if isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, _CURVES):
        return key
    if isinstance(key, rsa.RSAPublicKey) and _LEAST_RSA_BITS <= key.key_size <= _MOST_RSA_BITS:
        return key
    if isinstance(key, ed25519.Ed25519PublicKey):
        return key
    hint = f"keys are ECDSA (P-256, P-384, P-521), Ed25519, and RSA of {_LEAST_RSA_BITS} to {_MOST_RSA_BITS} bits"
    raise KeysError(f"entry {name} holds a key of a kind that isn't used", hint)


def _type_of(key: Any) -> str:
    if isinstance(key, ec.EllipticCurvePublicKey):
        return "ECDSA"
    return "ED25519" if isinstance(key, ed25519.Ed25519PublicKey) else "RSA"
