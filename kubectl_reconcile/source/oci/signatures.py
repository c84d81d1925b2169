"""Whether an artifact is signed by trusted keys, whichever way its registry keeps signatures: at a tag, in its list of referrers, or in an index at another tag.

A verdict is on a digest, and what is pulled then is pulled by that digest alone, so nothing can be exchanged in between. Good verdicts are remembered for those who ask in the
same way with the same keys. A bad one is looked at again: one time for all who ask within the same interval. Of very many signatures some are looked at.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from msgspec import Struct

from kubectl_reconcile.core.resources.oci.identities import Identities
from kubectl_reconcile.core.resources.oci.manifest import Descriptor, OciManifest
from kubectl_reconcile.core.resources.oci.public_keys import PublicKeys
from kubectl_reconcile.core.resources.oci.signed import (
    MOST_BYTES,
    MOST_SIGNATURES,
    Meant,
    bundles_in,
    judge_bundle,
    judge_payload,
    payloads_in,
    referrers_tag,
    signature_tag,
    too_many,
    unsupported,
    worst_of,
)
from kubectl_reconcile.core.resources.signatures import SignatureFault, SignatureVerdict
from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.oci import certified
from kubectl_reconcile.source.oci.registry import Registry
from kubectl_reconcile.source.running.ending import taking
from kubectl_reconcile.source.running.kept import KEPT, Key

_SIZE = 1_000


class _Found(Struct, frozen=True, weakref=True):
    """A *verdict*, as of *begun_s* (monotonic)."""

    verdict: SignatureVerdict
    begun_s: float


Trusted = PublicKeys | Identities
"""Whose signatures count."""


def verdict_on(registry: Registry, digest: str, keys: Trusted, since_s: float = float("inf")) -> SignatureVerdict:
    """Return whether the manifest with that *digest* is signed by one of the *keys*, or of those whom certificates name; a bad verdict as of *since_s* (monotonic) or later. Blocks.

    Raises:
        SourceError: the registry can't be asked, or nobody waits any more.
        KeysError: the root that certificates are trusted by can't be used.
    """
    key = (registry.access, digest, f"signed {keys.digest}")
    if (known := _known(key, since_s)) is not None:
        return known
    with taking(registry.verifying):
        if (known := _known(key, since_s)) is not None:  # found by somebody else while we waited
            return known
        begun_s = time.monotonic()
        verdict = _best(registry, Meant(registry.repository, digest), keys)
        KEPT.keep(key, _Found(verdict, begun_s), _SIZE)
        return verdict


def _known(key: Key, since_s: float) -> SignatureVerdict | None:
    found = KEPT.find(key, _Found)
    return found.verdict if found is not None and (found.verdict.signature or found.begun_s >= since_s) else None


def _best(registry: Registry, meant: Meant, keys: Trusted) -> SignatureVerdict:
    """Return the first good verdict on a signature; where there is none, the one that says most."""
    bad: list[SignatureVerdict] = []
    for verdict in _verdicts(registry, meant, keys):
        if verdict.signature is not None:
            return verdict
        bad.append(verdict)
    return worst_of(bad)


def _verdicts(registry: Registry, meant: Meant, keys: Trusted) -> Iterator[SignatureVerdict]:
    yield from _older(registry, meant, keys)
    listed = _referrers(registry, meant)
    if isinstance(listed, SignatureVerdict):
        yield listed
        return
    for entry in listed[:MOST_SIGNATURES]:
        for layer in _bundles(registry, entry, meant):
            yield _judged(registry, layer, partial(_judge_bundle, meant=meant, keys=keys))
    if len(listed) > MOST_SIGNATURES:
        yield too_many()


def _older(registry: Registry, meant: Meant, keys: Trusted) -> Iterator[SignatureVerdict]:
    """Yield verdicts on signatures of the older layout, in which nothing proves a certificate."""
    old = _unless_unusable(registry, signature_tag(meant.digest))
    if isinstance(old, SignatureVerdict):
        yield old
        return
    layers = payloads_in(old) if old is not None else ()
    if layers and isinstance(keys, Identities):
        yield unsupported("it is in the older layout, and only bundles hold what proves a certificate")
    elif isinstance(keys, PublicKeys):
        for layer in layers[:MOST_SIGNATURES]:
            yield _judged(registry, layer, partial(judge_payload, layer, meant=meant, keys=keys))
        if len(layers) > MOST_SIGNATURES:
            yield too_many()


def _judge_bundle(bundle: bytes, meant: Meant, keys: Trusted) -> SignatureVerdict:
    return judge_bundle(bundle, meant, keys) if isinstance(keys, PublicKeys) else certified.judge(bundle, meant, keys)


def _referrers(registry: Registry, meant: Meant) -> tuple[Descriptor, ...] | SignatureVerdict:
    try:
        listed = registry.referrers(meant.digest)
    except SourceError as error:
        return _unusable(error)
    if listed is not None:
        return listed
    index = _unless_unusable(registry, referrers_tag(meant.digest))
    return index if isinstance(index, SignatureVerdict) else index.manifests if index is not None else ()


def _bundles(registry: Registry, entry: Descriptor, meant: Meant) -> tuple[Descriptor, ...]:
    try:
        return bundles_in(registry.manifest(entry.digest), meant)[:MOST_SIGNATURES]
    except SourceError as error:
        if error.fault not in _NOT_THERE:
            raise
        return ()


def _unless_unusable(registry: Registry, tag: str) -> OciManifest | SignatureVerdict | None:
    try:
        return registry.tagged(tag)
    except SourceError as error:
        return _unusable(error)


def _unusable(error: SourceError) -> SignatureVerdict:
    """Return the verdict on what is there and can't be used; anything else that is wrong is raised."""
    if error.fault is not SourceFault.REFUSED:
        raise error
    return SignatureVerdict(fault=SignatureFault.UNSUPPORTED, detail=error.message)


def _judged(registry: Registry, layer: Descriptor, judge: Callable[[bytes], SignatureVerdict]) -> SignatureVerdict:
    """Return the verdict on a signature, which may not be there: anybody who may push can list one."""
    if layer.size > MOST_BYTES:
        return SignatureVerdict(fault=SignatureFault.UNSUPPORTED, detail=f"it has more than {MOST_BYTES // 1024} KiB")
    try:
        return judge(registry.blob(layer))
    except SourceError as error:
        if error.fault not in _NOT_THERE:
            raise
        return SignatureVerdict(fault=SignatureFault.UNSUPPORTED, detail=error.message)


_NOT_THERE: Final = frozenset(
    {SourceFault.REFUSED, SourceFault.NO_SUCH_REF, SourceFault.NO_SUCH_PATH, SourceFault.UNTRUSTED}
)
"""What is wrong with one signature doesn't concern others."""
