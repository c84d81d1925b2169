"""How long rendering an overlay takes, beside kustomize's own library and kubectl: ``python -m benchmarks.render [N ...]``.

An overlay over a base of N built-in objects, a file each: namespace, labels, an image and a JSON patch of every Deployment.
*Cold* starts the program that renders, *warm* has it running and the overlay changed, *cached* finds nothing changed;
*parsed* is warm with what makes objects of the text. *Library* is kustomize's own, in a process that goes on, with the collector as
Go sets it, of files in memory. Prints medians in milliseconds, and exits 1 if warm takes more than 1.2 of the library at 100 objects.
With --cluster the whole commands run against a control plane of their own.
"""

# ruff: noqa: T201 - a program that prints

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks import workloads
from benchmarks.process import end_when_told
from kubectl_reconcile.cache_folder import cache_dir
from kubectl_reconcile.core.rendering.rendered import objects_of
from kubectl_reconcile.go_programs import GoProgram
from kubectl_reconcile.sandbox import build as sandbox
from kubectl_reconcile.sandbox.controlplane import Sandbox
from kubectl_reconcile.source.limits import GitLimits
from kubectl_reconcile.source.render.program import RENDER
from kubectl_reconcile.source.render.renderer import Renderer
from kubectl_reconcile.source.render.trees import FolderTree

SEED: Final = 20261121
MOST_OF_LIBRARY: Final = 1.2
JUDGED_AT: Final = 100
KUSTOMIZATION: Final = """\
namespace: {namespace}
labels: [{{pairs: {{stage: prod}}, includeSelectors: true}}]
images: [{{name: registry.example.com/side, newTag: '{number}'}}]
resources: [../base]
patches:
- target: {{kind: Deployment}}
  patch: |-
    - {{op: replace, path: /spec/replicas, value: 0}}
"""


def overlay(folder: Path, count: int, namespace: str = "prod") -> Path:
    """Write the overlay ``prod`` over a base of *count* objects, and return the folder of both."""
    workloads.write(folder / "base", "built-in", count, namespace, seed=SEED)
    names = sorted(file.name for file in (folder / "base").glob("*.json"))
    (folder / "base" / "kustomization.yaml").write_text("resources:\n" + "".join(f"- {name}\n" for name in names))
    (folder / "prod").mkdir()
    change(folder, 1, namespace)
    return folder


def change(folder: Path, number: int, namespace: str = "prod") -> None:
    """Have the overlay render to something else than before."""
    text = KUSTOMIZATION.format(number=number, namespace=namespace)
    (folder / "prod" / "kustomization.yaml").write_text(text)


def timed_ms(work: Callable[[], object]) -> float:
    """Return how long it takes, in milliseconds."""
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def ours(folder: Path, rounds: int) -> dict[str, float]:
    """Return how long ours takes: started again, running, with parsing, and where nothing changed."""

    def render() -> object:
        return renderer.render("prod", FolderTree(folder, GitLimits().file_bytes), GitLimits())

    cold, warm, parsed, cached = [], [], [], []
    for number in range(rounds):
        renderer = Renderer()
        change(folder, number)
        cold.append(timed_ms(render))
        for more in range(3):
            change(folder, 1000 + 10 * number + more)
            warm.append(timed_ms(render))
        cached.append(timed_ms(render))
        rendering = renderer.render("prod", FolderTree(folder, GitLimits().file_bytes), GitLimits())
        parsed.append(warm[-1] + timed_ms(partial(objects_of, rendering)))
        renderer.close()
    found = {"cold": cold, "warm": warm, "parsed": parsed, "cached": cached}
    return {name: statistics.median(times) for name, times in found.items()}


def library(folder: Path, rounds: int) -> float:
    """Return how long kustomize's library takes, in milliseconds, once it knows the schemas."""
    home = cache_dir() / "bench-render"
    with tempfile.TemporaryDirectory() as name:
        for file in ("go.mod", "go.sum"):
            shutil.copy(RENDER.sources.folder / file, name)
        shutil.copy(Path(__file__).parent / "kustomize_library" / "main.go", name)
        sources = GoProgram("kustomize's library", Path(name), ("go.mod", "go.sum", "main.go"), "or leave it out")
        built = sources.built(
            home, ("-trimpath",), lambda line: print(line, file=sys.stderr), os.environ, name="library"
        )
    command = [str(built / "library"), str(folder), "prod", str(rounds + 1)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return statistics.median(float(line) * 1000 for line in done.stdout.split()[1:])


def kubectl_ms(kubectl: Path, folder: Path, rounds: int) -> float:
    """Return how long ``kubectl kustomize`` takes, in milliseconds."""
    command = [str(kubectl), "kustomize", str(folder / "prod")]
    return statistics.median(
        timed_ms(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL)) for _ in range(rounds)
    )


def commands_ms(binaries: Path, sandbox_at: Sandbox, folder: Path, rounds: int) -> dict[str, float]:
    """Return how long previews of what is applied already take: ours, and kustomize's output piped into ``kubectl diff``."""
    environ = {**os.environ, "KUBECONFIG": str(sandbox_at.kubeconfig), "PATH": f"{binaries}:{os.environ['PATH']}"}
    mine = [str(Path(sys.executable).parent / "kubectl-reconcile")]

    def run(*words: str) -> None:
        subprocess.run(words, env=environ, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    run(*mine, "sync", "-f", str(folder / "prod"), "--name", "bench", "--yes", "--no-wait", "--install")
    render = f"kubectl kustomize {folder / 'prod'}"
    run("sh", "-c", f"{render} | kubectl apply --server-side --force-conflicts --field-manager=kubectl -f -")
    piped = f"{render} | kubectl diff --server-side --force-conflicts --field-manager=kubectl -f -"
    found = {
        "diff -f": lambda: run(*mine, "diff", "-f", str(folder / "prod"), "--name", "bench"),
        "kubectl kustomize | kubectl diff -f -": lambda: run("sh", "-c", piped),
    }
    return {name: statistics.median(timed_ms(work) for _ in range(rounds)) for name, work in found.items()}


def main() -> int:
    """Measure all sizes, print a table, and tell whether the bar is kept."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("counts", nargs="*", type=int, default=[3, 100, 1000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--cluster", action="store_true", help="measure whole commands too, on a control plane of their own"
    )
    options = parser.parse_args()
    end_when_told()
    RENDER.build(lambda line: print(line, file=sys.stderr))
    binaries = sandbox.build(lambda line: print(line, file=sys.stderr))
    kept = True
    place = Sandbox(f"bench-render-{os.getpid()}") if options.cluster else None
    try:
        if place is not None:
            place.up()
        for count in options.counts:
            with tempfile.TemporaryDirectory() as name:
                folder = overlay(Path(name), count, "default")
                rows = ours(folder, options.rounds)
                rows["library"] = library(folder, options.rounds)
                rows["kubectl kustomize"] = kubectl_ms(binaries.path("kubectl"), folder, options.rounds)
                if place is not None:
                    change(folder, 1, "default")
                    rows |= commands_ms(binaries.folder, place, folder, options.rounds)
            ratio = rows["warm"] / rows["library"]
            kept = kept and (count != JUDGED_AT or ratio <= MOST_OF_LIBRARY)
            shown = "  ".join(f"{what} {taken_ms:,.1f}" for what, taken_ms in rows.items())
            print(f"{count:>5} objects, ms: {shown}  (warm/library {ratio:.2f})", flush=True)
    finally:
        if place is not None:
            place.down()
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
