"""Who signs without a key of their own: certificates name them, and a *root* says whose certificates count.

Vocabulary: an *issuer* has told the authority who somebody is, such as a forge of the workflow that it runs; the *subject* is what it calls them. Both are matched by regular
expressions, in time that grows with the text alone, since whoever may write a Sync writes them. A whole text has to match, whether or not the expression says so.

Pure: text in, verdicts out. What proves a certificate isn't decided here.
"""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, Self

from msgspec import Struct

from kubectl_reconcile.core.objects import Manifest
from kubectl_reconcile.core.resources.fields import SyncSpecError, check_fields
from kubectl_reconcile.core.resources.signatures import Signature
from kubectl_reconcile.core.resources.trusted_keys import KeysError

ROOT_ENTRY: Final = "trusted_root.json"
"""The entry of a Secret that the root is in, as Flux has it."""
MOST_BYTES: Final = 256 * 1024
"""How long a root may be."""
MOST_IDENTITIES: Final = 20
_MOST_PATTERN: Final = 512
_MOST_TEXT: Final = 2048
_HINT: Final = "cosign trusted-root create writes one; with --with-default-services, that of the public Sigstore"
_ROOT_TYPE: Final = "application/vnd.dev.sigstore.trustedroot+json;version=0.1"


class OidcIdentity(Struct, frozen=True):
    """Those who count: whom an *issuer* calls *subject*, as regular expressions."""

    issuer: str
    subject: str

    def matches(self, issuer: str, subject: str) -> bool:
        """Tell whether it is they."""
        return _matches(issuer, self.issuer) and _matches(subject, self.subject)


def identities_of(found: Any, at: str) -> tuple[OidcIdentity, ...]:
    """Return whom a list names in its wire form, which is at the field *at*.

    Raises:
        SyncSpecError: a field is malformed; it names the field.
    """
    if not isinstance(found, list) or not 1 <= len(found) <= MOST_IDENTITIES:
        raise SyncSpecError(at, f"isn't a list of one to {MOST_IDENTITIES} identities, each with issuer and subject")
    return tuple(_identity(each, f"{at}[{number}]") for number, each in enumerate(found))


def _identity(found: Any, at: str) -> OidcIdentity:
    fields: Manifest = found if isinstance(found, dict) else {}
    check_fields(fields, ("issuer", "subject"), at)
    return OidcIdentity(_pattern(fields, "issuer", at), _pattern(fields, "subject", at))


def _pattern(fields: Manifest, name: str, at: str) -> str:
    text = fields.get(name)
    if not isinstance(text, str) or not 0 < len(text) <= _MOST_PATTERN:
        raise SyncSpecError(
            f"{at}.{name}",
            f"is a regular expression of at most {_MOST_PATTERN} characters, which the whole {name} matches",
        )
    try:
        _run("", text)
    except RuntimeError:
        raise SyncSpecError(
            f"{at}.{name}", f"{text!r} isn't a regular expression as RE2 has them, or a very large one"
        ) from None
    return text


def _matches(text: str, pattern: str) -> bool:
    return len(text) <= _MOST_TEXT and _run(text, rf"\A(?:{pattern})\z")


def _run(text: str, pattern: str) -> bool:
    """Return whether a text has something that matches; an expression that can't be one raises ``RuntimeError``."""
    found: bool = _program().execute({"text": text, "pattern": pattern})
    return found


@cache
def _program() -> Any:
    """Return what matches in time that grows with the text alone, which Python's own expressions don't."""
    return importlib.import_module("cel").compile("text.matches(pattern)")


class Identities(Struct, frozen=True):
    """Those who count, and the *root* that proves who they are; *digest* is another one whenever either is."""

    identities: tuple[OidcIdentity, ...]
    root: str
    digest: str

    @classmethod
    def of(cls, entries: Mapping[str, str], identities: tuple[OidcIdentity, ...]) -> Self:
        """Read the root from the entries of a Secret.

        Raises:
            KeysError: it isn't there, or is none.
        """
        root = entries.get(ROOT_ENTRY)
        if root is None:
            raise KeysError(f"has no entry {ROOT_ENTRY}", _HINT)
        if len(root) > MOST_BYTES:
            raise KeysError(f"entry {ROOT_ENTRY} holds more than {MOST_BYTES // 1024} KiB")
        try:
            said = json.loads(root)
        except (ValueError, RecursionError):
            said = None
        if not isinstance(said, dict) or said.get("mediaType") != _ROOT_TYPE:
            raise KeysError(f"entry {ROOT_ENTRY} is no trusted root of Sigstore", _HINT)
        return cls(identities, root, hashlib.sha256(repr((identities, root)).encode()).hexdigest())

    def signer_of(self, issuer: str, subject: str) -> Signature | None:
        """Return whom a certificate names, None where it isn't one of those who count."""
        return Signature(subject, issuer) if any(each.matches(issuer, subject) for each in self.identities) else None
