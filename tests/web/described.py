"""Answers of the API held against what docs/page-api.json says of them."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastjsonschema

DOCUMENT = json.loads((Path(__file__).parents[2] / "docs" / "page-api.json").read_text())


def as_described(method: str, path: str, status: int, answer: Any) -> Any:
    """Return *answer*, which is to what was asked as the document says it."""
    place = path.partition("?")[0]
    if place.startswith("/api/"):
        shape("Error" if status != 200 else answer_to(method, place))(answer)
    return answer


def answer_to(method: str, place: str) -> str:
    """The name of the shape of what is answered at *place*: of paths that fit, the one with the fewest parts that may be anything counts."""
    fitting = [path for path in DOCUMENT["paths"] if re.fullmatch(re.sub("{[^}]+}", "[^/]+", path), place)]
    operation = DOCUMENT["paths"][min(fitting, key=lambda path: path.count("{"))][method.lower()]
    (content,) = operation["responses"]["200"]["content"].values()
    return content["schema"]["$ref"].rpartition("/")[2]


@functools.cache
def shape(name: str) -> Callable[[Any], Any]:
    """What raises an error for whatever hasn't the shape of that name."""
    return fastjsonschema.compile({"$ref": f"#/components/schemas/{name}", "components": DOCUMENT["components"]})
