"""The certificates that an EtcdCluster issues itself.

Pure: values only.
"""

from __future__ import annotations

from kubectl_reconcile.module_api import Context, Facts
from kubectl_reconcile_operators.certificates.state import (
    CertificateKind,
    CertificateKinds,
    CertificateTerms,
    OwnTls,
    own_tls_of,
    trust_of,
)
from kubectl_reconcile_operators.etcd.spec import AutoTls

KINDS: CertificateKinds = {
    "peer": CertificateKind("what members show to one another", is_of_members=True),
    "server": CertificateKind("what members show to clients", is_of_members=True),
    "operator": CertificateKind("what the daemon and backups show to members"),
    "client": CertificateKind("what clients may show to members", can_wait=True),
}


def tls_of(facts: Facts, ctx: Context) -> OwnTls:
    """Return what *facts* say of the Secrets."""
    return own_tls_of(KINDS, facts, ctx)


def members_trust(facts: Facts) -> str:
    """Return what members that start now trust, in one line."""
    return trust_of(facts, "peer")


def terms_of(auto: AutoTls) -> CertificateTerms:
    """Return for how long certificates are good."""
    return CertificateTerms(auto.duration_s, auto.renew_before_s, auto.authority_duration_s)
