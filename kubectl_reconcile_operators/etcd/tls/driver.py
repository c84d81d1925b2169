"""The certificates that an EtcdCluster issues itself, read and written: whom each is for."""

from __future__ import annotations

from typing import Any

from kubectl_reconcile.module_api import Action, Context, Io, Manifest
from kubectl_reconcile_operators.certificates.decision import CertificateDo
from kubectl_reconcile_operators.certificates.keys import kept
from kubectl_reconcile_operators.certificates.keys.pairs import Subject
from kubectl_reconcile_operators.etcd.children import client_service, labels_of_all
from kubectl_reconcile_operators.etcd.spec import AutoTls, cluster_spec
from kubectl_reconcile_operators.etcd.tls.kinds import KINDS, terms_of


async def observe(cr: Manifest, io: Io) -> dict[str, Any]:
    """Return what is known of the Secrets, by kind."""
    return await kept.observe(wish_of(cr), io)


async def act(cr: Manifest, action: Action, io: Io) -> str:
    """Carry out one step on one Secret.

    Raises:
        CertificateError: what the authority's Secret holds is of no use any more.
    """
    await kept.act(wish_of(cr), CertificateDo(action.verb), str(action.parameters["member"]), io)
    return ""


def wish_of(cr: Manifest) -> kept.CertificateWish:
    """Return what a cluster issues."""
    ctx, tls = Context("", "etcdcluster", cr), cluster_spec(cr).TLS
    subjects = {kind: _subject_of(kind, ctx) for kind in KINDS}
    terms = terms_of((tls.auto if tls else None) or AutoTls())
    return kept.certificate_wish(KINDS, subjects, labels_of_all(ctx), ctx, of="etcd", terms=terms)


def _subject_of(kind: str, ctx: Context) -> Subject:
    """Return whom a kind of certificate is for."""
    name, place = ctx.name(kind), f"{ctx.namespace}.svc"
    if not KINDS[kind].is_of_members:
        return Subject(name)
    members = tuple(f"*.{ctx.name()}.{end}" for end in (place, f"{place}.cluster.local"))
    if kind == "peer":
        return Subject(name, members)
    service = client_service(ctx)
    short = tuple(f"{service}{end}" for end in ("", f".{ctx.namespace}", f".{place}", f".{place}.cluster.local"))
    return Subject(name, (*members, *short, "localhost"), ("127.0.0.1", "::1"))
