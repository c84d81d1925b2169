"""Rendering, once for as long as what it consulted stays the same.

One process renders, one overlay after the other; it is started when the first overlay is met, and anew when it was killed.
What an overlay rendered to is kept with all that was looked at for it: a revision that has the same at those paths renders
nothing, whoever follows it. So it is with an overlay that kills the process: nobody tries it again until something it looked
at has changed.
"""

from __future__ import annotations

import atexit
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kubectl_reconcile.core.manifests.tree import EntryKind, Tree, TreeEntry
from kubectl_reconcile.core.objects import Problem
from kubectl_reconcile.core.rendering.entries import BuildStep, kustomization_among
from kubectl_reconcile.core.rendering.kustomization import failure, notices, unmatched, unused_configurations
from kubectl_reconcile.core.rendering.rendered import Consulted, RenderedObject, Rendering, kind_of, still_holds
from kubectl_reconcile.go_programs import GoBuildError, Log
from kubectl_reconcile.source.errors import SourceError, one_line
from kubectl_reconcile.source.limits import MEBIBYTE, GitLimits, raising
from kubectl_reconcile.source.render import program
from kubectl_reconcile.source.render.process import SECONDS, RenderingEndedError, RenderProcess
from kubectl_reconcile.source.running.ending import ending

MOST_OUTPUT_BYTES: Final = 32 * MEBIBYTE
"""How much the objects of an overlay may take together, as YAML."""

_MOST_KEPT_BYTES: Final = 128 * MEBIBYTE
_ALTERNATIVES: Final = 4
"""How many renderings of overlays at one path are kept: repositories, branches and tags may have their own."""
_MOST_LOOKS: Final = 20_000
_MOST_FETCHES: Final = 100
"""How often files are fetched for one rendering: once for each level of bases."""
_LOOK_S: Final = 0.1


@dataclass(slots=True)
class _Kept:
    """What was rendered, by the path of the overlay; beyond a bound the ones go that were used longest ago."""

    _guard: threading.Lock = field(default_factory=threading.Lock)
    _by_overlay: OrderedDict[str, list[Rendering]] = field(default_factory=OrderedDict)
    _bytes: int = 0

    def find(self, overlay: str, tree: Tree) -> Rendering | None:
        with self._guard:
            candidates = list(self._by_overlay.get(overlay, ()))
        for each in reversed(candidates):
            if still_holds(each.consulted, tree):
                with self._guard:
                    if overlay in self._by_overlay:
                        self._by_overlay.move_to_end(overlay)
                return each
        return None

    def keep(self, overlay: str, rendering: Rendering) -> None:
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


@dataclass(slots=True, eq=False)
class Renderer:
    """Renders overlays, from any thread; one at a time, each for *seconds* at most. *rendered* counts them.

    Where the program isn't there it is built if *build_log* is set, which hears of it: that takes minutes.
    """

    seconds: float = SECONDS
    rendered: int = 0
    build_log: Log | None = None
    _turn: threading.Lock = field(default_factory=threading.Lock)
    _process: RenderProcess | None = None
    _kept: _Kept = field(default_factory=_Kept)

    def render(self, overlay: str, tree: Tree, limits: GitLimits) -> Rendering:
        """Return what the folder *overlay* of *tree* renders to; where it can't be rendered, that is among its problems. Blocks.

        Raises:
            SourceError: the tree can't be read, or nobody waits for it any more.
        """
        if (known := self._kept.find(overlay, tree)) is not None:
            return known
        for _ in range(_MOST_FETCHES):
            recorder = _Recorder(tree, limits)
            with self._my_turn():
                if (known := self._kept.find(overlay, tree)) is not None:  # rendered by somebody else while we waited
                    return known
                rendering = self._render(overlay, recorder)
                if not recorder.missing:
                    self.rendered += 1
                    self._kept.keep(overlay, rendering)
                    return rendering
            tree.bring(recorder.missing)  # never in our turn: a server may be slow, and others wait for theirs
        said = f"its files aren't here after {_MOST_FETCHES} fetches: bases of bases are nested too deeply"
        return Rendering((), (Problem(kustomization_among(overlay, ()), 0, said, _SMALLER),), {})

    def close(self) -> None:
        """End the process, if there is one; the next overlay starts another."""
        with self._turn:
            if self._process is not None:
                self._process.close()
                self._process = None

    @contextmanager
    def _my_turn(self) -> Iterator[None]:
        waited = ending()
        while not self._turn.acquire(timeout=_LOOK_S):
            waited.check()
        try:
            yield
        finally:
            self._turn.release()

    def _program(self) -> Path:
        """Return where the program is.

        Raises:
            GoBuildError: it isn't there, and can't be built or isn't to be.
        """
        if (found := program.find()) is not None:
            return found
        if self.build_log is None:
            raise GoBuildError("the program that renders isn't here")
        return program.build(self.build_log)

    def _render(self, overlay: str, recorder: _Recorder) -> Rendering:
        try:
            place = self._program()
        except GoBuildError as error:
            said = f"a kustomization, which can't be rendered: {error.message}"
            return Rendering((), (Problem(kustomization_among(overlay, ()), 0, said, program.HOW_TO_GET),), {})
        waited = ending()
        waited.check()
        order = {"kustomize": {"path": overlay, "mostBytes": MOST_OUTPUT_BYTES}}
        try:
            if self._process is not None and not self._process.is_alive:
                self._process.close()
                self._process = None
            self._process = self._process or RenderProcess(place)
            with waited.around(self._process.kill):
                done = self._process.render(order, recorder.answer, self.seconds)
        except RenderingEndedError as error:
            self._process = None
            waited.check()
            problem = Problem(
                kustomization_among(overlay, recorder.files), 0, f"it can't be rendered: {error}", _SMALLER
            )
            return Rendering((), (problem,), recorder.consulted)
        except SourceError:
            self._process = None
            raise
        return _rendering(overlay, done, recorder)


_SMALLER: Final = "split it into smaller overlays, or follow large folders of manifests without a kustomization"


@dataclass(slots=True)
class _Recorder:
    """Answers what is asked about *tree*, and remembers it; no more than *limits* allow.

    *missing* are files that have to be fetched before it can be answered what they hold.
    """

    tree: Tree
    limits: GitLimits
    consulted: dict[str, TreeEntry] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    _bytes: int = 0

    def answer(self, question: str, path: str) -> Mapping[str, Any]:
        """Return what is at *path*, and for ``read`` what it holds."""
        if path not in self.consulted:
            if len(self.consulted) >= _MOST_LOOKS:
                return {"kind": "refused", "why": f"is one more than the {_MOST_LOOKS:,} paths that are looked at"}
            self.consulted[path] = self.tree.look(path)
        entry = self.consulted[path]
        if question != "read" or entry.kind is not EntryKind.FILE:
            return {"kind": entry.kind.value}
        if path not in self.files:
            data = self.tree.read(path)
            if data is None:
                self.missing.append(path)
                return {"kind": "refused", "why": "isn't here yet"}
            if len(data) > (most := self.limits.file_bytes):
                return {"kind": "refused", "why": f"has more than {most // MEBIBYTE} MiB; {raising('file_bytes')}"}
            self._bytes += len(data)
            if self._bytes > (most := self.limits.revision_bytes):
                return {
                    "kind": "refused",
                    "why": f"is beyond {most // MEBIBYTE} MiB of files; {raising('revision_bytes')}",
                }
            self.files[path] = data
        return {"kind": entry.kind.value, "data": self.files[path]}


def _rendering(overlay: str, done: Mapping[str, Any], recorder: _Recorder) -> Rendering:
    files = recorder.files
    if said := str(done.get("error") or ""):
        failed = done.get("failed")
        problem = failure(said[:20_000], overlay, files, BuildStep.of(failed) if isinstance(failed, dict) else None)
        return Rendering((), (problem,), recorder.consulted)
    own = kustomization_among(overlay, files)
    objects = tuple(RenderedObject(str(each["yaml"]), str(each["file"]) or own) for each in done.get("objects") or ())
    warnings = (
        *notices((one_line(str(each)) for each in done.get("notices") or ()), overlay, files),
        *unmatched(map(BuildStep.of, done.get("unmatched") or ()), files),
        *unused_configurations((kind_of(each.text) for each in objects), files),
    )
    return Rendering(objects, warnings, recorder.consulted)


def _weight(rendering: Rendering) -> int:
    return sum(len(each.text) for each in rendering.objects) + sum(map(len, _paths(rendering.consulted)))


def _paths(consulted: Consulted) -> Iterator[str]:
    yield from consulted


RENDERER: Final = Renderer()
"""That of this process."""

atexit.register(RENDERER.close)
