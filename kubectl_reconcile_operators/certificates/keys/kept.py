"""The Secrets with the certificates that a module issues for one custom resource, read and written. Facts have fingerprints and dates, and never a key.

A step is found again from what the Secrets hold: each is written at once, certificate, key and all, over what was seen.
"""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kubectl_reconcile.module_api import Context, Io, SeenSecret
from kubectl_reconcile_operators.certificates.decision import CertificateDo
from kubectl_reconcile_operators.certificates.keys import pairs as pem
from kubectl_reconcile_operators.certificates.state import (
    AUTHORITY,
    CertificateKinds,
    CertificateTerms,
    SecretState,
    secret_names,
)


@dataclass(frozen=True, slots=True)
class CertificateWish:
    """What a custom resource issues: whom each kind is for, what its authority and its Secrets are called, and for how long all of it is good."""

    kinds: CertificateKinds
    subjects: Mapping[str, pem.Subject]
    names: Mapping[str, str]
    title: str
    labels: Mapping[str, str]
    terms: CertificateTerms


def certificate_wish(
    kinds: CertificateKinds, subjects: Mapping[str, pem.Subject], labels: Mapping[str, str], ctx: Context, *,
    of: str, terms: CertificateTerms,
) -> CertificateWish:  # fmt: skip
    """Return what the custom resource of *ctx* issues; *of* is what it runs, in a word."""
    return CertificateWish(
        kinds, subjects, secret_names(kinds, ctx), f"{ctx.name()}.{ctx.namespace} {of}", labels, terms
    )


async def observe(wish: CertificateWish, io: Io) -> dict[str, Any]:
    """Return what is known of the Secrets, by kind."""
    seen = await _seen(wish, io)
    # Beside the event loop: to hold what a tenant put there against all authorities may take a while.
    return await asyncio.to_thread(facts_of, seen, wish)


async def act(wish: CertificateWish, do: CertificateDo, kind: str, io: Io) -> None:
    """Carry out one step on the Secret of a kind.

    Raises:
        CertificateError: what the authority's Secret holds is of no use any more.
    """
    seen = await _seen(wish, io)
    values = values_after(do, kind, seen, wish, dt.datetime.now(dt.UTC))
    await io.put_secret(wish.names[kind], values, wish.labels, over=seen[kind])


async def _seen(wish: CertificateWish, io: Io) -> dict[str, SeenSecret | None]:
    found = await asyncio.gather(*(io.see_secret(name) for name in wish.names.values()))
    return dict(zip(wish.names, found, strict=True))


def facts_of(seen: Mapping[str, SeenSecret | None], wish: CertificateWish) -> dict[str, Any]:
    """Return what is to be known of the Secrets, by kind."""
    bundle = _value(seen.get(AUTHORITY), pem.TRUSTED)
    facts = {AUTHORITY: _fact(seen.get(AUTHORITY)) or pem.authority_fact(_values(seen[AUTHORITY]))}
    for kind in wish.kinds:
        known = _fact(seen.get(kind))
        facts[kind] = known or pem.certificate_fact(_values(seen[kind]), [bundle], wish.subjects[kind])
    return facts


def _fact(seen: SeenSecret | None) -> dict[str, Any]:
    """Return what is to be known of a Secret that isn't looked into, nothing where it is."""
    if seen is None:
        return {"state": SecretState.ABSENT.value}
    if not seen.is_own:
        trusted = sorted(pem.authorities_in(seen.values.get(pem.TRUSTED, "")))
        return {"state": SecretState.FOREIGN.value, "trusted": trusted}
    return {}


# --- what a Secret is to hold ---------------------------------------------------------------------


def values_after(
    do: CertificateDo, kind: str, seen: Mapping[str, SeenSecret | None], wish: CertificateWish, now: dt.datetime
) -> dict[str, str]:
    """Return what the Secret of a kind holds after a step.

    Raises:
        CertificateError: what the authority's Secret holds is of no use for it.
    """
    authority = _values(seen.get(AUTHORITY))
    trusted = authority.get(pem.TRUSTED, "")
    match do:
        case CertificateDo.ISSUE:
            signer = pem.KeyPair(authority.get(pem.CERTIFICATE, ""), authority.get(pem.KEY, ""))
            pair = pem.issue(signer, wish.subjects[kind], now, wish.terms.lasts_s)
            return {pem.TRUSTED: trusted, pem.CERTIFICATE: pair.certificate, pem.KEY: pair.key}
        case CertificateDo.TRUST:
            return {**_values(seen.get(kind)), pem.TRUSTED: trusted}
        case CertificateDo.MAKE_AUTHORITY | CertificateDo.ADD_AUTHORITY:
            new = pem.new_authority(wish.title, now, wish.terms.authority_lasts_s)
            return _added(new, seen, wish, now) if do is CertificateDo.MAKE_AUTHORITY else _beside(new, authority)
        case CertificateDo.USE_AUTHORITY:
            pair = pem.KeyPair(authority.get(pem.NEXT_CERTIFICATE, ""), authority.get(pem.NEXT_KEY, ""))
            return {pem.TRUSTED: trusted, pem.CERTIFICATE: pair.certificate, pem.KEY: pair.key}
        case _:
            own = authority.get(pem.CERTIFICATE, "")
            left = pem.authorities_in(trusted)[pem.fingerprint_of(own)]
            return {**authority, pem.TRUSTED: left}


def _beside(new: pem.KeyPair, authority: Mapping[str, str]) -> dict[str, str]:
    """Return what an authority's Secret holds once another one is to follow. That stands first, then the one that signs: of very many the last ones aren't read."""
    known = new.certificate + authority.get(pem.CERTIFICATE, "") + authority.get(pem.TRUSTED, "")
    trusted = "".join(pem.authorities_in(known).values())
    return {**authority, pem.TRUSTED: trusted, pem.NEXT_CERTIFICATE: new.certificate, pem.NEXT_KEY: new.key}


def _added(
    new: pem.KeyPair, seen: Mapping[str, SeenSecret | None], wish: CertificateWish, now: dt.datetime
) -> dict[str, str]:
    """Return what an authority's Secret holds that takes the place of one that is lost: what members trust stays trusted, and is found in their own Secrets."""
    known: dict[str, str] = {}
    for kind in (AUTHORITY, *(kind for kind, of in wish.kinds.items() if of.is_of_members)):
        secret = seen.get(kind)
        known |= pem.authorities_in(_value(secret, pem.TRUSTED), now) if secret and secret.is_own else {}
    if known:
        return _beside(new, {pem.TRUSTED: "".join(known.values())})
    return {pem.TRUSTED: new.certificate, pem.CERTIFICATE: new.certificate, pem.KEY: new.key}


def _values(seen: SeenSecret | None) -> Mapping[str, str]:
    return seen.values if seen else {}


def _value(seen: SeenSecret | None, key: str) -> str:
    return _values(seen).get(key, "")
