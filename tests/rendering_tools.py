"""What tests of rendering share: archives of charts, a port that must hear nothing, and Helm's own program to compare with."""

from __future__ import annotations

import gzip
import io
import os
import re
import socket
import subprocess
import tarfile
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from kubectl_reconcile.cache_folder import cache_dir
from kubectl_reconcile.core.rendering.charts import Release
from kubectl_reconcile.go_programs import GoProgram, Log
from kubectl_reconcile.source.folder.worktree import WorktreeSource
from kubectl_reconcile.source.limits import GitLimits
from kubectl_reconcile.source.render.reach import root_of
from kubectl_reconcile.source.render.renderer import Renderer


def packed(files: Mapping[str, str | bytes]) -> bytes:
    """Return *files* as the archive of a chart, as "helm package" makes it."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for name, text in files.items():
            data = text.encode() if isinstance(text, str) else text
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return gzip.compress(raw.getvalue(), mtime=0)


@contextmanager
def silence() -> Iterator[tuple[int, list[object]]]:
    """A port of this machine that must hear nothing; yields it, and the connections that came anyway."""
    heard: list[object] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.05)
        done = threading.Event()

        def listen() -> None:
            while not done.is_set():
                try:
                    connection, address = server.accept()
                except TimeoutError:
                    continue
                heard.append(address)
                connection.close()

        listener = threading.Thread(target=listen)
        listener.start()
        try:
            yield server.getsockname()[1], heard
        finally:
            time.sleep(0.1)  # who is late is heard, too
            done.set()
            listener.join()


# -- Helm's own program ------------------------------------------------------------------------------------------------

_HELM = GoProgram(
    "helm, which charts are compared with",
    Path(__file__).parent / "helm",
    ("go.mod", "go.sum", "main.go"),
    "or leave the comparison out",
)
_FLAGS = ("-trimpath", "-ldflags", "-s -w")


def built_helm() -> Path | None:
    """Return Helm's program in the version that our own has as a library; None where it wasn't built yet."""
    place = cache_dir() / "helm" / f"build-{_HELM.digest(_FLAGS)}" / "helm"
    return place if place.is_file() else None


def build_helm(log: Log) -> Path:
    """Return Helm's program, building it first if it isn't there: that takes minutes the first time.

    Raises:
        GoBuildError: it can't be built.
    """
    return _HELM.built(cache_dir() / "helm", _FLAGS, log, os.environ, name="helm") / "helm"


def helm_template(helm: Path, chart: Path, release: str = "web", namespace: str = "shop", *more: str) -> str:
    """Return what "helm template" prints for the folder of a chart, definitions and hooks included.

    Raises:
        subprocess.CalledProcessError: Helm refuses it; its stderr says why, in bytes.
    """
    command = [helm, "template", release, chart, "--namespace", namespace, "--include-crds", *more]
    with tempfile.TemporaryDirectory() as home:
        environ = {"HOME": home, "PATH": os.environ.get("PATH", "")}
        answer = subprocess.run(command, env=environ, capture_output=True, check=True, timeout=120)
    return answer.stdout.decode()


_SOURCE = re.compile(r"^# Source: [^\n]*\n", re.MULTILINE)


def documents_of(printed: str) -> list[str]:
    """Return the documents that Helm printed, without the lines that say where they come from, ordered; those of test hooks left out."""
    found = (_SOURCE.sub("", each).strip() for each in re.split(r"^---[ \t]*$", printed, flags=re.MULTILINE))
    return sorted(each for each in found if each and not _is_test(each))


def our_documents(chart: Path, release: Release, renderer: Renderer) -> tuple[list[str], list[str]]:
    """Return what we render the folder of a chart to, ordered as ``documents_of`` does it, and the errors that we say."""
    with WorktreeSource(chart).tree("") as tree:
        inside = chart.resolve().relative_to(root_of(chart.resolve())).as_posix()
        rendering = renderer.render("" if inside == "." else inside, tree, GitLimits(), release)
    texts = (
        part.strip() for each in rendering.objects for part in re.split(r"^---[ \t]*$", each.text, flags=re.MULTILINE)
    )
    errors = [str(problem) for problem in rendering.problems if problem.is_error]
    return sorted(text for text in texts if text and not _is_test(text)), errors


def _is_test(document: str) -> bool:
    found = re.search(r"^\s+[\"']?helm\.sh/hook[\"']?:\s*[\"']?([a-z, -]+)", document, re.MULTILINE)
    return bool(found) and all(event.strip() in {"test", "test-success"} for event in found[1].split(","))


if __name__ == "__main__":
    print(build_helm(print))  # noqa: T201 - it talks on the terminal
