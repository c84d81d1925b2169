"""Hold what is rendered here against kubectl and helm: ``python -m tests.realworld.conformance FOLDER [NAME ...]``.

FOLDER holds checkouts of public repositories. Each kustomization in them must render to what ``kubectl kustomize`` prints, byte by
byte, and each chart to the objects that ``helm template`` of the same version prints, in the same order. Both get an environment in
which nothing can be fetched. Each chart that Helm packs is also pushed by Helm into a registry of this machine, and pulled from there by both. Prints a row per repository, and a line for each folder that only one side renders, or that they
render otherwise; the exit status is 1 where something differs.
"""

# ruff: noqa: T201 - a program that prints

from __future__ import annotations

import difflib
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import yaml

from kubectl_reconcile.core.manifests.tree import Tree
from kubectl_reconcile.core.objects import errors_among
from kubectl_reconcile.core.rendering.charts import CHART_FILE, Release
from kubectl_reconcile.core.rendering.entries import KUSTOMIZATIONS
from kubectl_reconcile.core.rendering.rendered import Rendering
from kubectl_reconcile.engine.sync.fetching import SyncFetching
from kubectl_reconcile.sandbox import build as sandbox
from kubectl_reconcile.source.charts.archive import TreeWithChart
from kubectl_reconcile.source.charts.source import NoFiles
from kubectl_reconcile.source.errors import SourceError
from kubectl_reconcile.source.limits import GitLimits
from kubectl_reconcile.source.policy import SourcePolicy
from kubectl_reconcile.source.render.pinned import survey_of
from kubectl_reconcile.source.render.program import RENDER
from kubectl_reconcile.source.render.renderer import Renderer
from kubectl_reconcile.source.render.trees import FolderTree
from tests.realworld.documents import loaded
from tests.realworld.pushed import pushed
from tests.registry_server import RunningRegistry, build_registry, open_registry
from tests.rendering_tools import build_helm

TIMEOUT_S: Final = 120.0
KUBE_VERSION: Final = "v1.33.0"
_SHOWN_LINES: Final = 12
"""So many lines of a difference are shown."""


class Outcome(StrEnum):
    """How our rendering of a folder compares with that of the tool that it stands for."""

    EQUAL = "equal"
    BOTH_REFUSE = "refused by both"
    WE_REFUSE = "refused by us alone"
    THEY_REFUSE = "refused by them alone"
    DIFFERENT = "differ"
    UNSTABLE = "theirs differs each time"
    UNPACKED = "Helm doesn't pack it"
    PINNED = "rendered by its lock file"


@dataclass(frozen=True, slots=True)
class Compared:
    """What came of one folder, and *why* where that isn't plain; of one that nobody renders, the *reason* in few words."""

    path: str
    outcome: Outcome
    why: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Tools:
    """Our renderer, and the programs that it is held against; and a *registry* that both pull from."""

    renderer: Renderer
    kubectl: Path
    helm: Path
    registry: RunningRegistry

    def run(self, *command: object) -> tuple[str, str]:
        """Return what a program prints, and why it doesn't; it can't fetch anything."""
        nowhere = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
        with tempfile.TemporaryDirectory() as home:
            environ = {"HOME": home, "PATH": home, "NO_PROXY": "", **nowhere}
            try:
                done = subprocess.run(
                    [str(word) for word in command],
                    env=environ, cwd=home, capture_output=True, text=True, check=False, timeout=TIMEOUT_S,
                    errors="surrogateescape",
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                return "", f"takes more than {TIMEOUT_S:.0f} s"
        return (
            (done.stdout, "") if done.returncode == 0 else ("", done.stderr.strip() or f"exits with {done.returncode}")
        )


def folders_with(checkout: Path, *names: str) -> Iterator[str]:
    """Yield the folders of a checkout that have a file of one of these names, in order; not those of other checkouts in it."""
    for folder, below, files in os.walk(checkout):
        below[:] = sorted(each for each in below if each != ".git")
        if not set(names).isdisjoint(files):
            inside = Path(folder).relative_to(checkout).as_posix()
            yield "" if inside == "." else inside


def _refusal(rendering: Rendering) -> str:
    return "; ".join(str(problem) for problem in rendering.problems if problem.is_error)


def _judged(path: str, mine: object, theirs: object, my_refusal: str, their_refusal: str) -> Compared | None:
    """Return what came of a folder that one side refuses, or that is equal; None where both render it, otherwise."""
    if my_refusal and their_refusal:
        return Compared(path, Outcome.BOTH_REFUSE)
    if my_refusal:
        return Compared(path, Outcome.WE_REFUSE, my_refusal)
    if their_refusal:
        return Compared(path, Outcome.THEY_REFUSE, their_refusal)
    return Compared(path, Outcome.EQUAL) if mine == theirs else None


def compare_overlay(tools: Tools, checkout: Path, path: str) -> Compared:
    """Render the kustomization at *path* of a checkout both ways."""
    rendering = tools.renderer.render(path, FolderTree(checkout, GitLimits().file_bytes), GitLimits())
    mine = "---\n".join(each.text for each in rendering.objects)
    theirs, refusal = tools.run(tools.kubectl, "kustomize", checkout / path)
    found = _judged(path, mine, theirs, _refusal(rendering), refusal)
    if found is not None:
        return _with_reason(tools, checkout, found, _refusal(rendering))
    return Compared(path, Outcome.DIFFERENT, _difference(mine, theirs))


_REASONS: Final = {
    r"is not in or below": "a path leads out of its folder",
    r'Get "': "a file of a web server that isn't among resources",
    r"missing property|is required|must be|must provide|execution error|nil pointer": "it wants values",
}
"""Why neither side renders something, by what our side says of it."""


def _with_reason(
    tools: Tools, checkout: Path, found: Compared, refusal: str, release: Release | None = None
) -> Compared:
    """Return what came of a folder, with why neither side renders it; or that ours does, by a lock file, what the other has no network for."""
    if not refusal:
        return found
    limits = GitLimits()
    with tempfile.TemporaryDirectory() as cache:
        fetching = SyncFetching(Path(cache), SourcePolicy.of_person(), person=True)
        tree = FolderTree(checkout, limits.file_bytes)
        survey = survey_of(tree, found.path, limits, fetching, is_chart=release is not None)
        if errors_among(survey.pins()):
            return replace(found, reason="no lock file pins what it has fetched")
        if not survey.is_empty:
            beside = survey.tree
            survey.inflated(lambda at, of: tools.renderer.render(at, beside, limits, of))
            refusal = _refusal(tools.renderer.render(found.path, beside, limits, release))
            if not refusal:
                return Compared(found.path, Outcome.PINNED)
    reasons = (reason for pattern, reason in _REASONS.items() if re.search(pattern, refusal))
    return replace(found, reason=next(reasons, "something else"))


def _difference(mine: str, theirs: str) -> str:
    lines = difflib.unified_diff(theirs.splitlines(), mine.splitlines(), "theirs", "ours", lineterm="", n=1)
    return "\n".join([*lines][:_SHOWN_LINES])


def compare_chart(tools: Tools, checkout: Path, path: str) -> Compared:
    """Render the chart at *path* of a checkout both ways, for a cluster of one version that serves what Helm takes for granted."""
    found, refusal = _compare_release(tools, path, path, FolderTree(checkout, GitLimits().file_bytes), checkout / path)
    return _with_reason(tools, checkout, found, refusal, _RELEASE)


def compare_pushed(tools: Tools, checkout: Path, path: str) -> Compared:
    """Render the chart at *path* of a checkout both ways from the registry, where Helm has pushed it."""
    below = f"{checkout.name}/{path}".lower().rstrip("/")
    found, refusal = pushed(tools.run, tools.helm, checkout / path, tools.registry, below)
    if found is None:
        return Compared(path, Outcome.UNPACKED, refusal)
    tree = TreeWithChart(NoFiles(), found.pulled(), "chart")
    return _compare_release(tools, path, "chart", tree, found.url, f"--version={found.version}", "--plain-http")[0]


_RELEASE: Final = Release("release-name", "default", kube_version=KUBE_VERSION)


def _compare_release(tools: Tools, path: str, at: str, tree: Tree, *chart: object) -> tuple[Compared, str]:
    """Return what came of a chart, and why our side doesn't render it."""
    rendering = tools.renderer.render(at, tree, GitLimits(), _RELEASE)
    mine = [each for one in rendering.objects for each in _parts(one.text)]
    theirs, refusal = _templated(tools, *chart)
    mine_refused = _refusal(rendering)
    found = _judged(path, mine, theirs, mine_refused, refusal)
    if found is None:
        is_stable = theirs == _templated(tools, *chart)[0]
        why = _difference(_plain(mine), _plain(theirs)) if is_stable else ""
        found = Compared(path, Outcome.DIFFERENT if is_stable else Outcome.UNSTABLE, why)
    return found, mine_refused


def _templated(tools: Tools, *chart: object) -> tuple[list[Any], str]:
    """Return the objects that ``helm template`` prints, and why it doesn't."""
    printed, refusal = tools.run(
        tools.helm, "template", "release-name", *chart, "--namespace=default", f"--kube-version={KUBE_VERSION}",
        "--include-crds", "--skip-tests",
    )  # fmt: skip
    try:
        return _parts(printed), refusal
    except yaml.YAMLError as error:
        return [], f"prints what is no YAML: {error}"


def _parts(text: str) -> list[Any]:
    return [each for each in loaded(text) if each is not None]


def _plain(objects: Sequence[Any]) -> str:
    return "".join(f"---\n{yaml.safe_dump(each, sort_keys=True)}" for each in objects)


def compared(tools: Tools, checkout: Path) -> Iterator[tuple[str, Compared]]:
    """Yield what came of each folder of a checkout that can be rendered, with the tool that it was held against."""
    for path in folders_with(checkout, *KUSTOMIZATIONS):
        yield "kubectl kustomize", _safely(compare_overlay, tools, checkout, path)
    for path in folders_with(checkout, CHART_FILE):
        yield "helm template", _safely(compare_chart, tools, checkout, path)
        yield "helm push, helm template", _safely(compare_pushed, tools, checkout, path)


def _safely(compare: Any, tools: Tools, checkout: Path, path: str) -> Compared:
    try:
        found: Compared = compare(tools, checkout, path)
    except SourceError as error:
        return Compared(path, Outcome.WE_REFUSE, str(error))
    return found


def table(rows: Sequence[tuple[str, str, Counter[Outcome]]]) -> str:
    """Return a row for each repository and tool."""
    head = ["repository", "held against", *Outcome]
    lines = [head, ["---"] * len(head)]
    lines += [[name, tool, *(str(found[each] or "-") for each in Outcome)] for name, tool, found in rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


@contextmanager
def tools_here() -> Iterator[Tools]:
    """The tools, each built first where it isn't there: that takes minutes."""

    def log(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    RENDER.build(log)
    kubectl, helm, registry = sandbox.build(log).path("kubectl"), build_helm(log), build_registry(log)
    renderer = Renderer(seconds=TIMEOUT_S)
    with tempfile.TemporaryDirectory() as folder, open_registry(registry, Path(folder)) as running:
        try:
            yield Tools(renderer, kubectl, helm, running)
        finally:
            renderer.close()


def main(folder: Path, names: Sequence[str]) -> int:
    """Compare all that is in the checkouts, or those of these names."""
    chosen = [each for each in sorted(folder.iterdir()) if each.is_dir() and (not names or each.name in names)]
    rows, told = [], []
    reasons: Counter[tuple[str, Outcome, str]] = Counter()
    with tools_here() as tools:
        for checkout in chosen:
            counts: dict[str, Counter[Outcome]] = {}
            for tool, found in compared(tools, checkout.resolve()):
                counts.setdefault(tool, Counter())[found.outcome] += 1
                if found.reason:
                    reasons[tool, found.outcome, found.reason] += 1
                if found.why:
                    told.append(
                        f"{checkout.name}/{found.path}: {found.outcome}\n    " + found.why.replace("\n", "\n    ")
                    )
            rows += [(checkout.name, tool, counter) for tool, counter in counts.items()]
            print(
                f"{checkout.name}: {sum(each.total() for each in counts.values())} folders", file=sys.stderr, flush=True
            )
    why = (f"{tool}: {count} {outcome}: {reason}" for (tool, outcome, reason), count in reasons.most_common())
    print(table(rows), *why, *told, sep="\n")
    return int(any(counter[Outcome.DIFFERENT] for _, _, counter in rows))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python -m tests.realworld.conformance FOLDER [NAME ...]")
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
