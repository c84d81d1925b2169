"""Users: who logs in with a password, which stands in a Secret.

Brokers tell who can log in, and never with which password. So the status notes of which version of a Secret a user was given the password; where the Secret has another one, the user is given its password again. Users that the spec doesn't
name and never did are left alone. One that it named once, by the status or else by the journal of actions, is locked out before others are let in, and stays: brokers of 4.3.1 lose all passwords when they start again after a user was deleted (seen).

Pure: users and a state in, steps out.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kubectl_reconcile.module_api import Context, Manifest, Select, SpecError, map_at, maps_in, text_at
from kubectl_reconcile_operators.certificates.worth import SECRET_ABSENT, SECRET_OK
from kubectl_reconcile_operators.kafka.situation import KafkaState
from kubectl_reconcile_operators.kafka.steps import Do, KafkaStep, Why

_USER = re.compile(r"[a-z0-9]([a-z0-9-]{0,32}[a-z0-9])?")
_DONE = re.compile(rf"({Do.SET_USER}|{Do.LOCK_USER})-({_USER.pattern})-[0-9a-f]{{8}}")
"""What is in the journal of users, by the keys of actions."""
_MOST = 100
"""So many users a spec names at most."""
_MOST_NOTED = 10 * _MOST
"""So many of those that a status names are asked for at once: those of the spec, and those of earlier ones that are still to be locked out."""


@dataclass(frozen=True, slots=True)
class KafkaUser:
    """Somebody who may log in, with the password of a Secret."""

    name: str


def check_users(users: Collection[KafkaUser], where: str = ".spec.users") -> None:
    """Make sure that users make sense.

    Raises:
        SpecError: one doesn't; its field is named.
    """
    if len(users) > _MOST:
        raise SpecError(where, f"must be {_MOST} users at most, not {len(users)}")
    seen: set[str] = set()
    for at, each in enumerate(users):
        if not _USER.fullmatch(each.name):
            raise SpecError(
                f"{where}[{at}].name", f"must be 1 to 34 small letters, digits and dashes, not {each.name[:60]!r}"
            )
        if each.name in seen:
            raise SpecError(f"{where}[{at}].name", f"{each.name} is there twice")
        seen.add(each.name)


def secret_of(ctx: Context, user: str) -> str:
    """Return the name of the Secret with a user's password."""
    return ctx.name(f"user-{user}")


def users_named(tree: Any) -> list[str]:
    """Return the users that a spec or a status names, whatever it looks like."""
    names = (text_at(each, "name") for each in maps_in(tree))
    return [name for name in names if _USER.fullmatch(name)][:_MOST_NOTED]


# --- steps ----------------------------------------------------------------------------------------


def user_steps(users: Collection[KafkaUser], s: KafkaState, ctx: Context) -> Iterator[KafkaStep]:
    """Yield what it takes until those log in that a spec names, with the passwords of their Secrets, and those no more that it named once."""
    yield from _locked_out(users, s)
    for user in (each.name for each in users):
        secret = secret_of(ctx, user)
        worth, version = s.access.worth(secret), s.access.version(secret)
        if worth == SECRET_ABSENT:
            yield KafkaStep(
                Do.MAKE_SECRET, Why.CHANGING, f"make Secret {secret} with a random password", user,
                parameters={"secret": secret, "user": user}, holds={f"secrets.{secret}.state": SECRET_ABSENT},
            )  # fmt: skip
        elif worth == SECRET_OK and (user not in s.access.users or not _has(user, secret, s)):
            what = "give user" if user in s.access.users else "make user"
            yield KafkaStep(
                Do.SET_USER, Why.CHANGING, f"{what} {user} {'' if user in s.access.users else 'with '}the password of Secret {secret}",
                _occasion(user, version), parameters={"secret": secret, "user": user}, holds={f"secrets.{secret}.version": version},
            )  # fmt: skip


def _locked_out(users: Collection[KafkaUser], s: KafkaState) -> Iterator[KafkaStep]:
    for user, version in sorted(_left(users, s).items()):
        text = f"lock user {user} out, whom the spec doesn't name any more: its password becomes one that nobody knows"
        yield KafkaStep(
            Do.LOCK_USER, Why.CHANGING, text, _occasion(user, version), parameters={"user": user}
        )  # fmt: skip


def _left(users: Collection[KafkaUser], s: KafkaState) -> dict[str, str]:
    """Return who may still log in though the spec names them no more, each with the version of its Secret: by the status, as far as brokers know them, or by what was done since it was written, which says no version."""
    wanted, last = {each.name for each in users}, _last_done(s)
    done = {user: "" for user, verb in last.items() if verb == Do.SET_USER and user not in s.access.noted}
    noted = {
        user: version
        for user, version in s.access.noted.items()
        if user in s.access.users and last.get(user) != Do.LOCK_USER
    }
    return {user: version for user, version in {**done, **noted}.items() if user not in wanted}


def refused_users(users: Collection[KafkaUser], s: KafkaState, ctx: Context) -> Iterator[tuple[str, str]]:
    """Yield the Secrets whose users stay as they are: a word and a sentence."""
    for each in users:
        secret = secret_of(ctx, each.name)
        if s.access.worth(secret) not in {SECRET_OK, SECRET_ABSENT}:
            yield "SecretUnusable", f"Secret {secret} {s.access.worth(secret)}"


def users_told(users: Collection[KafkaUser], s: KafkaState, ctx: Context) -> list[dict[str, str]]:
    """Return what a status says of users: those that have the password of their Secret, and those that are still to be taken away."""
    wanted = {each.name for each in users}
    found: Mapping[str, str] = {
        **{user: version for user, version in s.access.noted.items() if user in wanted},
        **_left(users, s),
        **{user: s.access.version(secret_of(ctx, user)) for user in wanted if _has(user, secret_of(ctx, user), s)},
    }
    return [
        {"name": user, "secretName": secret_of(ctx, user), "secretVersion": version}
        for user, version in sorted(found.items())
    ]


def _has(user: str, secret: str, s: KafkaState) -> bool:
    """Tell whether a user was given the password that a Secret holds now."""
    version = s.access.version(secret)
    if not version or _is_locked_out(user, s):
        return False
    return s.access.noted.get(user) == version or f"{Do.SET_USER.value}-{_occasion(user, version)}" in s.done


def _is_locked_out(user: str, s: KafkaState) -> bool:
    """Tell whether the last thing that was done to a user was to lock it out."""
    return _last_done(s).get(user) == Do.LOCK_USER


def _last_done(s: KafkaState) -> dict[str, str]:
    """Return what was done last to each user, as far back as the journal goes."""
    return {found[2]: found[1] for key in s.done if (found := _DONE.fullmatch(key))}


def _occasion(user: str, version: str) -> str:
    return f"{user}-{hashlib.sha256(version.encode()).hexdigest()[:8]}"


# --- which Secrets --------------------------------------------------------------------------------


def secrets_named(cr: Manifest) -> Select:
    """Select the Secrets of users and listeners of a Kafka, whatever it looks like."""
    ctx, found = Context("", "kafka", cr), []
    for tree in (map_at(cr, "spec"), map_at(cr, "status")):
        found += [text_at(each, "tls", "secretName") for each in maps_in(tree.get("listeners"))][:_MOST]
    users = (secret_of(ctx, user) for user in users_named(map_at(cr, "spec").get("users"))[:_MOST])
    return Select(names=tuple(dict.fromkeys((*users, *(each for each in found if each)))))
