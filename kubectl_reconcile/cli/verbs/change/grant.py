"""``kubectl reconcile grant``: the rights that a Sync's account needs for its source, printed or given."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import click
from msgspec import Struct
from msgspec.structs import replace

from kubectl_reconcile.cli.options.connection import Connection, common
from kubectl_reconcile.cli.options.flags import colour
from kubectl_reconcile.cli.options.origin import Origin, source
from kubectl_reconcile.cli.options.output import output
from kubectl_reconcile.cli.output.failures import EXIT_STATUSES, ExitStatus, Failure
from kubectl_reconcile.cli.output.prompt import confirmed, may_ask
from kubectl_reconcile.cli.output.terminal import Terminal, table, terminals
from kubectl_reconcile.views.text import Line, Span, Tone, line

if TYPE_CHECKING:
    from kubectl_reconcile.core.objects import Manifest, ObjectRef
    from kubectl_reconcile.core.planning.rights.grant import Account
    from kubectl_reconcile.core.planning.rights.needs import Needs, Sensitive
    from kubectl_reconcile.core.planning.rights.rules import Right
    from kubectl_reconcile.core.resources.sync import Sync
    from kubectl_reconcile.engine.commands.rights.granting import GrantStep
    from kubectl_reconcile.engine.commands.rights.needed import Needed
    from kubectl_reconcile.engine.sync.session import Session
    from kubectl_reconcile.engine.sync.target import Target

SENSITIVE = ("bind", "escalate", "impersonate", "wildcards")
"""Rights with which other rights can be gained."""

DAEMON = "reconcile-system/kubectl-reconcile"
"""The ServiceAccount of an installed daemon."""

_MOST_SYNCS = 200
"""How many Syncs are looked at, those within others included."""

_TOLD = {"create": "created", "update": "updated", "delete": "deleted"}
_TONES = {"create": Tone.ADDED, "update": Tone.WARNING, "delete": Tone.REMOVED, "unchanged": Tone.ASIDE}


class GrantOptions(Struct, frozen=True):
    """What to give, and how to go about it."""

    origin: Origin
    allowed: frozenset[Sensitive]
    missing: bool
    write: bool
    yes: bool
    service_account: str
    daemon: Account
    output: str
    out: Terminal
    err: Terminal
    everyone: bool = False
    plan_hash: str = ""


@click.command(
    epilog=f"""{EXIT_STATUSES}
\b
Examples:
  kubectl reconcile grant shop -n shop           the rights, as YAML
  kubectl reconcile grant shop | kubectl apply -f -
  kubectl reconcile grant shop --apply           show, ask, apply
  kubectl reconcile grant shop --apply --plan-hash H    just what was shown
  kubectl reconcile grant --all --apply          all Syncs of the namespace
  kubectl reconcile grant shop --missing -o summary
  kubectl reconcile grant shop --revision refs/pull/12/head
  kubectl reconcile grant -f . --name shop       before the Sync exists
"""
)
@source
@click.option(
    "--all", "everyone", is_flag=True, help="All Syncs in the namespace: all is shown before anything is granted."
)
@click.option(
    "--allow",
    multiple=True,
    type=click.Choice(SENSITIVE),
    help="Also grant this, if the source's Roles need it. Anyone who has it can get other rights. May be repeated.",
)
@click.option("--missing", is_flag=True, help="Only the rights that the account lacks, according to access reviews.")
@click.option(
    "--apply", "write", is_flag=True, help="Show the new rights, ask for confirmation, and grant them as you."
)
@click.option("-y", "--yes", is_flag=True, help="Don't ask. Without a terminal, this or --plan-hash is needed.")
@click.option(
    "--plan-hash",
    metavar="HASH",
    help="Grant only what was shown with this hash, without asking. If it would be anything else by now, nothing is granted.",
)
@click.option(
    "--service-account",
    metavar="NAME",
    help="The account of a Sync that doesn't exist yet, with -f or --repo.  [default: kubectl-reconcile]",
)
@click.option(
    "--daemon",
    default=DAEMON,
    show_default=True,
    metavar="NAMESPACE/NAME",
    help="ServiceAccount of the daemon. The grant lets it act as the account, if that isn't kubectl-reconcile.",
)
@output("yaml", "summary")
@colour
@common
def grant(
    connection: Connection,
    origin: Origin,
    *,
    everyone: bool,
    allow: Sequence[str],
    missing: bool,
    write: bool,
    yes: bool,
    plan_hash: str | None,
    service_account: str | None,
    daemon: str,
    output: str | None,
    color: str,
) -> int:
    """Print the rights that the account of SYNC needs for its source. With --apply, grant them.

    A Sync's members are written as a ServiceAccount in its namespace (spec.serviceAccountName, or kubectl-reconcile).
    This account needs a Role in each namespace. To find out which rights it needs, grant reads the source, and the Roles
    that the source refers to, with your rights. --apply also revokes rights that aren't needed any more. The Syncs that
    the source itself holds are included.

    RBAC doesn't let anybody grant rights that they don't have. So the account needs all rights in the source's own
    Roles, and you need them to apply the grant. Rights to escalate, bind or impersonate, and wildcards, are only listed,
    and not granted unless you --allow them.
    """
    from kubectl_reconcile.cli.session import readable, run
    from kubectl_reconcile.core.planning.rights.grant import Account
    from kubectl_reconcile.core.planning.rights.needs import Sensitive

    if everyone and (origin.name or not origin.is_sync):
        raise click.UsageError("--all means all Syncs in the namespace: leave out --all, or what names one")
    if not origin.is_sync and not origin.name:
        raise click.UsageError("-f and --repo need --name: the Sync whose account gets the rights")
    if service_account and origin.is_sync:
        raise click.UsageError("--service-account needs -f or --repo; a Sync names its own account")
    if (yes or plan_hash is not None) and not write:
        raise click.UsageError(f"{'--yes' if yes else '--plan-hash'} needs --apply")
    if plan_hash is not None and not re.fullmatch(r"[0-9a-f]{16}", plan_hash):
        raise click.UsageError("grant prints the hash for --plan-hash after the rights")
    try:
        account = Account.parse(daemon)
    except ValueError as error:
        raise click.UsageError(f"--daemon: {error}") from None
    with readable(origin) as source:
        options = GrantOptions(
            source, frozenset(map(Sensitive, allow)), missing, write, yes, service_account or "", account,
            output or ("summary" if write else "yaml"), *terminals(color), everyone, plan_hash or "",
        )  # fmt: skip
        return run(connection, functools.partial(_grant, options=options))


class _Grant(Struct, frozen=True):
    """What the account of one Sync needs, and the steps that give it that; *remarks* are what a person has to see to besides."""

    target: Target
    found: Needed
    needs: Needs
    steps: Sequence[GrantStep]
    remarks: Sequence[Line]

    @property
    def account(self) -> str:
        from kubectl_reconcile.core.planning.rights.grant import Account

        return f"ServiceAccount {Account.of(self.target.sync)}"

    def shown(self, options: GrantOptions) -> list[GrantStep]:
        """Return the steps that a person is shown."""
        from kubectl_reconcile.core.planning.plan import Op

        return [step for step in self.steps if not (options.missing and step.op is Op.UNCHANGED)]

    @property
    def pending(self) -> list[GrantStep]:
        from kubectl_reconcile.core.planning.plan import Op

        return [step for step in self.steps if step.op is not Op.UNCHANGED]


async def _grant(session: Session, *, options: GrantOptions) -> int:
    from kubectl_reconcile.cli.session import target_of
    from kubectl_reconcile.core.objects import errors_among

    origins = await _all_syncs(session) if options.everyone else [options.origin]
    chosen = [_with_account(await target_of(session, each), options) for each in origins]
    grants = await _grants(session, chosen, options)
    options.err.write(text for each in grants for text in each.remarks)
    status = ExitStatus.OK
    if options.write:
        status = await _written(session, grants, options)
    else:
        for each in grants:
            status = max(status, _printed(each, options))
        if any(each.pending for each in grants):
            text = f"# to give just this: the same command with --apply --plan-hash {_hash_of(grants, options)}"
            (options.err if options.output == "summary" else options.out).write([line(text, Tone.ASIDE)])
    wrong = any(errors_among(each.found.problems) for each in grants)
    return max(status, ExitStatus.SOURCE if wrong else ExitStatus.OK)


async def _all_syncs(session: Session) -> list[Origin]:
    """Return all Syncs of the namespace that follow something."""
    from kubectl_reconcile.engine.sync import targets

    found = await targets.syncs_of(session, session.client.namespace)
    if not found:
        raise Failure(await targets.none_here(session), status=ExitStatus.USAGE)
    return [Origin(name, namespace=session.client.namespace) for name in found]


async def _grants(session: Session, chosen: Sequence[Target], options: GrantOptions) -> list[_Grant]:
    """Return what is given to the accounts of the Syncs of *chosen*, and of the Syncs that their sources hold."""
    from kubectl_reconcile.cluster.errors import ApiError
    from kubectl_reconcile.core.objects import map_at
    from kubectl_reconcile.core.resources.fields import SyncSpecError
    from kubectl_reconcile.engine.commands.rights.needed import needed
    from kubectl_reconcile.engine.sync import reconcile, targets
    from kubectl_reconcile.source.errors import SourceError

    grants, waiting, seen = list[_Grant](), list(chosen), {each.sync.ref for each in chosen}
    coming: frozenset[str] = frozenset()
    while waiting:
        target = waiting.pop(0)
        found = (await needed(session, target, options.allowed)).beside(coming)
        coming |= found.coming
        needs = await _missing(session, target.sync, found.givable) if options.missing else found.givable
        steps = await _steps(session, target.sync, found, needs, options)
        remarks = list(_remarks(found, target))
        for manifest in found.syncs:
            try:
                child = await targets.target_of_manifest(session, manifest)
                if child is not None and child.sync.ref not in seen and len(seen) < _MOST_SYNCS:
                    seen.add(child.sync.ref)
                    await reconcile.read(session, child, shown=False)
                    waiting.append(child)
            except (SourceError, SyncSpecError, ApiError) as error:
                name = "/".join(str(map_at(manifest, "metadata").get(each)) for each in ("namespace", "name"))
                text = f"warning: what Sync {name} of this source needs isn't known: {error}"
                remarks.append(line(text, Tone.WARNING))
        grants.append(_Grant(target, found, needs, steps, remarks))
    return grants


async def offer(session: Session, target: Target, out: Terminal, err: Terminal, *, wanted: bool | None) -> int:
    """Give the account of a new Sync what its source needs, if that is *wanted*; None asks a person who is there to answer.

    So do the accounts of the Syncs that its source holds. Where they are known to lack nothing, nothing is offered.
    """
    from kubectl_reconcile.core.planning.plan import Op
    from kubectl_reconcile.core.planning.rights.grant import DAEMON
    from kubectl_reconcile.core.planning.rights.writes import grant_command

    options = GrantOptions(
        Origin(), frozenset(), missing=False, write=True, yes=True, service_account="", daemon=DAEMON, output="summary",
        out=out, err=err,
    )  # fmt: skip
    grants = [
        replace(each, steps=[step for step in each.steps if step.op in {Op.CREATE, Op.UPDATE}])
        for each in await _grants(session, [target], options)
    ]
    if not any(each.steps for each in grants) or (wanted is None and await _have_enough(session, grants)):
        return ExitStatus.OK
    accounts = ", ".join(dict.fromkeys(each.account for each in grants if each.steps))
    if wanted or (wanted is None and may_ask()):
        err.write(text for each in grants for text in each.remarks)
        _foretell(grants, err)
        if wanted or confirmed(f"Give {accounts} these rights, to apply the source?"):
            return await _given(session, grants, options)
    advice = f"{grant_command(target.sync)} --apply"
    err.write([line(f"it applies as {accounts}; to grant that account its rights: {advice}", Tone.WARNING)])
    return ExitStatus.OK


async def _have_enough(session: Session, grants: Iterable[_Grant]) -> bool:
    """Tell whether all accounts are known to lack nothing."""
    from kubectl_reconcile.core.planning.rights.grant import DAEMON, Account
    from kubectl_reconcile.engine.commands.rights.reviews import Reviewer

    for each in grants:
        reviewed = await Reviewer(session.client, Account.of(each.target.sync)).review(each.needs.placed())
        if reviewed.missing or reviewed.unchecked or not await _may_act(session, each.target.sync, DAEMON):
            return False
    return True


def _with_account(target: Target, options: GrantOptions) -> Target:
    """Return a target whose Sync, where it isn't there yet, acts as the account that the user names."""
    if not options.service_account:
        return target
    if target.parent is not None:
        name = f"{target.sync.namespace}/{target.sync.name}"
        raise Failure(
            f"Sync {name} already exists, and acts as {target.sync.service_account}",
            "leave out --service-account",
            status=ExitStatus.USAGE,
        )
    return replace(target, sync=replace(target.sync, service_account=options.service_account))


def _remarks(found: Needed, target: Target) -> Iterator[Line]:
    """Yield what a person has to see to besides the grant itself."""
    from kubectl_reconcile.core.apply import causes
    from kubectl_reconcile.core.objects import errors_among, warnings_among

    yield from (line(text, Tone.BAD) for text in causes.of_problems(errors_among(found.problems)))
    yield from (line(f"warning: {text}", Tone.WARNING) for text in causes.of_problems(warnings_among(found.problems)))
    for place in sorted(found.coming):
        yield line(
            f"namespace {place} doesn't exist yet: the grant creates it, since the source asks for it", Tone.ASIDE
        )
    for place in sorted(found.absent & found.needs.made):
        yield line(
            f"warning: namespace {place} was deleted, and a grant doesn't create it again, so it gets no Role "
            "(hint: grant again once the Sync has created it)",
            Tone.WARNING,
        )
    for place in sorted(found.absent - found.needs.made):
        yield line(
            f"warning: namespace {place} doesn't exist, and the source doesn't create it, so it gets no Role "
            f"(hint: set spec.createNamespace of the Sync, or kubectl create namespace {place}; then grant again)",
            Tone.WARNING,
        )
    if target.parent is not None and target.sync.source is None:
        name = f"{found.sync.namespace}/{found.sync.name}"
        yield line(
            f"Sync {name} is applied by hand: whoever applies it needs these rights, not its account", Tone.WARNING
        )


async def _missing(session: Session, sync: Sync, needs: Needs) -> Needs:
    """Return what must be given so that the account lacks nothing."""
    from kubectl_reconcile.core.planning.rights.grant import Account
    from kubectl_reconcile.engine.commands.rights import granting
    from kubectl_reconcile.engine.commands.rights.reviews import Reviewer

    account = Account.of(sync)
    reviewed = await Reviewer(session.client, account).review(needs.placed())
    if reviewed.unchecked:
        hint = "leave out --missing to print all that the account needs"
        raise Failure(f"what ServiceAccount {account} may do isn't known: {reviewed.why}", hint)
    roles = await granting.granted(session, sync, [sync.namespace, *needs.here])
    return granting.kept_and_missing(sync, needs, reviewed.missing, roles)


async def _steps(session: Session, sync: Sync, found: Needed, needs: Needs, options: GrantOptions) -> list[GrantStep]:
    from kubectl_reconcile.core.planning.rights.grant import Account, grant_of, impersonation_of
    from kubectl_reconcile.engine.commands.rights import granting

    wanted = grant_of(sync, needs, namespaces=found.coming, daemon=options.daemon)
    if options.missing and await _may_act(session, sync, options.daemon):
        acting = impersonation_of(Account.of(sync), options.daemon)
        wanted = [manifest for manifest in wanted if manifest not in acting]
    return await granting.steps_to(session, sync, wanted, [sync.namespace, *found.needs.here])


async def _may_act(session: Session, sync: Sync, daemon: Account) -> bool:
    """Tell whether *daemon* is known to be let act as the account, as an installed one is to those of the usual name."""
    from kubectl_reconcile.core.planning.rights.grant import Account, impersonation_of
    from kubectl_reconcile.core.planning.rights.rules import Right
    from kubectl_reconcile.engine.commands.rights.reviews import Reviewer

    if not impersonation_of(Account.of(sync), daemon):
        return True
    right = Right("", "serviceaccounts", "impersonate", sync.service_account)
    reviewed = await Reviewer(session.client, daemon).review([(sync.namespace, right)])
    return not (reviewed.missing or reviewed.unchecked)


# --- printed ------------------------------------------------------------------------------------------------------------


def _printed(grant: _Grant, options: GrantOptions) -> ExitStatus:
    from kubectl_reconcile.core.planning.plan import Op
    from kubectl_reconcile.core.planning.rights.writes import grant_command

    found, steps, account = grant.found, grant.steps, grant.account
    shown = [step for step in grant.shown(options) if step.op is not Op.DELETE]
    spare = [str(step.ref) for step in steps if step.op is Op.DELETE]
    if not shown:
        options.err.write([line(f"{account} may do all that the source needs", Tone.GOOD)])
    elif options.output == "summary":
        options.out.write(_overview(grant.needs, options.out.width))
    else:
        options.out.write(_documents(found, (step.manifest for step in shown)))
    if spare:
        again = f"{grant_command(found.sync)} --apply"
        options.err.write([line(f"not needed any more: {', '.join(spare)}; to remove: {again}", Tone.WARNING)])
    return ExitStatus.OK


def _documents(found: Needed, manifests: Iterable[Manifest]) -> Iterator[Line]:
    """Yield manifests as YAML that kubectl applies."""
    from kubectl_reconcile.core.planning.rights.grant import Account
    from kubectl_reconcile.views.syncs import short
    from kubectl_reconcile.views.yamltext import dump

    sync, at = found.sync, f" at {short(found.revision)}" if found.revision else ""
    yield line(
        f"# What Sync {sync.namespace}/{sync.name} needs{at}, for ServiceAccount {Account.of(sync)}.", Tone.ASIDE
    )
    for manifest in manifests:
        yield line("---")
        yield from (line(text) for text in dump(manifest))


def _overview(needs: Needs, width: int | None) -> list[Line]:
    """Return a table of rights: where, which verbs, on what."""
    places = [("(everywhere)", needs.everywhere), *sorted(needs.here.items())]
    places += [(f"{place} ({account})", rights) for (place, account), rights in sorted(needs.of_modules.items())]
    rows = [
        (Span(place), Span(verbs), Span(what)) for place, rights in places for verbs, what in _worded(rights)
    ]  # fmt: skip
    return table(("NAMESPACE", "VERBS", "ON"), rows, width)


def _worded(rights: Iterable[Right]) -> Iterator[tuple[str, str]]:
    """Yield rights as people read them: the verbs, and what they are for."""
    from kubectl_reconcile.core.planning.rights.rules import rules_of

    for rule in rules_of(frozenset(rights)):
        group = rule.get("apiGroups", [""])[0]
        resources = [f"{one}.{group}" if group else one for one in rule.get("resources", ())]
        names = f" {', '.join(rule['resourceNames'])}" if "resourceNames" in rule else ""
        yield ", ".join(rule["verbs"]), f"{', '.join([*resources, *rule.get('nonResourceURLs', ())])}{names}"


# --- given ---------------------------------------------------------------------------------------------------------------


async def _written(session: Session, grants: Sequence[_Grant], options: GrantOptions) -> ExitStatus:
    """Show all that is given, ask once, and give just that."""
    if not any(each.pending for each in grants):
        for each in grants:
            options.out.write([line(f"{each.account} has been given all that the source needs", Tone.GOOD)])
        return ExitStatus.OK
    _foretell(grants, options.err)
    _require_consent(grants, options)
    return await _given(session, grants, options)


def _hash_of(grants: Sequence[_Grant], options: GrantOptions) -> str:
    """Return what tells all that is shown from anything else."""
    from kubectl_reconcile.engine.commands.rights import granting

    return granting.hash_of_steps(step for each in grants for step in each.shown(options))


def _foretell(grants: Sequence[_Grant], err: Terminal) -> None:
    for each in grants:
        if len(grants) > 1 and each.pending:
            err.write([line(f"for Sync {each.target.sync.namespace}/{each.target.sync.name}, {each.account}:")])
        err.write(text for step in each.pending for text in _foretold(step))


async def _given(session: Session, grants: Iterable[_Grant], options: GrantOptions) -> ExitStatus:
    """Make the very steps that were shown, and have those Syncs go on that follow something."""
    from kubectl_reconcile.core.objects import ObjectRef

    status, done = ExitStatus.OK, set[ObjectRef]()
    for each in grants:
        if not each.pending:
            continue
        given = await _applied(session, [step for step in each.pending if step.ref not in done], options)
        done.update(step.ref for step in each.pending)
        status = max(status, given)
        if given is ExitStatus.OK and each.target.parent is not None and each.target.sync.source is not None:
            await _woken(session, each.target.sync, options)
    return status


async def _woken(session: Session, sync: Sync, options: GrantOptions) -> None:
    from kubectl_reconcile.engine.commands.rights import granting

    name = f"{sync.namespace}/{sync.name}"
    if await granting.wake(session, sync):
        options.err.write([line(f"asked for a sync of {name}", Tone.ASIDE)])
    else:
        options.err.write([line(f"you may not ask for a sync of {name}: it continues by itself", Tone.ASIDE)])


def _foretold(step: GrantStep) -> Iterator[Line]:
    """Yield what happens to one object, and which rights come and go with it."""
    yield Span(f"{step.op.value:<8}", _TONES[step.op]), Span(f" {step.ref}")
    for sign, rights, tone in (("+", step.more, Tone.ADDED), ("-", step.less, Tone.REMOVED)):
        yield from (line(f"    {sign} {verbs}: {what}", tone) for verbs, what in _worded(rights))


def _require_consent(grants: Sequence[_Grant], options: GrantOptions) -> None:
    """Return if just this may be given."""
    plan_hash = _hash_of(grants, options)
    if options.plan_hash and options.plan_hash != plan_hash:
        said = "what would be given isn't what had that hash: the source, the Syncs or the rights have changed since"
        raise Failure(f"nothing was given: {said}", f"look at it; its hash is {plan_hash}", status=ExitStatus.HELD)
    if options.yes or options.plan_hash:
        return
    if not may_ask():
        hint = f"without a terminal, add --yes; or --plan-hash {plan_hash}, which gives just this"
        raise Failure("nothing was given", hint, status=ExitStatus.USAGE)
    accounts = ", ".join(dict.fromkeys(each.account for each in grants if each.pending))
    if not confirmed(f"Give {accounts} these rights?"):
        raise Failure("nothing was given", status=ExitStatus.HELD)


async def _applied(session: Session, pending: Iterable[GrantStep], options: GrantOptions) -> ExitStatus:
    """Make each step, and tell; what stands on one that failed isn't tried."""
    from kubectl_reconcile.cluster.errors import ApiError
    from kubectl_reconcile.engine.commands.rights import granting

    failed: set[ObjectRef] = set()
    for step in pending:
        if ground := next((ref for ref in _grounds(step) if ref in failed), None):
            failed.add(step.ref)
            options.err.write([(Span("skipped ", Tone.BAD), Span(f" {step.ref}: it needs {ground}"))])
            continue
        try:
            await granting.apply(session, step)
        except ApiError as error:
            failed.add(step.ref)
            options.err.write([(Span("failed  ", Tone.BAD), Span(f" {step.ref}: {error}"))])
        else:
            options.out.write([(Span(f"{_TOLD[step.op]:<8}", _TONES[step.op]), Span(f" {step.ref}"))])
    if failed:
        advice = "RBAC lets nobody give rights that they don't hold: have somebody who holds them apply it"
        options.err.write([line(f"hint: {advice}", Tone.ASIDE)])
    return ExitStatus.FAILED if failed else ExitStatus.OK


def _grounds(step: GrantStep) -> tuple[ObjectRef, ...]:
    """Return what a step stands on: its namespace, and of a binding what it binds."""
    from kubectl_reconcile.core.objects import ObjectRef
    from kubectl_reconcile.core.planning.kinds import NAMESPACE
    from kubectl_reconcile.core.planning.plan import Op

    ref = step.ref
    place = ObjectRef(*NAMESPACE, "", ref.namespace)
    role = ref._replace(kind=ref.kind.removesuffix("Binding"))
    return (place, role) if role != ref and step.op is not Op.DELETE else (place,)
