"""What a folder that is rendered has fetched: found by looking around in a revision, fetched as the lock file says, and put into it.

A chart's dependencies stand in its ``charts/`` then, as if they were vendored. Below the folder of a kustomization, ``fetched/`` has what that refers to, and its
entries name that instead. So the program that renders fetches nothing, and knows of none of this.

What is fetched may refer to more, which the same lock file pins. It sees nothing of the revision that it is fetched for: an entry that leads out of it is refused.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from kubectl_reconcile.core.manifests.editing import EditError
from kubectl_reconcile.core.manifests.tree import EntryKind, Tree, TreeEntry
from kubectl_reconcile.core.objects import Problem, errors_among
from kubectl_reconcile.core.rendering.charts import CHART_FILE, Release
from kubectl_reconcile.core.rendering.entries import KUSTOMIZATIONS, first_tree
from kubectl_reconcile.core.rendering.pinned import dependencies, remotes
from kubectl_reconcile.core.rendering.pinned.dependencies import Vendored, needs_of
from kubectl_reconcile.core.rendering.pinned.inflations import (
    Inflation,
    inflated,
    inflations_of,
    namespace_of,
    with_resources,
)
from kubectl_reconcile.core.rendering.pinned.lock import MOST_PINS, Lock, lock_file, lock_of
from kubectl_reconcile.core.rendering.pinned.needed import Needed, missing, unused
from kubectl_reconcile.core.rendering.pinned.pins import BasePin, FilePin, Pin
from kubectl_reconcile.core.rendering.pinned.remotes import Remote, entries_of, restating
from kubectl_reconcile.core.rendering.rendered import Consulted, Rendering, listing
from kubectl_reconcile.core.resources.helm import HelmSpec
from kubectl_reconcile.source import contents
from kubectl_reconcile.source.base import Fetching
from kubectl_reconcile.source.charts.archive import Archive
from kubectl_reconcile.source.contents import UnreadableFileError
from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.git.cloned.folders import NotHereError
from kubectl_reconcile.source.limits import GitLimits
from kubectl_reconcile.source.oci.files import ArtifactTree
from kubectl_reconcile.source.render.mounted import MountedTree, Part

_DEEPEST: Final = 10
"""How often something that is fetched, or a chart of the same repository, may refer to another, in a row."""
_MOST_FOLDERS: Final = 2000
"""How many kustomizations are looked at."""
_MOST_FETCHES: Final = 100

_VALUES: Final = "values.yaml"

Chosen = Callable[[Pin], Pin | None]
"""Returns the pin of what is wanted, which is bare; None where it has none."""


class Survey(Struct, frozen=True):
    """What the *folder* has fetched that is rendered: its files with all of that are the *tree*. *needed* is that, pinned or not.

    *lock* is what its lock file says, and *problems* what is wrong with that, or with how something is asked for. All that was *consulted* of the revision decides that.
    """

    folder: str
    tree: MountedTree
    needed: tuple[Needed, ...]
    lock: Lock
    problems: tuple[Problem, ...]
    consulted: Consulted
    is_mounted: bool
    charts: tuple[Inflating, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether the revision is rendered as it is."""
        return not (self.needed or self.problems or self.is_mounted or self.charts)

    def pins(self) -> tuple[Problem, ...]:
        """Return what is wrong with it, and which pins are missing, or nothing needs."""
        if errors_among(self.problems):
            return self.problems
        lacking = tuple(missing(self.needed, self.lock, self.folder))
        return (*self.problems, *lacking, *(() if lacking else unused(self.needed, self.lock, self.folder)))

    def inflated(self, render: Callable[[str, Release], Rendering]) -> Rendering:
        """Have the objects of charts that overlays inflate stand among their resources; return problems, and what was consulted. Blocks.

        Raises:
            SourceError: the tree can't be read.
        """
        told: list[Problem] = []
        consulted: dict[str, TreeEntry] = {}
        places: dict[str, list[str]] = {}
        for number, each in enumerate(self.charts):
            chart, path = each.chart, each.path
            rendering = render(each.at, Release(spec=each.spec()))
            told += rendering.problems
            consulted.update(rendering.consulted)
            if any(one.again for one in rendering.objects):
                said = "its objects are others at each rendering: set the random values"
                told.append(Problem(path, chart.line, f"helmCharts[{chart.at}]: {said}"))
            at = posixpath.join(chart.folder, "fetched", f"rendered-{number}")
            data = inflated((one.text for one in rendering.objects), skips_hooks=chart.skips_hooks)
            self.tree.mount(at, Part(ArtifactTree(Archive.of({chart.name: data}))))
            if data:
                places.setdefault(path, []).append(f"./fetched/rendered-{number}/{chart.name}")
        for path in dict.fromkeys(each.path for each in self.charts):
            told += self._restated(path, places.get(path, []))
        return Rendering((), tuple(told), consulted)

    def _restated(self, path: str, places: list[str]) -> Iterator[Problem]:
        """Have a kustomization name *places* in place of its charts; yield what keeps it from that."""
        data = self.tree.read(path) or b""
        try:
            self.tree.restate(path, with_resources(path, data, places), self.tree.originals.get(path, data))
        except EditError as error:
            yield Problem(path, 0, f"helmCharts can't be told apart from the rest: {error}")


class Inflating(Struct, frozen=True):
    """A *chart* that the kustomization at *path* inflates, which stands *at* that path."""

    chart: Inflation
    path: str
    at: str
    values: str

    def spec(self) -> HelmSpec:
        """Return what it is rendered with; values that are inline stand in a file *values*."""
        files = []
        for each in self.chart.values.files:
            own = posixpath.join(self.at, "values.yaml") if each is None else posixpath.join(self.chart.folder, each)
            files.append(posixpath.relpath(own if each != "" else self.values, self.at))
        return replace(self.chart.spec, values_files=tuple(files))


def survey_of(
    tree: Tree,
    folder: str,
    limits: GitLimits,
    fetching: Fetching | None,
    *,
    is_chart: bool,
    chosen: Callable[[Lock], Chosen] = lambda lock: lock.find,
) -> Survey:
    """Return what the chart or the overlay in *folder* of *tree* has fetched: each thing by the pin that is *chosen* for it. Blocks.

    Raises:
        SourceError: the tree can't be read, something can't be fetched, or isn't what its pin says.
    """
    looking = _Looking(MountedTree(tree), limits, fetching)
    own = lock_file(folder)
    text = looking.read(own)
    lock, wrong = lock_of(text, own) if text is not None else (Lock(), ())
    looking.problems += wrong
    if not wrong:
        looking.chosen = chosen(lock)
    if is_chart:
        _Charts(looking).look_at(folder, folder)
    else:
        _Overlays(looking).look_at(folder)
    consulted = looking.tree.own(looking.consulted)
    problems, needed = tuple(looking.problems), tuple(looking.needed)
    charts = tuple(looking.charts)
    return Survey(folder, looking.tree, needed, lock, problems, consulted, is_mounted=looking.is_mounted, charts=charts)


class _Looking(Struct):
    """Looks around in *tree*, which grows by what is fetched, and remembers what was *consulted*."""

    tree: MountedTree
    limits: GitLimits
    fetching: Fetching | None
    chosen: Chosen = lambda _: None
    consulted: dict[str, TreeEntry] = field(default_factory=dict)
    needed: list[Needed] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    charts: list[Inflating] = field(default_factory=list)
    is_mounted: bool = False
    _trees: dict[Pin, Tree] = field(default_factory=dict)

    def look(self, path: str) -> EntryKind:
        """Return what kind of thing is at *path*, with the links that lead there."""
        for _ in range(_MOST_FETCHES):
            try:
                self.consulted[path] = found = self.tree.look(path)
            except NotHereError as absent:
                self.tree.bring([absent.path])
            else:
                return found.kind
        return EntryKind.ABSENT

    def read(self, path: str) -> bytes | None:
        """Return what the file at *path* says, None where there is none. What is too large is a problem, and says nothing."""
        if self.look(path) is not EntryKind.FILE:
            return None
        if (data := self.tree.read(path)) is None:
            self.tree.bring([path])
            data = self.tree.read(path) or b""
        try:
            return contents.of(data, path, self.limits)
        except UnreadableFileError as error:
            self.problems.append(Problem(path, 0, f"the file {error.message}", error.hint))
            return b""

    def names(self, path: str) -> Mapping[str, EntryKind]:
        """Return what is in the folder at *path*, nothing where none is there."""
        if self.look(path) is not EntryKind.FOLDER:
            return {}
        names = self.tree.names(path)
        self.consulted[f"{path}/"] = listing(names)
        return names

    def mount(self, at: str, part: Part) -> None:
        """Have *part* stand *at* that path."""
        self.tree.mount(at, part)
        self.is_mounted = True

    def obtained(self, needed: Needed) -> tuple[Pin, Tree] | None:
        """Return what is needed by its pin, fetched where it isn't here; None where it has no pin.

        Raises:
            SourceError: it can't be fetched, or isn't what its pin says.
        """
        self.needed.append(needed)
        pin = self.chosen(needed.wanted)
        if pin is None:
            return None
        if pin not in self._trees:
            if self.fetching is None:
                raise SourceError(SourceFault.REFUSED, f"{pin} can't be fetched here")
            if len(self._trees) >= MOST_PINS:
                raise SourceError(SourceFault.REFUSED, f"{pin} is beyond {MOST_PINS} things that are fetched")
            self._trees[pin] = _tree(self.fetching, pin)
        return pin, self._trees[pin]


def _tree(fetching: Fetching, pin: Pin) -> Tree:
    if isinstance(pin, BasePin):
        return fetching.base(pin)
    if isinstance(pin, FilePin):
        return ArtifactTree(Archive.of({pin.name: fetching.file(pin)}))
    return ArtifactTree(fetching.chart(pin).files())


class _Charts(Struct):
    """Finds what charts depend on."""

    looking: _Looking
    above: tuple[str, ...] = ()

    def look_at(self, folder: str, at: str) -> None:
        """Look at the chart in *folder*, which is to stand *at* that path."""
        files = {}
        for listed in (each for pair in dependencies.LISTS for each in pair):
            path = posixpath.join(folder, listed)
            if (data := self.looking.read(path)) is not None:
                files[path] = data
        if not dependencies.depends(files.values()):
            return
        found = needs_of(folder, files, self._vendored(folder))
        self.looking.problems += found.problems
        charts = posixpath.join(at, "charts")
        for each in found.fetched:
            if (obtained := self.looking.obtained(each)) is not None:
                self.looking.mount(posixpath.join(charts, each.folder), Part(obtained[1]))
        for local in found.local:
            self._take(local, folder, posixpath.join(charts, f"{local.name}-local"))

    def _take(self, local: dependencies.Local, folder: str, at: str) -> None:
        """Take a chart from another folder of the repository, with all that it depends on."""
        above = (*self.above, folder)
        root = self.looking.tree.root_of(folder)
        wrong = ""
        if root and not local.folder.startswith(f"{root}/"):
            wrong = "leads out of the repository that it was fetched from"
        elif local.folder in above:
            wrong = "depends on itself"
        elif len(above) > _DEEPEST:
            wrong = f"is in more than {_DEEPEST} charts within one another"
        elif self.looking.look(posixpath.join(local.folder, CHART_FILE)) is not EntryKind.FILE:
            wrong = f"isn't there: {local.folder} has no {CHART_FILE}"
        if wrong:
            self.looking.problems.append(Problem(local.file, local.line, f"dependencies: {local.name} {wrong}"))
            return
        self.looking.mount(at, self.looking.tree.part_at(local.folder))
        _Charts(self.looking, above).look_at(local.folder, at)

    def _vendored(self, folder: str) -> Vendored:
        charts = posixpath.join(folder, "charts")
        names = self.looking.names(charts)
        folders = (posixpath.join(charts, name) for name, kind in names.items() if kind is EntryKind.FOLDER)
        files = tuple(name for name, kind in names.items() if kind is EntryKind.FILE)
        return Vendored(frozenset(map(self._name_of, folders)), files)

    def _name_of(self, chart: str) -> str:
        tree = first_tree(self.looking.read(posixpath.join(chart, CHART_FILE)) or b"")
        return str(tree.get("name")) if isinstance(tree, dict) else ""


class _Visit(Struct, frozen=True):
    """A *folder* that an overlay is made of, *depth* fetched things away from it; kustomizations above have the *namespace*."""

    folder: str
    depth: int = 0
    namespace: str = ""


class _Overlays(Struct):
    """Finds what overlays refer to, and has them name what was fetched instead."""

    looking: _Looking
    seen: dict[str, list[_Visit]] = field(default_factory=dict)
    inherits: set[str] = field(default_factory=set)
    visits: set[tuple[str, str]] = field(default_factory=set)

    def look_at(self, overlay: str) -> None:
        """Look at an overlay, and at all that it is made of, one level after the other."""
        level = [_Visit(overlay)]
        while level:
            level = [below for visit in level for below in self._below(visit)]

    def _below(self, visit: _Visit) -> list[_Visit]:
        """Return what the kustomization in a folder is made of. One that was looked at already may have other namespaces above it now."""
        folder = visit.folder
        if (folder, visit.namespace) in self.visits or self.looking.look(folder) is not EntryKind.FOLDER:
            return []
        self.visits.add((folder, visit.namespace))
        path, data = self._kustomization(folder)
        namespace = namespace_of(data, visit.namespace)
        if len(self.visits) > _MOST_FOLDERS:
            self._wrong(path, 0, f"is one more than the {_MOST_FOLDERS:,} kustomizations that are looked at")
            return []
        if folder in self.inherits:
            self._wrong(path, 0, "its charts would be in two namespaces: give helmCharts a namespace")
        if folder not in self.seen:
            self.seen[folder] = self._look_at(visit, path, data)
        return [replace(each, namespace=namespace) for each in self.seen[folder]]

    def _look_at(self, visit: _Visit, path: str, data: bytes) -> list[_Visit]:
        """Return the folders that the kustomization at *path* is made of, and note all that is fetched for it."""
        folder, depth = visit.folder, visit.depth
        found, places = list[_Visit](), dict[Remote, str]()
        for entry in entries_of(path, data, self.looking.problems):
            if isinstance(entry, remotes.Local):
                found += [_Visit(below, depth) for below in self._local(folder, path, entry)]
            elif (at := self._fetched(folder, path, entry, depth)) is not None:
                places[entry] = f"./{posixpath.relpath(at, folder or '.')}"
                found.append(_Visit(at, depth + 1))
        self._restate(path, data, places)
        for chart in inflations_of(path, data, visit.namespace, self.looking.problems):
            self._inflate(chart, path)
        return found

    def _inflate(self, chart: Inflation, path: str) -> None:
        """Note a chart that a kustomization inflates, where it is there, or has been fetched."""
        folder = chart.folder
        at = posixpath.join(folder, chart.home)
        if self.looking.look(posixpath.join(at, CHART_FILE)) is EntryKind.FILE:
            _Charts(self.looking).look_at(at, at)
        elif chart.wanted is None:
            self._wrong(path, chart.line, f"helmCharts[{chart.at}]: {at} has no {CHART_FILE}, and repo isn't given")
            return
        else:
            needed = Needed(chart.wanted, path, chart.line)
            if (obtained := self.looking.obtained(needed)) is None:
                return
            at = posixpath.join(folder, "fetched", needed.folder)
            self.looking.mount(at, Part(obtained[1]))
        if chart.inherits:
            self.inherits.add(folder)
        values = posixpath.join(folder, "fetched", f"values-{len(self.looking.charts)}")
        self.looking.mount(values, Part(ArtifactTree(Archive.of({_VALUES: chart.values.inline.encode()}))))
        self.looking.charts.append(Inflating(chart, path, at, posixpath.join(values, _VALUES)))

    def _kustomization(self, folder: str) -> tuple[str, bytes]:
        for name in KUSTOMIZATIONS:
            path = posixpath.join(folder, name)
            if (data := self.looking.read(path)) is not None:
                return path, data
        return posixpath.join(folder, KUSTOMIZATIONS[0]), b""

    def _local(self, folder: str, path: str, entry: remotes.Local) -> list[str]:
        """Return the folder that an entry names, if it names one."""
        below = posixpath.normpath(posixpath.join(folder, entry.name))
        root = self.looking.tree.root_of(folder)
        if not entry.name or "\n" in entry.name or below.startswith("/"):
            return []
        if root and below != root and not below.startswith(f"{root}/"):
            self._wrong(path, entry.line, f"{entry.name} leads out of the repository that it was fetched from")
            return []
        return [] if below == ".." or below.startswith("../") else ["" if below == "." else below]

    def _fetched(self, folder: str, path: str, entry: Remote, depth: int) -> str | None:
        """Return where what an entry refers to stands; None where it isn't fetched."""
        if depth >= _DEEPEST:
            self._wrong(path, entry.line, f"it is in more than {_DEEPEST} repositories that refer to one another")
            return None
        obtained = self.looking.obtained(Needed(entry.wanted, path, entry.line))
        if obtained is None:
            return None
        pin, tree = obtained
        place = (
            pin.place if isinstance(pin, BasePin) else f"files/{pin.known_by[7:19]}" if isinstance(pin, FilePin) else ""
        )
        at = posixpath.join(folder, "fetched", place)
        self.looking.mount(at, Part(tree))
        return posixpath.join(at, pin.name if isinstance(pin, FilePin) else entry.path).rstrip("/")

    def _restate(self, path: str, data: bytes, places: Mapping[Remote, str]) -> None:
        if not places:
            return
        try:
            self.looking.tree.restate(path, restating(path, data, places), data)
        except EditError as error:
            self._wrong(path, 0, f"what it refers to elsewhere can't be told apart: {error}")

    def _wrong(self, path: str, line: int, said: str) -> None:
        self.looking.problems.append(Problem(path, line, said))
