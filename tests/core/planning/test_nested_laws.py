"""What is written once a pull request is merged is what its plan said: over drawn trees of Syncs, carried out Sync by Sync.

A tree has *apps*, each the Sync of one folder, in versions: ``a1/v2`` holds some caches, and some of the Syncs of the apps below it. The root holds
those on top. A pull request gives folders of Syncs another version (or, where revisions are compared, other files), and adds and removes Syncs.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kubectl_reconcile.core.manifests.revision import Revision
from kubectl_reconcile.core.objects import ObjectRef, labels_of
from kubectl_reconcile.core.planning.comparison import compared
from kubectl_reconcile.core.planning.nested import nested_in
from kubectl_reconcile.core.planning.plan import Change, Op, Plan
from kubectl_reconcile.core.planning.planner import build
from kubectl_reconcile.core.planning.snapshot import Objects
from kubectl_reconcile.core.resources.applyset import PART_OF, applyset_id
from kubectl_reconcile.core.resources.sync import SYNC, Sync
from tests.core.planning.changes import known
from tests.core.planning.shop import KINDS, NOW, cache, live, written

APPS, VERSIONS, URL = 5, 3, "https://git.example.com/clusters"
ROOT = Sync(name="root", namespace="shop")


def a_sync(app, version, policy):
    source = {"git": {"url": URL}, "path": f"a{app}/v{version}"}
    spec = {"source": source, "deletionPolicy": policy}
    return {
        "apiVersion": SYNC.api_version,
        "kind": "Sync",
        "metadata": {"name": f"a{app}", "namespace": "shop"},
        "spec": spec,
    }


@st.composite
def folder(draw, app, below, policy):
    """The manifests of an app at one version: some of its caches, and of the Syncs *below* it."""
    caches = draw(st.dictionaries(st.integers(0, 2), st.integers(0, 2), max_size=3))
    syncs = draw(st.dictionaries(st.sampled_from(below), st.integers(0, VERSIONS - 1))) if below else {}
    return [
        cache(f"a{app}-stays"),
        *(cache(f"a{app}-{number}", size) for number, size in caches.items()),
        *(a_sync(*each, policy) for each in syncs.items()),
    ]


@st.composite
def requests(draw, policy, *, moves_files):
    """Two revisions, each a map of folders; unless it *moves files*, no folder but the root's differs."""
    above = [draw(st.integers(-1, app - 1)) for app in range(APPS)]
    below = {app: [each for each in range(APPS) if above[each] == app] for app in range(-1, APPS)}

    def all_folders():
        return {
            f"a{app}/v{version}": draw(folder(app, below[app], policy))
            for app in range(APPS)
            for version in range(VERSIONS)
        }

    apps = all_folders()
    before = {**apps, "root": draw(folder("root", below[-1], policy))}
    after = {**(all_folders() if moves_files else apps), "root": draw(folder("root", below[-1], policy))}
    return before, after


def inputs(sync, tree, cluster):
    path = sync.source.path if sync.source else "root"
    desired = [written(each, f"{path}/{number}.yaml") for number, each in enumerate(tree[path])]
    return known(
        sync=sync,
        revision=Revision("3f9c2e1", "", {}),
        desired=desired,
        live=Objects(cluster.values()),
        kinds=KINDS,
        now=NOW,
    )


class World:
    """A cluster, what was *written* to it and as which Sync."""

    def __init__(self):
        self.cluster, self.written = {}, []

    def plan(self, sync, tree):
        return build(inputs(sync, tree, self.cluster))

    def carry_out(self, made):
        for change in made.acting():
            if not change.writes:
                continue
            self.written.append((made.sync.name, change.op.value, change.ref.name))
            if change.op is Op.DELETE:
                self.end(self.cluster.pop(change.ref))
            else:
                self.cluster[change.ref] = live(change.intent, set_id=None)

    def end(self, manifest):
        """Delete what a Sync that prunes has applied, as its finalizer has the daemon do."""
        if manifest["kind"] != "Sync" or manifest["spec"]["deletionPolicy"] != "Prune":
            return
        sync = Sync.of(manifest)
        marked = [ref for ref, each in self.cluster.items() if labels_of(each).get(PART_OF) == applyset_id(sync.ref)]
        self.carry_out(Plan(sync.ref, "", tuple(Change(ref, Op.DELETE, before=self.cluster[ref]) for ref in marked)))

    def settle(self, tree):
        """Let every Sync be synced until nothing is left to do, those above first."""
        before = -1
        while before != len(self.written):
            before = len(self.written)
            self.carry_out(self.plan(ROOT, tree))
            for app in range(APPS):
                if manifest := self.cluster.get(ObjectRef(SYNC.group, SYNC.kind, "shop", f"a{app}")):
                    self.carry_out(self.plan(Sync.of(manifest), tree))


def foretold(made):
    """What a plan says is written, nested plans included."""
    plans = [made, *(each.plan for each in made.nested if each.plan)]
    return sorted((plan.sync.name, each.op.value, each.ref.name) for plan in plans for each in plan.acting())


def with_nested(made, plan_of):
    walk = nested_in(made)
    try:
        asked = next(walk)
        while True:
            asked = walk.send(plan_of(asked.change))
    except StopIteration as end:
        return replace(made, nested=end.value)


@given(requests("Orphan", moves_files=False))
def test_what_is_written_after_a_merge_is_what_the_plan_of_the_cluster_said(request):
    before, after = request
    world = World()
    world.settle(before)
    world.written.clear()
    made = with_nested(world.plan(ROOT, after), lambda change: world.plan(Sync.of(change.after), after))
    world.settle(after)
    assert foretold(made) == sorted(world.written)


@given(requests("Prune", moves_files=True))
def test_what_is_written_after_a_merge_is_what_the_comparison_of_revisions_said(request):
    before, after = request
    world = World()
    world.settle(before)
    world.written.clear()

    def asked_for(manifest, tree):
        if manifest is None:
            return Plan(None, "", ())
        sync = Sync.of(manifest)
        return build(inputs(sync, tree, {}))

    def plan_of(change):
        now = asked_for(None if change.op is Op.DELETE else change.after, after)
        return compared(asked_for(change.before, before), replace(now, sync=change.ref), "3f9c2e1")

    root = compared(build(inputs(ROOT, before, {})), build(inputs(ROOT, after, {})), "3f9c2e1")
    made = with_nested(root, plan_of)
    world.settle(after)
    assert foretold(made) == sorted(world.written)
