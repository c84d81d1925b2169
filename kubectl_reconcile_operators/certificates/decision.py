"""What is to be done about the certificates that a module issues itself: one step, or nothing.

A certificate is renewed by its Secret alone, since members read it again while they run; what they trust they may read only when they start. So an authority is changed in steps that cut nobody off:

1. The new authority is *added* to what is trusted. Nothing is signed by it yet.
2. Each Secret is told. What members trust is part of what their pods are made by, so that they are replaced as for any other change.
3. Once every member trusts it, the new authority *signs*. Certificates are renewed in their time, or when somebody deletes them.
4. An hour after the last one was, when every node has brought them to its pods, the old authority is *dropped*, which is rolled out as in 2. Where members show another certificate only once they
have restarted, that comes first, however long it takes: whoever showed one of an authority that nobody trusts would be shut out.

A certificate that is gone or broken is issued at once. Where the authority's own key is gone, another authority is added beside the one that members trust. If certificates have to be issued while there is
no key that members trust, they are cut off: all are ended, and come back on their volumes, which is the module's business.

Secrets that are somebody else's are left alone.

Pure: what is known in, steps out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from kubectl_reconcile.module_api import Context, later, seconds_between
from kubectl_reconcile_operators.certificates.state import (
    AUTHORITY,
    CertificateTerms,
    OwnAuthority,
    OwnCertificate,
    OwnTls,
    SecretState,
)

RENEWING = "Renewing"
"""Reason of steps that come in their time, and take nothing from anybody."""
BACKDATED_S = 300
"""How long before they are issued certificates are good: clocks differ."""
_SETTLED_S = 3600
"""After this every node has brought a Secret to its pods."""
_SLACK_S = 600


class CertificateDo(StrEnum):
    """What a step does to a Secret."""

    MAKE_AUTHORITY = "make-authority"
    """Draw the key that certificates are signed by, where there is none that is of use."""
    ADD_AUTHORITY = "add-authority"
    """Draw the key that follows, to be trusted before it signs."""
    USE_AUTHORITY = "use-authority"
    """Sign by the key that follows."""
    DROP_AUTHORITY = "drop-authority"
    """Trust the authority no longer that signed before."""
    ISSUE = "issue"
    """Issue a certificate, or renew it."""
    TRUST = "trust"
    """Write into a Secret what is trusted."""


class CertificateAim(StrEnum):
    """The purpose of a step."""

    CREATING = "creating"
    RECOVERING = "recovering"
    RENEWING = "renewing"


@dataclass(frozen=True, slots=True)
class CertificateStep:
    """One step on the Secret *name*, of this *kind*; *text* says it to people, *reason* is a word for a condition."""

    do: CertificateDo
    aim: CertificateAim
    text: str
    kind: str
    name: str
    reason: str = RENEWING


@dataclass(frozen=True, slots=True)
class Trusting:
    """The users of the certificates: whether they form one cluster yet, what each existing pod trusts, and whether each shows what its Secret holds, unless its node has yet to bring that."""

    is_formed: bool
    pods: tuple[frozenset[str], ...]
    all_show: bool = True

    def all_trust(self, signer: str) -> bool:
        """Tell whether all of them trust a signer."""
        return all(signer in each for each in self.pods)


def certificate_steps(terms: CertificateTerms, tls: OwnTls, t: Trusting, ctx: Context) -> Iterator[CertificateStep]:
    """Yield the steps for the Secrets, in order."""
    if tls.authority.state is SecretState.FOREIGN:
        return
    yield from _authority_made(tls, t, ctx)
    yield from _issued(tls, t, ctx)
    yield from _told(tls)
    yield from _renewed(terms, tls, t, ctx)
    yield from _changed(terms, tls, t, ctx)


# --- what is missing ------------------------------------------------------------------------------


def _authority_made(tls: OwnTls, t: Trusting, ctx: Context) -> Iterator[CertificateStep]:
    authority = tls.authority
    has_ended = _has_ended(authority.until, ctx) and not authority.upcoming
    if authority.state is SecretState.OK and not has_ended:
        return
    if authority.state is SecretState.ABSENT and not t.is_formed and not t.pods:
        text = f"make Secret {authority.name}, the cluster's own certificate authority"
        yield _on_authority(CertificateDo.MAKE_AUTHORITY, CertificateAim.CREATING, text, authority, "Certifying")
        return
    ended = f"it ended at {authority.until}" if has_ended else "it is gone"
    text = f"create a new authority in Secret {authority.name}: {authority.why or ended}; members trust the other authorities until all certificates signed by them are replaced"
    yield _on_authority(CertificateDo.MAKE_AUTHORITY, CertificateAim.RECOVERING, text, authority, "AuthorityLost")


def _issued(tls: OwnTls, t: Trusting, ctx: Context) -> Iterator[CertificateStep]:
    authority = tls.authority
    for each in tls.own:
        why = _lack(each, authority, ctx)
        if not why:
            continue
        if not _signs(authority, ctx):
            if each.of.can_wait:
                continue
            text = f"sign by the new authority of Secret {authority.name} before all members trust it: {each.name} must be issued ({why}), and there is no other key"
            yield _on_authority(
                CertificateDo.USE_AUTHORITY, CertificateAim.RECOVERING, text, authority, "AuthorityLost"
            )
            return
        is_new = each.state is SecretState.ABSENT and not t.is_formed
        text = f"issue the certificate of Secret {each.name}, {each.of.purpose}{'' if is_new else f': {why}'}"
        aim = CertificateAim.RECOVERING if t.is_formed else CertificateAim.CREATING
        yield CertificateStep(CertificateDo.ISSUE, aim, text, each.kind, each.name, "Certifying")


def _lack(each: OwnCertificate, authority: OwnAuthority, ctx: Context) -> str:
    """Return why a certificate is of no use, nothing where it is."""
    if each.state is SecretState.ABSENT:
        return "it isn't there"
    if each.state is SecretState.BROKEN:
        return each.why
    if each.issuer not in authority.trusted:
        return "it is signed by an authority that isn't trusted"
    return f"it ended at {each.until}" if _has_ended(each.until, ctx) else ""


def _told(tls: OwnTls) -> Iterator[CertificateStep]:
    """Yield the Secrets that say otherwise what is trusted."""
    for each in tls.own:
        if each.state is SecretState.OK and each.trusted != tls.authority.trusted:
            text = f"have Secret {each.name} trust the authorities of Secret {tls.authority.name}"
            yield CertificateStep(CertificateDo.TRUST, CertificateAim.RENEWING, text, each.kind, each.name)


# --- what comes in its time -----------------------------------------------------------------------


def _renewed(terms: CertificateTerms, tls: OwnTls, t: Trusting, ctx: Context) -> Iterator[CertificateStep]:
    if not _signs(tls.authority, ctx) or not t.all_trust(tls.authority.signer):
        return
    for each in tls.own:
        if _is_due(each, terms, tls.authority, ctx):
            text = f"renew the certificate of Secret {each.name}, {each.of.purpose}: it ends at {each.until}"
            yield CertificateStep(CertificateDo.ISSUE, CertificateAim.RENEWING, text, each.kind, each.name)


def _is_due(each: OwnCertificate, terms: CertificateTerms, authority: OwnAuthority, ctx: Context) -> bool:
    """Tell whether a certificate is near its end, or good for longer than is wanted by now. One that ends with its authority gains nothing."""
    if not each.until or (each.issuer == authority.signer and each.until == authority.until):
        return False
    is_long = seconds_between(each.since, each.until) > terms.lasts_s + BACKDATED_S + _SLACK_S
    return is_long or _is_past(later(each.until, -terms.renewed_before_s), ctx)


def _changed(terms: CertificateTerms, tls: OwnTls, t: Trusting, ctx: Context) -> Iterator[CertificateStep]:
    """Yield what the authority's own renewal takes."""
    authority, aim = tls.authority, CertificateAim.RENEWING
    if authority.upcoming:
        if t.all_trust(authority.upcoming):
            text = f"sign by the new authority of Secret {authority.name} from now on: all members trust it"
            yield _on_authority(CertificateDo.USE_AUTHORITY, aim, text, authority)
        return
    if authority.until and _is_past(authority_renewal(terms, authority), ctx):
        text = (
            f"add another authority to Secret {authority.name}: the one that signs ends at {authority.until}; the new one signs nothing before all members"
            " trust it"
        )
        yield _on_authority(CertificateDo.ADD_AUTHORITY, aim, text, authority)
    elif len(authority.trusted) > 1 and t.all_show and all(_is_settled(each, authority, ctx) for each in tls.own):
        text = f"remove from Secret {authority.name} the authority that signed none of the current certificates"
        yield _on_authority(CertificateDo.DROP_AUTHORITY, aim, text, authority)


def _is_settled(each: OwnCertificate, authority: OwnAuthority, ctx: Context) -> bool:
    """Tell whether a certificate is of the authority that signs now, and whoever mounts it has had the time to see it."""
    return (
        each.issuer == authority.signer
        and bool(each.since)
        and _is_past(later(each.since, BACKDATED_S + _SETTLED_S), ctx)
    )


def authority_renewal(terms: CertificateTerms, authority: OwnAuthority) -> str:
    """Return when an authority is to be renewed: before a certificate would have to end with it."""
    return later(authority.until, -(terms.lasts_s + terms.renewed_before_s))


def _signs(authority: OwnAuthority, ctx: Context) -> bool:
    return bool(authority.signer) and not _has_ended(authority.until, ctx)


def _has_ended(until: str, ctx: Context) -> bool:
    return bool(until) and _is_past(until, ctx)


def _is_past(moment: str, ctx: Context) -> bool:
    return seconds_between(moment, ctx.now) >= 0


def _on_authority(
    do: CertificateDo, aim: CertificateAim, text: str, authority: OwnAuthority, reason: str = RENEWING
) -> CertificateStep:
    return CertificateStep(do, aim, text, AUTHORITY, authority.name, reason)


# --- status ---------------------------------------------------------------------------------------


def renewals_told(terms: CertificateTerms, tls: OwnTls) -> dict[str, str]:
    """Return what a status says about certificates: which is renewed next, and when the authority ends."""
    due = [(later(each.until, -terms.renewed_before_s), each.name) for each in tls.own if each.until]
    if tls.authority.until and not tls.authority.upcoming:
        due.append((authority_renewal(terms, tls.authority), tls.authority.name))
    told = {"authorityEndTime": tls.authority.until}
    if due:
        told["nextRenewalTime"], told["nextRenewalSecret"] = min(due)
    return {name: value for name, value in told.items() if value}
