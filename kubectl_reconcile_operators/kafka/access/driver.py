"""How brokers are reached, and what is read and written of who gets to them: Secrets, users, certificates. It does I/O, for the driver of the module.

No password and no key is among facts: of a Secret they say whether it is of use, and of a password which version of the Secret it is of.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from kubectl_reconcile.module_api import Action, Context, Io, Manifest, Owned, PodIo, PodTls, SilentPodError, map_at
from kubectl_reconcile_operators.certificates.decision import CertificateDo
from kubectl_reconcile_operators.certificates.worth import SECRET_ABSENT, SECRET_OK, password_worth
from kubectl_reconcile_operators.kafka.access.certified import KINDS, OPERATOR, TERMS
from kubectl_reconcile_operators.kafka.access.listeners import ListenerWish, listeners_told
from kubectl_reconcile_operators.kafka.access.users import secret_of, users_named
from kubectl_reconcile_operators.kafka.names import headless
from kubectl_reconcile_operators.kafka.session import KafkaRefusedError, KafkaSession, check
from kubectl_reconcile_operators.kafka.spec import KafkaSpec
from kubectl_reconcile_operators.kafka.steps import ON_OWN_SECRETS

_SHA_512 = 2
"""How Kafka numbers the mechanism SCRAM-SHA-512."""
_ITERATIONS = 8192
_GONE = 91


@dataclass(frozen=True, slots=True)
class BrokerIo:
    """How the brokers of one Kafka are reached: over TLS, with the daemon's own certificate."""

    io: Io
    ctx: Context

    @property
    def owned(self) -> Owned:
        """The live objects around the Kafka."""
        return self.io.owned

    def pod(self, name: str, port: int) -> PodIo:
        """Return how to reach a port of the broker in a pod.

        Raises:
            SilentPodError: the Kafka controls no pod of that name.
        """
        host = f"{name}.{headless(self.ctx)}.{self.ctx.namespace}.svc"
        return self.io.pod(name, port, PodTls(self.ctx.name(OPERATOR), host))

    def plain(self, name: str, port: int) -> PodIo:
        """Return how to reach a port of a pod without TLS."""
        return self.io.pod(name, port)


# --- looking --------------------------------------------------------------------------------------


async def observe_access(cr: Manifest, spec: KafkaSpec, io: BrokerIo) -> dict[str, Any]:
    """Return what is known of Secrets: the Kafka's own, and those of users and listeners."""
    from kubectl_reconcile_operators.certificates.keys import kept  # noqa: PLC0415 - cryptography is loaded where it is needed

    own, users, given = await asyncio.gather(
        kept.observe(wish_of(io.ctx), io.io), _passwords(spec, io), _certificates(_with_tls(cr, spec), io)
    )
    return {"tls": own, "secrets": {**users, **given}}


def _with_tls(cr: Manifest, spec: KafkaSpec) -> list[str]:
    """Return the Secrets of listeners that there are to be, or were to be last."""
    every = (*spec.listeners, *listeners_told(map_at(cr, "status").get("listeners")))
    return sorted({each.secret for each in every if each.tls})


async def _passwords(spec: KafkaSpec, io: BrokerIo) -> dict[str, Any]:
    names = [secret_of(io.ctx, each.name) for each in spec.users]
    found = await asyncio.gather(*(io.io.see_secret(name) for name in names))
    return {
        name: {"state": SECRET_ABSENT}
        if seen is None
        else {"state": password_worth(seen.values), "version": seen.version}
        for name, seen in zip(names, found, strict=True)
    }


async def _certificates(names: Iterable[str], io: BrokerIo) -> dict[str, Any]:
    from kubectl_reconcile_operators.certificates.keys.given import tls_worth  # noqa: PLC0415 - as above

    told = {}
    for name in names:
        values = await io.io.secret(name)
        worth = SECRET_ABSENT if values is None else await asyncio.to_thread(tls_worth, values, datetime.now(UTC))
        told[name] = {"state": unreadable((values or {})["tls.key"]) if worth == SECRET_OK else worth}
    return told


def unreadable(key: str) -> str:
    """Return what keeps Kafka alone from reading a key that is of use, ok where nothing does."""
    from kubectl_reconcile_operators.certificates.keys.given import is_rsa_or_ec  # noqa: PLC0415 - as above

    if "-----BEGIN PRIVATE KEY-----" not in key:
        return "has a key that isn't PKCS#8, which is all that Kafka reads (hint: with cert-manager, privateKey.encoding: PKCS8; else openssl pkcs8 -topk8 -nocrypt)"
    if not is_rsa_or_ec(key):
        return "has a key that is neither RSA nor EC, which is all that Kafka reads (hint: with cert-manager, privateKey.algorithm: ECDSA)"
    return SECRET_OK


async def shown_by(name: str, listeners: Iterable[ListenerWish], io: BrokerIo) -> dict[str, bool]:
    """Return whether a broker shows the certificate of its Secret, by listener, as far as that can be told."""
    known = {each.name: await _is_shown(name, each, io) for each in listeners}
    return {listener: is_shown for listener, is_shown in known.items() if is_shown is not None}


async def _is_shown(name: str, each: ListenerWish, io: BrokerIo) -> bool | None:
    from kubectl_reconcile_operators.certificates.keys.given import binary, shown_on  # noqa: PLC0415 - as above

    held = binary(((await io.io.secret(each.secret)) or {}).get("tls.crt", ""))
    try:
        async with io.plain(name, each.port).connect() as stream:
            shown = await shown_on(stream)
    except SilentPodError:
        return None
    except ssl.SSLError:  # it shows one that nobody can talk TLS with, and may read a better one
        return False
    return shown == held if held and shown else None


async def users_known(cr: Manifest, spec: KafkaSpec, session: KafkaSession) -> list[str]:
    """Return who of those can log in that the spec names, or did."""
    asked = sorted({*(each.name for each in spec.users), *users_named(map_at(cr, "status").get("users"))})
    if not asked:
        return []
    answer = await session.ask("DescribeUserScramCredentials", users=[{"name": each} for each in asked])
    check("DescribeUserScramCredentials", answer.error_code, answer.error_message)
    for each in answer.results:
        check("DescribeUserScramCredentials", each.error_code, each.error_message, fine=(_GONE,))
    told = {each.user for each in answer.results if any(one.mechanism == _SHA_512 for one in each.credential_infos)}
    return [each for each in asked if each in told]


# --- acting ---------------------------------------------------------------------------------------


async def act_on_secret(action: Action, io: BrokerIo) -> None:
    """Make a user's Secret, or carry out a step on one with the Kafka's own certificates."""
    given = action.parameters
    if action.verb in ON_OWN_SECRETS:
        from kubectl_reconcile_operators.certificates.keys import kept  # noqa: PLC0415 - as above

        await kept.act(wish_of(io.ctx), CertificateDo(action.verb), str(given["kind"]), io.io)
        return
    values = {"username": str(given["user"]), "password": secrets.token_urlsafe(24)}
    await io.io.make_secret(str(given["secret"]), values, io.ctx.labels())


async def password_of(given: Mapping[str, Any], io: BrokerIo) -> dict[str, Any]:
    """Return what a broker is told of a user's password: salted, so that nobody can tell it from that. Without a Secret it is one that nobody knows.

    Raises:
        KafkaRefusedError: the Secret holds none any more.
    """
    password, salt = secrets.token_bytes(32), secrets.token_bytes(32)
    if "secret" in given:
        values = await io.io.secret(str(given["secret"])) or {}
        if password_worth(values) != SECRET_OK:
            raise KafkaRefusedError(f"Secret {given['secret']} holds no password that can be used")
        password = values["password"].encode()
    salted = await asyncio.to_thread(hashlib.pbkdf2_hmac, "sha512", password, salt, _ITERATIONS)
    return {**given, "salt": salt, "salted": salted}


async def set_user(session: KafkaSession, given: Mapping[str, Any]) -> None:
    """Have a user log in with this password, and no other any more."""
    wish = {
        "name": given["user"], "mechanism": _SHA_512, "iterations": _ITERATIONS, "salt": given["salt"], "salted_password": given["salted"],
    }  # fmt: skip
    answer = await session.ask("AlterUserScramCredentials", deletions=[], upsertions=[wish])
    for each in answer.results:
        check("AlterUserScramCredentials", each.error_code, each.error_message)


def wish_of(ctx: Context) -> Any:
    """Return the certificates that a Kafka issues."""
    from kubectl_reconcile_operators.certificates.keys import kept, pairs  # noqa: PLC0415 - as above

    place = f"{headless(ctx)}.{ctx.namespace}.svc"
    subjects = {
        kind: pairs.Subject(ctx.name(kind), (f"*.{place}", f"*.{place}.cluster.local") if of.is_of_members else ())
        for kind, of in KINDS.items()
    }
    return kept.certificate_wish(KINDS, subjects, ctx.labels(), ctx, of="Kafka", terms=TERMS)
