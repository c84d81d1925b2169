"""What fetches and renders has few places, which tenants share: whose work lasts is in nobody's way."""

from __future__ import annotations

import threading
from contextvars import copy_context

import pytest

from kubectl_reconcile.core.fair.shares import Limits
from kubectl_reconcile.core.rendering.charts import Release
from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.fenced.process import ProgramLargeError
from kubectl_reconcile.source.git.cloned import clone
from kubectl_reconcile.source.git.source import GitSource, Ref, Repository
from kubectl_reconcile.source.limits import MEBIBYTE, GitLimits, raising
from kubectl_reconcile.source.render.process import RenderProcess
from kubectl_reconcile.source.render.renderer import Renderer
from kubectl_reconcile.source.render.trees import FolderTree
from kubectl_reconcile.source.running.ending import ENDING, Ending
from kubectl_reconcile.source.running.memory import HEAVY_RENDERING_BYTES, LIGHT_RENDERING_BYTES, MEMORY, Memory
from kubectl_reconcile.source.running.places import TENANT, TenantPlaces
from tests.waiting import eventually

LOOP = "{{- range $i := until 1000000 }}{{- range $j := until 1000000 }}{{- if eq (add $i $j) -1 }}x{{ end }}{{ end }}{{ end }}"
FILES = {
    "loop/Chart.yaml": "apiVersion: v2\nname: loop\nversion: 0.1.0\n",
    "loop/templates/a.yaml": LOOP,
    "good/kustomization.yaml": "resources: [config.yaml]\n",
    "good/config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: good}\n",
}


def begin(tenant, work):
    """Have *work* done for a tenant in a thread; return what ends that, and the thread."""
    ending = Ending()

    def run():
        TENANT.set(tenant)
        ENDING.set(ending)
        work()

    thread = threading.Thread(target=copy_context().run, args=[run], daemon=True)
    thread.start()
    return ending, thread


def test_places_are_shared_between_tenants():
    places, begun, over = TenantPlaces(2, Limits(late=1, late_in_all=4), 0.01), [], threading.Event()

    def work(name):
        with places.one():
            begun.append(name)
            over.wait(60)

    threads = [begin("a", lambda: work("a"))[1] for _ in range(4)]
    eventually(lambda: begun == ["a"], "one of them, which is late soon")
    threads.append(begin("b", lambda: work("b"))[1])
    eventually(lambda: begun == ["a", "b"], "another tenant has a place")
    over.set()
    for thread in threads:
        thread.join(60)
    assert sorted(begun) == ["a", "a", "a", "a", "b"]


def test_who_is_ended_while_they_wait_waits_no_longer():
    places, told, over = TenantPlaces(1, Limits(late=0, late_in_all=0), 60.0), [], threading.Event()
    held = threading.Event()

    def hold():
        with places.one():
            held.set()
            over.wait(60)

    def wait():
        with pytest.raises(SourceError), places.one():
            pass
        told.append("ended")

    _, holder = begin("a", hold)
    assert held.wait(60)
    ending, waiting = begin("b", wait)
    eventually(lambda: places._waiting.waits("b"), "another tenant waits for the place")
    ending.end()
    waiting.join(60)
    assert told == ["ended"]
    over.set()
    holder.join(60)


@pytest.mark.parametrize("place", ["light", "heavy"])
def test_a_clone_isnt_locked_by_who_waits_for_a_turn_to_fetch_into_it(place, git_server, tmp_path, monkeypatch):
    """Neither at first, nor where a fetch turns out to need more memory."""
    sha = git_server.push({"a.yaml": "1"})
    source = GitSource(Repository.of(git_server.url), Ref.of(branch="main"), cache_dir=tmp_path)
    places, tried, held, over, found = TenantPlaces(1), [], threading.Event(), threading.Event(), []
    monkeypatch.setattr(clone, "FETCHES" if place == "light" else "HEAVY", places)

    def hold():
        with places.one():
            held.set()
            over.wait(60)

    def large(_self, _refspec, _timeout_s, limits):
        if limits.memory_bytes < 2048 * MEBIBYTE:
            tried.append(place)
            raise SourceError(SourceFault.REFUSED, "git needs more memory", raising("memory_bytes"))
        return fetch(_self, _refspec, _timeout_s, limits)

    fetch = clone.Clone.fetch
    if place == "heavy":
        monkeypatch.setattr(clone.Clone, "fetch", large)
    _, other = begin("b", hold)
    assert held.wait(60)
    _, mine = begin("a", lambda: found.append(source.fetch()))
    eventually(lambda: places._waiting.waits("a"), "it waits for its turn")
    with source._clone.locked(0.0):
        assert found == []
    over.set()
    for thread in (other, mine):
        thread.join(60)
    assert (found, tried) == ([sha], ["heavy"] if place == "heavy" else [])


def test_memory_is_set_aside_before_anything_begins_and_what_is_spare_goes():
    memory, ended = Memory(), []
    first, idle = memory.take(160, 768), memory.take(160, 768)

    def let_go():
        ended.append("idle")
        memory.give_back(idle)

    memory.spare(idle, let_go)
    _, second = begin("a", lambda: ended.append(memory.take(640, 768)))
    eventually(lambda: ended == ["idle"], "what is spare is let go")
    assert (memory.claim(idle), memory.held) == (False, 160)
    memory.give_back(first)
    memory.give_back(first)
    second.join(60)
    assert (memory.held, memory.most) == (640, 640)


def test_what_needs_more_memory_is_rendered_again_with_more_and_alone(renders, tmp_path, monkeypatch):
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    data = "".join(f"  k{n}: {'x' * 1000}\n" for n in range(3000))
    (tmp_path / "good/config.yaml").write_text(f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata:\n{data}")
    given, renderer, tree = [], Renderer(), FolderTree(tmp_path, 10_000_000)
    started = RenderProcess.__init__

    def start(self, place, memory_bytes=LIGHT_RENDERING_BYTES, all_bytes=0):
        given.append(memory_bytes)
        started(self, place, memory_bytes, all_bytes)

    monkeypatch.setattr(RenderProcess, "__init__", start)
    limits, before = GitLimits(memory_bytes=512 * MEBIBYTE), MEMORY.held  # with what others of this process have spare
    try:
        found = renderer.render("good", tree, limits)
        assert (found.problems, len(found.objects), given) == ((), 1, [LIGHT_RENDERING_BYTES, HEAVY_RENDERING_BYTES])
        renderer.render("good", tree, limits, again=True)
        assert given == [LIGHT_RENDERING_BYTES, HEAVY_RENDERING_BYTES, HEAVY_RENDERING_BYTES]
    finally:
        renderer.close()
    assert MEMORY.held <= before


def test_what_others_left_in_a_process_makes_nobody_heavy(renders, tmp_path, monkeypatch):
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    rendered, asked = RenderProcess.carry_out, []

    def carry_out(self, *order):
        asked.append(self.pid)
        if len(asked) == 2:
            self.kill()
            raise ProgramLargeError("it took more than it may")
        return rendered(self, *order)

    monkeypatch.setattr(RenderProcess, "carry_out", carry_out)
    renderer, tree = Renderer(), FolderTree(tmp_path, 10_000)
    try:
        for _ in range(2):
            assert renderer.render("good", tree, GitLimits(), again=True).problems == ()
        assert (len(asked), asked[0] == asked[1] != asked[2], renderer._heavy) == (3, True, {})
    finally:
        renderer.close()


def test_a_rendering_that_takes_long_holds_up_nobody_else(renders, tmp_path):
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    tree, renderer, found, limits = FolderTree(tmp_path, 10_000), Renderer(seconds=15.0), {}, GitLimits()

    def loop(name):
        try:
            found[name] = renderer.render("loop", tree, limits, Release(), again=True)
        except SourceError as error:
            found[name] = error

    try:
        _, first = begin("a", lambda: loop("first"))
        eventually(lambda: renderer._places._shares.has("a"), "the first has the place")
        _, second = begin("a", lambda: loop("second"))
        eventually(lambda: renderer._places._waiting.waits("a"), "the second waits for it")
        _, other = begin("b", lambda: found.update(other=renderer.render("good", tree, limits)))
        other.join(60)
        assert (found["other"].problems, [*found]) == ((), ["other"]), "it is done before the one that began first"
        first.join(60)
        second.join(60)
        assert "it took longer than 15 s" in found["first"].problems[0].message
        assert "renderings of this namespace took longer than 15 s" in str(found["second"])
    finally:
        renderer.close()
