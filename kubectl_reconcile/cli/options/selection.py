"""Which objects are meant: the argument OBJECT, and the flags that choose among a plan's."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click
from click.shell_completion import CompletionItem
from msgspec import Struct

from kubectl_reconcile.cli.options.flags import given


class Chosen(Struct, frozen=True):
    """Which objects are meant, in the user's words; nothing given means all."""

    objects: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    selector: str = ""
    only: tuple[str, ...] = ()

    @property
    def is_everything(self) -> bool:
        """Tell whether nothing is left out."""
        return not (self.objects or self.kinds or self.selector or self.only)


EVERYTHING = Chosen()
"""All objects."""


def is_path(word: str) -> bool:
    """Tell a path in the repository from ``TYPE/NAME``: it is a manifest, ends in ``/``, or has more folders."""
    return word.endswith((".yaml", ".yml", ".json", "/")) or word.startswith("./") or word.count("/") > 1


class OnlyType(click.ParamType[tuple[str, ...]]):
    """Some of ``create,update,delete,drift``, with commas between."""

    name = "only"
    WORDS = ("create", "update", "delete", "drift")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """Return the words, checked."""
        if isinstance(value, tuple):
            return value
        words = tuple(word.strip() for word in str(value).split(","))
        for word in words:
            if word not in self.WORDS:
                self.fail(f"{word!r} is not one of {', '.join(self.WORDS)}", param, ctx)
        return words

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        param: click.Parameter,  # noqa: ARG002 - click's signature
        incomplete: str,
    ) -> list[CompletionItem]:
        """Return the words that may come next."""
        head, comma, partial = incomplete.rpartition(",")
        return [CompletionItem(f"{head}{comma}{word}") for word in self.WORDS if word.startswith(partial)]


def selection(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the arguments OBJECT and the flags that choose objects; it is called with *chosen*."""
    options = (
        click.argument("objects", nargs=-1, metavar="[OBJECT...]"),
        click.option(
            "-k", "--kind", "kinds", metavar="KIND", multiple=True, help="Objects of this kind. May be repeated."
        ),
        click.option(
            "-l", "--selector", metavar="SELECTOR", default="", help="Objects with these labels, such as app=web."
        ),
        click.option(
            "--only",
            type=OnlyType(),
            metavar="WHAT",
            default=(),
            help="Only these changes, separated by commas: create, update, delete, drift.",
        ),
    )

    @functools.wraps(command)
    def with_selection(**values: Any) -> Any:
        words = {name: values.pop(name) for name in ("objects", "kinds", "selector", "only")}
        if bad := next((each for each in words["objects"] if "/" not in each and not is_path(each)), ""):
            raise click.UsageError(f"{bad!r} isn't an object; write TYPE/NAME, as in deploy/web, or the path of a file")
        return command(chosen=Chosen(**words), **values)

    return given(options, with_selection)
