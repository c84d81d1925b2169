"""What is to be done next for a database: one step, or what is waited for.

The order, each line only where those above are settled:

1. Paused: nothing. A primary that is going is waited for, unless all of its log is elsewhere already. Data of two databases, or of another major version, or two servers that take
   writes: nothing, a person decides.
2. The superuser's Secret: made before there is a database, never afterwards, since a new password wouldn't be that of the server.
3. A primary that is away for too long is left behind, see `failover`; a handover that was begun goes on, see `handover`.
4. Volumes that are going are waited for, but for those that replicas run on. Of a database that is created again all volumes are looked at before one of them serves, see `gathering`. No database yet: the first instance, with its volume, which is filled from a backup before where one is named. Once there was one, no instance ever makes another.
5. A primary whose pod has ended, or is gone, comes back on its volume.
6. A primary that doesn't answer yet is waited for; where it can't run as it is and isn't as specified any more, it is replaced.
7. Servers offer TLS, with the certificate of the Secret. The primary is told who has to have a row before it is acknowledged, once that is noted. A switchover that somebody asks for begins.
8. A replica whose log has what the primary's hasn't ends, so that it is rewound; where it can't be, its volume is set aside, see `rejoin`. Replicas that are
   too many go: the pod, its replication slot, its volume, which is kept unless the spec says otherwise. Never the primary.
9. Users with their passwords, then databases.
10. Parameters, and who gets in from where. A restart of the primary, where replicas can only follow it afterwards.
11. Replication slots of all replicas. A replica that has ended comes back on its volume; one that doesn't follow yet is waited for.
12. Pods that were made by another template are replaced, and those restarted whose parameters take it: replicas first, one at a time. A primary
    that has a replica hands over to it.
13. Replicas that are too few: a slot, then a pod that begins with a copy of the primary's data.
14. Rows are found to be acknowledged as the primary was told. Surplus replicas that are still ending are waited for. Volumes that were set aside for long enough go.

Whoever is to take over, and is too far behind or has no room yet, is waited for while the lines below go on.

Pure: a state and a spec in, a step out.
"""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_reconcile.module_api import Context, map_at
from kubectl_reconcile_operators.postgres.access.tls import tls_awaited, tls_offered, tls_refused
from kubectl_reconcile_operators.postgres.bootstrap.beginning import filled, seed_of
from kubectl_reconcile_operators.postgres.children import Begin
from kubectl_reconcile_operators.postgres.contents import (
    access_set,
    acknowledged,
    confirmed,
    databases,
    parameters_set,
    secret_refused,
    users,
)
from kubectl_reconcile_operators.postgres.failover import failing_over, left_behind, offered
from kubectl_reconcile_operators.postgres.gathering import gathering
from kubectl_reconcile_operators.postgres.handover import (
    closed,
    handed_over,
    handing_over,
    switchover,
    switchover_refused,
)
from kubectl_reconcile_operators.postgres.membership import commit_refused, members, quorum_refused
from kubectl_reconcile_operators.postgres.rejoin import come_back, given_up, rejoining, retained, unrewindable, why_not
from kubectl_reconcile_operators.postgres.situation import (
    DatabaseState,
    Instance,
    slot_id,
)
from kubectl_reconcile_operators.postgres.spec import SUPERUSER, MyDatabaseSpec, secret_of
from kubectl_reconcile_operators.postgres.steps import (
    ABSENT,
    OK,
    PATIENT,
    SETTLED,
    DatabaseStep,
    Do,
    Why,
    ended,
    restart,
    secret_made,
    stop,
    unable,
    wait,
    why_now,
)
from kubectl_reconcile_operators.volumes import shrink_refused, would_shrink


def next_step(spec: MyDatabaseSpec, s: DatabaseState, template: str, ctx: Context) -> DatabaseStep:
    """Return the one step to take now; *template* is the digest that pods are to have."""
    if spec.paused:
        return DatabaseStep(Do.STOP, Why.SETTLED, ".spec.paused is true; nothing is changed", reason="Paused")
    found = (step for source in _ORDER if (step := next(source(spec, s, template, ctx), None)))
    patient: DatabaseStep | None = None
    for step in found:
        if step.reason not in PATIENT:
            return step
        patient = patient or step
    return patient or SETTLED


def refusal_of(spec: MyDatabaseSpec, s: DatabaseState, ctx: Context) -> tuple[str, str]:
    """Return what of the spec is refused while all else goes on: a word and a sentence, empty where nothing is."""
    sizes = {slot: each.size for slot, each in s.volumes.items()}
    hint = "set it to {size}, or dump the data into another MyDatabase"
    if shrinks := shrink_refused(".spec.storage.size", spec.storage.size, sizes, hint):
        return "StorageShrinks", shrinks
    for refused in (
        quorum_refused(spec),
        commit_refused(spec),
        tls_refused(spec, s),
        secret_refused(spec, s, ctx),
        _volumes_told(s),
    ):
        if refused[0]:
            return refused
    return switchover_refused(s, members(spec, s, ctx))


def room_told(spec: MyDatabaseSpec, s: DatabaseState) -> str:
    """Return which volumes are full, and what somebody can do, empty where all have room."""
    return "; ".join(_room_told(spec, s, slot) for slot, each in sorted(s.volumes.items()) if each.is_full)


def _room_told(spec: MyDatabaseSpec, s: DatabaseState, slot: str) -> str:
    volume = s.volumes[slot]
    size = volume.capacity or volume.size
    which = ", the primary," if slot == s.named_primary else ""
    what = "nothing can be written until there is room" if which else "it follows once there is room"
    if would_shrink(spec.storage.size, size):
        return f"the volume of {slot}{which} is full ({size}); {what}: it is to grow to {spec.storage.size}"
    return f"the volume of {slot}{which} is full ({size}); {what} (hint: set .spec.storage.size to more than {size})"


# --- what comes first -----------------------------------------------------------------------------


def _under_way(spec: MyDatabaseSpec, s: DatabaseState, template: str, ctx: Context) -> Iterator[DatabaseStep]:
    if len(s.systems) > 1:
        text = f"there is data of different databases ({', '.join(s.systems)}); nothing is changed (hint: delete the pod and the volume claim of the one that is wrong)"
        yield stop(text, "DifferentDatabases")
    for slot, volume in sorted(s.volumes.items()):
        if volume.major and volume.major != str(spec.version):
            text = (
                f".spec.version: the volume of {slot} holds data of PostgreSQL {volume.major}, which {spec.version} doesn't read; nothing is changed (hint: set it to"
                f" {volume.major}, create another MyDatabase of version {spec.version}, and dump the data into that)"
            )  # fmt: skip
            yield stop(text, "VersionRefused")
    if len(s.writable) > 1:
        names = " and ".join(each.slot for each in s.writable)
        text = f"{names} take writes, so that no client is led to either; nothing is changed (hint: delete the pod and the volume claim of the one that is to go)"
        yield stop(text, "TwoPrimaries")
    if s.primary is not None and s.primary.is_going:
        yield from closed(spec, s, ctx)
        yield from left_behind(spec, s, template, ctx)
        text = f"pod {s.primary.slot} is terminating"
        if len(s.instances) > 1:
            text = f"{text}; nobody takes over before its node says that it has ended{_off_for_good(s.primary)}"
        yield wait(text, "PodTerminating", s)


def _off_for_good(instance: Instance) -> str:
    return f" (hint: only if that node is off for good: kubectl delete pod {instance.slot} --force)"


def _volumes(_spec: MyDatabaseSpec, s: DatabaseState, _template: str, _ctx: Context) -> Iterator[DatabaseStep]:
    """Yield volumes that are going and must be gone first: the primary's, and any before there is a database. That of a replica keeps nobody from anything, as long as its server runs on it."""
    for slot, volume in sorted(s.volumes.items()):
        if volume.is_going and (slot == s.named_primary or not s.is_formed):
            yield wait(f"the volume claim of {slot} is terminating", "VolumeTerminating", s)


def _volumes_told(s: DatabaseState) -> tuple[str, str]:
    """Return which replicas run on volumes that are gone once their pods are, as a word and a sentence; empty where none does."""
    going = [slot for slot, each in sorted(s.volumes.items()) if each.is_going and slot in s.instances]
    if not going or s.named_primary in going:
        return "", ""
    names = ", ".join(going)
    text = f"somebody has deleted the volume claim of {names}: the data goes with the pod, and a replica begins with a new copy then (hint: kubectl delete pod {' '.join(going)})"
    return "VolumeTerminating", text


def _superuser(_spec: MyDatabaseSpec, s: DatabaseState, _template: str, ctx: Context) -> Iterator[DatabaseStep]:
    """Yield what is to be done about the Secret without which nobody gets in."""
    name = secret_of(ctx, SUPERUSER)
    known = s.secrets.get(name, ABSENT)
    if known == ABSENT and not s.is_formed and not s.instances:
        yield secret_made(ctx, SUPERUSER, Why.CREATING)
    if known == ABSENT:
        text = f"Secret {name} is gone, and with it the superuser's password (hint: recreate it with username postgres and the password that the server knows; in the pod, psql -U postgres sets another)"
        yield stop(text, "SecretMissing")
    if known != OK:
        yield stop(f"Secret {name} {known}", "SecretUnusable")


# --- instances ------------------------------------------------------------------------------------


def _first(spec: MyDatabaseSpec, s: DatabaseState, _template: str, ctx: Context) -> Iterator[DatabaseStep]:
    if s.is_formed or s.instances:
        return
    seed = seed_of(s, ctx)
    if spec.filled_from:
        yield from filled(spec.filled_from, s, seed, ctx)
        text = f"create {seed}, the first instance, on what is there now"
        yield DatabaseStep(Do.CREATE_POD, Why.CREATING, text, seed, begin=Begin.PRIMARY)
    text = f"create {seed}, the first instance"
    yield DatabaseStep(Do.CREATE_POD, Why.CREATING, text, seed, begin=Begin.INITDB)


def _back(spec: MyDatabaseSpec, s: DatabaseState, _template: str, ctx: Context) -> Iterator[DatabaseStep]:
    """Yield what brings the primary back."""
    if s.primary is None and s.named_primary not in s.volumes:
        yield from offered(spec, s, ctx)
    if s.primary is None:
        yield _primary_back(spec, s, why_now(s))
    else:
        if s.is_formed and s.primary.holds_nothing:
            yield from offered(spec, s, ctx)
            yield _emptied(spec, s, s.primary)
        for step in ended(s.primary, s):
            if step.do is Do.WAIT:  # for half a minute, in which somebody may decide
                yield from offered(spec, s, ctx)
            yield step


def _primary_back(spec: MyDatabaseSpec, s: DatabaseState, why: Why) -> DatabaseStep:
    slot = s.named_primary
    if slot in s.volumes:
        begin = Begin.PRIMARY if s.is_formed or spec.filled_from else Begin.INITDB
        return DatabaseStep(Do.CREATE_POD, why, f"create {slot} on its volume", slot, begin=begin)
    return stop(
        f"the volume of {slot}, the primary, is gone, and what only it held with it (hint: {_way(s)})", "DataLost"
    )


def _emptied(spec: MyDatabaseSpec, s: DatabaseState, primary: Instance) -> DatabaseStep:
    """Return what is to be done about a primary whose volume came back empty: a replica takes over, or a person decides; no other database is begun on it."""
    text = (
        f"the volume of {primary.slot}, the primary, holds no database any more, and what only it held is gone with it"
    )
    if spec.failover is not None and (others := _others(s)):
        return wait(f"{text}; one of {', '.join(others)} is to take over", "DataLost", s)
    back = f". Where its data is back: kubectl delete pod {primary.slot}"
    return stop(f"{text} (hint: {_way(s)}{back})", "DataLost")


def _way(s: DatabaseState) -> str:
    """Return what somebody can do about a primary that has lost its data."""
    if others := _others(s):
        return f"promote one of {', '.join(others)} by pg_promote(), which is taken for the primary then"
    return "restore a backup into another MyDatabase; delete this one"


def _others(s: DatabaseState) -> list[str]:
    return sorted({*s.instances} - {s.named_primary})


def _awaited(spec: MyDatabaseSpec, s: DatabaseState, template: str, ctx: Context) -> Iterator[DatabaseStep]:
    if s.primary is not None:
        if not s.is_healthy(s.primary):
            yield from unable(spec, s.primary, s, template)
            yield from offered(spec, s, ctx)
        yield from _not_serving(spec, s, s.primary, template)


def _not_serving(spec: MyDatabaseSpec, s: DatabaseState, instance: Instance, template: str) -> Iterator[DatabaseStep]:
    """Yield what is to be done about an instance that doesn't serve as what it is."""
    if s.is_healthy(instance):
        return
    yield from unable(spec, instance, s, template)
    fault = instance.fault or instance.silence
    if not fault and instance.serves:
        fault = why_not(spec, s, instance)
        if instance.slot == s.named_primary:
            fault = "it stands by, and nobody takes writes (hint: have it promoted by pg_promote())"
    text = f"{instance.slot} doesn't serve yet{f': {fault}' if fault else ''}"
    yield wait(text, "InstanceNotServing" if s.is_formed else "Starting", s)


def _surplus(spec: MyDatabaseSpec, s: DatabaseState, _template: str, ctx: Context) -> Iterator[DatabaseStep]:
    """Yield what is left of replicas that aren't wanted any more, the last one first."""
    wanted = members(spec, s, ctx)
    known = {*s.instances, *s.volumes}
    for slot in sorted(known - {*wanted}, key=lambda each: -ctx.number_of(each)):
        if slot in s.instances and s.instances[slot].is_going:
            continue
        if slot in s.instances:
            text = f"delete {slot}, for {spec.replicas} replicas"
            yield DatabaseStep(Do.DELETE_POD, Why.SCALING, text, slot)
        if slot_id(slot) in s.slots:
            yield _dropped(slot, s, ctx)
        if slot in s.volumes and not s.volumes[slot].is_going:
            yield retained(spec, slot)
    for name in sorted(s.slots):
        slot = ctx.name("0")[:-1] + name.rpartition("_")[2]
        if slot in s.instances and slot not in wanted:
            continue
        is_lost = map_at(s.slots, name).get("status") == "lost" and slot not in {*s.instances, *s.volumes}
        if slot_id(slot) == name and ctx.number_of(slot) >= 0 and (is_lost or slot not in wanted):
            yield _dropped(slot, s, ctx)


def _dropped(slot: str, s: DatabaseState, ctx: Context) -> DatabaseStep:
    name = slot_id(slot)
    if map_at(s.slots, name).get("active"):
        return wait(f"replication slot {name} is in use", "SlotInUse", s)
    text = f"drop replication slot {name}, which makes the primary keep WAL that nobody fetches any more"
    return DatabaseStep(Do.DROP_SLOT, Why.SCALING, text, str(ctx.number_of(slot)), parameters={"slot": name})


def _leaving(spec: MyDatabaseSpec, s: DatabaseState, _template: str, ctx: Context) -> Iterator[DatabaseStep]:
    """Yield surplus replicas that are still ending: nobody else waits for them, since a node that is gone may never tell."""
    for slot in sorted({*s.instances} - {*members(spec, s, ctx)}):
        yield wait(f"pod {slot} is terminating", "PodTerminating", s)


def _slots(spec: MyDatabaseSpec, s: DatabaseState, _template: str, ctx: Context) -> Iterator[DatabaseStep]:
    for slot in members(spec, s, ctx):
        if slot != s.named_primary and slot in s.instances and slot_id(slot) not in s.slots:
            yield _slot_made(slot, ctx)


def _slot_made(slot: str, ctx: Context) -> DatabaseStep:
    text = f"make replication slot {slot_id(slot)}, so that the primary keeps the WAL that {slot} hasn't got yet"
    return DatabaseStep(Do.MAKE_SLOT, Why.SCALING, text, str(ctx.number_of(slot)), parameters={"slot": slot_id(slot)})


def _followers(spec: MyDatabaseSpec, s: DatabaseState, template: str, ctx: Context) -> Iterator[DatabaseStep]:
    """Yield what brings replicas back, and those that don't follow yet."""
    for slot in members(spec, s, ctx):
        instance = s.instances.get(slot)
        if slot == s.named_primary:
            continue
        if instance is not None:
            if instance.is_going:
                hint = _off_for_good(instance) if instance.is_overdue else ""
                yield wait(f"pod {slot} is terminating{hint}", "PodTerminating", s)
            yield from unrewindable(spec, s, instance)
            yield from ended(instance, s)
            yield from _not_serving(spec, s, instance, template)
        elif slot in s.volumes and s.volumes[slot].is_going:
            yield wait(f"the volume claim of {slot} is terminating", "VolumeTerminating", s)
        elif slot in s.volumes:
            yield from come_back(spec, s, slot, why_now(s), ctx)


def _outdated(_spec: MyDatabaseSpec, s: DatabaseState, template: str, ctx: Context) -> Iterator[DatabaseStep]:
    for instance in sorted(s.ordered, key=lambda each: each.slot == s.named_primary):
        heirs = [each.slot for each in s.ordered if each.slot != instance.slot and s.is_healthy(each)]
        heirs.sort(key=s.has_room, reverse=True)
        if instance.slot == s.named_primary and heirs and (instance.template != template or instance.pending):
            what = "a changed pod spec" if instance.template != template else ", ".join(instance.pending)
            yield from handed_over(s, heirs[0], f", for {what}", ctx)
        if instance.template != template:
            text = f"delete {instance.slot}, whose pod spec changed; it comes back on its volume"
            yield DatabaseStep(Do.DELETE_POD, Why.CHANGING, text, instance.slot)
        if instance.pending:
            yield restart(instance)


def _missing(spec: MyDatabaseSpec, s: DatabaseState, _template: str, ctx: Context) -> Iterator[DatabaseStep]:
    for slot in members(spec, s, ctx):
        if slot in s.instances:
            continue
        if slot_id(slot) not in s.slots:
            yield _slot_made(slot, ctx)
        text = f"create {slot}, a replica that begins with a copy of {s.named_primary}"
        yield DatabaseStep(Do.CREATE_POD, Why.SCALING, text, slot)


_ORDER = (
    _under_way, _superuser, gathering, failing_over, handing_over, _volumes, _first, _back, _awaited, tls_offered, acknowledged, switchover, rejoining, _surplus, users, databases, parameters_set, access_set, _slots, _followers, _outdated, _missing,
    confirmed, tls_awaited, _leaving, given_up,
)  # fmt: skip
"""Where steps come from; the first one there is is taken."""
