"""Certificates: those that a Kafka issues itself, for its brokers and for the daemon, and those of Secrets that people make for listeners.

Brokers restart for another certificate of their own, one at a time; until all of them have, the authority that signed the one before stays trusted. Those of listeners they read again when they are told to: each shows which certificate it has, and where that isn't its Secret's any more, the broker is told, as
often as it takes, since its node brings a Secret to its pod within a minute or two.

Pure: a state in, steps out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kubectl_reconcile.module_api import Context, text_at
from kubectl_reconcile_operators.certificates.decision import RENEWING, CertificateAim, Trusting, certificate_steps
from kubectl_reconcile_operators.certificates.state import (
    CertificateKind,
    CertificateKinds,
    CertificateTerms,
    OwnTls,
    SecretState,
    own_tls_of,
    trust_of,
)
from kubectl_reconcile_operators.certificates.worth import SECRET_ABSENT, SECRET_EXPIRED
from kubectl_reconcile_operators.kafka.access.listeners import refused_of
from kubectl_reconcile_operators.kafka.situation import BrokerPod, KafkaState
from kubectl_reconcile_operators.kafka.spec import KafkaSpec
from kubectl_reconcile_operators.kafka.steps import Do, KafkaStep, Why, stop, wait

BROKER, OPERATOR = "broker", "operator"
KINDS: CertificateKinds = {
    BROKER: CertificateKind("what brokers show to one another", is_of_members=True),
    OPERATOR: CertificateKind("what the daemon shows to brokers"),
}
TERMS = CertificateTerms(lasts_s=365 * 86_400)
"""Brokers restart for a new certificate of their own, since Kafka doesn't read all of them again: so these last."""
_WHY = {
    CertificateAim.CREATING: Why.CREATING,
    CertificateAim.RECOVERING: Why.RECOVERING,
    CertificateAim.RENEWING: Why.SETTLED,
}


def tls_of(s: KafkaState, ctx: Context) -> OwnTls:
    """Return what is known of the Secrets with the Kafka's own certificates."""
    return own_tls_of(KINDS, {"tls": s.access.tls}, ctx)


def members_trust(s: KafkaState) -> str:
    """Return what brokers that start now trust, in one line."""
    return trust_of({"tls": s.access.tls}, BROKER)


def members_certificate(s: KafkaState) -> str:
    """Return which certificate brokers that start now show to one another, by its fingerprint."""
    return text_at(s.access.tls, BROKER, "fingerprint")


def certifying(s: KafkaState, templates: Mapping[int, str], ctx: Context) -> Iterator[KafkaStep]:
    """Yield what is to be done about the Kafka's own certificates, and while there are none, that nobody can start; *templates* are the digests that pods are to have, by number."""
    tls = tls_of(s, ctx)
    trusting = Trusting(s.is_formed, tuple(pod.trusted for pod in s.pods.values()), _all_show(s, templates, tls))
    if not s.is_formed:
        yield from taken(s, ctx)
    for each in certificate_steps(TERMS, tls, trusting, ctx):
        yield KafkaStep(
            Do(each.do.value), _WHY[each.aim], each.text, each.kind, each.reason,
            parameters={"kind": each.kind}, holds={"tls": dict(s.access.tls)},
        )  # fmt: skip
    lacking = [each.name for each in tls.certificates if each.state is not SecretState.OK]
    if lacking and not s.is_formed:
        yield wait(
            f"Secret {lacking[0]} has no certificate yet, and brokers don't start without", "Certifying", Why.CREATING
        )


def _all_show(s: KafkaState, templates: Mapping[int, str], tls: OwnTls) -> bool:
    """Tell whether every broker began with the certificate that its Secret holds. Of one that leaves, or of a Secret that is somebody else's, nobody knows."""
    return not tls.taken and all(pod.template == templates.get(number) for number, pod in s.pods.items())


def taken(s: KafkaState, ctx: Context) -> Iterator[KafkaStep]:
    """Yield the Secrets that are somebody else's."""
    for name in tls_of(s, ctx).taken:
        yield stop(
            f"Secret {name} exists and doesn't belong to this Kafka; it is left alone, and no broker restarts (hint: delete it, and it is recreated)", "SecretTaken"
        )  # fmt: skip


def cut_off(s: KafkaState, ctx: Context) -> Iterator[KafkaStep]:
    """Yield the pods that can't talk with anybody any more, since they don't trust who signs: they come back on their volumes, trusting it.

    Where one of them has no volume to come back on, none ends: to one another and to clients they talk as before, so a person decides.
    """
    tls = tls_of(s, ctx)
    shut = [pod for _, pod in sorted(s.pods.items()) if pod.trusted and not tls.signers <= pod.trusted]
    doomed = [pod.slot for pod in shut if _is_doomed(pod, s)]
    if doomed:
        yield stop(
            f"the data of {', '.join(doomed)} would be lost with a restart: only authorities whose keys are lost are trusted there, and volume claims are terminating or gone;"
            f" nothing is deleted (hint: put Secret {tls.authority.name} back from a copy; or delete these pods, whose data is then lost)", "AuthorityLost"
        )  # fmt: skip
    for pod in (each for each in shut if not each.is_going):
        text = f"delete {pod.slot}, which trusts only authorities whose keys are lost; it comes back on its volume"
        yield KafkaStep(Do.DELETE_POD, Why.RECOVERING, text, pod.slot, "AuthorityLost", brokers=(pod.number,))


def _is_doomed(pod: BrokerPod, s: KafkaState) -> bool:
    """Tell whether a pod that is at work would take with it what its broker holds."""
    volume = s.volumes.get(pod.number)
    comes_back = volume is not None and not volume.is_going
    is_over = pod.is_going or pod.has_ended or pod in s.unclaimed
    return s.is_formed and not comes_back and not is_over


def reloads(s: KafkaState) -> Iterator[KafkaStep]:
    """Yield what has brokers show the certificates that their Secrets hold."""
    for number, pod in sorted(s.pods.items()):
        old = sorted(name for name, is_shown in pod.shown.items() if not is_shown)
        if pod.answers and not pod.is_going and old:
            where = ", ".join(old)
            text = f"have {pod.slot} read its certificates again: at {where} it shows another one than its Secret holds, which its node brings within minutes"
            yield KafkaStep(
                Do.RELOAD, Why.SETTLED, text, str(number), RENEWING, parameters={"broker": number, "listeners": old}
            )  # fmt: skip


# --- certificates of Secrets that people make -----------------------------------------------------


def refused_certificates(wanted: KafkaSpec, s: KafkaState) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with Secrets of listeners: a word and a sentence. *wanted* is the spec as it was written."""
    refused = {each.name for _, each in refused_of(wanted.listeners, s.access.listeners, s.access.usable)}
    for at, each in enumerate(wanted.listeners):
        if not each.tls or each.secret in s.access.usable:
            continue
        worth = s.access.worth(each.secret)
        why = (
            "isn't there (hint: create it with tls.crt and tls.key, or have cert-manager do so)"
            if worth == SECRET_ABSENT
            else worth
        )
        then = (
            "listeners stay as they are"
            if each.name in refused
            else "brokers go on with the certificate that they have"
            if worth.startswith(SECRET_EXPIRED)
            else "brokers go on with the certificate that they have, and don't restart"
        )
        yield "TlsRefused", f".spec.listeners[{at}].tls.secretName: Secret {each.secret} {why}; {then}"


def restart_barred(spec: KafkaSpec, s: KafkaState) -> Iterator[KafkaStep]:
    """Yield that brokers wait with restarts where they couldn't start again; *spec* is what is in effect."""
    for each in spec.listeners:
        if each.tls and not s.access.lets_start(each.secret):
            yield wait(
                f"brokers don't restart: Secret {each.secret} of listener {each.name} is of no use, and none would start again", "TlsRefused", Why.ROLLING
            )  # fmt: skip
