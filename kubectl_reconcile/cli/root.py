"""The command ``kubectl reconcile`` as click knows it: the table of verbs, and the group that finds one.

A verb is a module of its own: flags, help and what it does, imported when it is asked for. What it takes to do it is imported when
it runs, and one-line helps stand in the table here, so that ``--help``, ``version`` and completion start in an instant.
"""

from __future__ import annotations

import difflib
import importlib
from typing import NamedTuple

import click

from kubectl_reconcile.cli.options.flags import accept_common_flags

PROGRAM = "kubectl reconcile"
"""What the program is called in its own words: users reach it through kubectl."""


class Verb(NamedTuple):
    """Where in ``cli.verbs`` a verb is, what it does in a phrase, and what it is called there, if it isn't what it is called here."""

    module: str
    short: str
    called: str = ""


VERBS = {
    "diff": Verb("inspect.diff", "Show what the next sync would change. Writes nothing."),
    "render": Verb("inspect.render", "Print the objects that a sync would apply. Writes nothing."),
    "lock": Verb("change.lock", "Pin what a chart or an overlay has fetched."),
    "sync": Verb("change.sync", "Make the cluster match the source of a Sync."),
    "status": Verb("inspect.status", "Show the status of Syncs. Writes nothing."),
    "wait": Verb("inspect.wait", "Wait until a Sync is healthy, synced or deleted. Writes nothing."),
    "get": Verb("inspect.get", "Show Syncs in a table. Writes nothing."),
    "create": Verb("change.create", "Create a Sync, after checking its repository."),
    "import": Verb("change.importing", "Translate what Argo CD or Flux apply into Syncs.", "importing"),
    "grant": Verb("change.grant", "Grant a Sync's account the rights that its source needs."),
    "tree": Verb("inspect.tree", "Show what belongs to a Sync, and its health. Writes nothing."),
    "explain": Verb("inspect.explain", "Show who owns a field, and why it has its value. Writes nothing."),
    "events": Verb("inspect.events", "Show what daemons report. Writes nothing."),
    "logs": Verb("inspect.events", "The same as events."),
    "ui": Verb("operate.ui", "Open a page about your Syncs in a browser."),
    "report": Verb("inspect.report", "Report on a namespace or a Sync. Writes nothing."),
    "suspend": Verb("change.suspend", "Suspend Syncs: the cluster stays as it is."),
    "resume": Verb("change.suspend", "Resume Syncs after suspend or rollback."),
    "history": Verb("change.history", "Show which revisions a Sync has applied. Writes nothing."),
    "rollback": Verb("change.history", "Roll a Sync back to a commit, and the cluster with it."),
    "approve": Verb("change.approve", "Approve held deletions or actions."),
    "delete": Verb("change.delete", "Delete a Sync, and say what happens to its members."),
    "doctor": Verb("inspect.doctor", "Check that everything is in place. Writes nothing."),
    "accept": Verb("change.accept", "Write drift back into the manifests."),
    "adopt": Verb("change.accept", "Write manifests for live objects, to add them to a Sync."),
    "daemon": Verb("operate.daemon", "Follow all Syncs of a cluster until stopped."),
    "install": Verb("operate.install", "Install CRDs, rights and the daemon in a cluster."),
    "uninstall": Verb("operate.install", "Remove the daemon and its rights from a cluster."),
    "modules": Verb("operate.modules", "List, show, create and test domain modules."),
    "load": Verb("operate.load", "Send requests at a steady rate, and measure the answers."),
    "record": Verb("operate.record", "Record what a module sees and returns, as a test case."),
    "sandbox": Verb("operate.sandbox", "Run a real control plane on this machine, to try things."),
    "completion": Verb("operate.completion", "Print the completion script for a shell."),
    "help": Verb("operate.help", "Show how to use a verb."),
    "options": Verb("operate.help", "List the flags that all verbs take."),
    "version": Verb("operate.version", "Show the version."),
}
OTHER_WORDS = {
    "apply": "sync", "reconcile": "sync", "list": "get", "ls": "get", "describe": "status", "show": "status",
    "preview": "diff", "plan": "diff", "template": "render", "build": "render", "undo": "rollback", "revert": "rollback", "pause": "suspend", "stop": "suspend",
    "start": "resume", "unpause": "resume", "log": "logs", "why": "explain", "blame": "explain", "check": "doctor",
    "migrate": "import", "convert": "import", "init": "install", "setup": "install", "remove": "delete", "rm": "delete",
    "await": "wait", "web": "ui", "dashboard": "ui", "page": "ui", "rollout": "wait", "rights": "grant", "rbac": "grant", "allow": "grant", "permissions": "grant",
}  # fmt: skip
"""What people who come from other tools type, and the verb that they mean."""

_EPILOG = """\b
Start here:
  kubectl reconcile sandbox up                   a control plane to try things on
  kubectl reconcile diff -f FOLDER               what would change
  kubectl reconcile sync -f FOLDER --name NAME   change it

\b
Use "kubectl reconcile VERB --help" for more about a verb, and
"kubectl reconcile options" for the flags that all verbs take.
"""


class Verbs(click.Group):
    """A group that imports a verb when it is asked for, and not before."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the verbs in the order in which people meet them."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Return the command of a verb, imported now."""
        return command(cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb, or say which one may have been meant."""
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            close = difflib.get_close_matches(args[0].lower(), [*VERBS, *OTHER_WORDS], n=1)
            advice = f"; did you mean {OTHER_WORDS.get(close[0], close[0])}?" if close else ""
            raise click.UsageError(f"unknown verb {args[0]!r}{advice}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """List the verbs without importing them."""
        with formatter.section("Verbs"):
            formatter.write_dl([(name, verb.short) for name, verb in VERBS.items()])


def command(name: str) -> click.Command | None:
    """Return the command of verb *name*; None where there is no such verb."""
    verb = VERBS.get(name)
    if verb is None:
        return None
    found = getattr(importlib.import_module(f"kubectl_reconcile.cli.verbs.{verb.module}"), verb.called or name)
    return found if isinstance(found, click.Command) else None


@click.command(
    cls=Verbs,
    invoke_without_command=True,
    epilog=_EPILOG,
    subcommand_metavar="VERB ...",
    options_metavar="[FLAGS]",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option("--version", "is_version_asked", is_flag=True, help="Show the version and exit.")
@accept_common_flags
@click.pass_context
def reconcile(ctx: click.Context, /, *, is_version_asked: bool, **_flags: object) -> None:
    """Preview, apply and explain what Git asks of a Kubernetes cluster."""
    if is_version_asked and (version := command("version")) is not None:
        ctx.invoke(version)
        ctx.exit()
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
