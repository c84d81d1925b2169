"""Flags that commands share: kubectl's own, where manifests come from, and how output looks.

kubectl's common flags may stand before or after the verb; what stands after it wins. Only those
that people reach for daily are in each command's help, the rest in ``kubectl reconcile options``,
as kubectl does it.

Importing this page imports nothing that talks to a cluster.
"""

from __future__ import annotations

import datetime as dt
import functools
import re
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeAlias, TypeVar

import click
from click.shell_completion import CompletionItem

from kubectl_reconcile.cli.output.failures import ExitStatus, Failure
from kubectl_reconcile.cli.output.terminal import Terminal

if TYPE_CHECKING:  # these take a tenth of a second or more to import, and most commands' help needs none of them
    from kubectl_reconcile.cluster.access import Access
    from kubectl_reconcile.core.objects import Manifest
    from kubectl_reconcile.core.planning.plan import Plan
    from kubectl_reconcile.engine.sync.reconcile import Target
    from kubectl_reconcile.engine.sync.session import Session

_Command = TypeVar("_Command", bound=Callable[..., Any])
_T = TypeVar("_T")
Decorator: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]


# --- kubectl's common flags -------------------------------------------------------------------------------------------


class DurationType(click.ParamType[float]):
    """A duration as kubectl takes it: ``30s``, ``1m30s``, or bare seconds; 0 is no limit."""

    name = "duration"
    _FORM = re.compile(r"(?=[\d.])(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?(?:(\d+)ms)?")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the duration in seconds."""
        if isinstance(value, int | float):
            return float(value)
        if re.fullmatch(r"\d+(\.\d+)?", value):
            return float(value)
        found = self._FORM.fullmatch(value)
        if not found or not any(found.groups()):
            self.fail(f"{value!r} is no duration; write it as 30s, 5m or 1h30m", param, ctx)
        hours, minutes, seconds, millis = (float(part or 0) for part in found.groups())
        return hours * 3600 + minutes * 60 + seconds + millis / 1000


DURATION = DurationType()


def _cluster_options() -> tuple[Decorator, ...]:
    """Return kubectl's common flags; those marked hidden show in ``kubectl reconcile options`` only."""
    return (
        click.option("-n", "--namespace", metavar="NAME", help="Namespace of the Sync and of objects that name none."),
        click.option("--context", metavar="NAME", help="Context of the kubeconfig to use."),
        click.option(
            "--kubeconfig", metavar="FILE", help="Kubeconfig to use instead of $KUBECONFIG or ~/.kube/config."
        ),
        click.option("--cluster", metavar="NAME", hidden=True, help="Cluster of the kubeconfig to use."),
        click.option("--user", metavar="NAME", hidden=True, help="User of the kubeconfig to use."),
        click.option("--as", "as_user", metavar="USER", hidden=True, help="User to impersonate."),
        click.option(
            "--as-group",
            "as_groups",
            metavar="GROUP",
            multiple=True,
            hidden=True,
            help="Group to impersonate; may be given several times.",
        ),
        click.option("--as-uid", metavar="UID", hidden=True, help="UID to impersonate."),
        click.option("-s", "--server", metavar="URL", hidden=True, help="Address of the API server."),
        click.option("--token", metavar="TOKEN", hidden=True, help="Bearer token for the API server."),
        click.option(
            "--request-timeout",
            type=DURATION,
            metavar="DURATION",
            hidden=True,
            help="How long one request may take, such as 5s or 2m; 0 is no limit.",
        ),
        click.option(
            "--certificate-authority",
            metavar="FILE",
            hidden=True,
            help="Certificate of the authority that signed the server's.",
        ),
        click.option("--client-certificate", metavar="FILE", hidden=True, help="Client certificate for TLS."),
        click.option("--client-key", metavar="FILE", hidden=True, help="Key of the client certificate."),
        click.option(
            "--insecure-skip-tls-verify", is_flag=True, hidden=True, help="Trust whatever server answers. Not safe."
        ),
        click.option(
            "--tls-server-name", metavar="NAME", hidden=True, help="Name that the server's certificate must have."
        ),
        click.option(
            "--cache-dir",
            metavar="FOLDER",
            hidden=True,
            help="Where clones and schemas are kept between runs.  [default: $XDG_CACHE_HOME/kubectl-reconcile]",
        ),
        click.option(
            "-v",
            "--v",
            "verbosity",
            type=click.IntRange(0, 10),
            metavar="LEVEL",
            hidden=True,
            help="How much to tell of the work on standard error: 2 what is done, 6 each request too.  [default: 0]",
        ),
        click.option("--debug", is_flag=True, hidden=True, help="Show a traceback with an error, as for a bug report."),
    )


def _flag_names() -> tuple[str, ...]:
    return tuple(param.name or "" for param in common_flags())


@functools.cache
def common_flags() -> tuple[click.Option, ...]:
    """Return kubectl's common flags as click's parameters."""
    command = given(_cluster_options(), lambda: None)
    return tuple(reversed(command.__click_params__))  # type: ignore[attr-defined]  # where click's decorators keep them


def given(options: tuple[Decorator, ...], command: Callable[..., Any]) -> Callable[..., Any]:
    """Give *command* several flags, which help lists in this order."""
    for option in reversed(options):
        command = option(command)
    return command


def accept_common_flags(command: _Command) -> _Command:
    """Let a group take kubectl's common flags before the verb, for the verb to find."""
    return given(_cluster_options(), command)  # type: ignore[return-value]


@dataclass(frozen=True, slots=True)
class Connection:
    """What the common flags say: the cluster to talk to, and where to keep what is learned of it."""

    flags: Mapping[str, Any]

    @property
    def access(self) -> Access:
        """The flags as the cluster's client takes them."""
        from kubectl_reconcile.cluster.access import Access  # noqa: PLC0415 - help and version do without

        return Access.of_flags(
            **{name: value for name, value in self.flags.items() if name not in _OURS}, request_timeout_s=self.timeout_s
        )

    @property
    def timeout_s(self) -> float | None:
        """How long one request may take; None leaves it to the client."""
        return self.flags["request_timeout"] or None

    @property
    def cache_dir(self) -> Path | None:
        """The folder for clones and schemas; None is the usual one."""
        given = self.flags["cache_dir"]
        return Path(given).expanduser() if given else None

    def run(self, work: Callable[[Session], Coroutine[Any, Any, _T]]) -> _T:
        """Open a session, and return what *work* makes of it."""
        import asyncio  # noqa: PLC0415 - help and version do without

        self.tell()
        made: list[_T] = []
        asyncio.run(self._run(work, made.append))
        return made[0]

    def run_until_interrupted(self, work: Callable[[Session], Coroutine[Any, Any, _T]]) -> _T | ExitStatus:
        """Do the same for work that only looks, and that a person ends by Ctrl-C: that is no news to them."""
        try:
            return self.run(work)
        except KeyboardInterrupt:
            return ExitStatus.INTERRUPTED

    def tell(self) -> None:
        """Have the work told on standard error, as far as the user wants to know of it."""
        level = self.flags["verbosity"] or 0
        if level >= _TELLS_WORK:
            from kubectl_reconcile.engine.telemetry import logs  # noqa: PLC0415 - for one rare flag

            logs.set_up("debug" if level >= _TELLS_REQUESTS else "info", "text")

    async def _run(self, work: Callable[[Session], Coroutine[Any, Any, _T]], done: Callable[[_T], None]) -> None:
        """Call *done* with what *work* makes; asyncio spells out what its main task returns, and a plan is long."""
        from kubectl_reconcile.engine.sync.session import Session  # noqa: PLC0415 - imports all that talks to clusters

        async with Session.open(self.access, self.cache_dir) as session:
            done(await work(session))


_OURS = frozenset({"request_timeout", "cache_dir", "debug", "verbosity"})
_TELLS_WORK, _TELLS_REQUESTS = 2, 6


def common(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command kubectl's common flags; it is called with a `Connection` called *connection*."""

    @functools.wraps(command)
    def connected(**values: Any) -> Any:
        after = {name: values.pop(name) for name in _flag_names()}
        before = click.get_current_context().find_root().params
        return command(connection=Connection(_merged(before, after)), **values)

    return given(_cluster_options(), connected)


def _merged(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return the flags as given after the verb, or else before it. An empty text is given too."""
    return {name: before.get(name, value) if value in (None, (), False) else value for name, value in after.items()}


# --- where manifests come from ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Origin:
    """Where desired state comes from: a Sync by *name*, a *file* (or folder), or a *repo*. At most one is set.

    With *file* and *repo*, *name* is the Sync under which the objects are kept; empty for a mere preview. A Sync
    may be looked at with another *revision* of its repository, or with the working tree in *local*. It is in
    *namespace*; empty is the one that the flags and the kubeconfig say. *manager* is the field manager to apply a file or
    a repository as; empty is the Sync's.
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

    @property
    def is_sync(self) -> bool:
        """Tell whether a Sync says where its manifests are."""
        return not (self.file or self.repo)


def origin(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the argument SYNC and the flags that stand for it; it is called with *origin*."""
    options = (
        click.argument("sync", required=False, metavar="[SYNC]"),
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
            help="Whether folders in the folder of -f are read too.  [default: they are]",
        ),
        click.option("--repo", metavar="URL", help="Manifests of a Git repository instead of a Sync's."),
        click.option("--ref", metavar="REF", help="Branch, tag or commit of --repo.  [default: its default branch]"),
        click.option("--path", metavar="PATH", help="Folder or file in --repo.  [default: all of it]"),
        click.option("--name", "kept_under", metavar="NAME", help="Sync to which the objects of -f or --repo belong."),
        click.option(
            "--field-manager",
            metavar="NAME",
            help="Field manager to apply the objects of -f or --repo as.  [default: the Sync's, or kubectl-reconcile]",
        ),
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
    asked = ("sync", "file", "repo", "ref", "path", "kept_under", "field_manager", "revision", "local")

    @functools.wraps(command)
    def with_origin(**values: Any) -> Any:
        words = {name: values.pop(name) or "" for name in asked}
        recursive = values.pop("recursive")
        if "/" in words["sync"] or _is_path(words["sync"]):  # the name of an object, or the path of a file
            values["objects"] = (words["sync"], *values.get("objects", ()))
            words["sync"] = ""
        return command(origin=replace(_checked(words), recursive=recursive), **values)

    return given(options, with_origin)


def _checked(given: dict[str, str]) -> Origin:
    sync, file, repo = given["sync"], given["file"], given["repo"]
    if file and repo:
        raise click.UsageError("-f and --repo exclude each other")
    if (given["ref"] or given["path"]) and not repo:
        raise click.UsageError("--ref and --path say what of --repo to use; give that too")
    if sync and (file or repo):
        raise click.UsageError(
            f"a Sync says itself where its manifests are; to use {sync} for others, write --name {sync}"
        )
    if given["kept_under"] and not (file or repo):
        raise click.UsageError("--name goes with -f or --repo; a Sync is named without it")
    if given["field_manager"] and not (file or repo):
        raise click.UsageError("--field-manager goes with -f or --repo; a Sync says itself as whom it applies")
    if (given["revision"] or given["local"]) and (file or repo):
        raise click.UsageError("--revision and --local are for what a Sync follows; with --repo use --ref")
    if given["revision"] and given["local"]:
        raise click.UsageError("--revision and --local exclude each other")
    if file and file != "-" and not Path(file).exists():
        raise Failure(f"no file or folder {file}", "check -f", status=ExitStatus.SOURCE)
    return Origin(
        sync or given["kept_under"], file, repo, given["ref"], given["path"] or ".", given["revision"], given["local"],
        manager=given["field_manager"],
    )  # fmt: skip


@contextmanager
def readable(origin: Origin) -> Iterator[Origin]:
    """Yield *origin* with standard input put into a file, where it is one."""
    if origin.file != "-":
        yield origin
        return
    import tempfile  # noqa: PLC0415 - for one rare flag

    with tempfile.TemporaryDirectory(prefix="kubectl-reconcile-") as folder:
        file = Path(folder, "stdin.yaml")
        file.write_bytes(sys.stdin.buffer.read())
        yield replace(origin, file=str(file))


async def target_of(session: Session, origin: Origin) -> Target:
    """Return what *origin* stands for.

    Raises:
        NoSuchSync: there is no such Sync, or there are several and none was named.
        ApiError: the server refuses, or doesn't answer.
    """
    from kubectl_reconcile.engine.sync import targets  # noqa: PLC0415 - imports Git

    namespace = origin.namespace or session.client.namespace
    if origin.file:
        folder = Path(origin.file)
        return await targets.folder_target(
            session, folder, origin.name, namespace, recursive=origin.recursive, manager=origin.manager
        )
    if origin.repo:
        return await targets.repository_target(
            session, origin.repo, origin.ref, origin.path, origin.name, namespace, manager=origin.manager
        )
    if origin.revision:
        return await targets.revision_target(session, origin.name, namespace, origin.revision)
    if origin.local:
        return await targets.working_tree_target(session, origin.name, namespace, Path(origin.local))
    return await targets.sync_target(session, origin.name, namespace)


# --- which objects are meant ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which objects are meant, in the user's words; nothing given means all."""

    objects: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    selector: str = ""
    only: tuple[str, ...] = ()

    @property
    def is_everything(self) -> bool:
        """Tell whether nothing is left out."""
        return not (self.objects or self.kinds or self.selector or self.only)

    def of(self, session: Session, plan: Plan) -> Plan:
        """Return the chosen part of *plan*.

        Raises:
            SelectionError: a name, a kind or the selector can't be meant as it is written.
        """
        if self.is_everything:
            return plan
        from kubectl_reconcile.engine.commands.selection import Only, Selection, SelectionTerms  # noqa: PLC0415 - imports the planner

        files = [each for each in self.objects if _is_path(each)]
        names = [each for each in self.objects if not _is_path(each)]
        wanted = SelectionTerms(names, self.kinds, self.selector, files, frozenset(map(Only, self.only)))
        return Selection.of(wanted, session.discovery, plan).chosen(plan)


EVERYTHING = Chosen()
"""All objects."""


def _is_path(word: str) -> bool:
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
            "-k", "--kind", "kinds", metavar="KIND", multiple=True, help="Objects of this kind; may be repeated."
        ),
        click.option(
            "-l", "--selector", metavar="SELECTOR", default="", help="Objects with these labels, as in app=web."
        ),
        click.option(
            "--only",
            type=OnlyType(),
            metavar="WHAT",
            default=(),
            help="Changes of these sorts: create, update, delete, drift, with commas between.",
        ),
    )

    @functools.wraps(command)
    def with_selection(**values: Any) -> Any:
        words = {name: values.pop(name) for name in ("objects", "kinds", "selector", "only")}
        if bad := next((each for each in words["objects"] if "/" not in each and not _is_path(each)), ""):
            raise click.UsageError(f"{bad!r} is no object; write TYPE/NAME, as in deploy/web, or the path of a file")
        return command(chosen=Chosen(**words), **values)

    return given(options, with_selection)


async def live_sync(session: Session, name: str) -> Manifest:
    """Return the live Sync *name*, or the only one of the namespace that follows something.

    Raises:
        NotInstalled: the cluster doesn't know Syncs.
        NoSuchSync: there is none, or there are several and none was named.
        ApiError: the server refuses, or doesn't answer.
    """
    from kubectl_reconcile.engine.sync import targets  # noqa: PLC0415 - imports all that talks to clusters

    return await targets.live_sync(session, name, session.client.namespace)


# --- how output looks -------------------------------------------------------------------------------------------------


def colour(command: _Command) -> _Command:
    """Give a command ``--color``; it is called with *color*."""
    return click.option(
        "--color",
        type=click.Choice(["auto", "always", "never"]),
        default="auto",
        show_default=True,
        help="When to colour output; auto is on a terminal, unless NO_COLOR is set.",
    )(command)


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
        from kubectl_reconcile.cli.output.jsonpath import JsonPathError, Template  # noqa: PLC0415 - for one rare format

        try:
            Template.parse(template)
        except JsonPathError as error:
            self.fail(str(error), param, ctx)


def output(*formats: str, default: str | None = None) -> Callable[[_Command], _Command]:
    """Give a command ``-o`` with these formats; it is called with *output*."""
    return click.option(
        "-o",
        "--output",
        type=FormatType(formats),
        default=default,
        show_default=default is not None,
        help="Format of the output.",
    )


def screens(color: str) -> tuple[Terminal, Terminal]:
    """Return how to write to standard output and to standard error."""
    return Terminal.of(sys.stdout, color), Terminal.of(sys.stderr, color)


def stderr() -> IO[str]:
    """Return standard error, with everything told on standard output so far ahead of it."""
    sys.stdout.flush()
    return sys.stderr


def now() -> str:
    """Return the time in RFC 3339."""
    return dt.datetime.now(dt.UTC).isoformat()


def may_ask() -> bool:
    """Tell whether a person is there to answer: both ends are a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()
