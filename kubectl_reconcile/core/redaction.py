"""Keeps the values of Secrets out of sentences.

A server that refuses a Secret may quote what it refuses, and so may a webhook, or our own merge.
Whatever is said of a Secret passes through here before it reaches an error, an event, a status, a
log or a terminal: each value becomes ``***`` in whatever spelling it stands there (``core.spellings``), whole, line by line or cut short, and
so does what a decoder quotes.

Pure: text in, text out.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from kubectl_reconcile.core.objects import API_GROUP, Manifest, annotations_of
from kubectl_reconcile.core.spellings import Sought

_HIDDEN = "***"
_PASSWORD = re.compile(r"^([^/@:]*):[^/]*@")
_USERINFO = re.compile(r"^[^/?#]*@")
_TELLING = 8  # what is shorter, as "true", is in sentences that have nothing to do with it
_QUOTED = re.compile(r"&value\.\w+\{.*\}")


def redacted(text: str, *manifests: Manifest | None) -> str:
    """Return *text* without the values of those *manifests* that are Secrets."""
    secrets = [manifest for manifest in manifests if manifest is not None and manifest.get("kind") == "Secret"]
    if not secrets:
        return text
    text = _QUOTED.sub(_HIDDEN, text)
    return without(text, {value for secret in secrets for value in values_in(secret)})


def without(text: str, values: Iterable[str]) -> str:
    """Return *text* without these values, however they are spelled in it.

    A value of up to four characters is hidden where it stands alone: "a" is in every sentence, where it tells nothing.
    """
    return without_sought(text, Sought.of(values))


def without_sought(text: str, sought: Sought) -> str:
    """Return *text* without the values that are sought: for many texts they are prepared once."""
    parts: list[str] = []
    at = 0
    for start, end in sought.places_in(text):
        parts += (text[at:start], _HIDDEN)
        at = end
    return "".join([*parts, text[at:]])


def without_credentials(url: str) -> str:
    """Return a URL without a user and a password, which may be secret; of SSH, the user stays, who isn't.

    Anything may be taken for a URL, also what is none: of ``user:password@host:path`` the password goes.
    """
    scheme, there, rest = url.partition("://")
    if not there or "ssh" in scheme.lower():
        rest = _PASSWORD.sub(r"\1@", rest if there else url)
    else:
        rest = _USERINFO.sub("", rest)
    return f"{scheme}://{rest}" if there else rest


def values_in(secret: Manifest) -> Iterator[str]:
    """Yield the values of a Secret, plain and in base64, and those in its annotations."""
    for name in ("data", "stringData"):
        tree = secret.get(name)
        yield from _spelled(tree)
    for name, text in annotations_of(secret).items():
        if not is_ours(name) and len(str(text)) > _TELLING:
            yield str(text)
            yield from _copied(str(text))


def without_values(secret: Manifest | None) -> Manifest | None:
    """Return a Secret without its values and annotations, but with the names of both: what may be known of it by everybody."""
    if secret is None:
        return None
    metadata = {name: value for name, value in (secret.get("metadata") or {}).items() if name != "annotations"}
    names = {"annotations": sorted(map(str, annotations_of(secret)))}
    for name in ("data", "stringData"):
        tree = secret.get(name)
        names[name] = sorted(map(str, tree)) if isinstance(tree, dict) else []
    kept = {name: value for name, value in secret.items() if name not in {"data", "stringData", "metadata"}}
    return {**kept, "metadata": metadata, "names": names}


def is_ours(annotation: str) -> bool:
    """Tell whether an annotation is one that we write, none of which holds a value of the object."""
    return annotation.startswith((API_GROUP + "/", "applyset.kubernetes.io/"))


def _copied(text: str) -> Iterator[str]:
    """Yield the values in an annotation that holds a copy of the Secret, as tools keep it for their next merge."""
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError):
        return
    for name in ("data", "stringData"):
        yield from _spelled(tree.get(name) if isinstance(tree, dict) else None)


def _spelled(value: Any) -> Iterator[str]:
    """Yield every leaf as the text that it is, and as what it encodes, be that text or not."""
    if isinstance(value, dict):
        for below in value.values():
            yield from _spelled(below)
    elif isinstance(value, list):
        for below in value:
            yield from _spelled(below)
    elif value is not None and (text := str(value)):
        yield text
        try:
            decoded = base64.b64decode(text, validate=True).decode("utf-8", "surrogateescape")
        except (binascii.Error, ValueError):
            return
        if decoded:
            yield decoded
