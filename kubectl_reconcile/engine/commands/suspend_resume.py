"""What people tell a Sync: stay as you are, go on, go back to a commit.

Vocabulary: a Sync is *suspended* by ``spec.suspend``: the cluster stays as it is. It is *pinned* where a person
took it back to a revision: that commit, that digest of an artifact, or that version of a chart without Git, is what it
follows, drift included, and an annotation remembers what it followed before. To *resume* ends both.

Each is one patch of the Sync, so a daemon learns of it at once by its watch, and whoever may patch a
Sync may steer it.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.cluster.errors import Conflict
from kubectl_reconcile.core.annotations import PINNED_FROM, RESUME_REQUESTED_AT, names_of
from kubectl_reconcile.core.objects import Manifest, annotations_of, labels_of, map_at
from kubectl_reconcile.core.resources.applyset import PART_OF
from kubectl_reconcile.core.resources.chart import revision_of
from kubectl_reconcile.core.resources.source import BESIDE_CHART, chart_settings, has_git, has_oci
from kubectl_reconcile.core.revisions import digest_in, short_of, tag_in
from kubectl_reconcile.engine.api.sync_requests import SYNCS

_MANAGER = "kubectl-reconcile-cli"
_REFS: Final[Mapping[str, Sequence[str]]] = {
    "git": ("branch", "tag", "semver", "commit"),
    "oci": ("tag", "semver", "digest"),
}
"""By which fields a Sync says what it follows of a repository."""
_PINS: Final = ("commit", "digest")
"""Those that nobody moves: they decide."""
_PINNED_TO = "to"
"""What the annotation calls the revision that a chart is pinned to: unlike a commit, it looks like what anybody may follow."""
_TRIES = 8
"""How often a Sync is read again that others write to meanwhile."""


async def suspend(client: Client, live: Manifest) -> Manifest:
    """Tell a Sync to leave the cluster as it is, and return it as it is then.

    Raises:
        ApiError: the server refuses, or doesn't answer.
    """
    return await _patch(client, live, {"spec": {"suspend": True}})


async def resume(client: Client, live: Manifest) -> Manifest:
    """Tell a Sync to go on: no longer suspended, no longer pinned, and what made the daemon stop is forgotten.

    Raises:
        Conflict: it follows something else by now.
        ApiError: the server refuses, or doesn't answer.
    """
    return await _steer(client, live, _resumed)


def _resumed(live: Manifest) -> Manifest:
    spec: dict[str, Any] = {"suspend": None}
    annotations = _resuming()
    if is_pinned(live):
        spec["source"] = {**patch_of_ref(live, _ref_before(live)), **_settings_back(live)}
        annotations[PINNED_FROM] = None
    return {"metadata": {"annotations": annotations}, "spec": spec}


async def pin(client: Client, live: Manifest, sha: str, helm: Manifest | None = None) -> Manifest:
    """Have a Sync follow the revision *sha* until it is resumed, with *helm* as what it says of its chart, and return it as it is then.

    What it followed before the first pin is remembered, however often it is pinned again.

    Raises:
        Conflict: it follows something else by now than *live* does.
        ApiError: the server refuses, or doesn't answer.
    """
    return await _steer(client, live, lambda now: _pinned(now, sha, helm))


def _pinned(live: Manifest, sha: str, helm: Manifest | None) -> Manifest:
    is_alone = not _place(live)
    before: dict[str, Any] = _ref_before(live) if is_pinned(live) else {} if is_alone else ref_of(live)
    settings = _settings_before(live) if is_pinned(live) else None
    if (helm is not None or is_alone) and settings is None:
        settings = chart_settings(live)
    if settings is not None:
        before["helm"] = settings
    if is_alone:
        before[_PINNED_TO] = sha
    source = patch_of_ref(live, ref_at(live, sha))
    if helm is not None:
        source |= _patch_of_settings(live, helm)
    return {
        "metadata": {"annotations": {**_resuming(), PINNED_FROM: json.dumps(before, sort_keys=True)}},
        "spec": {"suspend": None, "source": source},
    }


def patch_of_ref(live: Manifest, ref: Mapping[str, str]) -> dict[str, Any]:
    """Return the merge patch of ``spec.source`` by which a Sync follows *ref* of its repository; nothing where it has none."""
    place = _place(live)
    return {place: {**dict.fromkeys(_REFS[place]), **ref}} if place else {}


def ref_at(live: Manifest, revision: str) -> dict[str, str]:
    """Return the ref that a Sync follows where it stays at a *revision* of its repository."""
    if _place(live) != "oci":
        return {"commit": revision}
    found = {"tag": tag_in(revision), "digest": digest_in(revision)}
    return {name: value for name, value in found.items() if value}


def _place(live: Manifest) -> str:
    """Return the field of ``spec.source`` with the repository whose refs a Sync follows; empty for a chart alone."""
    return "git" if has_git(live) else "oci" if has_oci(live) else ""


def settings_as_written(live: Manifest, settings: Manifest) -> dict[str, Manifest | None]:
    """Return the fields of ``spec.source`` that make these *settings* of a chart and of patches, None for one that isn't needed.

    A live Sync that has its chart where earlier versions had it keeps it there; and what stands beside its chart stays, above all whose signatures count.
    """
    kustomize = {"kustomize": settings.get("kustomize")}
    helm = {name: value for name, value in settings.items() if name != "kustomize"}
    if map_at(live, "spec", "source", "helm").get("chart"):
        return {"helm": helm, **kustomize}
    chart, there = helm.pop("chart", None), map_at(live, "spec", "source", "chart")
    beside = {name: there[name] for name in BESIDE_CHART if name in there}
    return {"chart": {**chart, **beside} if chart else None, "helm": helm, **kustomize}


def _patch_of_settings(live: Manifest, settings: Manifest) -> dict[str, Any]:
    """Return the merge patch of ``spec.source`` by which a Sync says these *settings* of its chart."""
    patch: dict[str, Any] = {}
    for field, wanted in settings_as_written(live, settings).items():
        there = map_at(live, "spec", "source", field)
        if there or wanted:
            patch[field] = replacing(there, wanted) if wanted else None
    return patch


def _settings_back(live: Manifest) -> dict[str, Any]:
    """Return the patch by which a pinned Sync says of its chart again what it said before."""
    before = _settings_before(live)
    return {} if before is None else _patch_of_settings(live, before)


def _settings_before(live: Manifest) -> Manifest | None:
    """Return what a pinned Sync said of its chart before; None where that was left as it is."""
    helm = _noted(live).get("helm")
    return helm if isinstance(helm, Mapping) else None


def replacing(before: Manifest, after: Manifest) -> dict[str, Any]:
    """Return the merge patch that makes *after* of *before*, key by key: what isn't mentioned would stay."""
    gone: dict[str, Any] = dict.fromkeys(name for name in before if name not in after)
    for name, value in after.items():
        is_map = isinstance(value, Mapping) and isinstance(before.get(name), Mapping)
        gone[name] = replacing(before[name], value) if is_map else value
    return gone


def is_pinned(live: Manifest) -> bool:
    """Tell whether a person took this Sync back to a revision, where it still is."""
    if PINNED_FROM not in annotations_of(live):
        return False
    if _place(live):
        return any(name in ref_of(live) for name in _PINS)
    return _noted(live).get(_PINNED_TO) == _chart_revision(live)


def ref_of(live: Manifest) -> dict[str, str]:
    """Return which ref a Sync follows, as its spec says it; empty for the default branch. Where it has no Git, that is its chart."""
    if not (place := _place(live)):
        return _chart_of(chart_settings(live))
    said = map_at(live, "spec", "source", place)
    return {name: str(said[name]) for name in _REFS[place] if said.get(name)}


def followed_before(live: Manifest) -> dict[str, str]:
    """Return which ref a pinned Sync goes back to, or which chart; what somebody wrote there that is no ref is the default branch."""
    return _ref_before(live) if _place(live) else _chart_of(_settings_before(live) or {})


def _ref_before(live: Manifest) -> dict[str, str]:
    known = _noted(live)
    return {name: known[name] for name in _REFS.get(_place(live), ()) if isinstance(known.get(name), str)}


def _noted(live: Manifest) -> Mapping[str, Any]:
    """Return what is noted of what a pinned Sync followed before; anybody may have written that."""
    try:
        found = json.loads(annotations_of(live).get(PINNED_FROM, ""))
    except ValueError:
        return {}
    return found if isinstance(found, Mapping) else {}


def _chart_of(settings: Manifest) -> dict[str, str]:
    """Return name and version of the chart of these *settings*; nothing where there is none."""
    chart = map_at(settings, "chart")
    return {"chart": f"{chart.get('name')} {chart.get('version')}"} if chart else {}


def _chart_revision(live: Manifest) -> str:
    """Return the revision that a Sync of a chart follows."""
    chart = map_at(chart_settings(live), "chart")
    return revision_of(str(chart.get("version") or ""), str(chart.get("digest") or ""))


def ref_text(ref: Mapping[str, str]) -> str:
    """Return a ref as people say it: ``branch main``, ``commit 3f9c2e1``, ``digest sha256:3f9c2e1``, ``chart web 1.2.3``."""
    for name in (*_PINS, "branch", "tag", "semver", "chart"):
        if name in ref:
            return f"{name} {short_of(ref[name]) if name in _PINS else ref[name]}"
    return "the default branch"


def follows_text(live: Manifest) -> str:
    """Return what a Sync follows as people say it, with the tag that a range of versions has led to: ``semver 1.x (v1.4.2)``."""
    ref = ref_of(live)
    is_range = "semver" in ref and _place(live) == "git"
    tag = str(map_at(live, "status").get("lastAttemptedTag") or "") if is_range else ""
    return f"{ref_text(ref)} ({tag})" if tag else ref_text(ref)


def is_kept_by_another(live: Manifest) -> bool:
    """Tell whether the Sync is itself a member of a set, whose source will revert what is changed here."""
    return PART_OF in labels_of(live)


async def _steer(client: Client, live: Manifest, steered: Callable[[Manifest], Manifest]) -> Manifest:
    """Patch a Sync as *steered* says, unless it follows something else by now than *live* does; its status may change meanwhile."""
    now = live
    for _ in range(_TRIES):
        body = steered(now)
        known = {**body["metadata"], "resourceVersion": now["metadata"]["resourceVersion"]}
        try:
            return await _patch(client, live, {**body, "metadata": known})
        except Conflict:
            now = await client.get(_path(live))
        if _follows(now) != _follows(live):
            break
    raise Conflict(
        f"Sync {live['metadata']['name']} was changed meanwhile: it follows {ref_text(ref_of(now))}; check it, and try again"
    )


def _follows(live: Manifest) -> tuple[Any, ...]:
    """Return what decides how a Sync is taken back, and forward again."""
    return live["metadata"]["uid"], is_pinned(live), ref_of(live), _chart_revision(live), followed_before(live)


def _path(live: Manifest) -> str:
    metadata = live["metadata"]
    return f"{SYNCS}/namespaces/{metadata['namespace']}/syncs/{metadata['name']}"


async def _patch(client: Client, live: Manifest, body: Manifest) -> Manifest:
    return await client.patch(_path(live), body, manager=_MANAGER)


def _resuming() -> dict[str, str | None]:
    """Return the annotations by which what made the daemon stop is forgotten; a former name goes."""
    name, *former = names_of(RESUME_REQUESTED_AT)
    return {**dict.fromkeys(former), name: _now()}


def _now() -> str:
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
