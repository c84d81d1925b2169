"""Listeners: ports for clients, with or without TLS, with or without passwords.

A listener *is in effect* where brokers may have it: its Secret is of use, or it was so before. As long as one that is wanted isn't, all stay as they were, so that nobody is cut off by a listener that can't come to be.

Pure: values in, values out.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from kubectl_reconcile.module_api import Between, SpecError, maps_in
from kubectl_reconcile_operators.kafka.names import CONTROLLER_PORT, INTERNAL_PORT

CLIENT_PORT = 9092
"""What clients connect to where nobody says otherwise."""
MECHANISM = "SCRAM-SHA-512"
_PLAIN = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
_NAME = re.compile(r"[a-z][a-z0-9]{0,9}")
_SECRET = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_TAKEN_NAMES, _TAKEN_PORTS = ("broker", "controller", "internal"), (INTERNAL_PORT, CONTROLLER_PORT)
_MOST = 8


@dataclass(frozen=True, slots=True)
class ListenerTls:
    """The Secret with a listener's certificate and its key."""

    secret_name: str


@dataclass(frozen=True, slots=True)
class ListenerWish:
    """A port for clients. *authentication* says whether they need a password."""

    name: str
    port: Annotated[int, Between(1024, 65535)] = CLIENT_PORT
    tls: ListenerTls | None = None
    authentication: Literal["none", "scram"] = "none"

    @property
    def protocol(self) -> str:
        """How Kafka calls what is spoken there."""
        kind = "SSL" if self.tls else "PLAINTEXT"
        return f"SASL_{kind}" if self.authentication == "scram" else kind

    @property
    def secret(self) -> str:
        """The Secret that it takes, empty where it takes none."""
        return self.tls.secret_name if self.tls else ""

    @property
    def kafka_name(self) -> str:
        """How brokers call it."""
        return self.name.upper()

    def told(self) -> dict[str, Any]:
        """Return what a status says of it: as much as makes it again."""
        tls = {"tls": {"secretName": self.secret}} if self.tls else {}
        return {"name": self.name, "port": self.port, **tls, "authentication": self.authentication}


USUAL = (ListenerWish("plain"),)
"""What there is where a spec names none."""


def check_listeners(listeners: Collection[ListenerWish], where: str = ".spec.listeners") -> None:
    """Make sure that listeners make sense.

    Raises:
        SpecError: one doesn't; its field is named.
    """
    if not 1 <= len(listeners) <= _MOST:
        raise SpecError(
            where, f"must be 1 to {_MOST} listeners, not {len(listeners)} (hint: leave it out for a plain one)"
        )
    for at, each in enumerate(listeners):
        _check(each, f"{where}[{at}]")
    for field in ("name", "port"):
        seen: dict[Any, int] = {}
        for at, each in enumerate(listeners):
            value = getattr(each, field)
            if value in seen:
                raise SpecError(
                    f"{where}[{at}].{field}",
                    f"{value} is that of listener {seen[value]}, too (hint: each needs its own)",
                )
            seen[value] = at


def _check(each: ListenerWish, where: str) -> None:
    if not _NAME.fullmatch(each.name) or each.name in _TAKEN_NAMES:
        raise SpecError(
            f"{where}.name",
            f"must be 1 to 10 small letters and digits, beginning with a letter, and not broker, controller or internal, not {each.name[:40]!r}",
        )
    if each.port in _TAKEN_PORTS:
        raise SpecError(
            f"{where}.port",
            f"must be another one than {each.port}: brokers talk at {INTERNAL_PORT}, and controllers at {CONTROLLER_PORT}",
        )
    if each.tls and not _SECRET.fullmatch(each.secret):
        raise SpecError(f"{where}.tls.secretName", f"must be the name of a Secret, not {each.secret[:60]!r}")


def listeners_told(told: Any) -> tuple[ListenerWish, ...]:
    """Return the listeners that a status tells of, none where it tells nonsense."""
    found = tuple(_told(each) for each in maps_in(told))
    try:
        check_listeners(found)
    except SpecError:
        return ()
    return found


def _told(each: Mapping[str, Any]) -> ListenerWish:
    name, port, tls = each.get("name"), each.get("port"), each.get("tls")
    secret = tls.get("secretName") if isinstance(tls, Mapping) else None
    return ListenerWish(
        name if isinstance(name, str) else "",
        port if isinstance(port, int) else 0,
        ListenerTls(secret) if isinstance(secret, str) else None,
        "scram" if each.get("authentication") == "scram" else "none",
    )


def in_effect(
    wanted: tuple[ListenerWish, ...], before: tuple[ListenerWish, ...], usable: Collection[str]
) -> tuple[ListenerWish, ...]:
    """Return the listeners that brokers are to have, of which *before* are those that they were to have last, and *usable* the Secrets that are of use."""
    if not refused_of(wanted, before, usable):
        return wanted
    return before or tuple(each for each in wanted if _is_able(each, before, usable))


def refused_of(
    wanted: tuple[ListenerWish, ...], before: tuple[ListenerWish, ...], usable: Collection[str]
) -> list[tuple[int, ListenerWish]]:
    """Return the listeners that can't come to be, each with its place."""
    return [(at, each) for at, each in enumerate(wanted) if not _is_able(each, before, usable)]


def _is_able(each: ListenerWish, before: Collection[ListenerWish], usable: Collection[str]) -> bool:
    return (
        not each.tls
        or each.secret in usable
        or any(each.name == one.name and each.secret == one.secret for one in before)
    )


# --- what brokers and clients are told ------------------------------------------------------------


def listener_properties(each: ListenerWish, keystore: str) -> dict[str, str]:
    """Return what a broker is told of a listener besides its name and port; *keystore* is the file with its certificate and key."""
    prefix = f"listener.name.{each.name}"
    lines: dict[str, str] = {}
    if each.tls:
        lines |= {
            f"{prefix}.ssl.keystore.type": "PEM",
            f"{prefix}.ssl.keystore.location": keystore,
            f"{prefix}.ssl.client.auth": "none",
        }
    if each.authentication == "scram":
        lines |= {
            f"{prefix}.sasl.enabled.mechanisms": MECHANISM,
            f"{prefix}.{MECHANISM.lower()}.sasl.jaas.config": _PLAIN,
        }
    return lines


def client_properties(each: ListenerWish, host: str) -> dict[str, str]:
    """Return what clients are to be told to connect to a listener of the Service *host*. Whom they trust and who they are is their business."""
    scram = {"sasl.mechanism": MECHANISM} if each.authentication == "scram" else {}
    return {"bootstrap.servers": f"{host}:{each.port}", "security.protocol": each.protocol, **scram}


def client_data(listeners: Collection[ListenerWish], host: str) -> dict[str, str]:
    """Return what a ConfigMap holds for clients: the settings for the first listener, and those for each in a file of its own."""
    whole = {each.name: client_properties(each, host) for each in listeners}
    first = next(iter(whole.values()), {})
    files = ((f"{name}.properties", "".join(_lines(found))) for name, found in whole.items())
    return {**first, **dict(files)}


def _lines(settings: Mapping[str, str]) -> Iterator[str]:
    for name, value in settings.items():
        yield f"{name}={value}\n"
