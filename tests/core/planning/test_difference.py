"""Planning by difference: the plan is the one that looking at everything would give, whatever has happened in between."""

from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kubectl_reconcile.core.manifests.parse import Drawn, Located, VariableUse
from kubectl_reconcile.core.manifests.revision import Revision
from kubectl_reconcile.core.objects import FIELD_MANAGER, FieldPath, GroupVersionKind, ObjectRef, Problem
from kubectl_reconcile.core.planning import difference, planner
from kubectl_reconcile.core.planning.kinds import Kind, kinds_of_crd
from kubectl_reconcile.core.planning.plan import Contention, Op
from kubectl_reconcile.core.planning.snapshot import Objects, Overlay
from kubectl_reconcile.core.resources.applyset import applyset_id, member
from kubectl_reconcile.core.resources.sync import DeleteLimit, Sync
from kubectl_reconcile.core.ssa.ignore import IgnoreRule
from kubectl_reconcile.core.ssa.merge import ConflictPolicy, three_way
from kubectl_reconcile.core.ssa.schema import UNKNOWN, schema_of_crd
from tests.core.planning.changes import known

NOW = "2026-11-20T12:00:00Z"
SHOP = Sync(name="shop", namespace="shop")
SCOPES = {
    ("v1", "ConfigMap"): True,
    ("v1", "Service"): True,
    ("apps/v1", "Deployment"): True,
    ("batch/v1", "Job"): True,
    ("v1", "Namespace"): False,
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"): False,
    ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"): False,
}


def fresh_kinds():
    return {
        (gvk := GroupVersionKind.parse(api, kind)): Kind(gvk, f"{kind.lower()}s", namespaced=namespaced, schema=UNKNOWN)
        for (api, kind), namespaced in SCOPES.items()
    }


GADGETS = {
    "group": "example.com", "names": {"kind": "Gadget", "plural": "gadgets"}, "scope": "Namespaced",
    "versions": [{"name": "v1", "served": True, "schema": {"openAPIV3Schema": {"type": "object"}}}],
}  # fmt: skip
NAMES = {"ConfigMap": "abcd", "ConfigMap v2": "a", "Service": "ab", "Deployment": "ab", "Job": "ab", "Namespace": ("shop", "far"),
         "CustomResourceDefinition": ("gadgets.example.com",), "ValidatingWebhookConfiguration": "a", "Gadget": "ab"}  # fmt: skip
NOTES = {
    "wave": ("0", "1", "-1", "soon"),
    "depends-on": ("ConfigMap a", "ConfigMap shop/b", "Deployment.apps a", "nonsense"),
    "hook": ("PreSync", "PostSync", "SyncFail"),
    "moved-from": ("shop/other", "far/other"),
    "moved-to": ("shop/other",),
    "conflicts": ("Yield", "Fail"),
    "keep": ("false",),
    "replace": ("true",),
}
THEIRS = {"argocd.argoproj.io/hook": ("Skip", "PreSync"), "argocd.argoproj.io/sync-wave": ("2",)}


def manifests():
    """Manifests of few names, so that histories meet the same objects again; most say nothing of themselves."""
    api_of = {kind: api for api, kind in SCOPES} | {"Gadget": "example.com/v1", "ConfigMap v2": "v2"}
    notes = st.one_of(
        st.just({}),
        st.just({}),
        st.sampled_from([{f"reconcile.dev/{name}": text} for name, texts in NOTES.items() for text in texts]),
        st.sampled_from([{name: text} for name, texts in THEIRS.items() for text in texts]),
    )

    def made(kind, name, place, note, size):
        metadata = {"name": name, **({"namespace": place} if place else {}), **({"annotations": note} if note else {})}
        spec = {"size": size}
        if kind == "CustomResourceDefinition":
            spec = {**GADGETS, "size": size}
        if kind == "Service":
            spec = {"selector": {"app": "a"}}
        if kind == "Deployment":
            spec = {"replicas": size, "template": {"metadata": {"labels": {"app": "a"}}}}
        body = {"apiVersion": api_of[kind], "kind": kind.split()[0], "metadata": metadata, "spec": spec}
        if kind == "ValidatingWebhookConfiguration":
            body["webhooks"] = [{"clientConfig": {"service": {"namespace": "shop", "name": "a"}}, "size": size}]
        return body

    kinds = st.sampled_from(["ConfigMap", "ConfigMap", "ConfigMap", *NAMES])
    return kinds.flatmap(
        lambda kind: st.builds(
            made, st.just(kind), st.sampled_from(NAMES[kind]), st.sampled_from(["", "", "shop", "far"]), notes,
            st.integers(0, 2),
        )
    )  # fmt: skip


USE = VariableUse(("spec", "size"), ("SIZE",))
DRAWN = Drawn(("spec", "size"), "drawn")


@dataclass
class World:
    """A repository, a cluster, and what a daemon remembers of both, as they go through a history."""

    files: dict = field(default_factory=dict)
    ignored: set = field(default_factory=set)
    cluster: dict = field(default_factory=dict)
    sync: Sync = SHOP
    kinds: dict = field(default_factory=fresh_kinds)
    verdicts: dict = field(default_factory=dict)
    contentions: dict = field(default_factory=dict)
    stamps: dict = field(default_factory=dict)
    found: tuple = ()
    grouped: bool = True
    version: int = 0
    footing: object = None

    def inputs(self, **more):
        there = {path: each for path, each in sorted(self.files.items()) if path not in self.ignored}
        desired = tuple(located for _, parsed in there.values() for located in parsed)
        live = Objects(self.cluster.values())
        return known(
            sync=self.sync, revision=Revision(f"{self.version}", NOW, {path: blob for path, (blob, _) in there.items()}, stamps=self.stamps),
            desired=desired, live=Overlay(live, Objects(self.found)) if self.found else live, kinds=self.kinds, now=NOW,
            verdicts=self.verdicts, contentions=self.contentions, grouped=self.grouped, problems=[Problem("x", 1, "odd")], **more,
        )  # fmt: skip

    def planned(self):
        """Plan by difference, and compare with the plan that looks at everything."""
        inputs = self.inputs()
        made, self.footing = planner.build_on(inputs, self.footing)
        assert _told(made) == _told(planner.build(inputs))
        self.verdicts = {**self.verdicts, **made.verdicts}
        return made

    # What happens to it

    def push(self, path, bodies, extra):
        self.version += 1
        parsed = tuple(
            replace(Located.of(body, path, 1 + 10 * at), **(extra if at == 0 else {})) for at, body in enumerate(bodies)
        )
        self.files[path] = (f"blob-{path}-{self.version}", parsed)

    def edit(self, path, number, body):
        """Change one object of a file; of the others it is known that they are as they were."""
        if path in self.files and (parsed := self.files[path][1]):
            self.version += 1
            at = number % len(parsed)
            changed = Located.of(body, path, parsed[at].line)
            self.files[path] = f"blob-{path}-{self.version}", (*parsed[:at], changed, *parsed[at + 1 :])

    def rename(self, old, new):
        if old in self.files:
            self.version += 1
            blob, parsed = self.files.pop(old)
            self.files[new] = blob, tuple(replace(each, path=new) for each in parsed)

    def ignore(self, path):
        self.ignored ^= {path}

    def remove(self, path):
        self.files.pop(path, None)

    def stamp(self, path, text):
        self.stamps = {**self.stamps, path: text}

    def apply(self):
        """Carry out what the plan says, as the server would, and remember what it answered."""
        for change in self.planned().changes:
            if not change.writes:
                continue
            if change.op is Op.DELETE:
                self.cluster.pop(change.ref, None)
                continue
            self.version += 1
            live = change.after if change.after is not None else change.intent
            facts = {
                "uid": f"uid-{change.ref}",
                "resourceVersion": str(self.version),
                "managedFields": _owned(change.intent),
            }
            self.cluster[change.ref] = {**live, "metadata": {**live["metadata"], **facts}}
            if change.provenance.key:
                self.verdicts[change.ref] = change.provenance.key, str(self.version)

    def drift(self, number, key, value):
        if self.cluster:
            ref = sorted(self.cluster)[number % len(self.cluster)]
            self.version += 1
            live = self.cluster[ref]
            metadata = {**live["metadata"], "resourceVersion": str(self.version)}
            changed = {"spec": {**live.get("spec", {}), "size": value}} if key == "spec" else {}
            if key == "label":
                metadata["labels"] = {"applyset.kubernetes.io/part-of": applyset_id(replace(SHOP, name="other").ref)}
            if key == "going":
                metadata["deletionTimestamp"] = NOW
            self.cluster[ref] = {**live, **changed, "metadata": metadata}

    def lose(self, number):
        if self.cluster:
            del self.cluster[sorted(self.cluster)[number % len(self.cluster)]]

    def find(self, body):
        """Look up an object that no watch shows, until the next time."""
        set_id = applyset_id(SHOP.ref)
        marked = member({**body, "metadata": {**body["metadata"], "namespace": "shop"}}, set_id=set_id, source="a.yaml")
        self.found = ({**marked, "metadata": {**marked["metadata"], "uid": "found", "resourceVersion": "3"}},)
        self.planned()
        self.found = ()

    def settle(self, settings_):
        self.sync = replace(self.sync, **settings_)

    def regroup(self):
        self.grouped = not self.grouped

    def serve(self):
        """Have the server serve what CRDs have brought."""
        crds = [each for ref, each in self.cluster.items() if ref.kind == "CustomResourceDefinition"]
        self.kinds = {**self.kinds, **{gvk: kind for crd in crds for gvk, kind in kinds_of_crd(crd).items()}}

    def relearn(self, api, kind):
        """Have a kind be another one: its CRD has changed."""
        gvk = GroupVersionKind.parse(api, kind)
        others = {ref: each for ref, each in self.verdicts.items() if ref.group_kind != gvk.group_kind}
        schema = schema_of_crd({"spec": {**GADGETS, "names": {"kind": kind}}}, "v1")
        known = {each: replace(found, schema=schema) for each, found in self.kinds.items() if each == gvk}
        self.kinds, self.verdicts = {**self.kinds, **known}, others

    def contend(self, number, contended):
        if self.cluster:
            ref = sorted(self.cluster)[number % len(self.cluster)]
            path = FieldPath.fields("spec", "size")
            self.contentions = {ref: (Contention(ref, path, "rival", 3, NOW),)} if contended else {}

    def forget(self):
        self.verdicts = {}


def _told(made):
    """Return all of a plan; kinds that its own CRDs bring are read anew each time."""

    def named(changes):
        return tuple(replace(change, kind=change.kind and change.kind.gvk) for change in changes)

    schedule = replace(made.schedule, awaited=named(made.schedule.awaited), fallbacks=named(made.schedule.fallbacks))
    return replace(made, changes=named(made.changes), schedule=schedule)


def _owned(intent):
    merge = three_way(desired=intent, live=None, schema=UNKNOWN)
    return [{"manager": FIELD_MANAGER, "operation": "Apply", "apiVersion": intent["apiVersion"], "fieldsType": "FieldsV1",
             "fieldsV1": merge.owned.to_wire()}]  # fmt: skip


PATHS = st.sampled_from(["a.yaml", "b.yaml", "c.yaml", "more-0.yaml", "z/a.yaml"])
SETTINGS = st.sampled_from([
    {"conflicts": ConflictPolicy.YIELD}, {"conflicts": ConflictPolicy.OVERRIDE}, {"prune": False}, {"prune": True},
    {"max_deletes": DeleteLimit(number=0)}, {"target_namespace": "far"}, {"target_namespace": ""}, {"replace": True},
    {"ignore": (IgnoreRule.at(FieldPath.fields("spec", "size")),)}, {"ignore": ()}, {"approved_plan": "x"},
])  # fmt: skip


def happenings():
    extra = st.sampled_from([{}, {}, {}, {}, {"uses": (USE,)}, {"drawn": (DRAWN,)}])
    number = st.integers(0, 20)
    return st.one_of(
        st.tuples(st.just("push"), PATHS, st.lists(manifests(), max_size=4), extra),
        st.tuples(st.just("push"), PATHS, st.lists(manifests(), max_size=4), st.just({})),
        st.tuples(st.just("push"), PATHS, st.lists(manifests(), min_size=1, max_size=1), extra),
        st.tuples(st.just("edit"), PATHS, number, manifests()),
        st.tuples(st.just("apply")),
        st.tuples(st.just("apply")),
        st.tuples(st.just("serve")),
        st.tuples(st.just("rename"), PATHS, PATHS),
        st.tuples(st.just("ignore"), PATHS),
        st.tuples(st.just("remove"), PATHS),
        st.tuples(st.just("stamp"), PATHS, st.sampled_from("xy")),
        st.tuples(st.just("drift"), number, st.sampled_from(["spec", "label", "going"]), number),
        st.tuples(st.just("lose"), number),
        st.tuples(st.just("find"), manifests()),
        st.tuples(st.just("settle"), SETTINGS),
        st.tuples(st.just("regroup")),
        st.tuples(st.just("relearn"), st.just("v1"), st.just("ConfigMap")),
        st.tuples(st.just("contend"), number, st.booleans()),
        st.tuples(st.just("forget")),
    )


@pytest.fixture(autouse=True)
def of_any_size(monkeypatch):
    monkeypatch.setattr(difference, "LEAST_MEMBERS", 0)


@settings(
    max_examples=400,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    deadline=None,
)
@given(st.lists(happenings(), min_size=2, max_size=12))
def test_a_plan_by_difference_is_the_plan_whole(history):
    world = a_world(config_map("d"))
    for what, *arguments in history:
        getattr(world, what)(*arguments)
        world.planned()
        world.planned()


# --- what is looked at ---


def config_map(name, size=0, **notes):
    metadata = {"name": name, "namespace": "shop"}
    if notes:
        metadata["annotations"] = {f"reconcile.dev/{key.replace('_', '-')}": text for key, text in notes.items()}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "spec": {"size": size}}


def a_world(*more):
    """Three ConfigMaps in files of their own, and what else is asked for, applied and planned once more."""
    world = World()
    for name in "abc":
        world.push(f"{name}.yaml", [config_map(name)], {})
    for number, body in enumerate(more):
        world.push(f"more-{number}.yaml", [body], {})
    world.apply()
    world.planned()
    return world


def looked_at(world):
    """Return the names of the members that the next plan would look at."""
    builder = planner.PlanBuilder.of(world.inputs())
    difference.stand_on(builder, world.footing)
    return {located.ref.name for located in builder.standing.others}


def test_nothing_is_looked_at_where_nothing_has_changed():
    assert looked_at(a_world()) == set()


def test_of_a_push_the_changed_file_is_looked_at_alone():
    world = a_world()
    world.push("b.yaml", [config_map("b", size=1)], {})
    assert looked_at(world) == {"b"}
    (change,) = [change for change in world.planned().changes if change.writes]
    assert change.ref.name == "b"


def test_what_changed_in_the_cluster_is_looked_at_alone():
    world = a_world()
    world.drift(2, "spec", 7)
    assert looked_at(world) == {"c"}


def test_what_concerns_others_is_looked_at_each_time():
    world = a_world(config_map("late", depends_on="ConfigMap a"))
    assert looked_at(world) == {"late"}


@pytest.mark.parametrize(
    "happening",
    [("settle", {"conflicts": ConflictPolicy.YIELD}), ("relearn", "v1", "ConfigMap"), ("regroup",), ("forget",)],
    ids=lambda happening: happening[0],
)
def test_under_other_settings_all_is_looked_at(happening):
    world = a_world()
    what, *arguments = happening
    getattr(world, what)(*arguments)
    assert looked_at(world) == {"a", "b", "c"}


def test_what_stood_behind_a_namespace_that_was_missing_does_so_no_more_once_it_is_there():
    world = a_world()
    late = {"argocd.argoproj.io/sync-wave": "2"}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "annotations": late}, "spec": {}}
    world.push("shop.yaml", [namespace], {})
    world.apply()
    assert [change.gate.wave for change in world.planned().changes] == [0, 0, 0, 1]


def test_a_file_that_asks_for_a_settled_object_as_well_is_a_problem_as_ever():
    world = a_world()
    world.push("z.yaml", [config_map("a", size=5)], {})
    made = world.planned()
    assert [problem.message for problem in made.problems if "is also in" in problem.message]


def test_a_part_of_a_source_leaves_the_footing_of_the_whole():
    world = a_world()
    inputs = replace(world.inputs(), whole=False)
    _, footing = planner.build_on(inputs, world.footing)
    assert footing is world.footing


def test_few_members_have_no_footing(monkeypatch):
    monkeypatch.setattr(difference, "LEAST_MEMBERS", 4)
    world = a_world()
    assert world.footing is None
    assert ObjectRef("", "ConfigMap", "shop", "a") in world.cluster
