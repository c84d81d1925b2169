"""Kafka's broker and its command line tools, fetched by Maven and run by the Java of this machine."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from kubectl_reconcile.cache_folder import cache_dir
from kubectl_reconcile.go_programs import Log, locked
from kubectl_reconcile.sandbox.errors import BuildError
from kubectl_reconcile.sandbox.images.image import Image, Recipe

KAFKA_VERSIONS = ("4.2.1", "4.3.1")
"""Two minors, so that an upgrade can be tried."""

_POM = Path(__file__).with_name("kafka") / "pom.xml"
_TOOLS = {
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-groups": "org.apache.kafka.tools.GroupsCommand",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-server-start": "kafka.Kafka",
    "kafka-storage": "kafka.tools.StorageTool",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
}
_SCRIPT = """#!/bin/sh
exec java ${{KAFKA_HEAP_OPTS:--Xmx256m}} ${{KAFKA_JVM_PERFORMANCE_OPTS:--XX:+UseSerialGC -XX:TieredStopAtLevel=1}} $KAFKA_OPTS \\
  -cp "{jars}/*" {tool} "$@"
"""
_FETCH = ("mvn", "--batch-mode", "--quiet", "dependency:copy-dependencies", "-DincludeScope=runtime")
_LONGEST_S = 1200


def kafka(version: str) -> Recipe:
    """Return how to get the programs of this *version*."""

    def image(_: str, environ: Mapping[str, str]) -> Image | None:
        home = _home(version, environ)
        if not home.is_dir() or not shutil.which("java", path=environ.get("PATH", os.defpath)):
            return None
        return Image(programs=(home / "bin",), command=("kafka-server-start.sh",), folders=(home,))

    how = f"kubectl reconcile sandbox build --image kafka:{version}, which takes Java 17 and Maven, as in apt install maven"
    return Recipe(image, lambda _: how, lambda log, environ: _build(version, log, environ), _lacks)


def _home(version: str, environ: Mapping[str, str]) -> Path:
    digest = hashlib.sha256(
        f"{version}{_POM.read_text(encoding='utf-8')}{_SCRIPT}{sorted(_TOOLS.items())}{_FETCH}".encode()
    ).hexdigest()
    return cache_dir(environ) / "images" / "kafka" / f"build-{digest[:16]}"


def _build(version: str, log: Log, environ: Mapping[str, str]) -> None:
    """Fetch Kafka and all it needs, once for all processes of the user. A build is published by renaming a finished folder: it is there completely or not at all.

    Raises:
        BuildError: Maven can't have it.
    """
    home = _home(version, environ)
    if home.is_dir():
        return
    home.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(home.parent / "build.lock", f"Kafka {version}", log):
        if home.is_dir():  # somebody else fetched it while we waited
            return
        log(f"fetching Kafka {version} into {home} (54 MB the first time)")
        with tempfile.TemporaryDirectory(dir=home.parent, prefix="unfinished-") as folder:
            made = Path(folder, "made")
            _fetch(version, Path(folder), made / "lib", environ)
            (made / "bin").mkdir()
            for name, tool in _TOOLS.items():
                script = made / "bin" / f"{name}.sh"
                script.write_text(_SCRIPT.format(jars=home / "lib", tool=tool), encoding="utf-8")
                script.chmod(0o755)
            made.rename(home)


def _fetch(version: str, folder: Path, jars: Path, environ: Mapping[str, str]) -> None:
    shutil.copy(_POM, folder)
    command = [*_FETCH, f"-Dkafka.version={version}", f"-DoutputDirectory={jars}"]
    try:
        done = subprocess.run(
            command, cwd=folder, env=dict(environ), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", check=False, timeout=_LONGEST_S,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise BuildError(f"Maven took longer than {_LONGEST_S} s", "is its registry slow?") from None
    if done.returncode:
        raise BuildError(
            "Maven can't fetch Kafka", "check the network and Maven's settings", output=done.stdout[-2000:]
        )


def _lacks(environ: Mapping[str, str]) -> str:
    path = environ.get("PATH", os.defpath)
    missing = [what for program, what in (("mvn", "Maven"), ("java", "Java")) if not shutil.which(program, path=path)]
    return f"there is no {' and no '.join(missing)} on PATH" if missing else ""
