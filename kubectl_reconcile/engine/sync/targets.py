"""What to sync, as people name it: a Sync in the cluster, a folder, a repository.

A folder or repository may be given the name of a Sync: then its objects belong to that set. Without
a name nothing is grouped, so nothing can be pruned.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from kubectl_reconcile.cluster.errors import AlreadyExists, ApiError, Forbidden, NotFound
from kubectl_reconcile.core.objects import FIELD_MANAGER, Manifest, map_at
from kubectl_reconcile.core.phrases import first_few
from kubectl_reconcile.core.redaction import without_credentials
from kubectl_reconcile.core.resources.chart import ChartSpec
from kubectl_reconcile.core.resources.fields import SyncSpecError
from kubectl_reconcile.core.resources.oci.reference import DIGEST
from kubectl_reconcile.core.resources.oci.spec import OciSpec
from kubectl_reconcile.core.resources.semver import VersionRange
from kubectl_reconcile.core.resources.source import GitSpec, Render, SourceSpec
from kubectl_reconcile.core.resources.sync import SYNC, Sync
from kubectl_reconcile.core.resources.verification import Verification
from kubectl_reconcile.engine.api.sync_requests import SYNCS
from kubectl_reconcile.engine.sync.credentials import access_to, fetched, local_folder, repository_of, require_allowed
from kubectl_reconcile.engine.sync.desired import ManifestReader
from kubectl_reconcile.engine.sync.fetching import SyncFetching, equip
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.engine.sync.signed_sources import give_keys, trusting
from kubectl_reconcile.engine.sync.target import Target
from kubectl_reconcile.engine.sync.variables import values_of
from kubectl_reconcile.source.base import Source
from kubectl_reconcile.source.charts.source import ChartSource
from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.folder.checkout import Checkout
from kubectl_reconcile.source.folder.worktree import WorktreeSource
from kubectl_reconcile.source.git.source import GitSource, Ref, RefKind
from kubectl_reconcile.source.oci.registry import registry_of
from kubectl_reconcile.source.oci.source import OciSource
from kubectl_reconcile.source.oci.verified import VerifiedArtifact
from kubectl_reconcile.source.remote import Credentials, Repository

if TYPE_CHECKING:  # few looks at a folder last
    from kubectl_reconcile.source.folder.watch import Watch

_LISTED = 10
"""How many Syncs an error lists."""


class NotInstalled(Exception):  # noqa: N818 - says what isn't there
    """The cluster doesn't know the kind Sync; *hint* says how it learns of it."""

    def __init__(self, server: str) -> None:
        self.hint = "kubectl reconcile install creates CRDs and daemon; sync --install only the CRDs"
        super().__init__(f"the cluster {server} doesn't know Syncs yet: the CRD syncs.{SYNC.group} isn't installed")


class NoSuchSync(Exception):  # noqa: N818 - says what isn't there
    """No Sync of that name. *suggestions* are the names there are, *elsewhere* namespaces that have one of that name."""

    def __init__(self, name: str, namespace: str, suggestions: list[str], elsewhere: list[str] | None = None) -> None:
        self.name, self.namespace, self.suggestions = name, namespace, suggestions
        self.elsewhere = elsewhere or []
        self.hint = f"namespace {self.elsewhere[0]} has one: add -n {self.elsewhere[0]}" if elsewhere else ""
        super().__init__(self._text())

    def _text(self) -> str:
        there = listed(self.suggestions)
        close = difflib.get_close_matches(self.name, self.suggestions, n=1)
        meant = f"; did you mean {close[0]}?" if close else f"; there is {there}" if there else ""
        return f"no Sync {self.name} in namespace {self.namespace}{meant}"


class WhichSync(NoSuchSync):
    """None was named, and *namespace* has no single one that follows something.

    *here* are the names of those of *namespace*, *others* the Syncs of other namespaces as ``NAMESPACE/NAME``.
    """

    def __init__(self, namespace: str, here: list[str], others: list[str]) -> None:
        self.others = others
        super().__init__("", namespace, here)
        if here or others:
            where, _, name = next(iter([*(f"{namespace}/{name}" for name in here), *others])).partition("/")
            self.hint = f"give its name, and its namespace by -n: {name} -n {where}"
        else:
            self.hint = "kubectl reconcile create creates one; -f FOLDER applies files without one"

    def _text(self) -> str:
        if self.suggestions:
            return f"name a Sync; there are {listed(f'{self.namespace}/{name}' for name in self.suggestions)}"
        missing = f"no Sync of namespace {self.namespace} follows a repository"
        return f"{missing}; other namespaces have {listed(self.others)}" if self.others else missing


def listed(names: Iterable[str]) -> str:
    """Return *names* as a sentence has them: the first ten, and how many more there are."""
    return first_few(names, _LISTED)


async def none_here(session: Session) -> str:
    """Say that the connection's namespace has no Sync, and which other namespaces have."""
    others = await syncs_seen(session)
    there = f"; other namespaces have {listed(others)}: add -n NAMESPACE or -A" if others else ""
    return f"no Syncs in namespace {session.client.namespace}{there}"


def require_installed(session: Session) -> None:
    """Return if the cluster knows Syncs.

    Raises:
        NotInstalled: it doesn't.
    """
    if session.discovery.find(SYNC.api_version, SYNC.kind) is None:
        raise NotInstalled(session.client.server)


async def live_sync(session: Session, name: str, namespace: str) -> Manifest:
    """Return the live Sync *name*; without a name the only one of *namespace* that follows something, or where none does the only one.

    Raises:
        NotInstalled: the cluster doesn't know Syncs.
        NoSuchSync: there is no object of that name.
        WhichSync: none was named, and there is none, or there are several.
        ApiError: the server refuses, or doesn't answer.
    """
    require_installed(session)
    if not name:
        names = await _names(session, namespace, followed=True) or await _names(session, namespace)
        if len(names) != 1:
            raise WhichSync(namespace, names, [] if names else await syncs_seen(session, followed=True))
        name = names[0]
    live = await _find(session, name, namespace)
    if live is None:
        raise NoSuchSync(name, namespace, await _names(session, namespace), await _elsewhere(session, name))
    return live


async def followed_syncs(session: Session) -> list[tuple[str, str]]:
    """Return namespace and name of every Sync of the cluster that follows something.

    Raises:
        NotInstalled: the cluster doesn't know Syncs.
        ApiError: the server refuses, or doesn't answer.
    """
    require_installed(session)
    items, _ = await session.client.list(f"{SYNCS}/syncs")
    followed = (item["metadata"] for item in items if map_at(item, "spec").get("source"))
    return sorted((metadata["namespace"], metadata["name"]) for metadata in followed)


async def sync_target(session: Session, name: str, namespace: str) -> Target:
    """Return the target of the Sync *name*.

    Raises:
        NotInstalled: the cluster doesn't know Syncs.
        NoSuchSync: there is none.
        SyncSpecError: it can't be meant as it is written, or follows nothing.
        SourceError: its repository can't be used.
        ApiError: the server refuses, or doesn't answer.
    """
    live, sync, spec = await _following(session, name, namespace)
    source = await source_of(session, sync, spec)
    return await target_of(session, sync, source, live)


async def target_of(session: Session, sync: Sync, source: Source, live: Manifest | None) -> Target:
    """Return the target of a Sync with *source*, and with what else it is read with; *live* is None where there is no such Sync yet.

    Raises:
        SourceError: its chart's repository can't be used.
        ApiError: the server refuses, or doesn't answer.
    """
    target = Target(sync, source, parent=live, reader=session.reader(), values=await values_of(session, sync))
    await equip(session, sync, target.reader)
    return target


async def _following(session: Session, name: str, namespace: str) -> tuple[Manifest, Sync, SourceSpec]:
    """Return a live Sync, what it says, and what it follows."""
    live = await live_sync(session, name, namespace)
    sync = Sync.of(live)
    if sync.source is None:
        raise SyncSpecError(
            "spec.source", f"Sync {namespace}/{name} has no source; name what to apply: -f PATH --name {name}"
        )
    return live, sync, sync.source


async def target_of_manifest(session: Session, manifest: Manifest) -> Target | None:
    """Return the target of a Sync as *manifest* has it, whether there is one or not yet; None where it follows nothing.

    Raises:
        SyncSpecError: it can't be meant as it is written.
        SourceError: its repository can't be used.
        ApiError: the server refuses, or doesn't answer.
    """
    sync = Sync.of(manifest)
    if sync.source is None:
        return None
    source = await source_of(session, sync, sync.source)
    target = Target(sync, source, reader=session.reader(), values=await values_of(session, sync))
    await equip(session, sync, target.reader)
    with suppress(NotFound, Forbidden):
        return replace(target, parent=await session.client.get(f"{_path(sync.namespace)}/{sync.name}"))
    return target


async def syncs_of(session: Session, namespace: str) -> list[str]:
    """Return the names of the Syncs of a namespace that follow something.

    Raises:
        NotInstalled: the cluster doesn't know Syncs.
        ApiError: the server refuses, or doesn't answer.
    """
    require_installed(session)
    items, _ = await session.client.list(_path(namespace))
    return sorted(item["metadata"]["name"] for item in items if map_at(item, "spec").get("source"))


async def revision_target(session: Session, name: str, namespace: str, revision: str) -> Target:
    """Return the target of a Sync as if it followed *revision*: a branch, a tag, a commit, or any ref.

    Raises:
        NotInstalled, NoSuchSync, SyncSpecError, SourceError, ApiError: as ``sync_target``.
    """
    live, sync, spec = await _following(session, name, namespace)
    return await target_of(session, sync, await source_at(session, sync, spec, revision), live)


async def working_tree_target(session: Session, name: str, namespace: str, folder: Path) -> Target:
    """Return the target of a Sync with the working tree at *folder* instead of what it follows.

    Raises:
        NotInstalled, NoSuchSync, SyncSpecError, SourceError, ApiError: as ``sync_target``; what it follows may be a
            path of another machine, though.
    """
    live, sync, spec = await _following(session, name, namespace)
    files = WorktreeSource(folder, spec.path, limits=session.sources.limits, render=spec.render)
    git = _git_of(sync, spec)
    source = Checkout(files, await _followed(session, sync, spec, git)) if may_read(session, git.url) else files
    return await target_of(session, sync, source, live)


def watch(target: Target, callback: Callable[[], None]) -> Watch:
    """Call *callback*, in another thread, whenever files of a folder's target have changed: its own, or what is rendered for it.

    Have the watch follow what was consulted, once that was read. Close it to end it.

    Raises:
        SourceError: the target has no folder, or it can't be watched.
    """
    folder = target.source.folder
    if folder is None:
        raise SourceError(SourceFault.UNREADABLE, "a repository can't be watched, a folder can")
    return folder.watch(callback, consulted=target.reader.consulted)


async def folder_target(
    session: Session,
    path: Path,
    name: str,
    namespace: str,
    *,
    recursive: bool = True,
    manager: str = "",
    render: Render = Render.AUTO,
) -> Target:
    """Return the target of a local folder or file, under the Sync *name* if one is given.

    Unless *recursive*, folders in the folder are left out. *manager* is the field manager to apply as, if not the Sync's
    or our own; *render* how files become objects.

    Raises:
        SourceError: nothing is there.
        SyncSpecError: the Sync of that name can't be meant as it is written.
        ApiError: the server refuses, or doesn't answer.
    """
    sync = _kept_by_hand(name, namespace, manager)
    files = WorktreeSource(path, recursive=recursive, limits=session.sources.limits, render=render, reaches=True)
    target = Target(sync, files, grouped=bool(name), reader=_reader(session))
    return await _with_parent(session, target, manager)


async def repository_target(
    session: Session,
    url: str,
    ref: str,
    path: str,
    name: str,
    namespace: str,
    *,
    manager: str = "",
    render: Render = Render.AUTO,
) -> Target:
    """Return the target of a repository, read with the user's own Git configuration and credentials.

    *name*, *manager* and *render* are as in ``folder_target``.

    Raises:
        SourceError: the URL, the ref or the path can't be used.
        SyncSpecError: the Sync of that name can't be meant as it is written.
        ApiError: the server refuses, or doesn't answer.
    """
    repository = Repository.of(url, allow_local=True, user_config=True)
    source = _git_source(session, repository, Ref(RefKind.ANY, ref), path, render)
    sync = _kept_by_hand(name, namespace, manager)
    target = Target(sync, source, grouped=bool(name), reader=_reader(session))
    return await _with_parent(session, target, manager)


def _reader(session: Session) -> ManifestReader:
    """Return what reads files that a person names: what these refer to is fetched with what their own Git is configured with."""
    reader = session.reader()
    reader.fetching = SyncFetching(session.cache_dir, session.sources, person=True)
    return reader


async def chart_target(session: Session, pin: ChartSpec, name: str, namespace: str, *, manager: str = "") -> Target:
    """Return the target of a chart in a Helm repository that takes no credentials.

    *name* and *manager* are as in ``folder_target``.

    Raises:
        SyncSpecError: the Sync of that name can't be meant as it is written.
        ApiError: the server refuses, or doesn't answer.
    """
    sync = _kept_by_hand(name, namespace, manager)
    target = Target(sync, ChartSource(pin), grouped=bool(name), reader=session.reader())
    target = await _with_parent(session, target, manager)
    target.reader.give({}, fetched(pin, session.cache_dir, session.sources, Credentials()))
    return target


def _kept_by_hand(name: str, namespace: str, manager: str) -> Sync:
    """Return the Sync of objects that somebody applies by hand, as it would be made."""
    spec = {"fieldManager": manager} if manager else {}
    return Sync.of({"metadata": {"name": name, "namespace": namespace}, "spec": spec})


async def _with_parent(session: Session, target: Target, manager: str) -> Target:
    """Return *target* with the live Sync of its name, if there is one, and that Sync's rules."""
    live = await _find(session, target.sync.name, target.sync.namespace) if target.grouped else None
    if live is not None:
        target = replace(target, parent=live, sync=Sync.of(live))
        known = target.sync.field_manager
        if manager and manager != known:
            name = f"{target.sync.namespace}/{target.sync.name}"
            raise SyncSpecError("spec.fieldManager", f"Sync {name} applies as {known}, and keeps doing so")
        target = replace(target, values=await values_of(session, target.sync))
        await equip(session, target.sync, target.reader)
    return target


async def ensure_parent(session: Session, target: Target) -> Target:
    """Return *target* with a live Sync that keeps its membership, made where there was none.

    Raises:
        SyncSpecError: somebody makes it at this moment, and it can't be meant as it is written.
        ApiError: the server refuses, or doesn't answer.
    """
    if target.grouped and target.parent is None:
        metadata = {"name": target.sync.name, "namespace": target.sync.namespace}
        manager = target.sync.field_manager
        spec = {"fieldManager": manager} if manager != FIELD_MANAGER else {}
        body: Manifest = {"apiVersion": SYNC.api_version, "kind": SYNC.kind, "metadata": metadata, "spec": spec}
        try:
            parent = await session.client.create(_path(target.sync.namespace), body)
        except AlreadyExists:  # somebody made it at the same moment; it is what we would have found a moment later
            return await _with_parent(session, target, manager if manager != FIELD_MANAGER else "")
        return replace(target, parent=parent, sync=Sync.of(parent))
    return target


async def source_of(session: Session, sync: Sync, spec: SourceSpec, *, keeps: Verification | None = None) -> Source:
    """Return the source that a Sync follows, with the credentials of its Secret, if that is for it, and the keys that it trusts.

    Of one that asks for signatures, what *keeps* records stays in force while newer revisions aren't verified; without that the
    source is for who looks (``source.verifying``).

    Raises:
        SourceError: the Secret or the URL can't be used.
        ApiError: the server refuses, or doesn't answer.
    """
    if spec.oci is not None:
        return await _artifact(session, sync, spec, spec.oci, keeps=keeps)
    if spec.git is None and spec.chart is not None:
        return ChartSource(spec.chart)
    return await _followed(session, sync, spec, _git_of(sync, spec), keeps=keeps)


async def source_at(session: Session, sync: Sync, spec: SourceSpec, revision: str) -> Source:
    """Return the source that a Sync follows as if it followed *revision*: a branch, a tag, a commit, or any ref.

    Raises:
        SourceError: it follows no repository that has such; or as for ``source_of``.
        ApiError: the server refuses, or doesn't answer.
    """
    if spec.oci is not None:
        other = {"tag": "", "digest": revision} if DIGEST.fullmatch(revision) else {"tag": revision, "digest": ""}
        return await _artifact(session, sync, spec, replace(spec.oci, **other, semver=""))
    repository = await _repository(session, sync, _git_of(sync, spec))
    source = _git_source(session, repository, Ref(RefKind.ANY, revision), spec.path, spec.render)
    return await trusting(session, sync, spec, source)


def _git_of(sync: Sync, spec: SourceSpec) -> GitSpec:
    """Return the repository that a Sync follows.

    Raises:
        SourceError: it follows none.
    """
    if spec.git is None:
        name = f"{sync.namespace}/{sync.name}"
        raise SourceError(
            SourceFault.NO_SUCH_REF,
            f"Sync {name} follows no Git repository, so it has no branches, commits or working tree",
            "what it follows is set in spec.source; rollback goes back to what was applied",
        )
    return spec.git


async def _followed(
    session: Session, sync: Sync, spec: SourceSpec, git: GitSpec, *, keeps: Verification | None = None
) -> GitSource:
    ref = Ref.of(branch=git.branch, tag=git.tag, semver=git.semver, commit=git.commit)
    repository = await _repository(session, sync, git)
    return await trusting(
        session, sync, spec, _git_source(session, repository, ref, spec.path, spec.render), keeps=keeps
    )


async def _artifact(
    session: Session, sync: Sync, spec: SourceSpec, oci: OciSpec, *, keeps: Verification | None = None
) -> OciSource:
    """Return the artifact that a Sync follows, as one of which only what is signed may be applied where the Sync asks for that.

    Raises:
        SourceError: its repository may not be followed, or its Secret can't be used.
        ApiError: the server refuses, or doesn't answer.
    """
    require_allowed(session.sources, oci.url)
    registry = registry_of(await access_to(session, sync, oci.repository, oci.secret))
    versions = VersionRange.of(oci.semver) if oci.semver else None
    what = registry, oci.tag, oci.digest, spec.path
    how: dict[str, Any] = {"versions": versions, "media_type": oci.media_type, "render": spec.render}
    if oci.verify is None:
        return OciSource(*what, **how)
    verified = VerifiedArtifact(*what, **how, spec=oci.verify, namespace=sync.namespace, keeps=keeps)
    await give_keys(session, sync.namespace, oci.verify, verified)
    return verified


async def _repository(session: Session, sync: Sync, git: GitSpec) -> Repository:
    """Return the repository at *git* with credentials, where it may be followed."""
    if local_folder(git.url) is None:
        require_allowed(session.sources, git.url)
    if not may_read(session, git.url):
        raise SourceError(
            SourceFault.REFUSED,
            f"repository {without_credentials(git.url)} is a local path",
            "use an https or ssh URL; a daemon with --repositories FOLDER follows it, diff --local FOLDER reads a clone",
        )
    repository = await repository_of(session, sync, git)
    return replace(repository, stays=bool(session.sources.urls.addresses), may=session.sources.urls)


def _git_source(
    session: Session, repository: Repository, ref: Ref, path: str, render: Render = Render.AUTO
) -> GitSource:
    folder = session.cache_dir / "git"
    return GitSource(
        repository,
        ref,
        path,
        cache_dir=folder,
        limits=session.sources.limits,
        render=render,
        guarded=session.sources.guarded,
    )


def may_read(session: Session, url: str) -> bool:
    """Tell whether a Sync may follow *url*: any but paths of this machine, unless they are given free.

    Else whoever may write a Sync could have the reader's own files sent into the cluster.
    """
    folder, root = local_folder(url), session.sources.folder
    return folder is None or (root is not None and folder.resolve().is_relative_to(root.resolve()))


async def _find(session: Session, name: str, namespace: str) -> Manifest | None:
    try:
        return await session.client.get(f"{_path(namespace)}/{name}")
    except NotFound:
        return None


async def _names(session: Session, namespace: str, *, followed: bool = False) -> list[str]:
    items, _ = await session.client.list(_path(namespace))
    return sorted(item["metadata"]["name"] for item in items if not followed or map_at(item, "spec").get("source"))


async def _elsewhere(session: Session, name: str) -> list[str]:
    """Return the namespaces that have a Sync *name*, as far as they can be seen."""
    try:
        items, _ = await session.client.list(f"{SYNCS}/syncs", fieldSelector=f"metadata.name={name}")
    except ApiError:
        return []
    return sorted(item["metadata"]["namespace"] for item in items)


async def syncs_seen(session: Session, *, followed: bool = False) -> list[str]:
    """Return every Sync of the cluster as ``NAMESPACE/NAME``, where you may see them; else none.

    With *followed*, only those that follow something.
    """
    try:
        items, _ = await session.client.list(f"{SYNCS}/syncs")
    except ApiError:
        return []
    wanted = [item["metadata"] for item in items if not followed or map_at(item, "spec").get("source")]
    return sorted(f"{metadata['namespace']}/{metadata['name']}" for metadata in wanted)


def _path(namespace: str) -> str:
    return f"{SYNCS}/namespaces/{namespace}/syncs"
