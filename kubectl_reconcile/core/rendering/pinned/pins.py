"""What can be pinned: a chart, a repository at a commit, a file.

Vocabulary: a pin is *bare* without that by which it is known, which is its digest, or its commit. What is asked for is bare; the lock file says the rest.

Pure.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Self, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from kubectl_reconcile.core.redaction import without_credentials
from kubectl_reconcile.core.resources.chart import ChartSpec
from kubectl_reconcile.core.resources.credential_scope import Address, NoAddressError
from kubectl_reconcile.core.resources.fields import SyncSpecError, check_fields

HEAD: Final = "HEAD"
"""The ref of whoever asks for the default branch."""

_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_COMMIT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_REF: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/+-]{0,254}")
_NO_REF: Final = re.compile(r"\.\.|//|/\.|\.lock(/|$)|[./]$")
_LONGEST: Final = 1024
_SHOWN: Final = 120


class BasePin(Struct, frozen=True):
    """A Git *repository*, a URL, at the *commit* that a *ref* of it had: a branch, a tag or a commit."""

    repository: str
    ref: str
    commit: str = ""

    @classmethod
    def of(cls, fields: Mapping[str, Any], above: str) -> Self:
        """Read it from an entry, which is at the field *above*.

        Raises:
            SyncSpecError: a field is malformed; it names the field.
        """
        url, ref, commit = (_text(fields, above, field) for field in ("repository", "ref", "commit"))
        _check_url(url, f"{above}.repository", "a repository")
        if not _REF.fullmatch(ref) or _NO_REF.search(ref):
            raise SyncSpecError(f"{above}.ref", f"{_shown(ref)} isn't a branch, a tag or a commit")
        if commit and not _COMMIT.fullmatch(commit):
            raise SyncSpecError(f"{above}.commit", f"{_shown(commit)} isn't the full hash of a commit")
        if commit and _COMMIT.fullmatch(ref) and commit != ref:
            raise SyncSpecError(f"{above}.commit", f"is another than {ref}, which is asked for")
        return cls(url, ref, commit)

    def told(self) -> dict[str, str]:
        """Return it in its wire form."""
        return {"repository": self.repository, "ref": self.ref, "commit": self.commit}

    @property
    def known_by(self) -> str:
        """What stands for what it holds."""
        return self.commit

    @property
    def place(self) -> str:
        """A path that is its own among those of all repositories and commits."""
        address = Address.of(self.repository)
        steps = [re.sub(r"[^A-Za-z0-9._-]", "-", step) for step in (address.host, *address.steps)]
        return f"{posixpath.join(*steps)}-{self.commit[:12]}"

    def __str__(self) -> str:
        return f"{self.repository} at {self.ref}"


class FilePin(Struct, frozen=True):
    """A file at a *url*, and the *digest* of what it holds."""

    url: str
    digest: str = ""

    @classmethod
    def of(cls, fields: Mapping[str, Any], above: str) -> Self:
        """Read it from an entry, which is at the field *above*.

        Raises:
            SyncSpecError: a field is malformed; it names the field.
        """
        url, digest = (_text(fields, above, field) for field in ("url", "digest"))
        _check_url(url.partition("?")[0], f"{above}.url", "a file")
        if not url.startswith(("https://", "http://")):
            raise SyncSpecError(f"{above}.url", f"{_shown(url)} isn't the URL of a file")
        if digest and not _DIGEST.fullmatch(digest):
            raise SyncSpecError(f"{above}.digest", f"{_shown(digest)} isn't sha256: and 64 hexadecimal digits")
        return cls(url, digest)

    def told(self) -> dict[str, str]:
        """Return it in its wire form."""
        return {"url": self.url, "digest": self.digest}

    @property
    def known_by(self) -> str:
        """What stands for what it holds."""
        return self.digest

    @property
    def name(self) -> str:
        """What the file is called."""
        name = re.sub(r"[^A-Za-z0-9._-]", "-", self.url.partition("?")[0].rpartition("/")[2])
        return name if name.endswith((".yaml", ".yml", ".json")) else f"{name}.yaml"

    def __str__(self) -> str:
        return self.url.partition("?")[0]


Pin: TypeAlias = ChartSpec | BasePin | FilePin


def bare(pin: Pin) -> Pin:
    """Return a pin without that by which it is known."""
    return replace(pin, commit="") if isinstance(pin, BasePin) else replace(pin, digest="")


def known_by(pin: Pin) -> str:
    """Return the digest or the commit of a pin; empty for a bare one."""
    return pin.digest if isinstance(pin, ChartSpec) else pin.known_by


def is_alike(one: Pin, other: Pin) -> bool:
    """Tell whether two are the same but for the version, or the ref, that is asked for."""
    if isinstance(one, ChartSpec) and isinstance(other, ChartSpec):
        return (one.repository, one.name) == (other.repository, other.name)
    return isinstance(one, BasePin) and isinstance(other, BasePin) and one.repository == other.repository


def version_of(pin: Pin) -> str:
    """Return the version or the ref of a pin, empty for a file, which has none."""
    return pin.version if isinstance(pin, ChartSpec) else pin.ref if isinstance(pin, BasePin) else ""


def _text(fields: Mapping[str, Any], above: str, field: str) -> str:
    text = fields.get(field)
    if text is None and field in {"commit", "digest"}:
        return ""
    if not isinstance(text, str) or not text or len(text) > _LONGEST:
        raise SyncSpecError(
            f"{above}.{field}", "is required" if not text else "isn't a text of some hundred characters"
        )
    return text


def _check_url(url: str, field: str, what: str) -> None:
    """Return if *url* names a place in one way only, and no password.

    Raises:
        SyncSpecError: it doesn't.
    """
    try:
        Address.of(url)
    except NoAddressError:
        raise SyncSpecError(field, f"{_shown(url)} isn't the URL of {what}") from None
    if url.startswith(("https://", "http://")) and "@" in url.split("/")[2]:
        raise SyncSpecError(field, f"{_shown(url)} had credentials in it: they belong into a Secret that names the URL")


def _shown(text: str) -> str:
    return repr(without_credentials(text)[:_SHOWN])


READERS: Final[Mapping[str, Callable[[Mapping[str, Any], str], Pin]]] = {
    "charts": ChartSpec.of,
    "bases": BasePin.of,
    "files": FilePin.of,
}
"""What reads an entry of each list of a lock file."""

FIELDS: Final = {
    "charts": ("repository", "name", "version", "digest"),
    "bases": ("repository", "ref", "commit"),
    "files": ("url", "digest"),
}
"""The fields of an entry of each list, in their order; what it is known by at the end."""


def pin_of(name: str, fields: Any, above: str) -> Pin:
    """Return the pin that an entry of the list *name* says, which is at the field *above*.

    Raises:
        SyncSpecError: it says none.
    """
    own = FIELDS[name]
    if not isinstance(fields, dict):
        raise SyncSpecError(above, f"isn't an entry with {', '.join(own[:-1])} and {own[-1]}")
    check_fields(fields, own, above)
    pin = READERS[name](fields, above)
    if not known_by(pin):
        raise SyncSpecError(f"{above}.{own[-1]}", "is required")
    return pin


def list_of(pin: Pin) -> str:
    """Return the list of a lock file that a pin stands in."""
    return {ChartSpec: "charts", BasePin: "bases", FilePin: "files"}[type(pin)]
