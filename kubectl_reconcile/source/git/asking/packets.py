"""What is said between us and a Git server when we ask where refs are: packet lines, as bytes.

Vocabulary is git's (gitprotocol-common(5), gitprotocol-v2(5), gitprotocol-pack(5)): an *advertisement* says what the server speaks;
in version 2 it holds no refs, and a *question* asks for those that begin with given names; before, it holds them all.

Pure: bytes in, values out. What isn't whole, or isn't what the protocol prescribes, is never taken for "no such ref".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct, field

from kubectl_reconcile.source.errors import SourceError, SourceFault

_SHA1: Final = "sha1"
_HASH: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_PEELED: Final = "^{}"
_END: Final = b"ERR the server's answer is incomplete"
"""What is read behind the last packet line."""


class UnclearError(SourceError):
    """What came back isn't what we understand; git may know more."""

    def __init__(self, what: str) -> None:
        super().__init__(SourceFault.FAILED, what)


class Advertisement(Struct, frozen=True):
    """What a server speaks: version 2, with the *object_format* of the repository; or an older one, with the *refs* that it has."""

    object_format: str = _SHA1
    refs: Mapping[str, str] | None = field(default=None)


def packets(answer: bytes) -> Iterator[bytes | None]:
    """Yield the content of each packet line, without a newline at its end; None for a flush.

    Raises:
        UnclearError: the answer isn't made of packet lines, or ends within one.
    """
    at = 0
    while at < len(answer):
        digits = answer[at : at + 4]
        if not re.fullmatch(rb"[0-9a-fA-F]{4}", digits):
            raise UnclearError("the server's answer isn't made of packet lines")
        size = int(digits, 16)
        if size == 0:
            yield None
        elif size < 4 or at + size > len(answer):
            raise UnclearError("the server's answer is incomplete")
        else:
            yield answer[at + 4 : at + size].removesuffix(b"\n")
        at += max(size, 4)


def advertised(answer: bytes, names: Iterable[str]) -> Advertisement:
    """Return what a server advertises; of the refs of an older one, those of *names*.

    Raises:
        UnclearError: it is no advertisement, or not all of it.
    """
    lines = packets(answer)
    first = next(lines, _END)
    if first == b"# service=git-upload-pack" and next(lines, _END) is None:
        first = next(lines, _END)
    said = _section(first, lines)
    if first == b"version 2":
        offered = dict(line.decode("ascii", "replace").partition("=")[::2] for line in said[1:])
        if "ls-refs" not in offered:
            raise UnclearError("the server can't list its refs")
        return Advertisement(offered.get("object-format", _SHA1))
    if said[:1] == [b"version 1"]:
        del said[0]
    plain = (line.partition(b"\0")[0] for line in said if not line.startswith(b"shallow "))
    return Advertisement(refs=_refs(plain, frozenset(names)))


def question(names: Iterable[str], object_format: str) -> bytes:
    """Return what asks a server of version 2 for the refs that begin with any of *names*, and for what annotated tags point at."""
    prefixes = dict.fromkeys(name.removesuffix(_PEELED) for name in names)
    about = [] if object_format == _SHA1 else [f"object-format={object_format}"]
    asked = ["peel", *(f"ref-prefix {each}" for each in prefixes)]
    return b"".join([*map(_packet, ["command=ls-refs", *about]), b"0001", *map(_packet, asked), b"0000"])


def told(answer: bytes, names: Iterable[str]) -> dict[str, str]:
    """Return where each of *names* is by the answer to a question; what isn't in it the server doesn't have.

    Raises:
        UnclearError: it is no such answer, or not all of it.
    """
    lines = packets(answer)
    return _refs(_section(next(lines, _END), lines), frozenset(names))


def _packet(text: str) -> bytes:
    line = f"{text}\n".encode()
    return b"%04x%b" % (len(line) + 4, line)


def _section(first: bytes | None, lines: Iterator[bytes | None]) -> list[bytes]:
    """Return the lines from *first* to the flush that ends them; nothing may come after it."""
    found, line = [], first
    while line is not None:
        if line.startswith(b"ERR "):
            raise UnclearError(line[4:].decode(errors="replace"))
        found.append(line)
        line = next(lines, _END)
    if next(lines, None) is not None:
        raise UnclearError("the server sends more than was requested")
    return found


def _refs(lines: Iterable[bytes], names: frozenset[str]) -> dict[str, str]:
    """Return where each of *names* is: ``HASH NAME``, with ``peeled:HASH`` behind it, or in a line of its own. A name that ends in a slash stands for all below it."""
    found: dict[str, str] = {}
    folders = tuple(each for each in names if each.endswith("/"))

    def is_asked(name: str) -> bool:
        return name in names or name.startswith(folders)

    for line in lines:
        sha, _, rest = line.decode(errors="replace").partition(" ")
        name, *attributes = rest.split(" ")
        if sha == "unborn":
            continue
        if not _HASH.fullmatch(sha) or not name:
            raise UnclearError("the server lists something that isn't a ref")
        if is_asked(name):
            found[name] = sha
        for attribute in attributes:
            kind, _, value = attribute.partition(":")
            if kind == "peeled" and _HASH.fullmatch(value) and is_asked(f"{name}{_PEELED}"):
                found[f"{name}{_PEELED}"] = value
    return found
