"""Desired state: the manifests of a revision, each file read and parsed once.

Equal blob ids mean equal bytes, so a revision that changed one file of ten thousand costs one
file.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import chain
from operator import attrgetter, is_
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from kubectl_reconcile.core.manifests.parse import Located, Parsed, is_named_by_variables
from kubectl_reconcile.core.manifests.revision import ReadableSource, Revision
from kubectl_reconcile.core.manifests.tree import Tree
from kubectl_reconcile.core.objects import Problem, errors_among
from kubectl_reconcile.core.other_tools.translation import gathered
from kubectl_reconcile.core.rendering.charts import Release
from kubectl_reconcile.core.rendering.derived import concealed, with_marks, with_safe_ids
from kubectl_reconcile.core.rendering.held_values import NO_HELD, HeldValues
from kubectl_reconcile.core.rendering.lookups import NO_ANSWERS, Answers, marked
from kubectl_reconcile.core.rendering.origins import Traces
from kubectl_reconcile.core.rendering.over import Over
from kubectl_reconcile.core.rendering.rendered import (
    Consulted,
    Draw,
    PlainObjects,
    Rendering,
    digest_of_consulted,
    objects_of,
    revision_of,
)
from kubectl_reconcile.core.rendering.sealed import unsealed, with_seals_of
from kubectl_reconcile.core.rendering.substitution import LineOf, Values, substituted
from kubectl_reconcile.core.rendering.uses import without_secrets
from kubectl_reconcile.core.resources.decryption import NO_DECRYPTION, Alter, Decryption
from kubectl_reconcile.core.resources.helm import LookupPolicy, Unstable
from kubectl_reconcile.core.resources.history import digest_of, digest_of_sorted, print_of
from kubectl_reconcile.core.resources.kustomize import NO_KUSTOMIZE
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.engine.sync.parse_cache import ParsedFiles
from kubectl_reconcile.source import contents
from kubectl_reconcile.source.base import Chart, Fetching, Followed
from kubectl_reconcile.source.charts.archive import TreeWithChart
from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.limits import GitLimits, raising
from kubectl_reconcile.source.render.pinned import survey_of
from kubectl_reconcile.source.render.plain import manifests_below, plain_at, stated
from kubectl_reconcile.source.render.renderer import RENDERER, Renderer

_INFLATED: Final = Decryption(
    fault="what is in it for a chart that a kustomization inflates isn't decrypted",
    hint="make the chart a Sync of its own, whose values files are decrypted",
    asked=True,
)
_NOBODY: Final = Sync("", "")
"""Whoever reads files without a Sync."""


class Desired(Struct, frozen=True):
    """What one revision asks for, and what is wrong with it. *whole* is False for a part of it.

    *digest* is the same for the same objects, whatever the commit. *draw* is told when what was drawn is used. A chart's *release* is what it
    was rendered with, and *looked_up* what it asked the cluster for, where its Sync has that read. *named* tells that names of objects
    may have variables in them. *made_of* tells what a chart was rendered from, where values of Secrets hide what it came to.
    """

    revision: Revision
    manifests: tuple[Located, ...]
    problems: tuple[Problem, ...]
    whole: bool = True
    digest: str = ""
    draw: Draw = field(default_factory=Draw)
    release: Release | None = None
    looked_up: tuple[str, ...] = ()
    named: bool = True
    made_of: tuple[str, ...] = ()

    def is_same_as(self, other: Desired) -> bool:
        """Tell whether both ask for the same by the same files, and have the same wrong with them, whatever the commit.

        Two tries of what can't be rendered aren't the same, though both fail in the same words.
        """
        one, two = (replace(each.revision, sha="", committed_at="", commit=None) for each in (self, other))
        mine = one, self.problems, self.whole, self.manifests
        return mine == (two, other.problems, other.whole, other.manifests)


class _ReadFile(Struct, frozen=True):
    """What is known of one file's content, worked out once for as long as that is the same: its objects, their *prints*, whether names have variables in them, and its weight."""

    manifests: tuple[Located, ...]
    problems: tuple[Problem, ...]
    prints: tuple[bytes, ...]
    named: bool
    weight: int
    sealed: bool = False

    @classmethod
    def of(cls, parsed: Parsed) -> _ReadFile:
        """Work it out. Of a *sealed* file the prints are those of what is encrypted: nobody can guess by them what is decrypted."""
        named = any(map(is_named_by_variables, parsed.manifests))
        if parsed.sealed:
            prints = tuple(
                print_of({"sealed": parsed.sealed, "of": without_secrets(each)}) for each in parsed.manifests
            )
        else:
            prints = tuple(print_of(located.manifest) for located in parsed.manifests)
        return cls(parsed.manifests, parsed.problems, prints, named, parsed.weight, sealed=bool(parsed.sealed))

    @property
    def is_unread(self) -> bool:
        """Tell whether it could not be decrypted."""
        return self.sealed and bool(errors_among(self.problems))


class _ReadFiles(Struct, frozen=True):
    """The files of one revision, by path in its order, their ids as *blobs* has them, the prints of all their objects, *sorted*, and their weight."""

    blobs: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, _ReadFile] = field(default_factory=dict)
    sorted: list[bytes] = field(default_factory=list)
    weight: int = 0

    def new_in(self, blobs: Mapping[str, str]) -> dict[str, str]:
        """Return the files of *blobs* that aren't these, by path."""
        known = self.blobs.get
        return {path: blob for path, blob in blobs.items() if known(path) != blob}

    def left_by(self, blobs: Mapping[str, str], fresh: Collection[str]) -> list[_ReadFile]:
        """Return those of these files that aren't in *blobs* as they were, where the *fresh* ones are new or others."""
        gone = (self.files.keys() - blobs.keys()) | (self.files.keys() & fresh)
        return [self.files[path] for path in gone]

    def followed_by(self, blobs: Mapping[str, str], fresh: Mapping[str, _ReadFile]) -> _ReadFiles:
        """Return the files of another revision, of which the *fresh* ones aren't among these."""
        if blobs.keys() == self.files.keys():  # and so in the same order
            files = {**self.files, **fresh}
        else:
            files = {path: fresh.get(path) or self.files[path] for path in blobs}
        left = self.left_by(blobs, fresh.keys())
        weight = self.weight + _weight_in(fresh.values()) - _weight_in(left)
        gone, added = _prints_of(left), _prints_of(fresh.values())
        if len(gone) + len(added) > len(self.sorted) // 8:
            return _ReadFiles(blobs, files, sorted(_prints_of(files.values())), weight)
        prints = list(self.sorted)
        for each in gone:
            del prints[bisect_left(prints, each)]
        for each in added:
            insort(prints, each)
        return _ReadFiles(blobs, files, prints, weight)


def _over_of(sync: Sync | None, revision: Revision) -> Over | None:
    """Return what a Sync changes of the objects of a revision; None where that is nothing."""
    spec = sync.source.kustomize if sync is not None and sync.source is not None else NO_KUSTOMIZE
    if spec == NO_KUSTOMIZE:
        return None
    return Over(spec, revision.folder if revision.overlay is None else revision.overlay)


def _objects_in(files: Iterable[_ReadFile | Parsed]) -> int:
    return sum(len(each.manifests) for each in files)


def _weight_in(files: Iterable[_ReadFile | Parsed]) -> int:
    return sum(each.weight for each in files)


def _prints_of(files: Iterable[_ReadFile]) -> list[bytes]:
    return [each for file in files for each in file.prints]


def with_values(desired: Desired, values: Values, line_of: LineOf) -> Desired:
    """Return what a revision asks for with *values* in it; itself where nothing stands for any.

    No value of a Secret is in what tells it from another: not in its digest, and not in the stamps of files.
    """
    if not values.is_declared and not (desired.named and any(map(is_named_by_variables, desired.manifests))):
        return desired
    done = substituted(desired.manifests, values, line_of)
    same = len(done.manifests) == len(desired.manifests) and all(map(is_, done.manifests, desired.manifests))
    if same and not done.problems:
        return desired
    known = desired.revision.stamps
    stamps = {path: f"{known.get(path, '')}{values.stamp_of(names)}" for path, names in done.names.items()}
    return replace(
        desired,
        revision=replace(desired.revision, stamps={**known, **stamps}),
        manifests=done.manifests,
        problems=(*desired.problems, *done.problems),
        digest=_digest_of(done.manifests, desired.made_of),
    )


def _digest_of(manifests: Iterable[Located], made_of: tuple[str, ...]) -> str:
    """Return the digest of what is asked for, and of what it was *made of* where that is known."""
    return digest_of(chain(map(without_secrets, manifests), [{"madeOf": made_of}] if made_of else ()))


class _Fetched(Struct, frozen=True):
    """A rendering with fetched files in it: *inner* is by all files, *outer* as the revision itself is concerned."""

    inner: Rendering
    outer: Rendering


class ManifestReader(Struct):
    """Reads revisions of one source; keeps what it parsed of the newest, and with *kept* of all on disk.

    Overlays are rendered, and charts with the release that *release_of* gives a Sync at the time and the *answers* to what they look up. It
    *conceals* what is called by what was looked up, where somebody looks who isn't the Sync's account. *fetching* brings what files refer to elsewhere, and *fetches* tells that those read last
    did. Where it *is given values*, nobody noted with which ones
    a chart was rendered last.
    """

    kept: ParsedFiles | None = None
    limits: GitLimits = field(default_factory=GitLimits)
    _read: _ReadFiles = field(default_factory=_ReadFiles)
    renderer: Renderer = field(default_factory=lambda: RENDERER)
    release_of: Callable[[Sync], Release] = lambda _: Release()
    chart: Chart | None = None
    fetching: Fetching | None = None
    answers: Answers = NO_ANSWERS
    decryption: Decryption = NO_DECRYPTION
    conceals: bool = False
    is_given_values: bool = False
    fetches: bool = False
    _newest: Desired | None = None
    _rendered: tuple[Rendering, Parsed] | None = None
    _release: Release | None = None
    _over: Over | None = None
    _plain: PlainObjects | None = None
    _filled: tuple[Desired, Values, Desired] | None = None
    _fetched: _Fetched | None = None
    _sealed: tuple[str, ...] = ()
    _read_with: Decryption = NO_DECRYPTION

    def decrypt_with(self, decryption: Decryption) -> None:
        """Decrypt files with these keys from now on. Where there are none any more, what was read with those of before stays, and what changes isn't read."""
        self.decryption = decryption
        if decryption.fault and self._read_with.asked and not self._read_with.fault:
            return
        is_unread = decryption.asked and any(map(attrgetter("is_unread"), self._read.files.values()))
        if is_unread or decryption.key != self._read_with.key:
            self._read, self._newest, self._rendered, self._filled = _ReadFiles(), None, None, None
        self._read_with = decryption

    def unread(self) -> tuple[str, ...]:
        """Return the files of manifests that were read last and could not be decrypted."""
        is_rendered = self._newest is not None and self._newest.revision.overlay is not None
        return () if is_rendered else tuple(path for path, file in self._read.files.items() if file.is_unread)

    def give(self, values: Mapping[str, Any], chart: Chart | None = None) -> None:
        """Render charts with *values* over those that a Sync says, and, where it is given, another *chart*."""
        said = self.release_of
        self.chart, self.is_given_values = chart or self.chart, self.is_given_values or bool(values)

        def release_of(sync: Sync) -> Release:
            found = said(sync).given(values)
            return replace(found, chart=chart.pin) if chart else found

        self.release_of = release_of

    def filled(self, desired: Desired, values: Values, line_of: LineOf) -> Desired:
        """Return what a revision asks for with *values* in it; the same as before for the same. Blocks."""
        before = self._filled
        if before is not None and before[0] is desired and before[1].is_same_as(values):
            return before[2]
        found = with_values(desired, values, line_of)
        self._filled = desired, values, found
        return found

    def read(self, source: ReadableSource, sync: Sync | None = None, held: HeldValues = NO_HELD) -> Desired:
        """Return the source's newest revision, parsed; a chart is rendered as *sync* says, with values that are *held* for it. Blocks while it fetches.

        Raises:
            SourceError: the source can't be read; the message says why.
        """
        revision = source.revision()
        if revision.is_chart and self.chart is not None:
            self.chart.verify()
        over = _over_of(sync, revision)
        if revision.overlay is not None:
            release = self._release_now(sync or _NOBODY, held) if revision.is_chart else None
            return self._read_overlay(source, revision, revision.overlay, release, over)
        if over is not None:
            return self._read_plain(source, revision, over)
        self._over = self._plain = None
        if self._newest is not None and self._newest.revision == revision:
            return self._newest
        self._parse(source, revision)
        files = self._read.files.values()
        manifests = tuple(chain.from_iterable(map(attrgetter("manifests"), files)))
        problems = gathered((*revision.problems, *chain.from_iterable(map(attrgetter("problems"), files))))
        digest, named = digest_of_sorted(self._read.sorted), any(map(attrgetter("named"), files))
        self._newest = Desired(revision, manifests, problems, digest=digest, named=named)
        return self._newest

    def has_moved(self, source: Followed) -> bool:
        """Tell whether *source* asks for something else than was read last, by what its server was heard to say. Blocks; asks nobody."""
        return self._newest is None or source.has_moved(self._newest.revision, self.consulted())

    def rendered_at(self, source: ReadableSource, sha: str, like: Revision) -> tuple[Located, ...]:
        """Return what an earlier commit rendered to, by the same way as the revision *like*, as far as it can be rendered. Blocks.

        Raises:
            SourceError: the commit can't be read.
        """
        with source.tree(sha) as tree:
            release = self._release if like.is_chart else None
            plain = plain_at(tree, self._read.files, self.limits, self.decryption) if like.is_plain else None
            rendering = self._render(like.overlay or "", tree, release, over=self._over, plain=plain)
            return self._objects_of(like.overlay or "", tree, rendering, release).manifests

    def drawn_anew(self, source: ReadableSource, desired: Desired) -> tuple[Located, ...]:
        """Return what *desired* asks for, with other values for what was drawn. Blocks.

        Raises:
            SourceError: the source can't be read any more.
        """
        revision = desired.revision
        with source.tree(revision.sha) as tree:
            rendering = self._render(revision.overlay or "", tree, desired.release, over=self._over, again=True)
            return self._objects_of(revision.overlay or "", tree, rendering, desired.release).manifests

    def told_anew(self, source: ReadableSource, desired: Desired, sync: Sync, held: HeldValues) -> Desired:
        """Return what the revision of *desired* asks for by the answers of now, and values that are *held* for it. Blocks.

        Raises:
            SourceError: the source can't be read any more.
        """
        revision = desired.revision
        release = self._release_now(sync, held)
        return self._read_overlay(source, revision, revision.overlay or "", release, _over_of(sync, revision))

    def rendered_again(self, overlay: str, tree: Tree) -> Rendering:
        """Return what the folder *overlay* of *tree* renders to, by the way that was gone last. Blocks.

        Raises:
            SourceError: the tree can't be read.
        """
        return self._render(overlay, tree, self._release, over=self._over)

    def traced(self, source: ReadableSource, overlay: str, tree: Tree) -> Traces:
        """Return where each field comes from of what the folder *overlay* of *tree* renders to, by the way that was gone last. Blocks.

        Raises:
            SourceError: the source can't be read any more.
        """
        return self.traced_over(source, overlay, tree, self._over, self._plain)

    def traced_over(
        self, source: ReadableSource, overlay: str, tree: Tree, over: Over | None, plain: PlainObjects | None
    ) -> Traces:
        """Return the same for a Sync that says *over*, of *plain* objects where there are some. Blocks.

        Raises:
            SourceError: the source can't be read any more.
        """
        release = self._release if plain is None else None
        if over is None or (release is None and plain is None):
            if self.fetches:
                survey = survey_of(tree, overlay, self.limits, self.fetching, is_chart=False)
                survey.inflated(
                    lambda at, of: self.renderer.render(at, survey.tree, self.limits, of, decryption=_INFLATED)
                )
                tree = survey.tree
            return self.renderer.trace(overlay, tree, self.limits, over=over)
        if plain is None:
            below = self._render(overlay, tree, release, over=None)
            return self.renderer.trace(overlay, tree, self.limits, over=over, objects=below.objects)
        paths = {blob: path for path, blob in self._read.blobs.items()}
        files = {paths[blob]: data for blob, data in source.read_many(paths)}
        return self.renderer.trace(overlay, tree, self.limits, over=over, objects=plain.objects, files=files)

    def rendered_over(self, tree: Tree, over: Over, plain: PlainObjects | None) -> Rendering:
        """Return what was read last as a Sync renders it that says *over*, of *plain* objects where there are some. Blocks.

        Raises:
            SourceError: the tree can't be read.
        """
        return self._render(over.folder, tree, self._release if plain is None else None, over=over, plain=plain)

    def plain_objects(self, tree: Tree, folder: str) -> PlainObjects:
        """Return the objects of the files that were read last, as these state them. Blocks.

        Raises:
            SourceError: the tree can't be read.
        """
        return self._plain or PlainObjects(stated(self._read.files.items()), manifests_below(tree, folder))

    def read_last(self) -> tuple[Located, ...]:
        """Return the objects that were read last, without values of variables."""
        return self._newest.manifests if self._newest is not None else ()

    @property
    def release(self) -> Release | None:
        """What the chart that was read last was rendered with; None where it was none."""
        return self._release

    def _release_now(self, sync: Sync, held: HeldValues) -> Release:
        return replace(self.release_of(sync).answered(self.answers), held=held)

    def asked(self) -> tuple[str, ...]:
        """Return what the chart that was read last looked up, where its Sync has that read."""
        is_read = self._release is not None and self._release.spec.lookup is LookupPolicy.CLUSTER
        return self._rendered[0].lookups if is_read and self._rendered is not None else ()

    def lack(self) -> tuple[str, ...]:
        """Return what of it has no answer yet."""
        return self.answers.lack(self.asked())

    def _render(
        self,
        overlay: str,
        tree: Tree,
        release: Release | None,
        *,
        over: Over | None,
        plain: PlainObjects | None = None,
        again: bool = False,
    ) -> Rendering:
        """Render an overlay, a chart of the tree, or one of a Helm repository with values files of the tree; and what is built over it, or over *plain* objects."""
        if release is None or release.chart is None:
            return self._render_own(overlay, tree, release, over=over, plain=plain, again=again)
        if self.chart is None or self.chart.pin != release.chart:
            raise SourceError(SourceFault.REFUSED, f"{release.chart} can't be fetched here")
        at = release.folder(overlay)
        beside = TreeWithChart(tree, self.chart.files(), at)
        return self._rendering(at, beside, release, over=over, again=again)

    def _rendering(
        self,
        overlay: str,
        tree: Tree,
        release: Release | None,
        *,
        over: Over | None,
        plain: PlainObjects | None = None,
        again: bool = False,
    ) -> Rendering:
        return self.renderer.render(
            overlay, tree, self.limits, release, over=over, plain=plain, again=again, decryption=self.decryption
        )

    def _render_own(
        self,
        overlay: str,
        tree: Tree,
        release: Release | None,
        *,
        over: Over | None,
        plain: PlainObjects | None,
        again: bool,
    ) -> Rendering:
        """Render what the tree has, with all that its lock file says in it. Where something isn't pinned, nothing is rendered.

        What refers to something elsewhere can't be rendered as it is, so only what can't be is looked at, or what fetched before.
        """
        plainly = None
        if not self.fetches:
            plainly = self._rendering(overlay, tree, release, over=over, plain=plain, again=again)
            if plain is not None or not errors_among(plainly.problems):
                return plainly
        survey = survey_of(tree, overlay, self.limits, self.fetching, is_chart=release is not None)
        self.fetches = not survey.is_empty
        if survey.is_empty:
            return plainly or self._rendering(overlay, tree, release, over=over, plain=plain, again=again)
        found = survey.pins()
        if errors_among(found):
            return Rendering((), found, survey.consulted)
        beside = survey.tree
        charts = survey.inflated(lambda at, of: self.renderer.render(at, beside, self.limits, of, decryption=_INFLATED))
        looked_at = {**survey.consulted, **beside.own(charts.consulted)}
        if errors_among(found := (*found, *charts.problems)):
            return Rendering((), found, looked_at)
        inner = self._rendering(overlay, beside, release, over=over, plain=plain, again=again)
        consulted = {**looked_at, **beside.own(inner.consulted)} if inner.consulted else {}
        known = self._fetched
        if known is None or known.inner is not inner or known.outer.consulted != consulted:
            outer = replace(inner, problems=(*inner.problems, *found), consulted=consulted)
            known = self._fetched = _Fetched(inner, outer)
        return known.outer

    def _objects_of(self, overlay: str, tree: Tree, rendering: Rendering, release: Release | None) -> Parsed:
        """Return the objects of a rendering; where it is a chart's, with marks at what contains, or comes from, values of Secrets that it looked up or that hold values for it."""
        unstable = release.spec.unstable if release else Unstable.KEEP
        found = unsealed(objects_of(rendering, unstable))
        if rendering.decrypted:
            altered = self._altered(Alter.ALL if release is None else Alter.TELLING)
            other = altered._render(overlay, tree, release, over=self._over)  # noqa: SLF001 - another of this class
            found = with_seals_of(found, objects_of(other, unstable), rendering.decrypted)
        if release is None or not (secrets := release.secrets()):
            return found
        beside = self._render(overlay, tree, release.altered(), over=self._over)
        second = objects_of(beside, unstable)
        derived = set(rendering.lookups) - set(beside.lookups)
        by_text = replace(found, manifests=marked(found.manifests, release.answers))
        told = with_marks(by_text, second, secrets, derived, release.held.texts())
        return concealed(told, second) if self.conceals else told

    def _altered(self, alter: Alter) -> ManifestReader:
        """Return what reads the same with other values in place of those that are encrypted."""
        return replace(self, decryption=replace(self.decryption, alter=alter))

    def consulted(self) -> Consulted:
        """Return what was consulted to render what was read last; nothing where that wasn't rendered."""
        newest, rendered = self._newest, self._rendered
        is_rendered = newest is not None and newest.revision.overlay is not None
        return rendered[0].consulted if is_rendered and rendered is not None else {}

    def _read_overlay(
        self, source: ReadableSource, revision: Revision, overlay: str, release: Release | None, over: Over | None
    ) -> Desired:
        """Return what an overlay or a chart renders to; the same as before while nothing that it consists of changes."""
        newest = self._newest
        is_known = (
            newest is not None
            and newest.revision.overlay == overlay
            and newest.revision.sha == revision.sha
            and self._release == release
            and self._over == over
            and self._plain is None
        )
        if newest is not None and is_known and self._rendered is not None and self._rendered[0].consulted:
            return newest
        self._over, self._plain = over, None
        with source.tree(revision.sha) as tree:
            rendering = self._render(overlay, tree, release, over=over)
            if self._rendered is None or self._rendered[0] is not rendering:
                self._rendered = rendering, self._objects_of(overlay, tree, rendering, release)
        self._release, self._sealed = release, rendering.decrypted
        return self._shown(replace(revision, is_over=over is not None), release)

    def _read_plain(self, source: ReadableSource, revision: Revision, over: Over) -> Desired:
        """Return what the Sync makes of manifests; the same as before while they and what it names are the same.

        Raises:
            SourceError: there are too many objects, or a file can't be read.
        """
        self._parse(source, revision)
        files = self._read.files
        told = tuple(chain.from_iterable(map(attrgetter("problems"), files.values())))
        with source.tree(revision.sha) as tree:
            self._plain = PlainObjects(stated(files.items()), manifests_below(tree, over.folder))
            self._over, self._release = over, None
            rendering = self._render(over.folder, tree, None, over=over, plain=self._plain)
            if self._rendered is None or self._rendered[0] is not rendering:
                self._rendered = rendering, self._objects_over(source, over, tree, rendering)
        self._sealed = (*self._sealed_files(), *rendering.decrypted)
        shown = replace(
            revision, overlay=over.folder, is_over=True, is_plain=True, problems=(*revision.problems, *told)
        )
        return self._shown(shown, None)

    def _sealed_files(self) -> tuple[str, ...]:
        return tuple(path for path, file in self._read.files.items() if file.sealed)

    def _objects_over(self, source: ReadableSource, over: Over, tree: Tree, rendering: Rendering) -> Parsed:
        """Return the objects of what a Sync makes of manifests, with marks at what came out of sealed files."""
        found, sealed = unsealed(objects_of(rendering)), self._sealed_files()
        if not sealed and not rendering.decrypted:
            return found
        altered, others = self._altered(Alter.ALL), {}
        for blob, data in source.read_many({self._read.blobs[path]: [path] for path in sealed}):
            for path in (each for each in sealed if self._read.blobs[each] == blob):
                others[path] = _ReadFile.of(contents.manifests(data, path, self.limits, altered.decryption))
        texts = stated({**self._read.files, **others}.items())
        plain = PlainObjects(texts, self._plain.consulted if self._plain else {})
        other = altered._render(over.folder, tree, None, over=over, plain=plain)  # noqa: SLF001 - another of this class
        return with_seals_of(found, objects_of(other), (*sealed, *rendering.decrypted))

    def _shown(self, revision: Revision, release: Release | None) -> Desired:
        """Return what was rendered last, of a *revision* that has problems of its own; the same as before if it is the same."""
        if self._rendered is None:
            raise AssertionError("nothing was rendered")
        rendering, found = self._rendered
        newest, overlay = self._newest, revision.overlay
        found = Parsed(found.manifests, (*revision.problems, *found.problems)) if revision.problems else found
        self._check("objects", len(found.manifests), f"{overlay or revision.path}: with this file there are")
        shown = revision_of(revision, rendering, found)
        holds = bool(self._sealed) or (release is not None and bool(release.held.stamp))
        made_of = self._made_of(rendering, release) if holds else ()
        if made_of:
            shown = with_safe_ids(shown, found.manifests, " ".join((release.stamp if release else "", *made_of)))
        shown = replace(shown, unrendered=(*revision.unrendered, *shown.unrendered))
        if newest is None or newest.revision != shown or newest.release != release:
            digest = _digest_of(found.manifests, made_of)
            newest = self._newest = Desired(
                shown, found.manifests, gathered(found.problems), digest=digest, draw=rendering.draw, release=release,
                looked_up=self.asked(), made_of=made_of,
            )  # fmt: skip
        return newest

    def _made_of(self, rendering: Rendering, release: Release | None) -> tuple[str, ...]:
        """Return what tells all that was rendered from something else but for values of Secrets: of a field that has one in it, nothing else is known."""
        told = release.told if release else ""
        return told, self._over.key if self._over else "", digest_of_consulted(rendering.consulted)

    def _parse(self, source: ReadableSource, revision: Revision) -> None:
        """Read the files of a revision, of those that were read before only what has changed.

        Raises:
            SourceError: there are too many objects, or a file can't be read.
        """
        new = {(blob, path) for path, blob in self._read.new_in(revision.files).items()}
        known = self.kept.find(new, self.limits.values) if self.kept is not None and new else {}
        new -= known.keys()
        paths: dict[str, list[str]] = {}
        for blob, path in sorted(new):
            paths.setdefault(blob, []).append(path)
        fresh: dict[tuple[str, str], Parsed] = {}
        left = self._read.left_by(revision.files, {path for _, path in (*known, *new)})
        count = len(self._read.sorted) + _objects_in(known.values()) - _objects_in(left)
        weight = self._read.weight + _weight_in(known.values()) - _weight_in(left)
        self._check("values", weight, "its files hold")
        for blob, content in source.read_many(paths):
            for path in paths[blob]:
                fresh[blob, path] = each = contents.manifests(content, path, self.limits, self.decryption)
                count, weight = count + len(each.manifests), weight + each.weight
                self._check("objects", count, f"{path}: with this file there are")
                self._check("values", weight, f"the files up to {path} hold")
        if self.kept is not None and fresh:
            self.kept.keep(fresh)
        read = {path: _ReadFile.of(each) for (_, path), each in (known | fresh).items()}
        self._read = self._read.followed_by(revision.files, read)

    def _check(self, ceiling: str, found: int, said: str) -> None:
        """Return if *found*, of what *said* has, isn't beyond the *ceiling* of that name.

        Raises:
            SourceError: it is.
        """
        most = getattr(self.limits, ceiling)
        if found > most:
            message = f"{said} more than {most:,} {ceiling}"
            raise SourceError(SourceFault.REFUSED, message, f"split the Sync, or {raising(ceiling)}")
