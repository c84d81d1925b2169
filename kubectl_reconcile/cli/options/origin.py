"""Where manifests come from: the argument SYNC, and the flags that stand for it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from msgspec import Struct
from msgspec.structs import replace

from kubectl_reconcile.cli.options.flags import given
from kubectl_reconcile.cli.options.selection import is_path
from kubectl_reconcile.cli.options.sync_name import SYNC_NAME
from kubectl_reconcile.cli.output.failures import ExitStatus, Failure


class Origin(Struct, frozen=True):
    """Where desired state comes from: a Sync by *name*, a *file* (or folder), or a *repo*. At most one is set.

    With *file* and *repo*, *name* is the Sync under which the objects are kept; empty for a mere preview. A Sync
    may be looked at with another *revision* of its repository, or with the working tree in *local*. It is in
    *namespace*; empty is the one that the flags and the kubeconfig say. *manager* is the field manager to apply a file or
    a repository as; empty is the Sync's. *render* says how its files become objects. With *chart*, *repo* is a Helm repository, of which *version* and
    *digest* are pinned. *values* are files of values for a chart, and *sets* single ones. Files of SOPS are decrypted
    with the keys in the file *decrypt*, those that sops would take where it is empty, or those that the Sync names where it is None.
    """

    name: str = ""
    file: str = ""
    repo: str = ""
    ref: str = ""
    path: str = "."
    revision: str = ""
    local: str = ""
    namespace: str = ""
    recursive: bool = True
    manager: str = ""
    render: str = "Auto"
    chart: str = ""
    version: str = ""
    digest: str = ""
    values: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()
    decrypt: str | None = None

    @property
    def is_sync(self) -> bool:
        """Tell whether a Sync says where its manifests are."""
        return not (self.file or self.repo)


VALUES = click.option(
    "--values", "values", metavar="FILE", multiple=True, type=click.Path(exists=True, dir_okay=False),
    help="File of this machine with values for the chart. May be repeated; the last one wins.",
)  # fmt: skip
SET = click.option(
    "--set", "sets", metavar="NAME=VALUE", multiple=True,
    help="Value for the chart, as for helm --set: image.tag=1.2. May be repeated.",
)  # fmt: skip
VERSION = click.option("--version", metavar="VERSION", help="Exact version of the chart.")
DIGEST = click.option(
    "--digest", metavar="DIGEST", help="SHA-256 of the chart's archive. Without it, the error names it."
)


def rendering(what: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the option ``--render``, of which *what* says what it is about."""
    return click.option(
        "--render",
        type=click.Choice(["Auto", "Raw", "Kustomize", "Helm"]),
        help=f"{what}  [default: Auto, which renders a folder with a kustomization or a Chart.yaml]",
    )


def origin(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the argument SYNC and the flags that stand for it; it is called with *origin*."""
    manager = click.option(
        "--field-manager",
        metavar="NAME",
        help="Field manager for the objects of -f or --repo.  [default: the Sync's, or kubectl-reconcile]",
    )
    return source(manager(command))


def source(command: Callable[..., Any]) -> Callable[..., Any]:
    """Do the same for a command that applies nothing of what it reads."""
    options = (
        click.argument("sync", required=False, metavar="[SYNC]", type=SYNC_NAME),
        click.option(
            "-f",
            "--filename",
            "file",
            metavar="PATH",
            help="Manifests of a folder or file instead of a Sync's; - is standard input.",
        ),
        click.option(
            "-R/ ",
            "--recursive/--no-recursive",
            default=True,
            help="Whether to read subfolders of -f, too.  [default: yes]",
        ),
        click.option("--repo", metavar="URL", help="Manifests of a Git repository instead of a Sync's."),
        click.option("--ref", metavar="REF", help="Branch, tag or commit of --repo.  [default: its default branch]"),
        click.option("--path", metavar="PATH", help="Folder or file in --repo.  [default: all of it]"),
        rendering("How the files of -f or --repo become objects."),
        click.option(
            "--chart", metavar="NAME", help="Chart of the Helm repository at --repo instead of a Sync's source."
        ),
        VERSION,
        DIGEST,
        VALUES,
        SET,
        click.option(
            "--decrypt",
            metavar="[=KEYFILE]",
            is_flag=False,
            flag_value="",
            help="Decrypt files of SOPS with the age or OpenPGP keys in KEYFILE instead of those that the Sync names.  [default KEYFILE: where sops finds age keys]",
        ),
        click.option("--name", "kept_under", metavar="NAME", help="Sync that the objects of -f or --repo belong to."),
        click.option(
            "--revision",
            metavar="REV",
            help="Branch, tag, commit or ref (refs/pull/12/head) of the Sync's repository instead of what it follows.",
        ),
        click.option(
            "--local",
            metavar="FOLDER",
            type=click.Path(exists=True, file_okay=False),
            help="Working tree of the Sync's repository, as it is now, instead of what it follows.",
        ),
    )
    asked = (
        "sync", "file", "repo", "ref", "path", "kept_under", "field_manager", "revision", "local", "render", "chart", "version", "digest",
    )  # fmt: skip

    @functools.wraps(command)
    def with_origin(**values: Any) -> Any:
        words = {name: values.pop(name, None) or "" for name in asked}
        recursive, helm = values.pop("recursive"), {name: values.pop(name) for name in ("values", "sets")}
        if "/" in words["sync"] or is_path(words["sync"]):  # the name of an object, or the path of a file
            if "objects" not in values:
                raise click.UsageError(f"{words['sync']!r} isn't a name of a Sync; its namespace goes with -n")
            values["objects"] = (words["sync"], *values["objects"])
            words["sync"] = ""
        decrypt = values.pop("decrypt")
        origin = _with_values(replace(_checked(words), recursive=recursive, decrypt=decrypt), **helm)
        return command(origin=origin, **values)

    return given(options, with_origin)


def _check_chart(given: dict[str, str]) -> None:
    if given["chart"] and not (given["repo"] and given["version"]):
        raise click.UsageError("--chart needs --repo, the URL of a Helm repository, and --version, one exact version")
    for flag in ("version", "digest"):
        if given[flag] and not given["chart"]:
            raise click.UsageError(f"--{flag} needs --chart")
    for flag in ("ref", "path", "render"):
        if given[flag] and given["chart"]:
            raise click.UsageError(f"--{flag} and --chart exclude each other")


def _checked(given: dict[str, str]) -> Origin:
    _check_chart(given)
    sync, file, repo = given["sync"], given["file"], given["repo"]
    if file and repo:
        raise click.UsageError("-f and --repo exclude each other")
    if (given["ref"] or given["path"]) and not repo:
        raise click.UsageError("--ref and --path need --repo")
    if sync and (file or repo):
        raise click.UsageError(f"Sync {sync} has its own source; to apply other files as {sync}, write --name {sync}")
    if given["kept_under"] and not (file or repo):
        raise click.UsageError("--name needs -f or --repo; to name a Sync, write SYNC")
    if given["field_manager"] and not (file or repo):
        raise click.UsageError("--field-manager needs -f or --repo; a Sync has its own field manager")
    if given["render"] and not (file or repo):
        raise click.UsageError("--render needs -f or --repo; a Sync says how its files are rendered")
    if (given["revision"] or given["local"]) and (file or repo):
        raise click.UsageError("--revision and --local need a Sync with its own source; with --repo, use --ref")
    if given["revision"] and given["local"]:
        raise click.UsageError("--revision and --local exclude each other")
    if file and file != "-" and not Path(file).exists():
        raise Failure(f"no file or folder {file}", "check -f", status=ExitStatus.SOURCE)
    return Origin(
        sync or given["kept_under"], file, repo, given["ref"], given["path"] or ".", given["revision"], given["local"],
        manager=given["field_manager"], render=given["render"] or "Auto",
        chart=given["chart"], version=given["version"], digest=given["digest"],
    )  # fmt: skip


def _with_values(origin: Origin, values: tuple[str, ...], sets: tuple[str, ...]) -> Origin:
    """Return *origin* with values for a chart, which its files have to be then."""
    if not (values or sets):
        return origin
    if origin.is_sync:
        raise click.UsageError("--values and --set need -f, --repo or --chart; a Sync says its values itself")
    if origin.render not in {"Auto", "Helm"}:
        raise click.UsageError(f"--values and --set are for charts, and --render is {origin.render}")
    return replace(origin, values=values, sets=sets, render="Helm")
