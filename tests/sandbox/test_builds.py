"""Programs that are built once: a build is named by all that it is made of."""

import shutil

import pytest

from kubectl_reconcile.go_programs import GoProgram
from kubectl_reconcile.sandbox import build
from kubectl_reconcile.sandbox.images import kafka_programs
from kubectl_reconcile.sandbox.images.etcd_programs import ETCD_VERSIONS, etcd_program
from kubectl_reconcile.source.render.program import RENDER
from kubectl_reconcile.source.sops.program import SOPS

PROGRAMS = {
    "control plane": build.PROGRAM,
    "overlays and charts": RENDER.sources,
    "files of SOPS": SOPS.sources,
    **{f"etcd {version}": etcd_program(version) for version in ETCD_VERSIONS},
}


@pytest.mark.parametrize("one", PROGRAMS.values(), ids=PROGRAMS)
def test_all_sources_of_a_go_program_are_in_its_digest(one):
    folders = {(one.folder / name).resolve().parent for name in one.files}
    sources = {path for folder in folders for path in folder.iterdir() if path.suffix in {".go", ".mod", ".sum"}}
    assert {(one.folder / name).resolve() for name in one.files} == sources
    assert not any("//go:embed" in path.read_text() for path in sources if path.suffix == ".go")


@pytest.mark.parametrize("one", PROGRAMS.values(), ids=PROGRAMS)
def test_a_change_of_any_source_or_flag_makes_another_build(one, tmp_path):
    for name in one.files:
        (tmp_path / "sources" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(one.folder / name, tmp_path / "sources" / name)
    copied = GoProgram(one.what, tmp_path / "sources", one.files, one.otherwise)
    seen = [one.digest(["-trimpath"])]
    assert copied.digest(["-trimpath"]) == seen[0]
    for name in one.files:
        with (copied.folder / name).open("a") as file:
            file.write("\n")
        seen.append(copied.digest(["-trimpath"]))
    seen.append(copied.digest([]))
    assert len(set(seen)) == len(one.files) + 2


KAFKA = {
    "another script": ("_SCRIPT", "#!/bin/sh\n"),
    "another tool": ("_TOOLS", {"kafka-topics": "org.apache.kafka.tools.TopicCommand"}),
    "another way to fetch it": ("_FETCH", ("mvn", "dependency:copy-dependencies")),
}


@pytest.mark.parametrize(("name", "value"), KAFKA.values(), ids=KAFKA)
def test_kafka_is_fetched_again_for(name, value, monkeypatch, tmp_path):
    environ = {"XDG_CACHE_HOME": str(tmp_path)}
    before = kafka_programs._home("4.2.1", environ)
    monkeypatch.setattr(kafka_programs, name, value)
    assert kafka_programs._home("4.2.1", environ) != before


def test_kafka_is_fetched_again_for_another_pom_or_version(monkeypatch, tmp_path):
    environ = {"XDG_CACHE_HOME": str(tmp_path)}
    pom = tmp_path / "pom.xml"
    pom.write_text(f"{kafka_programs._POM.read_text()}\n")
    homes = [kafka_programs._home(version, environ) for version in ("4.2.1", "4.3.1")]
    monkeypatch.setattr(kafka_programs, "_POM", pom)
    assert len({*homes, kafka_programs._home("4.2.1", environ)}) == 3
