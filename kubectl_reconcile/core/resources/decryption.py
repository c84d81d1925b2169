"""``spec.source.decryption``: what decrypts the files of a source, and the keys that a Secret or a file holds for it.

Entries are named as Flux names them: ``*.agekey`` holds age's native keys, ``*.asc`` OpenPGP keys in ASCII armour, without a passphrase.

Pure: a typed view on wire JSON.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from enum import StrEnum
from typing import ClassVar, Final, Self

from msgspec import Struct

from kubectl_reconcile.core.objects import Manifest
from kubectl_reconcile.core.records import Guarded

_AGE, _OPENPGP = ".agekey", ".asc"
_MOST_KEYS: Final = 20
_MOST_BYTES: Final = 256 * 1024


class DecryptionSpecError(ValueError):
    """``spec.source.decryption`` can't be meant as it is written; *field* is below it."""

    def __init__(self, field: str, message: str) -> None:
        self.field, self.message = field, message
        super().__init__(f"{field}: {message}")


class DecryptionSpec(Struct, frozen=True):
    """What decrypts: files of SOPS, with the keys of the Secret named *secret*; nothing is decrypted where that is empty."""

    secret: str = ""

    @classmethod
    def of(cls, fields: Manifest) -> Self:
        """Read it from its wire form.

        Raises:
            DecryptionSpecError: a field is malformed.
        """
        if unknown := sorted(set(fields) - {"provider", "secretRef"}):
            raise DecryptionSpecError(unknown[0], "isn't known")
        if fields.get("provider") != "SOPS":
            raise DecryptionSpecError("provider", f"{fields.get('provider')!r} isn't SOPS")
        secret = (fields.get("secretRef") or {}).get("name", "")
        if not secret:
            raise DecryptionSpecError("secretRef.name", "is required: the Secret with the keys")
        return cls(secret)


NO_DECRYPTION_SPEC: Final = DecryptionSpec()


class Alter(StrEnum):
    """Which values of a file are others than those that it holds: to find out what is made of them."""

    NONE = ""
    """None: this is what the file says."""
    TELLING = "telling"
    """Those that tell something: true, false and short numbers stay, since a chart may decide by them what it has at all."""
    ALL = "all"
    """All that are encrypted."""


class Decryption(Guarded, frozen=True):
    """The keys that files are decrypted with, from *place*; why there are none where there is a *fault*. Nothing is decrypted where nobody *asked*."""

    hidden: ClassVar = frozenset({"age", "openpgp"})

    age: tuple[str, ...] = ()
    openpgp: tuple[str, ...] = ()
    place: str = ""
    fault: str = ""
    hint: str = ""
    asked: bool = False
    alter: Alter = Alter.NONE

    @classmethod
    def of(cls, entries: Mapping[str, str], place: str) -> Self:
        """Return the keys among the *entries* of a Secret, which is at *place*."""
        age = tuple(text for name, text in sorted(entries.items()) if name.endswith(_AGE))
        openpgp = tuple(text for name, text in sorted(entries.items()) if name.endswith(_OPENPGP))
        if not age and not openpgp:
            said = f"{place} has no keys: no entry is called *{_AGE} or *{_OPENPGP}"
            return cls(place=place, fault=said, hint="name entries so, as in identity.agekey", asked=True)
        if len(age) + len(openpgp) > _MOST_KEYS or sum(map(len, (*age, *openpgp))) > _MOST_BYTES:
            said = f"{place} has more than {_MOST_KEYS} keys, or more than {_MOST_BYTES // 1024} KiB of them"
            return cls(place=place, fault=said, hint="keep those that are in use", asked=True)
        return cls(age, openpgp, place, asked=True)

    @property
    def key(self) -> str:
        """What names these keys in memory, and what is made with them. It isn't for anybody else, though keys can't be guessed by it."""
        said = repr((self.age, self.openpgp, self.fault, self.asked, str(self.alter)))
        return hashlib.sha256(said.encode()).hexdigest() if self.asked else "-"


NO_DECRYPTION: Final = Decryption()
"""That of whoever has no keys, and asks for none."""
