"""What is to be done next for a database: one step, or what is waited for.

The order, each line only where those above are settled:

1. Paused: nothing. A pod or a volume that is going is waited for. Data of two databases, or of another major version: nothing, a person decides.
2. The superuser's Secret: made before there is a database, never afterwards, since a new password wouldn't be that of the server.
3. No database yet: the first instance, with its volume. Once there was one, no instance ever begins with an empty volume.
4. An instance whose pod has ended, or is gone, comes back on its volume.
5. One that doesn't answer yet is waited for; where it can't run as it is and isn't as specified any more, it is replaced.
6. A pod that was made by another template is replaced.
7. Users with their passwords, then databases.
8. Parameters, then a restart where one of them takes it.

Pure: a state and a spec in, a step out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from kubectl_reconcile.module_api import Context
from kubectl_reconcile.modules.postgres.children import parameter_lines
from kubectl_reconcile.modules.postgres.situation import (
    DatabaseState,
    Instance,
    number_of,
    slot_name,
    would_shrink,
)
from kubectl_reconcile.modules.postgres.spec import (
    OWNED_PARAMETERS,
    MyDatabaseSpec,
    UserWish,
    parts_of,
    superuser_secret,
    user_secret,
)

OK, ABSENT = "ok", "absent"
"""What is known of a Secret; anything else says what is wrong with it."""


class NextDo(StrEnum):
    """What a step does."""

    NOTHING = "nothing"
    """All is as specified."""
    WAIT = "wait"
    """Something under way must come to its end."""
    STOP = "stop"
    """Nobody but a person can go on."""
    CREATE_POD = "create-pod"
    """With its volume, where it has none yet."""
    DELETE_POD = "delete-pod"
    MAKE_SECRET = "make-secret"  # noqa: S105 - a verb
    SET_USER = "set-user"
    """Make a user, or set its password and what it may."""
    MAKE_DATABASE = "make-database"
    SET_OWNER = "set-owner"
    SET_PARAMETERS = "set-parameters"


ACTIONS = frozenset(
    {NextDo.MAKE_SECRET, NextDo.SET_USER, NextDo.MAKE_DATABASE, NextDo.SET_OWNER, NextDo.SET_PARAMETERS}
)
"""Steps that aren't a matter of children."""


class Purpose(StrEnum):
    """What a step is for."""

    CREATING = "Creating"
    RECOVERING = "Recovering"
    CHANGING = "Changing"
    SETTLED = "Settled"


@dataclass(frozen=True, slots=True)
class DatabaseStep:
    """The one thing to do. *about* names it among its kind (a pod by its slot), *text* says it to people, *reason* is a word for a condition.

    *seed* marks the first instance of all; *parameters* are for the driver.
    """

    do: NextDo
    why: Purpose
    text: str
    about: str = ""
    reason: str = ""
    seed: bool = False
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The key of the action that it is."""
        return f"{self.do.value}-{self.about.replace('_', '-')}"


SETTLED = DatabaseStep(NextDo.NOTHING, Purpose.SETTLED, "")


def next_step(spec: MyDatabaseSpec, s: DatabaseState, template: str, ctx: Context) -> DatabaseStep:
    """Return the one step to take now; *template* is the digest that pods are to have."""
    if spec.paused:
        return DatabaseStep(NextDo.STOP, Purpose.SETTLED, ".spec.paused is true; nothing is changed", reason="Paused")
    for source in _ORDER:
        for step in source(spec, s, template, ctx):
            return step
    return SETTLED


def refusal_of(spec: MyDatabaseSpec, s: DatabaseState) -> tuple[str, str]:
    """Return what of the spec is refused while all else goes on: a word and a sentence, empty where nothing is."""
    for slot, volume in sorted(s.volumes.items()):
        if would_shrink(volume, spec.storage.size):
            return "StorageShrinks", (
                f".spec.storage.size: {spec.storage.size} is less than the {volume.size} that the volume of {slot} has, and volumes can't be"
                f" made smaller (hint: set it to {volume.size}, or dump the data into another MyDatabase)"
            )  # fmt: skip
    return "", ""


# --- what comes first -----------------------------------------------------------------------------


def _under_way(spec: MyDatabaseSpec, s: DatabaseState, _template: str, _ctx: Context) -> Iterator[DatabaseStep]:
    if len(s.systems) > 1:
        text = f"there is data of different databases ({', '.join(s.systems)}); nothing is changed (hint: delete the pod and the volume claim of the one that is wrong)"
        yield _stop(text, "DifferentDatabases")
    for slot, volume in sorted(s.volumes.items()):
        if volume.major and volume.major != str(spec.version):
            text = (
                f".spec.version: the volume of {slot} holds data of PostgreSQL {volume.major}, which {spec.version} doesn't read; nothing is changed (hint: set it to"
                f" {volume.major}, make another MyDatabase of version {spec.version}, and dump the data into that)"
            )  # fmt: skip
            yield _stop(text, "VersionRefused")
    for instance in _ordered(s):
        if instance.is_going:
            yield _wait(f"pod {instance.slot} is terminating", "PodTerminating", s)
    for slot, volume in sorted(s.volumes.items()):
        if volume.is_going:
            yield _wait(f"the volume claim of {slot} is terminating", "VolumeTerminating", s)


def _superuser(_spec: MyDatabaseSpec, s: DatabaseState, _template: str, ctx: Context) -> Iterator[DatabaseStep]:
    """Yield what is to be done about the Secret without which nobody gets in."""
    name = superuser_secret(ctx)
    known = s.secrets.get(name, ABSENT)
    if known == ABSENT and not s.is_formed and not s.instances:
        yield _secret(ctx, name, "postgres", Purpose.CREATING)
    if known == ABSENT:
        text = f"Secret {name} is gone, and with it the superuser's password (hint: make it anew with username postgres and the password that the server knows; in the pod, psql -U postgres sets another)"
        yield _stop(text, "SecretMissing")
    if known != OK:
        yield _stop(f"Secret {name} {known}", "SecretUnusable")


def _secret(ctx: Context, name: str, user: str, why: Purpose) -> DatabaseStep:
    text = f"make Secret {name} with a random password"
    parameters = {"secret": name, "user": user, "host": f"{ctx.name()}.{ctx.namespace}.svc"}
    return DatabaseStep(NextDo.MAKE_SECRET, why, text, user, parameters=parameters)


# --- instances ------------------------------------------------------------------------------------


def _first(_spec: MyDatabaseSpec, s: DatabaseState, _template: str, ctx: Context) -> Iterator[DatabaseStep]:
    if not s.is_formed and not s.instances:
        seed = min(s.volumes, default=slot_name(ctx, 0), key=lambda slot: number_of(ctx, slot))
        yield DatabaseStep(NextDo.CREATE_POD, Purpose.CREATING, f"create {seed}, the first instance", seed, seed=True)


def _back(_spec: MyDatabaseSpec, s: DatabaseState, _template: str, _ctx: Context) -> Iterator[DatabaseStep]:
    """Yield what brings an instance back that has ended, or whose pod is gone."""
    why = _why(s)
    for instance in _ordered(s):
        if instance.has_ended and instance.may_return:
            fault = f" ({instance.fault})" if instance.fault else ""
            text = f"delete {instance.slot}, which has ended{fault}; it comes back on its volume"
            yield DatabaseStep(NextDo.DELETE_POD, why, text, instance.slot)
        if instance.has_ended:
            text = f"{instance.slot} has ended right after it was made, and is made anew in half a minute: {instance.fault}"
            yield _wait(text, "InstanceFails", s)
    slot = s.named_primary
    if s.primary is not None:
        return
    if slot not in s.volumes:
        text = f"the volume of {slot} is gone, and the database with it (hint: restore a backup into another MyDatabase; delete this one)"
        yield _stop(text, "DataLost")
    yield DatabaseStep(NextDo.CREATE_POD, why, f"create {slot} on its volume", slot, seed=not s.is_formed)


def _awaited(spec: MyDatabaseSpec, s: DatabaseState, template: str, _ctx: Context) -> Iterator[DatabaseStep]:
    """Yield instances that don't serve yet."""
    for instance in _ordered(s):
        if instance.serves:
            continue
        written = instance.begun.get("PARAMETERS", "") == parameter_lines(spec.parameters)
        if not instance.answer and not instance.is_ready and (instance.template != template or not written):
            text = f"delete {instance.slot}, which doesn't run and isn't as specified any more; it comes back on its volume"
            yield DatabaseStep(NextDo.DELETE_POD, _why(s), text, instance.slot)
        fault = instance.fault or instance.silence
        text = f"{instance.slot} doesn't serve yet{f': {fault}' if fault else ''}"
        yield _wait(text, "InstanceNotServing" if s.is_formed else "Starting", s)


def _outdated(_spec: MyDatabaseSpec, s: DatabaseState, template: str, _ctx: Context) -> Iterator[DatabaseStep]:
    for instance in _ordered(s):
        if instance.template != template:
            text = f"delete {instance.slot} for what the spec says of pods; it comes back on its volume"
            yield DatabaseStep(NextDo.DELETE_POD, Purpose.CHANGING, text, instance.slot)


# --- what is in the server ------------------------------------------------------------------------


def _users(spec: MyDatabaseSpec, s: DatabaseState, _template: str, ctx: Context) -> Iterator[DatabaseStep]:
    for user in spec.users:
        name = user_secret(ctx, user.name)
        known = s.secrets.get(name, ABSENT)
        if known == ABSENT:
            yield _secret(ctx, name, user.name, Purpose.CHANGING)
        if known != OK:
            yield _stop(f"Secret {name} {known}", "SecretUnusable")
        if lacks := _lacks(user, s):
            parameters = {"user": user.name, "superuser": user.superuser, "createDatabase": user.create_database}
            yield DatabaseStep(
                NextDo.SET_USER, Purpose.CHANGING, f"{lacks} user {user.name}", user.name, parameters=parameters
            )


def _lacks(user: UserWish, s: DatabaseState) -> str:
    """Return what is to be done about a user, nothing where it is as specified."""
    found = s.roles.get(user.name)
    if found is None:
        return "make"
    if not found.get("password"):
        return "set the password of"
    wanted = {"login": True, "superuser": user.superuser, "createDatabase": user.create_database}
    return "" if all(found.get(name) == value for name, value in wanted.items()) else "set what is allowed to"


def _databases(spec: MyDatabaseSpec, s: DatabaseState, _template: str, _ctx: Context) -> Iterator[DatabaseStep]:
    for wanted in spec.databases:
        found = s.databases.get(wanted.name)
        parameters = {"database": wanted.name, "owner": wanted.owner}
        if found is None:
            text = f"make database {wanted.name} of {wanted.owner}"
            yield DatabaseStep(NextDo.MAKE_DATABASE, Purpose.CHANGING, text, wanted.name, parameters=parameters)
        elif found != wanted.owner:
            text = f"give database {wanted.name} to {wanted.owner}; it is {found}'s"
            yield DatabaseStep(NextDo.SET_OWNER, Purpose.CHANGING, text, wanted.name, parameters=parameters)


def _parameters(spec: MyDatabaseSpec, s: DatabaseState, _template: str, ctx: Context) -> Iterator[DatabaseStep]:
    for instance in _ordered(s):
        changed, gone = changes_of(spec, instance)
        if changed or gone:
            words = [
                *(f"{name} = {value}" for name, value in changed.items()),
                *(f"{name} as it comes" for name in gone),
            ]
            yield DatabaseStep(
                NextDo.SET_PARAMETERS, Purpose.CHANGING, f"set on {instance.slot}: {', '.join(words)}", str(number_of(ctx, instance.slot)),
                parameters={"instance": instance.slot, "set": changed, "reset": gone},
            )  # fmt: skip
        if instance.pending:
            text = f"delete {instance.slot}, so that it restarts with {', '.join(instance.pending)}; it comes back on its volume"
            yield DatabaseStep(NextDo.DELETE_POD, Purpose.CHANGING, text, instance.slot)


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


# --- words ----------------------------------------------------------------------------------------


def _ordered(s: DatabaseState) -> list[Instance]:
    return sorted(s.instances.values(), key=lambda each: (len(each.slot), each.slot))


def _why(s: DatabaseState) -> Purpose:
    return Purpose.RECOVERING if s.is_formed else Purpose.CREATING


def _stop(text: str, reason: str) -> DatabaseStep:
    return DatabaseStep(NextDo.STOP, Purpose.RECOVERING, text, reason=reason)


def _wait(text: str, reason: str, s: DatabaseState) -> DatabaseStep:
    return DatabaseStep(NextDo.WAIT, _why(s), text, reason=reason)


_ORDER = (_under_way, _superuser, _first, _back, _awaited, _outdated, _users, _databases, _parameters)
"""Where steps come from; the first one there is is taken."""
