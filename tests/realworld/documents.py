"""YAML as public repositories have it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml


class _Loader(yaml.CSafeLoader):
    """PyYAML's own, which can also read the plain ``=`` that some CRDs have."""


_Loader.add_constructor("tag:yaml.org,2002:value", lambda loader, node: loader.construct_scalar(node))


def loaded(content: bytes | str) -> list[Any]:
    """Return the documents of one file."""
    return list(yaml.load_all(content, Loader=_Loader))


def documents(content: bytes | str) -> Iterator[dict[str, Any]]:
    """Yield the objects of one file."""
    for document in loaded(content):
        if isinstance(document, dict) and document.get("kind"):
            yield from document.get("items") or () if document["kind"].endswith("List") else [document]
