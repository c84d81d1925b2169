"""What is to be done about an EtcdCluster's own certificates: one step, or nothing.

etcd reads its certificate and key again for each connection, and what it trusts only when it starts. So a certificate is renewed by its Secret alone, and an authority is changed in steps
that cut nobody off:

1. The new authority is *added* to what is trusted. Nothing is signed by it yet.
2. Each Secret is told. What members trust is part of what their pods are made by, so that they are replaced as for any other change: one at a time while all serve, the leader last.
3. Once every member trusts it, the new authority *signs*. Certificates are renewed in their time, or when somebody deletes them.
4. An hour after the last one was, when every node has brought them to its pods, the old authority is *dropped*, which is rolled out as in 2.

A certificate that is gone or broken is issued at once. Where the authority's own key is gone, another authority is added beside the one that members trust. If certificates have to be issued while there is
no key that members trust, they are cut off: all are ended, and come back on their volumes.

Secrets that are somebody else's are left alone.

Pure: a situation in, steps out.
"""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_reconcile.module_api import Context, later, seconds_between
from kubectl_reconcile.modules.etcd.situation import Situation
from kubectl_reconcile.modules.etcd.spec import AutoTls, ClusterSpec
from kubectl_reconcile.modules.etcd.steps import Do, EtcdStep, Why
from kubectl_reconcile.modules.etcd.tls.state import (
    AUTHORITY,
    CERTIFICATES,
    OF_MEMBERS,
    EtcdAuthority,
    EtcdCertificate,
    EtcdTls,
    SecretState,
    tls_of,
)

RENEWING = "Renewing"
"""Reason of steps that come in their time, and take nothing from anybody."""
BACKDATED_S = 300
"""How long before they are issued certificates are good: clocks differ."""
_SETTLED_S = 3600
"""After this every node has brought a Secret to its pods."""
_SLACK_S = 600


def certifying(spec: ClusterSpec, s: Situation, ctx: Context) -> Iterator[EtcdStep]:
    """Yield what is to be done about the Secrets, the first thing first."""
    auto = spec.TLS.auto if spec.TLS else None
    if auto is None:
        return
    tls = tls_of(s.facts, ctx)
    if tls.authority.state is SecretState.FOREIGN:
        return
    yield from _authority_made(tls, s, ctx)
    yield from _issued(tls, s, ctx)
    yield from _told(tls)
    yield from _renewed(auto, tls, s, ctx)
    yield from _changed(auto, tls, s, ctx)


# --- what is missing ------------------------------------------------------------------------------


def _authority_made(tls: EtcdTls, s: Situation, ctx: Context) -> Iterator[EtcdStep]:
    authority = tls.authority
    has_ended = _has_ended(authority.until, ctx) and not authority.upcoming
    if authority.state is SecretState.OK and not has_ended:
        return
    if authority.state is SecretState.ABSENT and not s.is_formed and not s.pods:
        text = f"make Secret {authority.name}, the cluster's own certificate authority"
        yield _step(Do.MAKE_AUTHORITY, Why.CREATING, text, AUTHORITY, authority.name, "Certifying")
        return
    ended = f"it ended at {authority.until}" if has_ended else "it is gone"
    text = f"create a new authority in Secret {authority.name}: {authority.why or ended}; members go on trusting the others until nothing is signed by them"
    yield _step(Do.MAKE_AUTHORITY, Why.RECOVERING, text, AUTHORITY, authority.name, "AuthorityLost")


def _issued(tls: EtcdTls, s: Situation, ctx: Context) -> Iterator[EtcdStep]:
    authority = tls.authority
    for each in tls.own:
        why = _lack(each, authority, ctx)
        if not why:
            continue
        if not _signs(authority, ctx):
            if each.kind == "client":
                continue
            text = f"sign by the new authority of Secret {authority.name} before all members trust it: {each.name} must be issued ({why}), and there is no other key"
            yield _step(Do.USE_AUTHORITY, Why.RECOVERING, text, AUTHORITY, authority.name, "AuthorityLost")
            return
        is_new = each.state is SecretState.ABSENT and not s.is_formed
        text = f"issue the certificate of Secret {each.name}, {CERTIFICATES[each.kind]}{'' if is_new else f': {why}'}"
        because = Why.RECOVERING if s.is_formed else Why.CREATING
        yield _step(Do.ISSUE, because, text, each.kind, each.name, "Certifying")


def _lack(each: EtcdCertificate, authority: EtcdAuthority, ctx: Context) -> str:
    """Return why a certificate is of no use, nothing where it is."""
    if each.state is SecretState.ABSENT:
        return "it isn't there"
    if each.state is SecretState.BROKEN:
        return each.why
    if each.issuer not in authority.trusted:
        return "it is signed by an authority that isn't trusted"
    return f"it ended at {each.until}" if _has_ended(each.until, ctx) else ""


def _told(tls: EtcdTls) -> Iterator[EtcdStep]:
    """Yield the Secrets that say otherwise what is trusted."""
    for each in tls.own:
        if each.state is SecretState.OK and each.trusted != tls.authority.trusted:
            text = f"have Secret {each.name} trust the authorities of Secret {tls.authority.name}"
            yield _step(Do.TRUST, Why.SETTLED, text, each.kind, each.name)


# --- what comes in its time -----------------------------------------------------------------------


def _renewed(auto: AutoTls, tls: EtcdTls, s: Situation, ctx: Context) -> Iterator[EtcdStep]:
    if not _signs(tls.authority, ctx) or not _all_trust(s, tls.authority.signer):
        return
    for each in tls.own:
        if _is_due(each, auto, tls.authority, ctx):
            text = f"renew the certificate of Secret {each.name}, {CERTIFICATES[each.kind]}: it ends at {each.until}"
            yield _step(Do.ISSUE, Why.SETTLED, text, each.kind, each.name)


def _is_due(each: EtcdCertificate, auto: AutoTls, authority: EtcdAuthority, ctx: Context) -> bool:
    """Tell whether a certificate is near its end, or good for longer than is wanted by now. One that ends with its authority gains nothing."""
    if not each.until or (each.issuer == authority.signer and each.until == authority.until):
        return False
    is_long = seconds_between(each.since, each.until) > auto.duration_s + BACKDATED_S + _SLACK_S
    return is_long or _is_past(later(each.until, -auto.renew_before_s), ctx)


def _changed(auto: AutoTls, tls: EtcdTls, s: Situation, ctx: Context) -> Iterator[EtcdStep]:
    """Yield what the authority's own renewal takes."""
    authority = tls.authority
    if authority.upcoming:
        if _all_trust(s, authority.upcoming):
            text = f"sign by the new authority of Secret {authority.name} from now on: all members trust it"
            yield _step(Do.USE_AUTHORITY, Why.SETTLED, text, AUTHORITY, authority.name)
        return
    if authority.until and _is_past(authority_renewal(auto, authority), ctx):
        text = (
            f"add another authority to Secret {authority.name}: the one that signs ends at {authority.until}; nothing is signed by the new one before all members"
            " trust it"
        )
        yield _step(Do.ADD_AUTHORITY, Why.SETTLED, text, AUTHORITY, authority.name)
    elif len(authority.trusted) > 1 and all(_is_settled(each, authority, ctx) for each in tls.own):
        text = f"drop from Secret {authority.name} the authority that nothing is signed by any more"
        yield _step(Do.DROP_AUTHORITY, Why.SETTLED, text, AUTHORITY, authority.name)


def _all_trust(s: Situation, signer: str) -> bool:
    return all(signer in pod.trusted for pod in s.pods.values())


def _is_settled(each: EtcdCertificate, authority: EtcdAuthority, ctx: Context) -> bool:
    """Tell whether a certificate is of the authority that signs now, and whoever mounts it has had the time to see it."""
    return (
        each.issuer == authority.signer
        and bool(each.since)
        and _is_past(later(each.since, BACKDATED_S + _SETTLED_S), ctx)
    )


def authority_renewal(auto: AutoTls, authority: EtcdAuthority) -> str:
    """Return when an authority is to be renewed: before a certificate would have to end with it."""
    return later(authority.until, -(auto.duration_s + auto.renew_before_s))


def _signs(authority: EtcdAuthority, ctx: Context) -> bool:
    return bool(authority.signer) and not _has_ended(authority.until, ctx)


def _has_ended(until: str, ctx: Context) -> bool:
    return bool(until) and _is_past(until, ctx)


def _is_past(moment: str, ctx: Context) -> bool:
    return seconds_between(moment, ctx.now) >= 0


def _step(do: Do, why: Why, text: str, kind: str, name: str, reason: str = RENEWING) -> EtcdStep:
    return EtcdStep(do, why, text, name, kind, reason=reason)


# --- what nobody but a person, or a restart, can mend ---------------------------------------------


def taken(spec: ClusterSpec, s: Situation, ctx: Context) -> Iterator[EtcdStep]:
    """Yield the Secrets that are somebody else's."""
    if spec.TLS is None or spec.TLS.auto is None:
        return
    tls = tls_of(s.facts, ctx)
    every: tuple[EtcdAuthority | EtcdCertificate, ...] = (tls.authority, *tls.certificates)
    for each in every:
        if each.state is SecretState.FOREIGN:
            text = f"Secret {each.name} exists and doesn't belong to this cluster; it is left alone (hint: delete it, and it is recreated)"
            yield EtcdStep(Do.STOP, Why.SETTLED, text, each.name, reason="SecretTaken")


def cut_off(spec: ClusterSpec, s: Situation, ctx: Context) -> Iterator[EtcdStep]:
    """Yield the pods that can't talk with anybody any more, since they don't trust who signs: they come back on their volumes, trusting it."""
    if spec.TLS is None or spec.TLS.auto is None:
        return
    tls = tls_of(s.facts, ctx)
    signers = {each.issuer for each in tls.certificates if each.kind in {*OF_MEMBERS, "operator"} and each.issuer}
    for pod in s.pods_in_order:
        if not pod.trusted or signers <= pod.trusted or pod.is_going:
            continue
        volume = s.volumes.get(pod.slot)
        if s.is_formed and (volume is None or volume.is_going):
            text = (
                f"{pod.slot} trusts only authorities whose keys are lost, and keeps its data in memory: it would lose it if it ended (hint: put Secret {tls.authority.name} back"
                " from a copy; or delete the pod, whose data is lost)"
            )
            yield EtcdStep(Do.STOP, Why.RECOVERING, text, pod.slot, reason="AuthorityLost")
            continue
        text = f"delete {pod.slot}, which trusts only authorities whose keys are lost; it comes back on its volume"
        yield EtcdStep(Do.DELETE_POD, Why.RECOVERING, text, pod.slot, reason="AuthorityLost")


# --- status ---------------------------------------------------------------------------------------


def renewals_told(spec: ClusterSpec, s: Situation, ctx: Context) -> dict[str, str]:
    """Return what the status says of certificates: what is renewed next, and when the authority ends."""
    auto = spec.TLS.auto if spec.TLS else None
    if auto is None:
        return {}
    tls = tls_of(s.facts, ctx)
    due = [(later(each.until, -auto.renew_before_s), each.name) for each in tls.own if each.until]
    if tls.authority.until and not tls.authority.upcoming:
        due.append((authority_renewal(auto, tls.authority), tls.authority.name))
    told = {"authorityEndTime": tls.authority.until}
    if due:
        told["nextRenewalTime"], told["nextRenewalSecret"] = min(due)
    return {name: value for name, value in told.items() if value}
