"""Rendering, once for as long as what it consulted stays the same.

One process renders, one overlay or chart after the other; it is started when the first is met, and again when it was killed. Where somebody's
takes long, another renders what others ask for meanwhile: tenants have turns, one rendering each at a time, and who had one that took longer
than it may waits for a while. What needs more memory than these have is rendered again by a process with as much as may be, alone (``running.memory``).
What it rendered to is kept with all that was looked at for it: a revision that has the same at those paths renders nothing,
whoever follows it; of a chart, with the same release. So it is with an overlay that kills the process: nobody tries it again until something it looked
at has changed.
"""

from __future__ import annotations

import atexit
import contextlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from kubectl_reconcile.core.fair.patience import Impatience
from kubectl_reconcile.core.fair.shares import Limits
from kubectl_reconcile.core.manifests.tree import EntryKind, Tree, TreeEntry
from kubectl_reconcile.core.objects import Problem, errors_among
from kubectl_reconcile.core.rendering import charts, lookups
from kubectl_reconcile.core.rendering.charts import Release, chart_file
from kubectl_reconcile.core.rendering.entries import BuildStep, kustomization_among
from kubectl_reconcile.core.rendering.kustomization import failure, notices, unmatched, unused_configurations
from kubectl_reconcile.core.rendering.origins import Traces
from kubectl_reconcile.core.rendering.over import FIELD, FILE, Over, placed, readable
from kubectl_reconcile.core.rendering.rendered import (
    Consulted,
    PlainObjects,
    RenderedObject,
    Rendering,
    kind_of,
    listing,
    paired,
    still_holds,
)
from kubectl_reconcile.core.resources.decryption import NO_DECRYPTION, Decryption
from kubectl_reconcile.core.resources.helm import HelmSpecError
from kubectl_reconcile.go_programs import GoBuildError, Log
from kubectl_reconcile.source import contents
from kubectl_reconcile.source.charts.archive import TreeWithChart
from kubectl_reconcile.source.contents import UnreadableFileError
from kubectl_reconcile.source.errors import SourceError, SourceFault, one_line
from kubectl_reconcile.source.fenced.process import ProgramEndedError, ProgramLargeError, ProgramLateError
from kubectl_reconcile.source.git.cloned.folders import NotHereError
from kubectl_reconcile.source.limits import MEBIBYTE, GitLimits, raising
from kubectl_reconcile.source.render.mounted import MountedTree
from kubectl_reconcile.source.render.process import SECONDS, RenderProcess
from kubectl_reconcile.source.render.program import HOW_TO_GET, RENDER
from kubectl_reconcile.source.running.ending import ending
from kubectl_reconcile.source.running.memory import (
    HEAVY,
    HEAVY_RENDERING_BYTES,
    LIGHT_RENDERING_BYTES,
    all_bytes,
)
from kubectl_reconcile.source.running.places import TENANT, TenantPlaces

MOST_OUTPUT_BYTES: Final = 32 * MEBIBYTE
"""How much the objects of an overlay may take together, as YAML."""

_MOST_KEPT_BYTES: Final = 128 * MEBIBYTE
_ALTERNATIVES: Final = 4
"""How many renderings of overlays at one path are kept: repositories, branches and tags may have their own."""
_MOST_LOOKS: Final = 20_000
_SMALL_BYTES: Final = 64 * 1024
_MOST_FETCHES: Final = 100
"""How often files are fetched for one rendering: once for each level of bases."""


_LATE: Final = Limits(late=1, late_in_all=2)
_MOMENT_S: Final = 2.0
"""After how long another process renders what others ask for."""

_MOST_HEAVY: Final = 1000

_Done = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Carries out an order."""

_Key = tuple[str, str]
"""The path of an overlay or a chart, and what names the release of a chart, what is built over it and over which objects."""


class _Kept(Struct):
    """What was rendered, by the path of the overlay and what it was rendered with; beyond a bound the ones go that were used longest ago."""

    _guard: threading.Lock = field(default_factory=threading.Lock)
    _by_overlay: OrderedDict[_Key, list[Rendering]] = field(default_factory=OrderedDict)
    _bytes: int = 0

    def find(self, overlay: _Key, tree: Tree) -> Rendering | None:
        with self._guard:
            candidates = list(self._by_overlay.get(overlay, ()))
        for each in reversed(candidates):
            if still_holds(each.consulted, tree):
                with self._guard:
                    if overlay in self._by_overlay:
                        self._by_overlay.move_to_end(overlay)
                return each
        return None

    def keep(self, overlay: _Key, rendering: Rendering) -> None:
        if not rendering.consulted:
            return  # it depends on something else
        with self._guard:
            there = self._by_overlay.setdefault(overlay, [])
            there.append(rendering)
            self._by_overlay.move_to_end(overlay)
            self._bytes += _weight(rendering)
            while len(there) > _ALTERNATIVES:
                self._bytes -= _weight(there.pop(0))
            while self._bytes > _MOST_KEPT_BYTES and len(self._by_overlay) > 1:
                _, gone = self._by_overlay.popitem(last=False)
                self._bytes -= sum(map(_weight, gone))


class Renderer(Struct, eq=False):
    """Renders overlays and charts, from any thread, each for *seconds* at most. *rendered* counts them.

    Where the program isn't there it is built if *build_log* is set, which hears of it: that takes minutes.
    """

    seconds: float = SECONDS
    rendered: int = 0
    build_log: Log | None = None
    _places: TenantPlaces = field(default_factory=lambda: TenantPlaces(1, _LATE, _MOMENT_S, one_each=True))
    _late: Impatience = field(default_factory=Impatience)
    _traces: TenantPlaces = field(default_factory=lambda: TenantPlaces(1, _LATE, _MOMENT_S, one_each=True))
    _heavy: dict[tuple[str, ...], None] = field(default_factory=dict)
    _guard: threading.Lock = field(default_factory=threading.Lock)
    _idle: RenderProcess | None = None
    _kept: _Kept = field(default_factory=_Kept)

    def render(
        self,
        overlay: str,
        tree: Tree,
        limits: GitLimits,
        release: Release | None = None,
        *,
        over: Over | None = None,
        plain: PlainObjects | None = None,
        again: bool = False,
        decryption: Decryption = NO_DECRYPTION,
    ) -> Rendering:
        """Return what the folder *overlay* of *tree* renders to: as an overlay, or as a chart with a *release*. Blocks.

        What is to be built *over* that is built over it, or over *plain* objects. Where it can't be rendered, that is among its problems. *again*
        renders also what is known, for other values of what is drawn. Files of the revision itself are decrypted as *decryption* says.

        Raises:
            SourceError: the tree can't be read, it isn't needed any more, or others of its tenant took too long just now.
        """
        wanted = _Wanted(overlay, release, over, plain, decryption)
        known = None if again else self._known(wanted, tree)
        if known is not None:
            return known
        for _ in range(_MOST_FETCHES):
            recorder = _Recorder(tree, limits, decryption)
            rendering = self._rendered(wanted, recorder, again=again)
            if rendering is not None:
                return rendering
            tree.bring(recorder.missing)  # never in our turn: a server may be slow, and others wait for theirs
        said = f"its files aren't here after {_MOST_FETCHES} fetches: bases of bases are nested too deeply"
        return wanted.problem(said, _SMALLER, {})

    def _rendered(self, wanted: _Wanted, recorder: _Recorder, *, again: bool) -> Rendering | None:
        """Return what it renders to, light at first and heavy where that isn't enough; None where files are missing."""
        who = TENANT.get(), *wanted.key
        for places, is_heavy in ((self._places, False), (HEAVY, True)):
            if who in self._heavy and not is_heavy:
                continue
            with places.one():
                with contextlib.suppress(NotHereError):
                    known = None if again else self._kept.find(wanted.key, recorder.tree)
                    if known is not None:  # rendered by somebody else while we waited
                        return known
                self._check_patience()
                rendering = self._render(wanted, recorder, is_heavy=is_heavy)
                if recorder.missing:
                    return None
                if rendering is not None:
                    self.rendered += 1
                    if not again:
                        self._kept.keep(wanted.key, rendering)
                    return rendering
        return None

    def _known(self, wanted: _Wanted, tree: Tree) -> Rendering | None:
        """Return what is known of it by now; links that lead to what was consulted for that are brought."""
        for _ in range(_MOST_FETCHES):
            try:
                return self._kept.find(wanted.key, tree)
            except NotHereError as missing:
                tree.bring([missing.path])
        return None

    def _check_patience(self) -> None:
        """Return if the tenant at hand needn't wait.

        Raises:
            SourceError: they must.
        """
        with self._guard:
            pause_s = self._late.pause_s(TENANT.get(), time.monotonic())
        if pause_s:
            message = f"not rendered for {pause_s:.0f} s more: renderings of this namespace took longer than {self.seconds:.0f} s"
            raise SourceError(SourceFault.UNREACHABLE, message, "it will be retried; repair those that took too long")

    def trace(
        self,
        overlay: str,
        tree: Tree,
        limits: GitLimits,
        *,
        over: Over | None = None,
        objects: Sequence[RenderedObject] | None = None,
        files: Mapping[str, bytes] | None = None,
    ) -> Traces:
        """Render the folder *overlay* of *tree* once more and return where each field comes from; nothing where that fails. Blocks.

        What is built *over* it is built over *objects* instead where there are some; *files* are what these come from. It takes some times as long, so it has a process of its own, and nobody else waits for it but for memory.

        Raises:
            SourceError: the tree can't be read, or it isn't needed any more.
        """
        order = {"kustomize": {**_order(overlay, over, objects), "origins": True}}
        text = {} if over is None else {FILE: over.text(None if objects is None else len(objects)).encode()}
        is_heavy = False
        for _ in range(_MOST_FETCHES):
            recorder = _Recorder(tree, limits)
            try:
                with (HEAVY if is_heavy else self._traces).one():
                    done = self._alone(order, recorder, is_heavy=is_heavy)
            except ProgramLargeError:
                ending().check()
                if is_heavy:
                    break
                is_heavy = True
                continue
            except (GoBuildError, ProgramEndedError):
                ending().check()
                break
            if not recorder.missing:
                read = {**text, **recorder.said, **(files or {})}
                return Traces.of(_overlay(overlay, done, read, recorder.consulted), done, read)
            tree.bring(recorder.missing)
        return Traces(Rendering((), (), {}))

    def _alone(self, order: Mapping[str, Any], recorder: _Recorder, *, is_heavy: bool) -> Mapping[str, Any]:
        """Return what comes of an order in a process for it alone.

        Raises:
            GoBuildError, ProgramEndedError: nothing does.
            SourceError: the tree can't be read, or it isn't needed any more.
        """
        memory = HEAVY_RENDERING_BYTES if is_heavy else LIGHT_RENDERING_BYTES
        process = RenderProcess(RENDER.at_hand(self.build_log, _MISSING), memory, all_bytes(recorder.limits))
        with contextlib.closing(process), ending().around(process.kill):
            return process.carry_out(order, recorder.answer, self.seconds)

    def close(self) -> None:
        """End what waits for the next overlay; that starts another."""
        with self._guard:
            idle, self._idle = self._idle, None
        if idle is not None:
            idle.close()

    def _render(self, wanted: _Wanted, recorder: _Recorder, *, is_heavy: bool) -> Rendering | None:
        """Return what it renders to; None where a light one needs more memory."""
        try:
            place = RENDER.at_hand(self.build_log, _MISSING)
        except GoBuildError as error:
            said = f"{wanted.what}, which can't be rendered: {error.message}"
            return wanted.problem(said, HOW_TO_GET, {})
        waited = ending()
        waited.check()
        began_s = time.monotonic()

        def done(order: Mapping[str, Any]) -> Mapping[str, Any]:
            return self._alone(order, recorder, is_heavy=True) if is_heavy else self._light(place, order, recorder)

        try:
            rendering = wanted.rendering(done, recorder)
        except HelmSpecError as error:
            return wanted.problem(f"spec.source.helm.{error}", "", {})
        except ProgramEndedError as error:
            waited.check()
            if isinstance(error, ProgramLargeError) and not is_heavy:
                self._note_heavy((TENANT.get(), *wanted.key))
                return None
            if isinstance(error, ProgramLateError):
                with self._guard:
                    self._late.was_late(TENANT.get(), time.monotonic() - began_s, time.monotonic())
            return wanted.problem(f"it can't be rendered: {error}", _SMALLER, recorder.consulted)
        with self._guard:
            self._late.was_in_time(TENANT.get())
        if recorder.passes:
            return replace(rendering, consulted={})
        return replace(rendering, decrypted=tuple(recorder.decrypted)) if recorder.decrypted else rendering

    def _note_heavy(self, who: tuple[str, ...]) -> None:
        """Note what needs more memory than light ones have, so that it isn't tried next time; of many the first are forgotten."""
        with self._guard:
            self._heavy[who] = None
            while len(self._heavy) > _MOST_HEAVY:
                del self._heavy[next(iter(self._heavy))]

    def _light(self, place: Path, order: Mapping[str, Any], recorder: _Recorder) -> Mapping[str, Any]:
        """Return what comes of an order in a process that has nothing else to do, one that is started where there is none; it waits for the next then.

        Raises:
            ProgramEndedError: nothing does, or the process doesn't start, or is of another version.
        """
        with self._guard:
            found, self._idle = self._idle, None
        if found is not None and not found.wakes():
            found.close()
            found = None
        process = found or RenderProcess(place, all_bytes=all_bytes(recorder.limits))
        try:
            with ending().around(process.kill):
                done = process.carry_out(order, recorder.answer, self.seconds)
        except ProgramLargeError:
            process.close()
            if found is None:
                raise
            return self._light(place, order, recorder)  # it may have had what others left in it
        except BaseException:
            process.close()
            raise
        process.rests()
        with self._guard:
            before, self._idle = self._idle, process
        if before is not None:
            before.close()
        return done


_MISSING: Final = "the program that renders isn't here"
_SMALLER: Final = "split it into smaller ones, or follow large folders of manifests without a kustomization"


class _Recorder(Struct):
    """Answers what is asked about *tree*, and remembers it; no more than *limits* allow.

    *missing* are files that have to be fetched before it can be answered what they hold, *decrypted* those that were. It *passes* if one couldn't be decrypted, and may be the next time.
    """

    tree: Tree
    limits: GitLimits
    decryption: Decryption = NO_DECRYPTION
    consulted: dict[str, TreeEntry] = field(default_factory=dict)
    decrypted: list[str] = field(default_factory=list)
    passes: bool = False
    files: dict[str, bytes] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    _bytes: int = 0

    @property
    def said(self) -> Mapping[str, bytes]:
        """What was read, as it is committed: some files are restated, for what was fetched."""
        if not isinstance(self.tree, MountedTree):
            return self.files
        return {path: self.tree.originals.get(path, data) for path, data in self.files.items()}

    def answer(self, question: str, path: str) -> Mapping[str, Any]:
        """Return what is at *path*, and for ``read`` what it holds, for ``list`` which names are in it."""
        try:
            return self._names(path) if question == "list" else self._entry(question, path)
        except NotHereError as missing:
            self.missing.append(missing.path)
            return {"kind": "refused", "why": "isn't here yet"}

    def _entry(self, question: str, path: str) -> Mapping[str, Any]:
        if path not in self.consulted:
            if len(self.consulted) >= _MOST_LOOKS:
                return {"kind": "refused", "why": f"is one more than the {_MOST_LOOKS:,} paths that are looked at"}
            self.consulted[path] = self.tree.look(path)
        entry = self.consulted[path]
        if entry.kind is not EntryKind.FILE:
            return {"kind": entry.kind.value}
        if question == "look":
            return self._looked_at(path)
        try:
            data = self._contents(path)
        except UnreadableFileError as error:
            self.passes |= error.passes
            return {"kind": "refused", "why": str(error)}
        if data is None:
            self.missing.append(path)
            return {"kind": "refused", "why": "isn't here yet"}
        return {"kind": entry.kind.value, "data": data}

    def _looked_at(self, path: str) -> Mapping[str, Any]:
        """Return that there is a file, and what it holds where it is here and small: mostly that is what is asked next."""
        with contextlib.suppress(UnreadableFileError):
            data = self._contents(path)
            if data is not None and len(data) <= _SMALL_BYTES:
                return {"kind": EntryKind.FILE.value, "data": data}
        return {"kind": EntryKind.FILE.value}

    def _contents(self, path: str) -> bytes | None:
        """Return what a file says, None where it has to be brought first.

        Raises:
            UnreadableFileError: nothing is read of it, or there was too much before it.
        """
        if path in self.files:
            return self.files[path]
        found = self.tree.read(path)
        if found is None:
            return None
        data = contents.of(found, path, self.limits, self._decryption_of(path))
        if contents.is_sealed(found, path):
            self.decrypted.append(path)
        if self._bytes + len(data) > (most := self.limits.revision_bytes):
            raise UnreadableFileError(f"is beyond {most // MEBIBYTE} MiB of files", raising("revision_bytes"))
        self.files[path] = data
        self._bytes += len(data)
        return data

    def _decryption_of(self, path: str) -> Decryption:
        """Return how the file at *path* is decrypted: what was fetched from elsewhere isn't, with the keys for this source."""
        return self.decryption if not self.decryption.asked or is_own(self.tree, path) else _OTHERS

    def _names(self, path: str) -> Mapping[str, Any]:
        found = self._entry("look", path)
        if found["kind"] != EntryKind.FOLDER.value:
            return found
        names = self.tree.names(path)
        self.consulted[f"{path}/"] = listing(names)
        if bad := next((name for name in names if not name.isprintable()), None):
            return {"kind": "refused", "why": f"has a file whose name isn't printable text, {one_line(ascii(bad), 80)}"}
        return {"kind": found["kind"], "entries": {name: kind.value for name, kind in names.items()}}


_OTHERS: Final = Decryption(
    fault="it was fetched from elsewhere, which the keys of this source aren't for", hint="decrypt it there", asked=True
)


def is_own(tree: Tree, path: str) -> bool:
    """Tell whether what is at *path* of a *tree* is the revision's own, and nothing that was fetched for it."""
    if isinstance(tree, MountedTree):
        return not tree.root_of(path.strip("/")) and is_own(tree.tree, path)
    if isinstance(tree, TreeWithChart):
        return not tree.is_of_chart(path) and is_own(tree.tree, path)
    return True


class _Wanted(Struct, frozen=True):
    """What is to be rendered: the folder at *path*, as an overlay, or as a chart with a *release*; *over* that, or over *plain* objects, is built more."""

    path: str
    release: Release | None
    over: Over | None = None
    plain: PlainObjects | None = None
    decryption: Decryption = NO_DECRYPTION

    @property
    def what(self) -> str:
        if self.plain is not None:
            return f"the Sync has {FIELD}"
        return "a kustomization" if self.release is None else "a Helm chart"

    @property
    def key(self) -> _Key:
        said = (self.release, self.over, self.plain, self.decryption)
        return self.path, " ".join(each.key if each else "-" for each in said)

    def problem(self, said: str, hint: str, consulted: Consulted) -> Rendering:
        """Return that it can't be rendered."""
        own = kustomization_among(self.path, consulted) if self.release is None else chart_file(self.path)
        return Rendering((), (Problem(FIELD if self.plain else own, 0, said, hint),), consulted)

    def rendering(self, done: _Done, recorder: _Recorder) -> Rendering:
        """Return what the program makes of it: *done* carries an order out.

        Raises:
            HelmSpecError: a chart can't be rendered with this release.
        """
        if self.plain is not None:
            below = Rendering(self.plain.objects, (), self.plain.consulted)
        elif self.release is None:
            said = done({"kustomize": _order(self.path, self.over, None)})
            text = {} if self.over is None else {FILE: self.over.text(None).encode()}
            return _overlay(self.path, said, {**text, **recorder.said}, recorder.consulted)
        elif self.release.held.problems:
            return Rendering((), self.release.held.problems, {})
        else:
            said = done({"helm": self.release.order(self.path, MOST_OUTPUT_BYTES)})
            below = _chart(self.path, self.release, said, recorder)
        if self.over is None or recorder.missing or not below.objects or errors_among(below.problems):
            return below
        return _over(self.over, below, done, recorder)


def _order(overlay: str, over: Over | None, objects: Sequence[RenderedObject] | None) -> Mapping[str, Any]:
    """Return what the program is told of an overlay, of what is built over it, or over *objects* instead."""
    if over is None:
        return {"path": overlay, "mostBytes": MOST_OUTPUT_BYTES}
    texts = None if objects is None else [(each.text, each.file) for each in objects]
    return over.order(MOST_OUTPUT_BYTES, texts)


def _over(over: Over, below: Rendering, done: _Done, recorder: _Recorder) -> Rendering:
    """Return what is built over the objects of a rendering; where some are drawn by chance, over those that were drawn again, too."""

    def built(objects: Sequence[RenderedObject]) -> Rendering:
        said = done({"kustomize": _order("", over, objects)})
        text = {FILE: over.text(len(objects)).encode()}
        return _overlay(over.folder, said, {**text, **recorder.said}, recorder.consulted)

    first = built(below.objects)
    objects: tuple[RenderedObject, ...] | None = first.objects
    if any(each.again for each in below.objects):
        objects = paired(
            first.objects, built([replace(each, text=each.again or each.text) for each in below.objects]).objects
        )
    told = (*below.problems, *first.problems)
    consulted = {**below.consulted, **recorder.consulted} if below.consulted else {}
    if objects is None:
        told = (
            *told,
            Problem(FIELD, 0, "its objects are others at each rendering", "make no object depend on random values"),
        )
    return Rendering(objects or (), told, consulted, lookups=below.lookups)


def _overlay(overlay: str, done: Mapping[str, Any], files: Mapping[str, bytes], consulted: Consulted) -> Rendering:
    """Return what the program says of an overlay, or of what is built over something, whose text is among the *files* then."""
    text = files.get(FILE, b"").decode()
    top = FIELD if text else overlay
    if said := str(done.get("error") or "")[:20_000]:
        failed = BuildStep.of(step) if isinstance(step := done.get("failed"), dict) else None
        problem = failure(readable(said), top, files, failed)
        if problem.path == FILE and not problem.line:  # it has other paths for folders of the source
            problem = replace(problem, line=failure(said, top, files, failed).line)
        return Rendering((), (placed(problem, text),), consulted)
    objects = _objects(kustomization_among(overlay, files), done)
    warnings = (
        *notices((one_line(str(each)) for each in done.get("notices") or ()), top, files),
        *unmatched(map(BuildStep.of, done.get("unmatched") or ()), files),
        *unused_configurations((kind_of(each.text) for each in objects), files),
    )
    return Rendering(objects, tuple(placed(each, text) for each in warnings), consulted)


def _chart(chart: str, release: Release, done: Mapping[str, Any], recorder: _Recorder) -> Rendering:
    said = charts.Said(
        _clean(str(done.get("error") or "")),
        str(done.get("at") or ""),
        done.get("templates") or {},
        (*(done.get("values") or ()), *release.secret_values()),
        release.values_files(chart),
    )
    asked = tuple(map(str, done.get("lookups") or ()))
    if wrong := tuple(lookups.problems_of(chart_file(chart), release.answers)):
        return Rendering((), wrong, recorder.consulted, lookups=asked)
    if said.text:
        return Rendering((), (charts.failure(said, chart, recorder.files),), recorder.consulted, lookups=asked)
    noticed = (replace(said, text=_clean(str(notice))) for notice in done.get("notices") or ())
    warnings = [charts.warning(each, chart, recorder.files) for each in noticed]
    own = chart_file(chart)
    objects = _objects(own, done)
    if done.get("drawn"):
        both = paired(objects, _objects(own, done, "again"))
        if both is None:
            names = ", ".join(sorted(map(str, done["drawn"])))
            text = f"the set of its objects differs at each rendering: it calls {names}"
            return Rendering(
                (),
                (Problem(own, 0, text, "make no object depend on random values"),),
                recorder.consulted,
                lookups=asked,
            )
        objects = both
    told = lookups.warnings_of(own, asked, release.answers)
    return Rendering(objects, (*warnings, *told), recorder.consulted, lookups=asked)


def _objects(own: str, done: Mapping[str, Any], which: str = "objects") -> tuple[RenderedObject, ...]:
    return tuple(RenderedObject(str(each["yaml"]), str(each["file"]) or own) for each in done.get(which) or ())


def _clean(text: str) -> str:
    """Return a text on one line; of a very long one its beginning and its end."""
    most = 10_000
    return one_line(text if len(text) <= 2 * most else f"{text[:most]} {text[-most:]}", 3 * most)


def _weight(rendering: Rendering) -> int:
    return sum(len(each.text) for each in rendering.objects) + sum(map(len, _paths(rendering.consulted)))


def _paths(consulted: Consulted) -> Iterator[str]:
    yield from consulted


RENDERER: Final = Renderer()
"""That of this process."""

atexit.register(RENDERER.close)
