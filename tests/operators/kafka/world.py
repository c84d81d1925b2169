"""A model of Kubernetes and Kafka, as far as a Kafka needs it: what really happens when its module's steps are taken.

It knows which data lies on which volume, and who is in sync. Whoever formats a volume as another cluster's, deletes one that is needed, or has a partition lose what
it needs, is found out here.
"""

import copy
import itertools

from kubectl_reconcile.core.annotations import ACTIONS
from kubectl_reconcile.core.module.action_journal import ActionJournal, ActionProgress, is_approved, unmet
from kubectl_reconcile.core.module.call import outcome_of
from kubectl_reconcile.core.module.inputs import Context
from kubectl_reconcile.core.module.outcome import key_of
from kubectl_reconcile_operators.kafka import Kafka
from kubectl_reconcile_operators.kafka.names import fact_key, topic_of
from kubectl_reconcile_operators.kafka.spec import LEVELS
from tests.operators.keeping import ended, made, seen

NOW = "2026-11-20T12:00:00Z"
_GOOD = {
    "state": "ok",
    "since": "2026-11-01T00:00:00Z",
    "until": "2027-11-01T00:00:00Z",
    "issuer": "one",
    "trusted": ["one"],
}
CERTIFIED = {
    "ca": {"state": "ok", "signer": "one", "until": "2036-11-01T00:00:00Z", "trusted": ["one"]},
    "broker": {**_GOOD, "fingerprint": "b-1"},
    "operator": {**_GOOD, "fingerprint": "o-1"},
}
"""Certificates that a Kafka has issued itself, not long ago."""


def a_cr(**spec):
    metadata = {"name": "kf", "namespace": "shop", "uid": "u-cr", "generation": 1, "resourceVersion": "1"}
    whole = {"version": "4.3.1", "storage": {"size": "1Gi"}, **spec}
    return {"apiVersion": "kafka.example.com/v1alpha1", "kind": "Kafka", "metadata": metadata, "spec": whole}


class World:
    """One cluster, from its CR on. *taken* are all steps so far, *down* the brokers that don't run though they have pods, *silent* those that run and that nobody hears for now, *stuck* those that partitions don't get to; *unwritten* are names of children that the next pass that creates them doesn't come to."""

    def __init__(self, **spec):
        self.cr, self.now = a_cr(**spec), NOW
        self.cr["metadata"]["finalizers"] = [Kafka.finalizer]
        self.objects, self.disks, self.topics = {}, {}, {}
        self.config = {}
        self.controller, self.level, self.voters, self.lagging = -1, 0, {}, set()
        self.down, self.slow, self.silent, self.stuck = set(), set(), set(), set()
        self.registered, self.moves, self.throttled = set(), {}, {}
        self.refuses, self.unwritten, self.restarts = {}, set(), {}
        self.taken, self.new = [], itertools.count(1)

    @property
    def pods(self):
        return {int(name.rpartition("-")[2]): one for (kind, name), one in self.objects.items() if kind == "Pod"}

    @property
    def running(self):
        return {number for number, pod in self.pods.items() if number not in self.down and number in self.disks}

    @property
    def voting(self):
        """The controllers that run and vote: one whose volume was made anew only observes until it is let in."""
        return {each for each in self.running if self.voters.get(each) == self.disks[each]["id"]}

    def knows(self, number):
        """The newest version of metadata that a broker knows, by its image."""
        return LEVELS[self.pods[number]["spec"]["containers"][0]["image"].rpartition(":")[2]]

    @property
    def spec(self):
        return self.cr["spec"]

    def change(self, **spec):
        self.cr["spec"] |= spec
        self.cr["metadata"]["generation"] += 1

    def topic(self, name, *replicas, config=None, size=0, least=2):
        """Somebody makes a topic whose partitions stand so."""
        partitions = [{"replicas": list(each), "bytes": size} for each in replicas]
        self.topics[name] = {
            "id": f"t-{next(self.new)}",
            "min": least,
            "config": dict(config or {}),
            "partitions": partitions,
        }

    def partitions(self):
        return [(name, at, each) for name, topic in self.topics.items() for at, each in enumerate(topic["partitions"])]

    # --- what happens by itself ---------------------------------------------------------------------

    def run(self):
        """Let all pods run what they were made for."""
        for number, pod in self.pods.items():
            if ("PersistentVolumeClaim", f"kf-{number}-data") not in self.objects:
                pod["status"] = {"phase": "Pending"}  # no node takes it
                continue
            told = told_first(pod)
            if number not in self.disks:
                self.disks[number] = {
                    "cluster": told["CLUSTER_ID"],
                    "begins": told["BEGIN"],
                    "id": f"d-{next(self.new)}",
                }
                self.voters |= {} if told["BEGIN"] == "joins" else {number: self.disks[number]["id"]}
            disk = self.disks[number]
            assert disk["cluster"] == told["CLUSTER_ID"], f"kf-{number} is formatted for another cluster"
            assert not (disk["begins"] != "joins" and number >= self.spec.get("controllers", 3)), number
            is_up = number not in self.down | self.silent
            pod["status"] = {
                "phase": "Running",
                "podIP": f"10.0.0.{number}",
                "conditions": [{"type": "Ready", "status": str(is_up), "lastTransitionTime": "2026-11-20T11:00:05Z"}],
            }
            if number not in self.down:
                pod["status"]["containerStatuses"] = [
                    {"name": "kafka", "state": {"running": {"startedAt": "2026-11-20T11:00:00Z"}}}
                ]
            uid = f"{pod['metadata']['uid']}-{self.restarts.get(number, 0)}"
            found = "empty" if self.disks[number].setdefault("for", uid) == uid else "kept"
            ended = {"exitCode": 0, "message": found, "finishedAt": f"{uid}-prepared"}
            pod["status"]["initContainerStatuses"] = [{"name": "prepare", "state": {"terminated": ended}}]
        assert len({each["cluster"] for each in self.disks.values()}) <= 1
        quorum = self.voting
        self.controller = (
            -1 if len(quorum) * 2 <= len(self.voters) else self.controller if self.controller in quorum else min(quorum)
        )
        if self.controller >= 0:
            self.registered |= self.running
            self.level = self.level or min(map(self.knows, self.running))
            assert all(self.knows(each) >= self.level for each in self.running), "a broker doesn't know the metadata"
            self.config = self.config or {"min.insync.replicas": "2" if self.spec.get("controllers", 3) > 1 else "1"}
        for _, _, each in self.partitions():
            if "target" in each and not ({*each["target"]} & (self.slow | self.stuck)):
                each["replicas"] = each.pop("target")
            there = [number for number in each["replicas"] if number in self.running and number not in self.slow]
            each["inSync"] = sorted(there)
            if each.get("leader", -1) not in there:
                each["leader"] = there[0] if there else -1

    def facts(self):
        return {"tls": CERTIFIED, **self.heard()}

    def heard(self):
        heard = self.running - self.silent
        pods = {
            f"kf-{number}": {"uid": pod["metadata"]["uid"], "error": "" if number in heard else "silent"}
            for number, pod in self.pods.items()
        }
        if not heard or self.controller < 0:
            return {"pods": pods}
        observing = {number: self.disks[number]["id"] for number in sorted(self.running - self.voting)}
        return {
            "pods": pods,
            "cluster": {
                "id": next(iter(self.disks.values()))["cluster"],
                "controller": self.controller,
                "level": self.level,
                "voters": {str(number): directory for number, directory in sorted(self.voters.items())},
                "observers": {str(number): directory for number, directory in observing.items()},
                "caughtUp": sorted({*observing} - self.lagging),
            },
            "brokers": {
                str(number): {
                    "fenced": number not in self.running,
                    "rack": "",
                    "throttled": dict(self.throttled.get(number, {})),
                    "holds": sum(number in self.held(each) for _, _, each in self.partitions()),
                }
                | ({"usableBytes": 1 << 40, "knows": self.knows(number)} if number in self.running else {})
                for number in sorted(self.registered)
            },
            "config": dict(self.config),
            "topics": {fact_key(name): self.told(topic) for name, topic in self.topics.items()},
            "moves": self.in_flight(),
        }

    def told(self, topic):
        partitions = {
            str(at): {
                "replicas": self.held(each),
                "inSync": each.get("inSync", []),
                "leader": each.get("leader", -1),
                "bytes": each["bytes"],
            }
            for at, each in enumerate(topic["partitions"])
        }
        return {
            "id": topic["id"],
            "internal": False,
            "min": topic["min"],
            "config": dict(topic["config"]),
            "throttled": bool(topic.get("throttled")),
            "partitions": partitions,
        }

    def held(self, each):
        return list(dict.fromkeys([*each.get("target", ()), *each["replicas"]]))

    def in_flight(self):
        found = {}
        for name, at, each in self.partitions():
            if "target" in each:
                adding = [number for number in each["target"] if number not in each["replicas"]]
                removing = [number for number in each["replicas"] if number not in each["target"]]
                found.setdefault(fact_key(name), {})[str(at)] = {
                    "replicas": self.held(each),
                    "adding": adding,
                    "removing": removing,
                }
        return found

    # --- what the module does -----------------------------------------------------------------------

    def ask(self, with_=outcome_of):
        owned = seen(Kafka, self.cr, self.objects.values())
        return with_(Kafka, copy.deepcopy(self.cr), owned, self.facts(), Context(self.now, "kafka", self.cr))

    def step(self):
        """One pass: ask, and do what is said. Returns the outcome."""
        self.run()
        outcome = self.ask()
        self.cr["status"] = copy.deepcopy(dict(outcome.status))
        wanted = {(each["kind"], each["metadata"]["name"]): each for each in outcome.children}
        for key in ended(Kafka, self.cr, self.objects, outcome):
            self.delete(*key)
        for key, child in wanted.items():
            if key[1] in self.unwritten:
                self.unwritten.remove(key[1])
            elif key not in self.objects:
                new = made(Kafka, self.cr, child)
                new["metadata"] |= {"uid": f"u-{next(self.new)}", "resourceVersion": "1"}
                self.objects[key] = new
                self.taken += [f"create {key[1]}"] if key[0] == "Pod" else []
            elif key_of(child) not in outcome.untouched:
                live = self.objects[key]
                assert key[0] != "Pod" or live["spec"] == child["spec"], f"{key} can't be changed so"
                live |= {part: copy.deepcopy(child[part]) for part in ("spec", "data") if part in child}
                live["metadata"]["annotations"] = dict(child["metadata"].get("annotations") or {})
        for action in outcome.actions:
            if is_approved(action, self.cr) and not unmet(action, self.facts()):
                refused = self.refuses.get(action.verb)
                self.journal(action, refused)
                if not refused:
                    self.act(action.verb, action.parameters)
                    self.taken.append(action.key)
        self.run()
        return outcome

    def journal(self, action, refused):
        progress = ActionProgress.FAILED if refused else ActionProgress.DONE
        noted = self.cr["metadata"].setdefault("annotations", {})
        noted[ACTIONS] = ActionJournal.of(self.cr).ended(action, self.now, progress, refused or "").text()

    def lose_volume(self, number):
        """Somebody takes a volume away, with its pod."""
        for kind, name in (("Pod", f"kf-{number}"), ("PersistentVolumeClaim", f"kf-{number}-data")):
            self.objects.pop((kind, name))
        del self.disks[number]

    def doom_volume(self, number):
        """Somebody deletes a volume claim, which stays for as long as its pod does."""
        self.objects["PersistentVolumeClaim", f"kf-{number}-data"]["metadata"]["deletionTimestamp"] = self.now

    def approve(self, key):
        self.cr["metadata"].setdefault("annotations", {})["reconcile.dev/approve-actions"] = key

    def delete(self, kind, name):
        number = int(name.removesuffix("-data").rpartition("-")[2]) if kind in {"Pod", "PersistentVolumeClaim"} else -1
        if kind == "Pod":
            if number in self.voting and len(self.voters) > 1:
                assert 2 * len(self.voting - {number}) > len(self.voters), "the controllers lose their majority"
            for topic, at, each in self.partitions():
                left = {*each.get("inSync", ())} - {number}
                least = min(self.topics[topic]["min"], len(each["replicas"]) - 1)
                assert number not in each["replicas"] or number in self.down or len(left) >= least, (
                    f"{topic}-{at} loses what it needs"
                )
            self.taken.append(f"delete {name}")
            claim = self.objects.get(("PersistentVolumeClaim", f"{name}-data"), {"metadata": {}})
            if "deletionTimestamp" in claim["metadata"]:  # it has waited for its pod
                self.objects.pop(("PersistentVolumeClaim", f"{name}-data"))
                del self.disks[number]
        elif kind == "PersistentVolumeClaim":
            assert number not in self.pods, f"the volume of kf-{number} is in use"
            assert not any(number in self.held(each) for _, _, each in self.partitions()), "records are deleted"
            self.disks.pop(number, None)
            self.taken.append(f"delete volume {number}")
        else:
            raise AssertionError(f"{kind} {name} is deleted")
        self.objects.pop((kind, name))

    def act(self, verb, given):
        topic = given.get("topic", "")
        match verb:
            case "make-topic":
                assert given["replicas"] <= len(self.registered)
                rows = (self.row(at, given["replicas"]) for at in range(given["partitions"]))
                self.topic(topic, *rows, config=given["set"])
            case "grow-topic":
                own = self.topics[topic]["partitions"]
                assert given["partitions"] > len(own)
                replicas = len(own[0]["replicas"])
                own += [{"replicas": self.row(at, replicas), "bytes": 0} for at in range(len(own), given["partitions"])]
            case "set-topic":
                self.topics[topic]["config"] = changed(self.topics[topic]["config"], given)
            case "set-config":
                self.config = changed(self.config, given)
            case "set-throttle":
                assert {*given["brokers"]} <= {*self.throttled}
                self.throttle(given)
            case "delete-topic":
                del self.topics[topic]
            case _:
                self.act_on_brokers(verb, given)

    def row(self, at, replicas):
        """Where Kafka has the replicas of a new partition stand: its own choice, here the one that previews guess."""
        brokers = sorted(self.registered)
        return [brokers[(at + each) % len(brokers)] for each in range(replicas)]

    def throttle(self, given):
        rate = {"leader.replication.throttled.rate": str(given["throttle"])}
        self.throttled |= dict.fromkeys(given["brokers"], rate)

    def move(self, given):
        self.throttle(given)
        for each in given["moves"]:
            own = self.topics[each["topic"]]["partitions"][each["partition"]]
            assert "target" not in own, "a partition is assigned twice"
            assert {*each["replicas"]} <= self.running
            there = {*each["replicas"]}
            assert there - {*own["replicas"]} or there & {*own["inSync"]}, "what is in sync is taken away"
            assert len({*each["replicas"]}) == len(each["replicas"])
            own["target"] = each["replicas"]
            self.topics[each["topic"]]["throttled"] = True

    def act_on_brokers(self, verb, given):
        match verb:
            case "allow-restart" | "allow-moves" | "end-volume":
                pass
            case "move-partitions":
                self.move(given)
            case "cancel-moves":
                for each in given["moves"]:
                    own = self.topics[each["topic"]]["partitions"][each["partition"]]
                    del own["target"]
                    own["replicas"] = own["replicas"][1:] + own["replicas"][:1]
            case "take-throttle-off":
                assert not self.in_flight()
                self.throttled = {}
                for each in self.topics.values():
                    each.pop("throttled", None)
            case "unregister-broker":
                number = given["broker"]
                assert number not in self.running
                assert not any(number in self.held(each) for _, _, each in self.partitions())
                self.registered.discard(number)
            case "elect-leaders":
                for each in (
                    self.topics[name]["partitions"][at] for name, numbers in given["topics"].items() for at in numbers
                ):
                    each["leader"] = each["replicas"][0]
            case _:
                self.act_on_controllers(verb, given)

    def act_on_controllers(self, verb, given):
        match verb:
            case "raise-metadata-version":
                assert given["level"] > self.level
                self.level = given["level"]
            case "remove-voter":
                number = given["voter"]
                assert self.voters.pop(number) == given["directory"] != self.disks[number]["id"], (
                    "one that votes is put out"
                )
                assert 2 * len(self.voting) > len(self.voters), "the controllers lose their majority"
            case "add-voter":
                number = given["voter"]
                assert number not in self.voters | dict.fromkeys(self.lagging)
                assert given["directory"] == self.disks[number]["id"]
                self.voters[number] = given["directory"]
            case _:
                raise AssertionError(verb)

    def settle(self, most=60):
        """Go on until nothing is left to do. Returns the last outcome, and forgets the steps that it took if they are asked for."""
        for _ in range(most):
            before = len(self.taken), self.facts(), copy.deepcopy(self.cr.get("status")), copy.deepcopy(self.objects)
            outcome = self.step()
            if before == (len(self.taken), self.facts(), self.cr["status"], self.objects):
                return outcome
        raise AssertionError(f"it never settles: {self.taken[-20:]}")

    def steps_until(self, reached, most=30):
        """Go on until something is true."""
        for _ in range(most):
            self.step()
            if reached():
                return
        raise AssertionError(f"never: {self.taken}")

    def took(self):
        """The steps since this was asked last."""
        found, self.taken = self.taken, []
        return found


def told_first(pod):
    """What a pod's first container is told, as its node works it out at a start."""
    noted = {f"metadata.annotations['{name}']": value for name, value in pod["metadata"]["annotations"].items()}
    return {
        each["name"]: each["value"] if "value" in each else noted.get(each["valueFrom"]["fieldRef"]["fieldPath"])
        for each in pod["spec"]["initContainers"][0]["env"]
    }


def changed(before, given):
    return {**{name: value for name, value in before.items() if name not in given["reset"]}, **given["set"]}


def condition(outcome, type_):
    return next((each for each in outcome.conditions if each.type == type_), None)


__all__ = ["NOW", "World", "a_cr", "condition", "topic_of"]
