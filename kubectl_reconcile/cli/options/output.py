"""How output looks: ``-o`` and its formats, ``--side-by-side``, ``--reasons``, colour, the pager."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import click
from msgspec import Struct

from kubectl_reconcile.cli.options.flags import Command, colour, given

FORMATS = ("diff", "tree", "summary", "wide", "github", "name", "json", "yaml", "jsonpath=")
"""How a plan may be written."""

_FOR_PEOPLE = {"diff", "tree", "summary", "wide"}


class FormatType(click.Choice[str]):
    """One of several formats; one that ends with ``=`` takes a template: ``jsonpath={.metadata.name}``."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the format as given."""
        name, equals, template = str(value).partition("=")
        if equals and template and f"{name}=" in self.choices:
            self._check(template, param, ctx)
            return str(value)
        if value in self.choices and str(value).endswith("="):
            self.fail(f"{value} needs a template, as in -o {value}'{{.metadata.name}}'", param, ctx)
        return super().convert(value, param, ctx)

    def _check(self, template: str, param: click.Parameter | None, ctx: click.Context | None) -> None:
        try:
            importlib.import_module("kubectl_reconcile.cli.output.data.jsonpath").Template.parse(template)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def output(*formats: str, default: str | None = None) -> Callable[[Command], Command]:
    """Give a command ``-o`` with these formats; it is called with *output*."""
    return click.option(
        "-o",
        "--output",
        type=FormatType(formats),
        default=default,
        show_default=default is not None,
        help="Format of the output.",
    )


class OutputOptions(Struct, frozen=True):
    """How a plan is to be shown."""

    output: str = "diff"
    color: str = "auto"
    side_by_side: bool = False
    reasons: bool = False
    pager: bool = True

    @property
    def is_for_people(self) -> bool:
        """Tell whether a person reads it, who is told what counts and what comes next."""
        return self.output in _FOR_PEOPLE


def look(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the flags that say how a plan is shown; it is called with *look*."""
    flags = (
        output(*FORMATS, default="diff"),
        click.option("--side-by-side", is_flag=True, help="Show before and after in two columns."),
        click.option("--reasons", is_flag=True, help="Show the fields that change, each with the reason."),
        click.option("--no-pager", is_flag=True, help="Never show long output through $PAGER."),
        colour,
    )

    def looked(*, output: str, color: str, side_by_side: bool, reasons: bool, no_pager: bool, **rest: Any) -> Any:
        if (side_by_side or reasons) and (output != "diff" or (side_by_side and reasons)):
            raise click.UsageError("-o, --side-by-side and --reasons exclude each other")
        return command(look=OutputOptions(output, color, side_by_side, reasons, pager=not no_pager), **rest)

    looked.__doc__, looked.__name__ = command.__doc__, command.__name__
    looked.__dict__.update(command.__dict__)
    return given(flags, looked)
