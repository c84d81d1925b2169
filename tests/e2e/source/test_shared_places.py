"""What fetches and renders has few places, which tenants share: whose work lasts is in nobody's way."""

from __future__ import annotations

import threading
from contextvars import copy_context

import pytest

from kubectl_reconcile.core.fair.shares import Limits
from kubectl_reconcile.core.rendering.charts import Release
from kubectl_reconcile.source.errors import SourceError
from kubectl_reconcile.source.limits import GitLimits
from kubectl_reconcile.source.render.renderer import Renderer
from kubectl_reconcile.source.render.trees import FolderTree
from kubectl_reconcile.source.running.ending import ENDING, Ending
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
