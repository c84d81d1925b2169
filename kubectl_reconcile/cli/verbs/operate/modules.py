"""``kubectl reconcile modules``: which modules there are, what they may do, how to begin one and how to test one."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kubectl_reconcile.cli.options.flags import colour
from kubectl_reconcile.cli.output.failures import ExitStatus, Failure
from kubectl_reconcile.cli.output.terminal import terminals
from kubectl_reconcile.views.text import Line, Tone, line

if TYPE_CHECKING:
    from kubectl_reconcile.core.module.api import Module
    from kubectl_reconcile.core.module.cases import Case
    from kubectl_reconcile.engine.modules.registry import KnownModules


@click.group(
    epilog="""
\b
Examples:
  kubectl reconcile modules list
  kubectl reconcile modules show candy
  kubectl reconcile modules new shop --kind Shop
  kubectl reconcile modules test case.json
"""
)
def modules() -> None:
    """List, show, create and test domain modules."""


_FROM = click.option(
    "--from",
    "place",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Use the modules of this Python file, too.",
)


@modules.command("list")
@_FROM
@colour
def list_(*, place: str | None, color: str) -> int:
    """List the installed modules, and the hooks that KUBECTL_RECONCILE_WEBHOOKS names. Writes nothing.

    For a hook, kinds are listed by their plural name, because its manifest doesn't have the kind.

    Exit status: 0 all could be loaded, 6 some could not, and standard error says why.
    """
    from kubectl_reconcile.engine.modules.registry import installed_modules

    out, err = terminals(color)
    rows = [("NAME", "KIND", "OWNS", "OUTSIDE")]
    known = installed_modules()
    for one in _installed(known, place):
        owns = ", ".join(str(gvk.group_kind) for gvk in one.owns) or "-"
        rows.append(
            (
                one.name,
                f"{one.gvk.group_kind}/{one.gvk.version}",
                owns,
                "acts" if one.act else "observes" if one.observe else "-",
            )
        )
    widths = [max(len(row[at]) for row in rows) for at in range(4)]
    out.write(
        line("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()) for row in rows
    )
    for fault in known.faults:
        err.write([line(f"{fault.why} (hint: {fault.hint})", Tone.BAD if fault.is_missing else Tone.WARNING)])
    return ExitStatus.FAILED if any(fault.is_missing for fault in known.faults) else ExitStatus.OK


@modules.command()
@click.argument("name")
@_FROM
@colour
def show(name: str, *, place: str | None, color: str) -> int:
    """Show what the module NAME does, what it reads and creates, and its rights. Writes nothing."""
    out, _ = terminals(color)
    out.write(_described(_named(name, place)))
    return ExitStatus.OK


def _described(one: Module) -> Iterator[Line]:
    from kubectl_reconcile.core.module.rbac import rules_here, rules_of
    from kubectl_reconcile.views.yamltext import dump

    yield line(f"{one.name}: {one.gvk}", Tone.TITLE)
    yield from (line(text) for text in one.docs.splitlines())
    yield line("")
    yield from (line(f"owns   {gvk}") for gvk in one.owns)
    for reads in one.reads:
        which = (
            ", by name, where it is asked for"
            if reads.on_request
            else ", all of the namespace"
            if reads.whole_namespace
            else ""
        )
        yield line(f"reads  {reads.gvk}{f' with {reads.selector}' if reads.selector else ''}{which}")
    if one.finalize:
        yield line(f"cleans up before a deletion (finalizer {one.finalizer})")
    if one.observe:
        yield line(f"observes an external system, for at most {one.observe_s:g} s{'; acts on it' if one.act else ''}")
    yield line("needs these rights:")
    yield from (line(text) for text in dump(rules_of(one)))
    if here := rules_here(one):
        yield line("and these in the namespaces of its custom resources (kubectl reconcile grant):")
        yield from (line(text) for text in dump(here))


@modules.command()
@click.argument("name")
@click.option("--kind", required=True, metavar="KIND", help="The kind of its custom resource.")
@click.option("--api", default="example.com/v1alpha1", show_default=True, metavar="GROUP/VERSION", help="Its API.")
@click.option("--folder", metavar="FOLDER", help="Where to write it.  [default: a new folder NAME]")
@colour
def new(name: str, *, kind: str, api: str, folder: str | None, color: str) -> int:
    """Create a module: the module itself, its CRD, an example, and tests that pass."""
    from kubectl_reconcile.engine.commands import scaffold

    out, _ = terminals(color)
    try:
        written = scaffold.write(scaffold.Names.of(name, kind, api), Path(folder or name))
    except scaffold.ScaffoldError as error:
        raise Failure(str(error), status=ExitStatus.USAGE) from error
    except OSError as error:
        raise Failure(f"{error.filename} can't be written: {error.strerror}") from error
    out.write(line(str(path), Tone.ADDED) for path in written)
    out.write([line(f"next: cd {folder or name} && pytest")])
    return ExitStatus.OK


@modules.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False), metavar="CASE...")
@_FROM
@click.option("--update", is_flag=True, help="Write the new outcomes into the files.")
@colour
def test(files: tuple[str, ...], *, place: str | None, update: bool, color: str) -> int:
    """Run modules on each recorded CASE, and show what differs from the recorded outcome.

    Exit status: 0 nothing differs, 6 something differs or a module fails.
    """
    from kubectl_reconcile.core.module.call import ModuleError
    from kubectl_reconcile.core.module.cases import differences
    from kubectl_reconcile.engine.modules.purity import asked

    out, err = terminals(color)
    worst = ExitStatus.OK
    for file in files:
        case = _case(file)
        try:
            after = case.answered(_named(case.module, place), asked)
        except ModuleError as error:
            err.write([line(f"{file}: {error}", Tone.BAD)])
            worst = ExitStatus.FAILED
            continue
        found = list(differences(case, after))
        verdict = f"{len(found)} difference{'s' * (len(found) > 1)}" if found else "the same"
        out.write([line(f"{file}: {verdict}", Tone.BAD if found else Tone.GOOD)])
        out.write(line(f"  {text}", Tone.WARNING) for text in found)
        if found and update:
            Path(file).write_text(json.dumps(after.tree(), indent=2, sort_keys=True) + "\n")
        elif found:
            worst = ExitStatus.FAILED
    return worst


def _case(file: str) -> Case:
    from kubectl_reconcile.core.module.cases import Case, CaseError

    try:
        return Case.of(json.loads(Path(file).read_bytes()))
    except (CaseError, ValueError) as error:
        raise Failure(f"{file}: {error}", status=ExitStatus.SOURCE) from error


def _installed(known: KnownModules, place: str | None) -> list[Module]:
    """Return the modules of installed packages, those of the file *place*, and the hooks that the environment names."""
    from kubectl_reconcile.engine.modules import metacontroller

    found = {one.name: one for one in known.all_loaded()}
    found |= {one.name: one for one in metacontroller.modules_offline()}
    found |= {one.name: one for one in _loaded(Path(place))} if place else {}
    return [found[name] for name in sorted(found)]


def _loaded(file: Path) -> tuple[Module, ...]:
    """Return the modules of a Python file that the user names: it is run as the user."""
    import importlib.util

    from kubectl_reconcile.core.module.api import modules_in

    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise Failure(f"{file} isn't a Python file", status=ExitStatus.USAGE)
    python_module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = python_module
    try:
        spec.loader.exec_module(python_module)
    except Exception as error:
        raise Failure(f"{file} can't be loaded: {type(error).__name__}: {error}") from error
    return modules_in(python_module)


def _named(name: str, place: str | None) -> Module:
    from kubectl_reconcile.engine.modules.registry import installed_modules

    known = installed_modules()
    found = {one.name: one for one in _installed(known, place)}
    if name not in found:
        faults = "".join(f"; {fault.why}" for fault in known.faults if fault.is_missing)
        raise Failure(f"there is no module {name}; there are {', '.join(found)}{faults}", status=ExitStatus.USAGE)
    return found[name]
