"""YAML, read by the library's own parser in C: the one in Python takes seconds of processor time for a deployment's manifests."""

from __future__ import annotations

from typing import Any

import yaml

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def document(text: str | bytes) -> Any:
    """What the one document of *text* says."""
    return yaml.load(text, _LOADER)  # noqa: S506 - both are safe loaders


def documents(text: str | bytes) -> list[Any]:
    """What each document of *text* says."""
    return list(yaml.load_all(text, _LOADER))
