"""Steps: what can be done for a database, and how a step is told to people.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from kubectl_reconcile.module_api import Context
from kubectl_reconcile_operators.certificates.worth import SECRET_ABSENT, SECRET_EXPIRED, SECRET_OK
from kubectl_reconcile_operators.postgres.children import Begin, parameter_lines
from kubectl_reconcile_operators.postgres.situation import DatabaseState, Instance
from kubectl_reconcile_operators.postgres.spec import MyDatabaseSpec, secret_of
from kubectl_reconcile_operators.volumes import END_VOLUME

OK, ABSENT, EXPIRED = SECRET_OK, SECRET_ABSENT, SECRET_EXPIRED
"""What is known of a Secret; anything else says what is wrong with it, and begins so where a certificate would do otherwise."""


class Do(StrEnum):
    """What a step does."""

    NOTHING = "nothing"
    """All is as specified."""
    WAIT = "wait"
    """Something under way must come to its end."""
    STOP = "stop"
    """Only a person can continue."""
    CREATE_POD = "create-pod"
    """With its volume, where it has none yet."""
    DELETE_POD = "delete-pod"
    DELETE_VOLUME = "delete-volume"
    RESTORE = "restore"
    """Fill the volume of the first instance from a backup."""
    FORGET_RESTORE = "forget-restore"
    """Delete the Job of a restore that failed."""
    SET_ASIDE = "set-aside"
    """Keep a volume of which no replica can be made, or none is wanted, and end its pod."""
    MAKE_SECRET = "make-secret"  # noqa: S105 - a verb
    SET_USER = "set-user"
    """Make a user, or set its password and what it may."""
    MAKE_DATABASE = "make-database"
    SET_OWNER = "set-owner"
    SET_PARAMETERS = "set-parameters"
    SET_ACCESS = "set-access"
    """Say who may come in from where."""
    SET_TLS = "set-tls"
    """Offer TLS with the certificate that the pod has now."""
    MAKE_SLOT = "make-slot"
    """Have the primary keep what a replica hasn't got yet."""
    DROP_SLOT = "drop-slot"
    CHECKPOINT = "checkpoint"
    """Have the primary write to its files what is in memory, so that it stops at once when it is to."""
    NOTE_QUORUM = "note-quorum"
    """Note by whom rows will be acknowledged, before the primary is told."""
    SET_QUORUM = "set-quorum"
    CONFIRM_QUORUM = "confirm-quorum"
    """Find that enough have all that was acknowledged before."""
    FAIL_OVER = "fail-over"
    """A decision of somebody: what may be lost is given up."""
    END_VOLUME = END_VOLUME
    """A decision of somebody: the volume of a replica that isn't wanted any more is given up, with what is on it."""
    PROMOTE = "promote"
    """Have a standby take writes from now on."""


ACTIONS = frozenset(
    {
        Do.MAKE_SECRET,
        Do.SET_USER,
        Do.MAKE_DATABASE,
        Do.SET_OWNER,
        Do.SET_PARAMETERS,
        Do.SET_ACCESS,
        Do.SET_TLS,
        Do.MAKE_SLOT,
        Do.DROP_SLOT,
        Do.CHECKPOINT,
        Do.SET_QUORUM,
        Do.CONFIRM_QUORUM,
        Do.FAIL_OVER,
        Do.END_VOLUME,
        Do.PROMOTE,
    }
)
"""Steps that aren't a matter of children."""
DECISIONS = frozenset({Do.FAIL_OVER, Do.END_VOLUME})
"""Of these, those that somebody has to approve, and that change nothing by themselves."""


class Why(StrEnum):
    """What a step is for."""

    CREATING = "Creating"
    RECOVERING = "Recovering"
    SCALING = "Scaling"
    CHANGING = "Changing"
    SETTLED = "Settled"


@dataclass(frozen=True, slots=True)
class DatabaseStep:
    """The one thing to do. *about* names it among its kind (a pod by its slot), *text* says it to people, *reason* is a word for a condition.

    *begin* is how a pod begins; *parameters* are for the driver; *target* is who takes over from the primary, where somebody does;
    *is_failover* tells whether the primary is left behind then, *is_gathering* that nobody knows who it was.
    """

    do: Do
    why: Why
    text: str
    about: str = ""
    reason: str = ""
    begin: Begin = Begin.REPLICA
    parameters: Mapping[str, Any] = field(default_factory=dict)
    target: str = ""
    is_failover: bool = False
    is_gathering: bool = False

    @property
    def key(self) -> str:
        """The key of the action that it is."""
        return f"{self.do.value}-{self.about.replace('_', '-')}"


PATIENT = frozenset({"ReplicaBehind", "ReplicaFull"})
"""What whoever is to take over is waited for, while everything else goes on."""
SETTLED = DatabaseStep(Do.NOTHING, Why.SETTLED, "")


# --- steps that are taken in several places -------------------------------------------------------


def secret_made(ctx: Context, user: str, why: Why, *, sslmode: str = "") -> DatabaseStep:
    """Make a user's Secret, with the *sslmode* that its user is to connect by."""
    name = secret_of(ctx, user)
    text = f"make Secret {name} with a random password"
    parameters = {"secret": name, "user": user, "host": f"{ctx.name()}.{ctx.namespace}.svc", "sslmode": sslmode}
    return DatabaseStep(Do.MAKE_SECRET, why, text, user, parameters=parameters)


def restart(instance: Instance) -> DatabaseStep:
    """End an instance, which comes back with the parameters that take a restart."""
    text = (
        f"delete {instance.slot}, so that it restarts with {', '.join(instance.pending)}; it comes back on its volume"
    )
    return DatabaseStep(Do.DELETE_POD, Why.CHANGING, text, instance.slot)


def ended(instance: Instance, s: DatabaseState) -> Iterator[DatabaseStep]:
    """Yield what is to be done about an instance whose server has ended."""
    if instance.has_ended and instance.may_return:
        fault = f" ({instance.fault})" if instance.fault else ""
        text = f"delete {instance.slot}, which has ended{fault}; it comes back on its volume"
        yield DatabaseStep(Do.DELETE_POD, why_now(s), text, instance.slot)
    if instance.has_ended:
        hint = " (hint: correct .spec.bootstrap.initdb)" if not s.is_formed and "initdb: " in instance.fault else ""
        text = f"{instance.slot} ended right after it was created, and is recreated in half a minute: {instance.fault}{hint}"
        yield wait(text, "InstanceFails", s)


def unable(spec: MyDatabaseSpec, instance: Instance, s: DatabaseState, template: str) -> Iterator[DatabaseStep]:
    """Yield the end of an instance that doesn't run and isn't as specified any more, so that it may run as it is specified now."""
    begun = instance.begun
    is_current = begun.get("PARAMETERS", "") == parameter_lines(spec.parameters)
    is_current = is_current and begun.get("INITDB", "") in {"", spec.initdb} and instance.template == template
    if not instance.answer and not instance.is_ready and not is_current:
        text = f"delete {instance.slot}, which doesn't run and isn't as specified any more; it comes back on its volume"
        yield DatabaseStep(Do.DELETE_POD, why_now(s), text, instance.slot)


def why_now(s: DatabaseState) -> Why:
    """Return what a step is for that brings something up."""
    return Why.RECOVERING if s.is_formed else Why.CREATING


def stop(text: str, reason: str) -> DatabaseStep:
    """Leave it to a person."""
    return DatabaseStep(Do.STOP, Why.RECOVERING, text, reason=reason)


def wait(text: str, reason: str, s: DatabaseState) -> DatabaseStep:
    """Wait until something has come to its end."""
    return DatabaseStep(Do.WAIT, why_now(s), text, reason=reason)
