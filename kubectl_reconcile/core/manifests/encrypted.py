"""Files of SOPS: which ones they are, and in which format.

SOPS writes what it needs to know of a file into the file: ``sops`` at the top of YAML and JSON, a section ``[sops]`` of INI, variables ``sops_…`` of dotenv. What is
no such format is wrapped in JSON as one value (*binary*).

A file counts as encrypted as soon as it looks so: one whose metadata was damaged must be a problem, and never be taken for a plain one.

Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Final


class SopsFormat(StrEnum):
    """The format of an encrypted file, as SOPS calls it."""

    YAML = "yaml"
    JSON = "json"
    DOTENV = "dotenv"
    INI = "ini"
    BINARY = "binary"


SEALED: Final = "ENC[AES256_GCM,"
"""What each encrypted value begins with."""

_SEALED: Final = SEALED.encode()
_BY_NAME: Final = {
    ".yaml": SopsFormat.YAML, ".yml": SopsFormat.YAML, ".json": SopsFormat.JSON, ".env": SopsFormat.DOTENV,
    ".ini": SopsFormat.INI,
}  # fmt: skip
_YAML: Final = re.compile(rb"""^(?:sops|"sops"|'sops')[ \t]*:""", re.MULTILINE)
_FLOW: Final = re.compile(rb"""["']?\bsops\b["']?\s*:\s*[{\[]""")
_DOTENV: Final = re.compile(rb"^sops_\w+=", re.MULTILINE)
_INI: Final = re.compile(rb"^\[sops\]", re.MULTILINE)
_BINARY: Final = re.compile(rb'\A\s*\{\s*"data"\s*:\s*"ENC\[')
_TELLS: Final = (_SEALED, b"mac", b"lastmodified", b"encrypted_regex")


def format_of(path: str, data: bytes) -> SopsFormat | None:
    """Return the format of the file at *path*, which holds *data*, if SOPS has encrypted it; None of any other."""
    if b"sops" not in data or not any(each in data for each in _TELLS):
        return None
    named = next((each for end, each in _BY_NAME.items() if path.endswith(end)), None)
    return _by_content(data) if named is None else named if _LOOKS[named](data) else None


_LOOKS: Final[Mapping[SopsFormat, Callable[[bytes], object]]] = {
    SopsFormat.YAML: lambda data: _YAML.search(data) or (_SEALED in data and _FLOW.search(data)),
    SopsFormat.JSON: _FLOW.search,
    SopsFormat.DOTENV: _DOTENV.search,
    SopsFormat.INI: _INI.search,
}


def _by_content(data: bytes) -> SopsFormat | None:
    """Return the format of a file whose name says none."""
    if data.lstrip().startswith(b"{"):
        wrapped = SopsFormat.BINARY if _BINARY.search(data) else SopsFormat.JSON
        return wrapped if _FLOW.search(data) else None
    if _INI.search(data):
        return SopsFormat.INI
    if _DOTENV.search(data):
        return SopsFormat.DOTENV
    return SopsFormat.YAML if _YAML.search(data) and _SEALED in data else None
