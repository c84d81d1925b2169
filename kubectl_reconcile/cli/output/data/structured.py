"""Documents, and JSON trees, in the forms that programs read: JSON, YAML, or what a JSONPath template makes of them."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable, Iterator
from typing import Any

from kubectl_reconcile.views.document import plain
from kubectl_reconcile.views.text import Line, line
from kubectl_reconcile.views.yamltext import dump


def structured(tree: Any, output: str) -> Iterable[Line]:
    """Return *tree* as ``json``, ``yaml`` or through a ``jsonpath=`` template, which was checked before."""
    if output == "json":
        return json_lines(tree)
    if output == "yaml":
        return yaml_lines(tree)
    jsonpath = importlib.import_module(
        "kubectl_reconcile.cli.output.data.jsonpath"
    )  # slow to import, for one rare format
    filled: str = jsonpath.Template.parse(output.partition("=")[2]).fill(plain(tree))
    return map(line, filled.removesuffix("\n").split("\n"))


def json_lines(tree: Any) -> Iterator[Line]:
    """Yield *tree* as indented JSON, in ASCII: whatever it holds is safe on a terminal and the same in a pipe."""
    return (line(text) for text in json.dumps(plain(tree), indent=2, ensure_ascii=True).split("\n"))


def yaml_lines(tree: Any) -> Iterator[Line]:
    """Yield *tree* as YAML."""
    return (line(text) for text in dump(plain(tree)))
