"""Which instances offer TLS, and what it takes until they do.

Pods mount the Secret, so that a key goes from the API server to its node and nowhere else. A server begins without TLS and is told to offer it once it runs, since one whose certificate is of no use
wouldn't start at all. It reads files that have changed when it is told again. Where it refuses them then, it shows the certificate before: that is told, and tried again.

A certificate that has expired is told. It is better than none, so that a server offers it which has no other; one that has another doesn't read it.

Where the Secret is of no use and no pod mounts it yet, all stays as if TLS weren't asked for. Later on, what was required stays required.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kubectl_reconcile.module_api import Context, map_at, maps_in, text_at
from kubectl_reconcile_operators.postgres.situation import DatabaseState, Instance
from kubectl_reconcile_operators.postgres.spec import TLS_VOLUME, MyDatabaseSpec
from kubectl_reconcile_operators.postgres.steps import ABSENT, EXPIRED, OK, DatabaseStep, Do, Why, wait


def in_effect(spec: MyDatabaseSpec, s: DatabaseState, ctx: Context) -> MyDatabaseSpec:
    """Return what of *spec* holds: without TLS as long as that can't be."""
    is_begun = bool(text_at(ctx.cr, "status", "tls")) or any(map(_mounts, s.instances.values()))
    return replace(spec, tls=None) if tls_refused(spec, s)[0] and not is_begun else spec


def tls_told(spec: MyDatabaseSpec) -> dict[str, str]:
    """Return what a status says of a spec that is in effect, so that what was required stays so whatever happens to pods."""
    return {"tls": spec.tls.mode} if spec.tls else {}


def tls_refused(spec: MyDatabaseSpec, s: DatabaseState) -> tuple[str, str]:
    """Return why there can't be TLS, as a word and a sentence, empty where there can."""
    if spec.tls is None:
        return "", ""
    known = _known_of_secret(spec, s)
    if known == OK:
        return "", ""
    why = (
        "isn't there (hint: create it with tls.crt and tls.key, or have cert-manager do so)"
        if known == ABSENT
        else known
    )
    return "TlsRefused", f".spec.tls.secretName: Secret {spec.tls.secret_name} {why}; servers go on with what they have"


def _known_of_secret(spec: MyDatabaseSpec, s: DatabaseState) -> str:
    return s.secrets.get(spec.tls.secret_name, ABSENT) if spec.tls else OK


def tls_offered(spec: MyDatabaseSpec, s: DatabaseState, _template: str, ctx: Context) -> Iterator[DatabaseStep]:
    """Yield what has instances offer TLS, with the certificate that is there now. What failed is tried again once nothing else is due, see `tls_awaited`."""
    yield from (step for step in _due(spec, s, ctx) if step.key not in s.failed)


def _due(spec: MyDatabaseSpec, s: DatabaseState, ctx: Context) -> Iterator[DatabaseStep]:
    is_expired = _known_of_secret(spec, s).startswith(EXPIRED)
    if spec.tls is None or (tls_refused(spec, s)[0] and not is_expired):
        return
    for instance in s.ordered:
        known = map_at(instance.answer, "tls")
        is_better = (known.get("stale") or known.get("shown") is False) and not is_expired
        if known.get("seen") and (is_better or not known.get("on")):
            what = "reload its certificate" if known.get("on") else "offer TLS"
            given = {"instance": instance.slot}
            yield DatabaseStep(Do.SET_TLS, Why.CHANGING, f"have {instance.slot} {what}", str(ctx.number_of(instance.slot)), parameters=given)  # fmt: skip


def tls_awaited(spec: MyDatabaseSpec, s: DatabaseState, _template: str, ctx: Context) -> Iterator[DatabaseStep]:
    """Yield what failed before, and instances whose nodes haven't brought the Secret yet."""
    yield from _due(spec, s, ctx)
    if spec.tls is None or tls_refused(spec, s)[0]:
        return
    for instance in s.ordered:
        if instance.answer and not map_at(instance.answer, "tls").get("on"):
            yield wait(f"{instance.slot} hasn't got the certificate yet: its node brings it", "CertificateAwaited", s)


def is_required(spec: MyDatabaseSpec, instance: Instance) -> bool:
    """Tell whether an instance is to let nobody in without TLS: where it may be asked for that, since it offers TLS or was made to."""
    is_able = map_at(instance.answer, "tls").get("on") or _mounts(instance)
    return spec.tls is not None and spec.tls.mode == "Require" and bool(is_able)


def _mounts(instance: Instance) -> bool:
    return any(each.get("name") == TLS_VOLUME for each in maps_in(map_at(instance.manifest, "spec").get("volumes")))
