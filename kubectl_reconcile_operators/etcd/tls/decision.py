"""What is to be done about an EtcdCluster's own certificates: one step, or nothing.

etcd reads its certificate and key again for each connection, and what it trusts only when it starts.

Pure: a situation in, steps out.
"""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_reconcile.module_api import Context
from kubectl_reconcile_operators.certificates.decision import CertificateAim, Trusting, certificate_steps
from kubectl_reconcile_operators.certificates.decision import renewals_told as told_of_renewals
from kubectl_reconcile_operators.etcd.situation import Situation
from kubectl_reconcile_operators.etcd.spec import ClusterSpec
from kubectl_reconcile_operators.etcd.steps import Do, EtcdStep, Why
from kubectl_reconcile_operators.etcd.tls.kinds import terms_of, tls_of

_WHY = {
    CertificateAim.CREATING: Why.CREATING,
    CertificateAim.RECOVERING: Why.RECOVERING,
    CertificateAim.RENEWING: Why.SETTLED,
}


def certifying(spec: ClusterSpec, s: Situation, ctx: Context) -> Iterator[EtcdStep]:
    """Yield what is to be done about the Secrets, the first thing first."""
    auto = spec.TLS.auto if spec.TLS else None
    if auto is None:
        return
    trusting = Trusting(s.is_formed, tuple(pod.trusted for pod in s.pods.values()))
    for each in certificate_steps(terms_of(auto), tls_of(s.facts, ctx), trusting, ctx):
        yield EtcdStep(Do(each.do.value), _WHY[each.aim], each.text, each.name, each.kind, reason=each.reason)


# --- what only a person, or a restart, can fix ---------------------------------------------


def taken(spec: ClusterSpec, s: Situation, ctx: Context) -> Iterator[EtcdStep]:
    """Yield the Secrets that are somebody else's."""
    if spec.TLS is None or spec.TLS.auto is None:
        return
    for name in tls_of(s.facts, ctx).taken:
        text = f"Secret {name} exists and doesn't belong to this cluster; it is left alone (hint: delete it, and it is recreated)"
        yield EtcdStep(Do.STOP, Why.SETTLED, text, name, reason="SecretTaken")


def cut_off(spec: ClusterSpec, s: Situation, ctx: Context) -> Iterator[EtcdStep]:
    """Yield the pods that can't talk with anybody any more, since they don't trust who signs: they come back on their volumes, trusting it."""
    if spec.TLS is None or spec.TLS.auto is None:
        return
    tls = tls_of(s.facts, ctx)
    for pod in s.pods_in_order:
        if not pod.trusted or tls.signers <= pod.trusted or pod.is_going:
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


def renewals_told(spec: ClusterSpec, s: Situation, ctx: Context) -> dict[str, str]:
    """Return what the status says of certificates: what is renewed next, and when the authority ends."""
    auto = spec.TLS.auto if spec.TLS else None
    return told_of_renewals(terms_of(auto), tls_of(s.facts, ctx)) if auto else {}
