"""Worlds that answer what a plan must know: what is asked for, what caches show, and what is so."""

from __future__ import annotations

from dataclasses import dataclass, field

from msgspec.structs import replace

from kubectl_reconcile.core.manifests.parse import Drawn
from kubectl_reconcile.core.module.api import Observation, module
from kubectl_reconcile.core.module.outcome import Outcome
from kubectl_reconcile.core.objects import FieldPath, ObjectRef
from kubectl_reconcile.core.planning.endings.cascade import Listed
from kubectl_reconcile.core.planning.plan import Contention
from kubectl_reconcile.core.planning.planner import build
from kubectl_reconcile.core.planning.questions import Answers
from kubectl_reconcile.core.planning.snapshot import Objects
from kubectl_reconcile.core.resources.applyset import Contents, applyset_id
from kubectl_reconcile.core.resources.sync import SYNC
from kubectl_reconcile.core.ssa.ignore import IgnoreFrom, IgnoreRule
from tests.core.planning.shop import MEMCACHED, NOW, SHOP, SHOP_ID, cache, config, inputs_of, live, written

FAR, NEAR = ObjectRef(SYNC.group, SYNC.kind, "far", "other"), ObjectRef(SYNC.group, SYNC.kind, "shop", "near")
COLOR = FieldPath.fields("data", "color")
DRIFT_IS_LEFT = replace(IgnoreRule.parse(".data.color"), of=IgnoreFrom.DRIFT)
NAMES = "abcdef"


def colored(name, color, **annotations):
    return {**config(name, **annotations), "data": {"color": color}}


def ref(name):
    return ObjectRef.of(config(name))


def child_of_cache(cr, *_):
    """A pod, and for a cache that says so another cache, and so on: what is outside is known level by level."""
    name, size = cr["metadata"]["name"], cr["spec"]["size"]
    pod = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {"replicas": size}}
    return Outcome(children=[pod, *([cache(f"{name}-x", size - 1)] if size > 2 else [])])


def observed_caches():
    methods = {"reconcile": lambda _, *given: child_of_cache(*given), "observe": lambda *_: {}}
    owns = ["apps/v1/Deployment", "cache.example.com/v1alpha1/Memcached", "v1/Pod"]
    one = module(api="cache.example.com/v1alpha1", kind="Memcached", owns=owns, name="memcached")
    return {MEMCACHED: one(type("Caches", (), methods))}


def inner(name, kinds=(SYNC.group_kind,), *, of=SHOP_ID):
    """A live Sync that takes its members along, itself a member of another."""
    found = Contents(frozenset(kinds), frozenset({"shop"})).metadata(
        ObjectRef(SYNC.group, SYNC.kind, "shop", name), "x/1"
    )
    body = {
        "apiVersion": SYNC.api_version, "kind": SYNC.kind, "metadata": {"name": name, "namespace": "shop"},
        "spec": {"deletionPolicy": "Prune"},
    }  # fmt: skip
    there = live(body, set_id=of, uid=f"uid-{name}")
    return {
        **there,
        "metadata": {**there["metadata"], **found, "labels": {**there["metadata"]["labels"], **found["labels"]}},
    }


@dataclass
class World:
    """What a source asks for, what the caches show, and all that somebody would be answered who asks."""

    desired: list = field(default_factory=list)
    shown: list = field(default_factory=list)
    hidden: list = field(default_factory=list)
    unreadable: set = field(default_factory=set)
    applied: dict = field(default_factory=dict)
    strangers: set = field(default_factory=set)
    overwritten: set = field(default_factory=set)
    is_far_gone: bool = False
    is_near_known: bool = False
    is_drawn_before: bool = False
    depth: int = 0
    ignore: tuple = ()
    same: set = field(default_factory=set)

    def inputs(self):
        """What is known at first; an earlier pass has found what is the same."""
        inputs = self._unseen()
        keys = {each.ref: each.provenance.key for each in build(inputs).changes} if self.same else {}
        return inputs.remembering(verdicts={each: (keys[each], "7") for each in self.same})

    def _unseen(self):
        # drawn values are compared by nobody: what is told apart is where they stand
        return inputs_of(
            self.desired, self.shown, sync=replace(SHOP, ignore=self.ignore), modules=observed_caches(),
        )  # fmt: skip

    def answers(self, asked, inputs):
        """Answer all that is asked, from what is so."""
        names = [each for each, _ in asked.names]
        begun = {each.ref for each in asked.writes if each.ref in self.overwritten and is_of_color(each)}
        listed = {each: self.listed(each) for each in asked.along}
        return Answers(
            observed={each: Observation({"seen": True}) for each in asked.outside},
            found=Objects(each for each in self.hidden if ObjectRef.of(each) in names),
            unreadable={each: "configmaps is forbidden" for each in names if each in self.unreadable},
            recalled={each.ref: self.applied[each.ref] for each in asked.updates if each.ref in self.applied},
            strangers=frozenset(asked.unasked) & frozenset(self.strangers),
            gone=asked.givers if self.is_far_gone else frozenset(),
            desired=self.redrawn(inputs) if asked.draws and self.is_drawn_before else None,
            listed=listed,
            sets={applyset_id(NEAR): NEAR} if self.is_near_known and applyset_id(NEAR) in asked.foreign.values() else {},
            contentions={**inputs.memory.contentions, **self.contended(begun)} if begun else None,
        )  # fmt: skip

    def listed(self, listing):
        """What deletions take along: a Sync in a Sync in a Sync, as deep as this world is."""
        level = next((at for at in range(self.depth + 1) if listing.set_id == _set_of(at)), None)
        if level is None or level == self.depth:
            return Listed()
        return Listed((inner(f"set-{level + 1}", of=_set_of(level)),))

    @staticmethod
    def redrawn(inputs):
        return tuple(
            replace(each, manifest=colored(each.ref.name, "drawn again")) if each.drawn else each
            for each in inputs.desired
        )

    @staticmethod
    def contended(refs):
        return {each: (Contention(each, COLOR, "rival", 3, NOW),) for each in refs}


def is_of_color(change):
    return any(each.path == COLOR for each in change.fields)


def _set_of(level):
    return applyset_id(ObjectRef(SYNC.group, SYNC.kind, "shop", f"set-{level}"))


SITUATIONS = [
    "new", "hidden", "hidden and same", "unreadable", "same", "drift", "git", "forgotten", "near", "far", "moves from far",
    "unasked", "stranger", "overwritten", "drawn", "drawn and there", "nothing",
]  # fmt: skip


def put(world, name, what):  # noqa: C901, PLR0912 - one line per situation
    asked, path = colored(name, "red"), f"{name}.yaml"
    there, other = (live(colored(name, color), path=path) for color in ("red", "blue"))
    located = written(asked, path, 1)
    match what:
        case "new":
            pass
        case "hidden":
            world.hidden.append(live(colored(name, "blue"), set_id=""))
        case "hidden and same":
            world.hidden.append(there)
        case "unreadable":
            world.unreadable.add(ref(name))
        case "same":
            world.shown.append(there)
            world.same.add(ref(name))
        case "drift" | "overwritten":
            world.shown.append(other)
            world.applied[ref(name)] = asked
            if what == "overwritten":
                world.overwritten.add(ref(name))
        case "git":
            world.shown.append(other)
            world.applied[ref(name)] = colored(name, "blue")
        case "forgotten":
            extra = {**other, "data": {"color": "blue", "size": "9"}}
            world.shown.append({**extra, "metadata": {**extra["metadata"], "managedFields": []}})
            world.applied[ref(name)] = {**colored(name, "blue"), "data": {"color": "blue", "size": "9"}}
        case "near":
            world.shown.append(live(colored(name, "blue"), set_id=applyset_id(NEAR), path=path))
        case "far":
            world.shown.append(live(colored(name, "blue"), set_id=applyset_id(FAR), path=path))
        case "moves from far":
            world.shown.append(live(colored(name, "blue"), set_id=applyset_id(FAR), path=path))
            located = written(colored(name, "red", moved_from="far/other"), path, 1)
        case "unasked" | "stranger":
            world.shown.append(there)
            located = None
            if what == "stranger":
                world.strangers.add(ref(name))
        case "drawn" | "drawn and there":
            located = replace(located, drawn=(Drawn(("data", "color"), "red"),))
            if what == "drawn and there":
                world.shown.append(there)
        case _:
            located = None
    if located is not None:
        world.desired.append(located)


def a_world(**situations):
    world = World()
    for name, what in situations.items():
        put(world, name, what.replace("_", " "))
    return world
