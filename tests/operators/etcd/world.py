"""A model of Kubernetes and etcd, as far as an EtcdCluster needs it: what really happens when its module's steps are taken.

It knows what the module doesn't: which data lies where. Whoever starts a member on an empty folder that has run before, begins a second
cluster, or takes away a majority is found out here.
"""

import copy
import itertools

from kubectl_reconcile.core.annotations import ACTIONS, APPROVED_ACTIONS
from kubectl_reconcile.core.module.action_journal import ActionJournal, ActionProgress, approving, is_approved, unmet
from kubectl_reconcile.core.module.call import outcome_of
from kubectl_reconcile.core.module.inputs import Context
from kubectl_reconcile.core.module.outcome import key_of
from kubectl_reconcile.core.objects import annotations_of, merge_conditions
from kubectl_reconcile_operators.etcd import EtcdCluster
from kubectl_reconcile_operators.etcd.driver import membership
from kubectl_reconcile_operators.etcd.situation import ALONE, ASIDE
from tests.operators.keeping import ended, made, seen

NOW = "2026-11-20T12:00:00Z"
ENDED_EMPTY = {
    "restartCount": 1,
    "state": {"waiting": {"reason": "CrashLoopBackOff"}},
    "lastState": {
        "terminated": {
            "exitCode": 1,
            "message": '{"level":"fatal","msg":"discovery failed","error":"cannot fetch cluster info from peer urls:'
            ' could not retrieve cluster information from the given URLs"}',
        }
    },
}
"""How an etcd is found that has no data and nobody to join."""
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


class World:
    """One cluster, from its CR on. *taken* are the sentences of all steps so far, *held* the actions that waited for approval in the last one.

    While it *is_unheard*, its members serve, but none has time to answer the module.
    """

    def __init__(self, size=3, version="3.5.35", *, in_memory=False, **spec):
        pod = {} if in_memory else {"persistentVolumeClaimSpec": CLAIM}
        metadata = {"name": "db", "namespace": "shop", "uid": "u-cr", "generation": 1, "resourceVersion": "1"}
        metadata["finalizers"] = [EtcdCluster.finalizer]
        self.cr = {
            "apiVersion": "etcd.database.coreos.com/v1beta2",
            "kind": "EtcdCluster",
            "metadata": metadata,
            "spec": {"size": size, "version": version, "pod": pod, **spec},
        }
        self.objects = {}
        self.members = []
        self.data = {}
        self.ran = set()
        self.leader = ""
        self.version = ""
        self.bootstraps, self.cluster = 0, "c"
        self.broken, self.lost = set(), set()
        self.taken, self.held = [], []
        self.now, self.revisions, self.decided = NOW, {}, ""
        self.seen, self.silent = set(), set()
        self.is_unheard = False
        self.files, self.alarms, self.compacted = {}, [], False
        self.backups_say, self.backups_fail = "", ""
        self.new = itertools.count(1)

    # --- what is there ------------------------------------------------------------------------------

    @property
    def pods(self):
        return {name: one for (kind, name), one in self.objects.items() if kind == "Pod"}

    @property
    def voters(self):
        return [each for each in self.members if not each["learner"]]

    def serving(self, members=None):
        """The voters that would serve a write, had they a majority."""
        return [each for each in (members or self.voters) if self.runs(each)]

    def runs(self, member):
        pod = self.pods.get(slot_of(member))
        return pod is not None and slot_of(member) not in self.broken and self.data.get(self.place(pod)) == member["id"]

    def place(self, pod):
        """Where a pod keeps its data."""
        claim = self.objects.get(("PersistentVolumeClaim", f"{pod['metadata']['name']}-data"))
        uses = "persistentVolumeClaim" in pod["spec"]["volumes"][0]
        return claim["metadata"]["uid"] if uses and claim else pod["metadata"]["uid"]

    def aside(self, slot):
        """Whose data the volume of a slot holds that was put aside."""
        claim = self.objects.get(("PersistentVolumeClaim", f"{slot}-data"))
        return annotations_of(claim).get(ASIDE, "") if claim else ""

    @property
    def has_majority(self):
        return bool(self.voters) and len(self.serving()) > len(self.voters) // 2

    # --- what happens by itself ---------------------------------------------------------------------

    def run(self):
        """Let all pods run what they were made for."""
        self.lost = set()
        for name, pod in self.pods.items():
            if name not in self.broken:
                self.start(name, pod)
        self.fall_silent()
        self.back_up()
        if not self.has_majority:
            self.leader = ""  # who leads afterwards nobody knows; here it is the first one
        if self.has_majority and self.leader not in {each["id"] for each in self.serving()}:
            self.leader = self.serving()[0]["id"]
        lines = {tag(pod).rsplit(".", 1)[0] for pod in self.pods.values()}
        if self.has_majority and len(lines) == 1:
            self.version = f"{lines.pop()}.0"
        for name, pod in self.pods.items():
            member = next((each for each in self.members if slot_of(each) == name), None)
            ready = member is not None and self.runs(member) and self.has_majority
            pod["status"] = {
                "phase": "Running",
                "podIP": "10.0.0.1",
                "conditions": [{"type": "Ready", "status": str(ready)}],
            }
            if name in self.lost:
                pod["status"]["containerStatuses"] = [ENDED_EMPTY]

    def start(self, name, pod):
        place, args = self.place(pod), told(pod)
        assert not self.aside(name), f"{name} starts on a volume that was put aside"
        if ALONE in args:
            assert self.data.get(place), f"{name} is to go on with nothing"
            assert set(self.pods) == {name}, f"{name} goes on alone while others may run"
            self.members = [{"id": self.data[place], "name": name, "peer": peer(name), "learner": False}]
        if self.data.get(place):
            return
        if args["--initial-cluster-state"] == "existing" and "," not in args["--initial-cluster"]:
            self.lost.add(name)  # it finds nobody to join, and ends
            return
        if args["--initial-cluster-state"] == "new":
            self.bootstraps += 1
            assert self.bootstraps == 1, f"{name} begins a second cluster"
            self.members = [{"id": "m0", "name": name, "peer": peer(name), "learner": False}]
            self.data[place] = "m0"
            self.ran.add("m0")
            return
        member = next((each for each in self.members if slot_of(each) == name), None)
        if member is None:
            return  # it was removed, and its etcd ends
        assert member["id"] not in self.ran, f"{name} starts on an empty folder as a member that has promised things"
        if self.has_majority:
            member["name"] = name
            self.data[place] = member["id"]
            self.ran.add(member["id"])

    def fall_silent(self):
        """A member that was restarted answers nobody before there is a majority."""
        there = {pod["metadata"]["uid"] for pod in self.pods.values()}
        self.silent = set() if self.has_majority else self.silent | (there - self.seen)
        self.seen |= there

    def back_up(self):
        """Let EtcdBackups be taken, unless they say something or fail."""
        for kind, name in self.objects:
            if kind == "EtcdBackup":
                said, is_done = self.backups_fail or self.backups_say, not (self.backups_fail or self.backups_say)
                conditions = [
                    {"type": "Ready", "status": str(is_done), "message": said},
                    {"type": "Degraded", "status": str(bool(self.backups_fail))},
                ]
                line = {"name": f"{name}-once", "phase": "Succeeded", "file": f"{name}/x.db", "revision": 42}
                self.objects[kind, name]["status"] = {
                    "succeeded": is_done, "conditions": conditions, "history": [line] * is_done,
                }  # fmt: skip

    def facts(self):
        pods = {}
        for name, pod in self.pods.items():
            member = next((each for each in self.members if slot_of(each) == name), None)
            is_silent = self.is_unheard or pod["metadata"]["uid"] in self.silent
            up = member is not None and self.runs(member) and not is_silent
            answer = (
                {"id": member["id"], "learner": member["learner"], "cluster": self.cluster, "error": ""}
                if up
                else {"error": "x"}
            )
            pods[name] = {"uid": pod["metadata"]["uid"], "version": tag(pod), "synced": up, **answer}
            is_asked = "RestoreOffered" in str(self.cr.get("status"))
            if up and (is_asked or not self.has_majority):
                revision = self.revisions.get(name, 42)
                pods[name] |= {"revision": revision, "term": 3, "index": revision + 8}
        answering = sorted(name for name, each in pods.items() if not each["error"])
        members = copy.deepcopy(self.members) if answering else []
        return {
            "members": members,
            "membership": membership(members),
            "quorum": self.has_majority and not self.is_unheard,
            "leader": self.leader if self.has_majority and not self.is_unheard else "",
            "answering": ",".join(answering),
            "version": self.version if answering else "",
            "pods": pods,
            **self.small(answering),
        }

    def small(self, answering):
        """What is told of alarms, and of files where it matters."""
        told = {"alarms": [{"alarm": kind, "member": member} for kind, member in self.alarms] if answering else []}
        files = {name: self.file(name) for name in answering}
        if self.cr["spec"].get("etcd", {}).get("defragmentation"):
            told["slack"] = [name for name, (used, old, free) in files.items() if free and free * 4 >= used + old]
        if any(kind == "NOSPACE" for kind, _ in self.alarms):
            told["sizes"] = {
                name: {"size": sum(file) << 20, "used": sum(file[:2]) << 20} for name, file in files.items()
            }
            told |= {"revision": 42, "compacted": self.compacted}
        return told

    def file(self, slot):
        """What is in the file of a slot, in mebibytes: what keys are, what they were, and what is free."""
        return self.files.get(self.place(self.pods[slot]), (1, 0, 0))

    def fill(self, slot, now=1, old=0, free=0):
        self.files[self.place(self.pods[slot])] = (now, old, free)

    # --- what the module does -----------------------------------------------------------------------

    def ask(self, with_=outcome_of):
        owned = seen(EtcdCluster, self.cr, self.objects.values())
        return with_(
            EtcdCluster, copy.deepcopy(self.cr), owned, self.facts(), Context(self.now, "etcdcluster", self.cr)
        )

    def step(self, with_=outcome_of):
        """One pass: ask, and do what is said. Returns the outcome."""
        outcome = self.ask(with_)
        before = (self.cr.get("status") or {}).get("conditions")
        conditions = merge_conditions(before, outcome.conditions, generation=1, now=self.now)
        self.cr["status"] = {**copy.deepcopy(outcome.status), "conditions": conditions}
        wanted = {(each["kind"], each["metadata"]["name"]): each for each in outcome.children}
        done = [self.delete(*key) for key in ended(EtcdCluster, self.cr, self.objects, outcome)]
        for key, child in wanted.items():
            if key not in self.objects and key_of(child) not in outcome.untouched:
                new = made(EtcdCluster, self.cr, child)
                new["metadata"] |= {"uid": f"u-{next(self.new)}", "resourceVersion": "1"}
                self.objects[key] = new
                done.append(f"create {key[1]}" if key[0] in {"Pod", "EtcdBackup"} else "")
            elif key_of(child) not in outcome.untouched:
                live = self.objects[key]
                may_grow = key[0] in {"PodDisruptionBudget", "PersistentVolumeClaim"}
                assert live["spec"] == child["spec"] or may_grow, f"{key} can't be changed so"
                live["spec"] = copy.deepcopy(child["spec"])
                asides = ASIDE in annotations_of(child), ASIDE in annotations_of(live)
                done += ["put aside"] if asides[0] != asides[1] and "put aside" not in done else []
                live["metadata"]["annotations"] = dict(child["metadata"].get("annotations") or {})
                live["metadata"]["labels"] = made(EtcdCluster, self.cr, child)["metadata"]["labels"]
        self.held = [action for action in outcome.actions if not is_approved(action, self.cr)]
        journal = ActionJournal.of(self.cr)
        for action in outcome.actions[: len(outcome.actions) - len(self.held)]:
            if journal.bars(action):
                continue
            assert not (why := unmet(action, self.facts())), why
            self.act(action)
            self.note(action)
            done.append(f"{action.verb} {action.parameters['slot']}")
        steps = [each for each in done if each]
        assert len(steps) <= 1, f"more than one step a pass: {steps}"
        self.taken += steps
        self.run()
        return outcome

    def note(self, action):
        """Write into the journal that an action has run."""
        journal = ActionJournal.of(self.cr).ended(action, self.now, ActionProgress.DONE)
        self.cr["metadata"].setdefault("annotations", {})[ACTIONS] = journal.text()

    def approve(self):
        """Let through what is held, as kubectl reconcile approve does."""
        keys = tuple(action.key for action in self.ask().actions if not is_approved(action, self.cr))
        assert keys, "nothing is held"
        self.cr["metadata"].setdefault("annotations", {})[APPROVED_ACTIONS] = approving(self.cr, keys)

    def delete(self, kind, name):
        if kind == "Pod":
            before = self.has_majority
            sole = len(self.voters) <= 2  # of two, one is no majority: whoever wants to write meanwhile asks for three
            self.objects.pop((kind, name))
            given_up = "replacing" in self.cr["status"]
            assert not before or sole or given_up or self.has_majority, f"deleting {name} takes away the majority"
            self.broken.discard(name)
            if self.is_doomed(name):
                self.objects.pop(("PersistentVolumeClaim", f"{name}-data"))
            return f"delete {name}"
        if kind == "PersistentVolumeClaim":
            slot = name.removesuffix("-data")
            assert slot not in {slot_of(each) for each in self.members}, f"the data of member {slot} is deleted"
            assert slot not in self.pods, f"the volume of {slot} is in use"
            is_given_up = f"end-volume {slot}" in self.taken
            assert is_given_up or not self.aside(slot), f"the volume of {slot} was put aside, and goes"
            self.objects.pop((kind, name))
            return f"delete volume {slot}"
        if kind == "EtcdBackup":
            self.objects.pop((kind, name))
            return ""
        assert kind == "PodDisruptionBudget"
        assert len(self.voters) == 1, "a budget goes that is needed"
        self.objects.pop((kind, name))
        return ""

    def is_doomed(self, slot):
        """Whether the volume of a slot goes with its pod."""
        claim = self.objects.get(("PersistentVolumeClaim", f"{slot}-data"))
        return bool(claim and claim["metadata"].get("deletionTimestamp"))

    def wipe(self, slot):
        """Let the volume of a slot come back empty, and its etcd start again."""
        self.data.pop(self.place(self.pods[slot]), None)

    def doom(self, slot):
        """Delete a volume by hand that is in use: it goes with its pod."""
        self.objects["PersistentVolumeClaim", f"{slot}-data"]["metadata"]["deletionTimestamp"] = NOW

    def act(self, action):
        given, had = action.parameters, self.has_majority
        if action.verb in {"recover", "replace", "make-room", "accept", "end-volume"}:
            assert not had or action.verb != "recover", "one member is let go on alone while there is a majority"
            self.decided = given.get("member", "")
            return
        assert had, "etcd changes nothing without a majority"
        if action.verb in {"compact", "defragment", "disarm"}:
            self.keep_small(action.verb, given)
            return
        assert self.leader == next(each["id"] for each in self.members if slot_of(each) == given["via"])
        match action.verb:
            case "add":
                assert not any(
                    ALONE in each for pod in self.pods.values() for each in pod["spec"]["containers"][0]["args"]
                )
                assert not any(each["learner"] for each in self.members), "one learner at a time"
                assert given["slot"] not in {slot_of(each) for each in self.members}
                member = {"id": f"m{next(self.new)}", "name": "", "peer": given["peer"], "learner": True}
                self.members.append(member)
            case "promote":
                (member,) = (each for each in self.members if each["id"] == given["member"])
                assert self.runs(member), "a learner is promoted that doesn't run"
                member["learner"] = False
            case "move-leader":
                assert given["member"] in {each["id"] for each in self.serving()}
                self.leader = given["member"]
            case _:
                assert given["member"] != self.leader, "the leader is removed"
                self.members = [each for each in self.members if each["id"] != given["member"]]
        assert self.has_majority, f"{action.summary}: this takes away the majority"

    def keep_small(self, verb, given):
        assert len(self.serving()) == len(self.voters), "a member is kept busy while another doesn't serve"
        match verb:
            case "compact":
                assert given["revision"] == 42
                self.compacted = True
                for name in self.pods:
                    now, old, free = self.file(name)
                    self.fill(name, now, 0, old + free)
            case "defragment":
                assert given["via"] == given["slot"]
                self.fill(given["slot"], *self.file(given["slot"])[:2])
            case _:
                self.alarms = [each for each in self.alarms if each[0] != "NOSPACE"]

    def settle(self, most=80):
        """Go on until nothing is left to do. Returns the last outcome."""
        for _ in range(most):
            before = len(self.taken), self.facts(), copy.deepcopy(self.cr.get("status"))
            outcome = self.step()
            if before == (len(self.taken), self.facts(), self.cr["status"]):
                return outcome
        raise AssertionError(f"it never settles: {self.taken[-20:]}")


def told(pod):
    """What a pod's etcd is told, as its node works it out at a start."""
    (container,) = pod["spec"]["containers"]
    noted = {f"metadata.annotations['{name}']": value for name, value in annotations_of(pod).items()}
    variables = {
        each["name"]: noted.get(each["valueFrom"]["fieldRef"]["fieldPath"], "")
        for each in container.get("env", ())
        if "valueFrom" in each
    }
    found = dict(each.partition("=")[::2] for each in container["args"])
    return {name: variables.get(value[2:-1], value) for name, value in found.items()}


def slot_of(member):
    return member["peer"].partition("://")[2].partition(".")[0]


def peer(slot):
    return f"http://{slot}.db.shop.svc:2380"


def tag(pod):
    return pod["spec"]["containers"][0]["image"].rpartition(":v")[2]


def condition(outcome, type_):
    return next((each for each in outcome.conditions if each.type == type_), None)


def formed(size=3, **spec):
    world = World(size, **spec)
    world.settle()
    world.taken.clear()
    return world


def joins(slot):
    return [f"add {slot}", f"create {slot}", f"promote {slot}"]
