"""What is in a server, held against the spec: users with their passwords, databases, parameters.

Pure: a state and a spec in, steps out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kubectl_reconcile.module_api import Context, map_at, shortened
from kubectl_reconcile_operators.postgres.access.hba import hba_digest, hba_text
from kubectl_reconcile_operators.postgres.access.tls import is_required
from kubectl_reconcile_operators.postgres.membership import (
    ASYNCHRONOUS,
    Quorum,
    confirmation,
    is_loosely_acknowledged,
    quorum_wanted,
    quorums,
    with_another,
)
from kubectl_reconcile_operators.postgres.situation import DatabaseState, Instance
from kubectl_reconcile_operators.postgres.spec import (
    OWNED_PARAMETERS,
    REPLICATOR,
    SUPERUSER,
    MyDatabaseSpec,
    parts_of,
    secret_of,
)
from kubectl_reconcile_operators.postgres.steps import (
    ABSENT,
    OK,
    DatabaseStep,
    Do,
    Why,
    restart,
    secret_made,
)

_TOLD_MAX = 400
_USUAL = {
    "max_connections": "100",
    "max_worker_processes": "8",
    "max_prepared_transactions": "0",
    "max_locks_per_transaction": "64",
}
"""What PostgreSQL takes by itself of what a standby must have as much of as its primary."""


def users(spec: MyDatabaseSpec, s: DatabaseState, _template: str, ctx: Context) -> Iterator[DatabaseStep]:
    """Yield what is to be done about who may log in."""
    for user, wanted in _roles(spec):
        name = secret_of(ctx, user)
        known = s.secrets.get(name, ABSENT)
        if known == ABSENT:
            yield secret_made(ctx, user, Why.CHANGING, sslmode="require" if spec.tls else "")
        if known == OK and (lacks := _lacks(s.roles.get(user), wanted)):
            yield DatabaseStep(
                Do.SET_USER, Why.CHANGING, f"{lacks} user {user}", user, parameters={"user": user, **wanted}
            )


def secret_refused(spec: MyDatabaseSpec, s: DatabaseState, ctx: Context) -> tuple[str, str]:
    """Return why a user can't be given the password of its Secret, as a word and a sentence, empty where all can: that user stays as it is."""
    for user, _ in _roles(spec):
        name = secret_of(ctx, user)
        if (known := s.secrets.get(name, ABSENT)) not in {OK, ABSENT}:
            return "SecretUnusable", f"Secret {name} {known}"
    return "", ""


def _roles(spec: MyDatabaseSpec) -> Iterator[tuple[str, dict[str, bool]]]:
    """Yield who is to log in, each with what is allowed to it."""
    if spec.replicates:
        yield REPLICATOR, {"superuser": False, "createDatabase": False, "replication": True, "rewinds": True}
    for user in spec.users:
        yield user.name, {"superuser": user.superuser, "createDatabase": user.create_database, "replication": False}


def _lacks(found: Mapping[str, Any] | None, wanted: Mapping[str, bool]) -> str:
    """Return what is to be done about a user, nothing where it is as specified."""
    if found is None:
        return "make"
    if not found.get("password"):
        return "set the password of"
    is_so = found.get("login") and all(found.get(name) == value for name, value in wanted.items())
    return "" if is_so else "set what is allowed to"


def databases(spec: MyDatabaseSpec, s: DatabaseState, _template: str, _ctx: Context) -> Iterator[DatabaseStep]:
    """Yield what is to be done about databases. One whose owner can't be made yet waits."""
    for wanted in spec.databases:
        if wanted.owner != SUPERUSER and wanted.owner not in s.roles:
            continue
        found = s.databases.get(wanted.name)
        parameters = {"database": wanted.name, "owner": wanted.owner}
        if found is None:
            text = f"make database {wanted.name} of {wanted.owner}"
            yield DatabaseStep(Do.MAKE_DATABASE, Why.CHANGING, text, wanted.name, parameters=parameters)
        elif found != wanted.owner:
            text = f"give database {wanted.name} to {wanted.owner}; it is {found}'s"
            yield DatabaseStep(Do.SET_OWNER, Why.CHANGING, text, wanted.name, parameters=parameters)


def parameters_set(spec: MyDatabaseSpec, s: DatabaseState, _template: str, ctx: Context) -> Iterator[DatabaseStep]:
    """Yield what is to be done about parameters, and a restart of the primary where replicas can only follow it."""
    for instance in s.ordered:
        if not instance.answer:
            continue
        changed, gone = changes_of(spec, instance)
        if changed or gone:
            words = [
                *(f"{name} = {value}" for name, value in changed.items()),
                *(f"{name} as it comes" for name in gone),
            ]
            yield DatabaseStep(
                Do.SET_PARAMETERS, Why.CHANGING, f"set on {instance.slot}: {', '.join(words)}", str(ctx.number_of(instance.slot)),
                parameters={"instance": instance.slot, "set": changed, "reset": gone},
            )  # fmt: skip
        elif instance.answer.get("unloaded"):
            given = {"instance": instance.slot, "set": {}, "reset": ()}
            text = f"have {instance.slot} read its parameters again"
            yield DatabaseStep(Do.SET_PARAMETERS, Why.CHANGING, text, str(ctx.number_of(instance.slot)), parameters=given)  # fmt: skip
    if s.primary is not None and s.primary.pending and _leads(spec, s.primary):
        yield restart(s.primary)


def access_set(spec: MyDatabaseSpec, s: DatabaseState, _template: str, ctx: Context) -> Iterator[DatabaseStep]:
    """Yield what tells instances who may come in from where."""
    for instance in s.ordered:
        text = hba_text(spec.hba, is_tls_required=is_required(spec, instance))
        if instance.answer and instance.answer.get("hba") != hba_digest(text):
            who = "everybody with a password" + (", over TLS alone" if "hostssl" in text else "")
            rules = "; ".join((*(each.line() for each in spec.hba), who))
            said = shortened(f"tell {instance.slot} who may connect: {rules}", _TOLD_MAX)
            given = {"instance": instance.slot, "hba": text}
            yield DatabaseStep(Do.SET_ACCESS, Why.CHANGING, said, str(ctx.number_of(instance.slot)), parameters=given)  # fmt: skip


def acknowledged(spec: MyDatabaseSpec, s: DatabaseState, _template: str, ctx: Context) -> Iterator[DatabaseStep]:
    """Yield what it takes until rows are acknowledged as specified; what they are acknowledged by is noted before."""
    primary, noted = s.primary, quorums(s)
    wanted = quorum_wanted(spec, s, ctx)
    if primary is None or not primary.answer:
        return
    told = primary.answer.get("synchronous")
    is_other = all(told != each.setting(primary.slot) for each in noted)
    is_stray = ASYNCHRONOUS not in noted and (is_other or is_loosely_acknowledged(spec, s))
    if is_stray or wanted != noted[-1]:
        after = with_another(noted, *((ASYNCHRONOUS,) if is_stray else ()), wanted)
        listed = {"quorums": [each.told() for each in after]}
        yield DatabaseStep(Do.NOTE_QUORUM, Why.CHANGING, f"note {_waits(wanted)}, before {primary.slot} is told", reason="Synchronous", parameters=listed)  # fmt: skip
    if told != (setting := wanted.setting(primary.slot)):
        given = {"instance": primary.slot, "setting": setting}
        yield DatabaseStep(Do.SET_QUORUM, Why.CHANGING, f"tell {primary.slot} {_waits(wanted)}", str(ctx.number_of(primary.slot)), parameters=given)  # fmt: skip


def confirmed(spec: MyDatabaseSpec, s: DatabaseState, _template: str, _ctx: Context) -> Iterator[DatabaseStep]:
    """Yield what finds that rows are acknowledged as the primary was told, those before too; until then, earlier quorums count besides."""
    noted, primary = quorums(s), s.named_primary
    if len(noted) > 1 and not is_loosely_acknowledged(spec, s):
        names = [each for each in noted[-1].members if each != primary]
        given = {"instance": primary, "setting": noted[-1].setting(primary), "names": names, "least": noted[-1].least}
        text = f"confirm {_waits(noted[-1])}, and that these have what was acknowledged before"
        about = confirmation(s).removeprefix(f"{Do.CONFIRM_QUORUM}-")
        yield DatabaseStep(Do.CONFIRM_QUORUM, Why.CHANGING, text, about, parameters=given)


def _waits(quorum: Quorum) -> str:
    if not quorum.least:
        return "that rows are acknowledged by the primary alone"
    others = len(quorum.members) - 1
    return f"that rows are acknowledged once {quorum.least} of {others} replicas {'has' if quorum.least == 1 else 'have'} them"


def _leads(spec: MyDatabaseSpec, primary: Instance) -> bool:
    """Tell whether the primary restarts before its replicas: none of these runs with less room for something than the primary has."""
    limits = map_at(primary.answer, "limits")
    return any(
        _less(spec.parameters.get(name, _USUAL.get(name)), limits.get(name))
        for name in primary.pending
        if name in limits
    )


def _less(wanted: Any, had: Any) -> bool:
    return str(wanted).isdecimal() and int(wanted) < int(had)


def changes_of(spec: MyDatabaseSpec, instance: Instance) -> tuple[dict[str, str], list[str]]:
    """Return the parameters to set on an instance, and those to set back."""
    wanted = {name: str(value) for name, value in spec.parameters.items()}
    settings = instance.settings
    changed = {
        name: value
        for name, value in sorted(wanted.items())
        if name not in settings or parts_of(name, settings[name]) != parts_of(name, value)
    }
    gone = sorted(name for name in instance.settings if name not in wanted and name not in OWNED_PARAMETERS)
    return changed, gone
