"""Sources and charts of Syncs that ask for signatures, with the keys that these trust, from Secrets or ConfigMaps of the Sync's namespace.

Where both a source and the chart beside it have to be signed, both count: what is told is who signed the source, and what is wrong with either.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from kubectl_reconcile.cluster.errors import Forbidden, NotFound
from kubectl_reconcile.core.objects import Manifest, Problem, Severity, decoded_text
from kubectl_reconcile.core.resources.source import SourceSpec
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.core.resources.trusted_keys import KeysError
from kubectl_reconcile.core.resources.verification import Verification, VerifySpec
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.engine.sync.target import Target
from kubectl_reconcile.source.base import Chart, Source, Verified
from kubectl_reconcile.source.git.signed.verified import VerifiedSource
from kubectl_reconcile.source.git.source import GitSource
from kubectl_reconcile.source.running.threads import in_thread

_PLURALS = {"Secret": "secrets", "ConfigMap": "configmaps"}


async def trusting(
    session: Session, sync: Sync, spec: SourceSpec, source: GitSource, *, keeps: Verification | None = None
) -> GitSource:
    """Return *source* as one of which only what is signed as the Sync asks may be applied.

    Raises:
        ApiError: the server doesn't answer.
    """
    if spec.verify is None:
        return source
    verified = VerifiedSource(
        source.repository, source.ref, source.path, cache_dir=session.cache_dir / "git", limits=session.sources.limits,
        guarded=session.sources.guarded,
        spec=spec.verify, namespace=sync.namespace, verdicts=session.verdicts, keeps=keeps, render=spec.render,
    )  # fmt: skip
    await give_keys(session, sync.namespace, spec.verify, verified)
    return verified


async def read_keys(session: Session, sync: Sync, source: Source) -> None:
    """Read again the keys that a Sync trusts, where it trusts any.

    Raises:
        ApiError: the server doesn't answer.
    """
    if source.verified is not None and sync.source is not None and sync.source.verify is not None:
        await give_keys(session, sync.namespace, sync.source.verify, source.verified)


async def require_verified(target: Target, sha: str) -> None:
    """Return if the revision *sha* of what a target follows may be applied, and the chart beside it.

    Raises:
        UnverifiedError: one isn't signed as the Sync asks.
        SourceError: nobody can tell.
    """
    for each in _verified(target.source, target.reader.chart):
        await in_thread(each.require_verified, sha)


def verification_of(target: Target) -> Verification | None:
    """Return what was found of the signatures of a target when it was read last; None where nobody asks for any."""
    found = [each.verification for each in _verified(target.source, target.reader.chart)]
    refused = next((each for each in found if each.is_refused), None)
    return replace(found[0], fault=refused.fault, refusal=refused.refusal) if refused else found[0] if found else None


def check_keys(source: Source, chart: Chart | None) -> None:
    """Return if signatures of a source, and of the chart beside it, can be checked here, or nobody asks for any.

    Raises:
        SourceError: the keys can't be used, or a program is missing that checks signatures by them.
    """
    for each in _verified(source, chart):
        each.check_keys()


def warnings_of(target: Target) -> tuple[Problem, ...]:
    """Return the warnings that a sync would not apply what a preview of *target* shows, where it isn't signed as the Sync asks."""
    return tuple(
        Problem(
            each.field, 0, f"unverified, so no sync applies it: {each.verification.refusal}", severity=Severity.WARNING
        )
        for each in _verified(target.source, target.reader.chart)
        if each.is_preview and each.verification.is_refused
    )


def _verified(source: Source, chart: Chart | None) -> Iterator[Verified]:
    """Yield what counts only if it is signed."""
    if source.verified is not None:
        yield source.verified
    if chart is not None and chart.verified is not None:
        yield chart.verified


async def give_keys(session: Session, namespace: str, spec: VerifySpec, verified: Verified) -> None:
    """Have *verified* trust the keys that *spec* names, or know why there are none.

    Raises:
        ApiError: the server doesn't answer.
    """
    try:
        holder = await session.client.get(f"/api/v1/namespaces/{namespace}/{_PLURALS[spec.kind]}/{spec.name}")
        verified.trust(_entries(holder, spec.kind))
    except NotFound:
        flag = "secret generic" if spec.kind == "Secret" else "configmap"
        hint = f"kubectl create {flag} {spec.name} -n {namespace} {verified.made_from}"
        verified.trust(KeysError("isn't there", hint))
    except Forbidden as error:
        verified.trust(KeysError(f"may not be read: {error}"))
    except KeysError as error:
        verified.trust(error)


def _entries(holder: Manifest, kind: str) -> dict[str, str]:
    """Return the entries as text.

    Raises:
        KeysError: one isn't text.
    """
    entries = {str(name): text for name, text in (holder.get("data") or {}).items() if isinstance(text, str)}
    binary = dict(entries if kind == "Secret" else holder.get("binaryData") or {})
    for name, text in binary.items():
        try:
            entries[name] = decoded_text(text)
        except ValueError:
            raise KeysError(
                f"entry {name} isn't text",
                "give keys as text: OpenPGP keys in ASCII armour (gpg --export --armor), others as PEM",
            ) from None
    return entries
