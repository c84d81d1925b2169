"""What is known of who gets to the brokers: Secrets, users, listeners.

Facts: ``tls`` are the Secrets with the certificates that the Kafka issues itself, by kind; ``secrets`` those of users and listeners by name (state: ok, absent, or what is wrong with it; version: what tells this
state of it from others); ``users`` the names of those who can log in, as far as they are asked for.

Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kubectl_reconcile.module_api import Facts, Manifest, map_at, maps_in, text_at
from kubectl_reconcile_operators.certificates.worth import SECRET_ABSENT, SECRET_EXPIRED, SECRET_OK
from kubectl_reconcile_operators.kafka.access.listeners import ListenerWish, listeners_told


@dataclass(frozen=True, slots=True)
class AccessState:
    """*listeners* are those that were in effect last, and *noted* the users that were given their password: of which version of their Secret, by name; both by the status."""

    tls: Mapping[str, Any] = field(default_factory=dict)
    secrets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    users: frozenset[str] = frozenset()
    listeners: tuple[ListenerWish, ...] = ()
    noted: Mapping[str, str] = field(default_factory=dict)

    def worth(self, secret: str) -> str:
        """Return what a Secret is worth: ok, absent, or what is wrong with it."""
        return str(self.secrets.get(secret, {}).get("state") or SECRET_ABSENT)

    def version(self, secret: str) -> str:
        """Return what tells this state of a Secret from others."""
        return str(self.secrets.get(secret, {}).get("version") or "")

    @property
    def usable(self) -> frozenset[str]:
        """The Secrets that hold what they should."""
        return frozenset(name for name in self.secrets if self.worth(name) == SECRET_OK)

    def lets_start(self, secret: str) -> bool:
        """Tell whether a broker would start with a Secret: one with a certificate that has expired does, since it is better than none."""
        return self.worth(secret) == SECRET_OK or self.worth(secret).startswith(SECRET_EXPIRED)


def access_of(cr: Manifest, facts: Facts) -> AccessState:
    """Return what is known for *cr*."""
    users = facts.get("users")
    return AccessState(
        tls=map_at(facts, "tls"),
        secrets={name: each for name, each in map_at(facts, "secrets").items() if isinstance(each, Mapping)},
        users=frozenset(map(str, users)) if isinstance(users, list) else frozenset(),
        listeners=listeners_told(map_at(cr, "status").get("listeners")),
        noted={
            text_at(each, "name"): text_at(each, "secretVersion")
            for each in maps_in(map_at(cr, "status").get("users"))
            if text_at(each, "name")
        },
    )
