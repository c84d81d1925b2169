"""The Secrets with certificates, read and written. Facts have fingerprints and dates, and never a key.

A step is found again from what the Secrets hold: each is written at once, certificate, key and all, over what was seen.
"""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Mapping
from typing import Any

from kubectl_reconcile.module_api import Action, Context, Io, Manifest, SeenSecret
from kubectl_reconcile.modules.etcd.children import client_service, labels_of_all
from kubectl_reconcile.modules.etcd.spec import AutoTls, cluster_spec
from kubectl_reconcile.modules.etcd.steps import Do
from kubectl_reconcile.modules.etcd.tls import certificates as pem
from kubectl_reconcile.modules.etcd.tls.state import AUTHORITY, CERTIFICATES, OF_MEMBERS, SecretState, secret_names


async def observe(cr: Manifest, io: Io) -> dict[str, Any]:
    """Return what is known of the Secrets, by kind."""
    seen = await _seen(cr, io)
    # Beside the event loop: to hold what a tenant put there against all authorities may take a while.
    return await asyncio.to_thread(facts_of, seen, Context("", "etcdcluster", cr))


async def act(cr: Manifest, action: Action, io: Io) -> str:
    """Carry out one step on one Secret.

    Raises:
        CertificateError: what the authority's Secret holds is of no use any more.
    """
    auto, ctx = _auto(cr), Context("", "etcdcluster", cr)
    kind, seen = str(action.parameters["member"]), await _seen(cr, io)
    values = values_after(Do(action.verb), kind, seen, auto, ctx, dt.datetime.now(dt.UTC))
    await io.put_secret(secret_names(ctx)[kind], values, labels_of_all(ctx), over=seen[kind])
    return ""


def _auto(cr: Manifest) -> AutoTls:
    tls = cluster_spec(cr).TLS
    return (tls.auto if tls else None) or AutoTls()


async def _seen(cr: Manifest, io: Io) -> dict[str, SeenSecret | None]:
    names = secret_names(Context("", "etcdcluster", cr))
    found = await asyncio.gather(*(io.see_secret(name) for name in names.values()))
    return dict(zip(names, found, strict=True))


def facts_of(seen: Mapping[str, SeenSecret | None], ctx: Context) -> dict[str, Any]:
    """Return what is to be known of the Secrets, by kind."""
    bundle = _value(seen.get(AUTHORITY), pem.TRUSTED)
    facts = {AUTHORITY: _fact(seen.get(AUTHORITY)) or pem.authority_fact(_values(seen[AUTHORITY]))}
    for kind in CERTIFICATES:
        known = _fact(seen.get(kind))
        facts[kind] = known or pem.certificate_fact(_values(seen[kind]), [bundle], subject_of(kind, ctx))
    return facts


def _fact(seen: SeenSecret | None) -> dict[str, Any]:
    """Return what is to be known of a Secret that isn't looked into, nothing where it is."""
    if seen is None:
        return {"state": SecretState.ABSENT.value}
    if not seen.is_own:
        trusted = sorted(pem.authorities_in(seen.values.get(pem.TRUSTED, "")))
        return {"state": SecretState.FOREIGN.value, "trusted": trusted}
    return {}


def subject_of(kind: str, ctx: Context) -> pem.Subject:
    """Return whom a kind of certificate is for."""
    name, place = ctx.name(kind), f"{ctx.namespace}.svc"
    if kind not in OF_MEMBERS:
        return pem.Subject(name)
    members = tuple(f"*.{ctx.name()}.{end}" for end in (place, f"{place}.cluster.local"))
    if kind == "peer":
        return pem.Subject(name, members)
    service = client_service(ctx)
    short = tuple(f"{service}{end}" for end in ("", f".{ctx.namespace}", f".{place}", f".{place}.cluster.local"))
    return pem.Subject(name, (*members, *short, "localhost"), ("127.0.0.1", "::1"))


# --- what a Secret is to hold ---------------------------------------------------------------------


def values_after(
    do: Do, kind: str, seen: Mapping[str, SeenSecret | None], auto: AutoTls, ctx: Context, now: dt.datetime
) -> dict[str, str]:
    """Return what the Secret of a kind holds after a step.

    Raises:
        CertificateError: what the authority's Secret holds is of no use for it.
    """
    authority = _values(seen.get(AUTHORITY))
    trusted = authority.get(pem.TRUSTED, "")
    match do:
        case Do.ISSUE:
            signer = pem.KeyPair(authority.get(pem.CERTIFICATE, ""), authority.get(pem.KEY, ""))
            pair = pem.issue(signer, subject_of(kind, ctx), now, auto.duration_s)
            return {pem.TRUSTED: trusted, pem.CERTIFICATE: pair.certificate, pem.KEY: pair.key}
        case Do.TRUST:
            return {**_values(seen.get(kind)), pem.TRUSTED: trusted}
        case Do.MAKE_AUTHORITY | Do.ADD_AUTHORITY:
            new = pem.new_authority(f"{ctx.name()}.{ctx.namespace} etcd", now, auto.authority_duration_s)
            return _added(new, seen, now) if do is Do.MAKE_AUTHORITY else _beside(new, authority)
        case Do.USE_AUTHORITY:
            pair = pem.KeyPair(authority.get(pem.NEXT_CERTIFICATE, ""), authority.get(pem.NEXT_KEY, ""))
            return {pem.TRUSTED: trusted, pem.CERTIFICATE: pair.certificate, pem.KEY: pair.key}
        case _:
            own = authority.get(pem.CERTIFICATE, "")
            left = pem.authorities_in(trusted)[pem.fingerprint_of(own)]
            return {**authority, pem.TRUSTED: left}


def _beside(new: pem.KeyPair, authority: Mapping[str, str]) -> dict[str, str]:
    """Return what an authority's Secret holds once another one is to follow."""
    trusted = authority.get(pem.TRUSTED, "")
    return {**authority, pem.TRUSTED: trusted + new.certificate, pem.NEXT_CERTIFICATE: new.certificate, pem.NEXT_KEY: new.key}  # fmt: skip


def _added(new: pem.KeyPair, seen: Mapping[str, SeenSecret | None], now: dt.datetime) -> dict[str, str]:
    """Return what an authority's Secret holds that takes the place of one that is lost: what members trust stays trusted, and is found in their own Secrets."""
    known: dict[str, str] = {}
    for kind in (AUTHORITY, *OF_MEMBERS):
        secret = seen.get(kind)
        known |= pem.authorities_in(_value(secret, pem.TRUSTED), now) if secret and secret.is_own else {}
    if known:
        return _beside(new, {pem.TRUSTED: "".join(known.values())})
    return {pem.TRUSTED: new.certificate, pem.CERTIFICATE: new.certificate, pem.KEY: new.key}


def _values(seen: SeenSecret | None) -> Mapping[str, str]:
    return seen.values if seen else {}


def _value(seen: SeenSecret | None, key: str) -> str:
    return _values(seen).get(key, "")
