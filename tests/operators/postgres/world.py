"""A model of Kubernetes and PostgreSQL, as far as a MyDatabase needs it: what really happens when its module's steps are taken.

It knows what the module doesn't: which data lies on which volume. Whoever begins a second database, or starts a server on another's data, is found
out here.
"""

import copy
import datetime as dt
import itertools
import re

from kubectl_reconcile.core.annotations import ACTIONS
from kubectl_reconcile.core.module.action_journal import ActionJournal, ActionProgress, is_approved, unmet
from kubectl_reconcile.core.module.call import outcome_of
from kubectl_reconcile.core.module.inputs import Context
from kubectl_reconcile.core.module.outcome import key_of
from kubectl_reconcile_operators.postgres import MyDatabase
from kubectl_reconcile_operators.postgres.access.hba import hba_digest
from tests.operators.keeping import ended as ended_by
from tests.operators.keeping import made, seen

NOW = "2026-11-20T12:00:00Z"
HANDOVER = ["checkpoint db-0", "delete db-0", "create db-0", "promote db-1"]
"""The steps by which db-1 takes over from db-0."""
QUICK = ["checkpoint db-0", "delete db-0", "promote db-1", "create db-0"]
"""The same where db-1 says that it has the record with which db-0 ended."""
COPIED = ("rows", "marks", "timeline", "forks", "roles", "databases")
"""What whoever follows has from the primary."""
NO_ROOM = 'could not write to file "pg_wal/xlogtemp.7": No space left on device'
RESTARTS = {"max_connections", "shared_buffers"}


class World:
    """One database, from its CR on. *taken* are all steps so far, *secrets* what each Secret holds, *worth* what is wrong with those of no use; *rewinds* is how pg_rewind ends: done, refused or killed.

    *tells_end* is whether servers say what checkpoints stand in their logs; *full* are the slots on whose volumes there is no room left, *locked* those whose servers let nobody in for that. *unwritten* are names of children that the next pass that creates them doesn't come to.
    """

    def __init__(self, **spec):
        metadata = {"name": "db", "namespace": "shop", "uid": "u-cr", "generation": 1, "resourceVersion": "1"}
        metadata["finalizers"] = [MyDatabase.finalizer]
        self.cr = {
            "apiVersion": "example.com/v1alpha1",
            "kind": "MyDatabase",
            "metadata": metadata,
            "spec": {"version": 17, "storage": {"size": "1Gi"}, **spec},
        }
        self.objects = {}
        self.disks = {}
        self.secrets = {}
        self.worth = {}
        self.running = {}
        self.broken = set()
        self.full = set()
        self.locked = set()
        self.unwritten = set()
        self.rewinds = "done"
        self.now = NOW
        self.taken = []
        self.new = itertools.count(1)
        self.others = []
        self.tells_end = False
        self.systems = set()

    # --- what is there ------------------------------------------------------------------------------

    @property
    def pods(self):
        return {name: one for (kind, name), one in self.objects.items() if kind == "Pod"}

    def claim(self, slot):
        return self.objects.get(("PersistentVolumeClaim", f"{slot}-data"))

    def role(self, slot):
        return self.pods[slot]["metadata"]["labels"].get("example.com/role")

    @property
    def server(self):
        (found,) = self.running.values()
        return found

    def server_of(self, name):
        return self.running[uid_of(self.pods[name])]

    # --- what happens by itself ---------------------------------------------------------------------

    def run(self):
        """Let all pods run what they were made for."""
        self.running = {
            uid: one for uid, one in self.running.items() if uid in {uid_of(pod) for pod in self.pods.values()}
        }
        for name, pod in self.pods.items():
            if self.claim(name) is None:
                pod["status"] = {"phase": "Pending"}  # no node takes it
                continue
            has_ended = pod.get("status", {}).get("phase") == "Failed"
            is_up = name not in self.broken and (
                uid_of(pod) in self.running or (not has_ended and self.begin(name, pod))
            )
            if not has_ended and pod.get("status", {}).get("phase") != "Failed":
                pod["status"] = {
                    "phase": "Running", "podIP": "10.0.0.1", "conditions": [{"type": "Ready", "status": str(bool(is_up))}],
                }  # fmt: skip
        self.stream()

    def stream(self):
        """Let all who follow receive what the primary has written."""
        for name in self.pods:
            if self.follows(name):
                self.receive(name)

    def receive(self, name):
        """Let one receive what the primary has written."""
        source, own = self.disks[self.primary["disk"]], self.disks[self.running[uid_of(self.pods[name])]["disk"]]
        own |= {key: copy.deepcopy(source[key]) for key in COPIED}

    def write(self, row, *, to=None):
        """A client writes a row through the Service, if that leads anywhere; returns whether it was acknowledged.

        *to* are those who receive it at once, if they follow: by default all where somebody has to, else nobody.
        """
        led = [name for name in self.pods if self.role(name) == "primary"]
        assert len(led) <= 1, f"the Service leads to {led}"
        server = self.running.get(uid_of(self.pods[led[0]])) if led else None
        if server is None or server["standby"] or led[0] in self.broken:
            return False
        least, names = waits_for(server["synchronous"])
        following = [name for name in (names if to is None else to) if name in self.pods and self.follows(name)]
        self.disks[server["disk"]]["rows"].append(row)
        for name in following:
            self.receive(name)
        return len({*following} & {*names}) >= least

    def empty(self, *slots):
        """Let volumes come back empty, and what runs on them begin again in the same pods: their node lost all it had."""
        for slot in slots:
            self.disks.pop(uid_of(self.claim(slot)))
            self.running.pop(uid_of(self.pods[slot]), None)
            del self.pods[slot]["status"]
        self.run()

    def begin(self, name, pod):
        return lacked_room(pod, self.now) if name in self.full else self.start(name, pod)

    def start(self, name, pod):
        told = given(pod)
        disk, primary = uid_of(self.claim(name)), self.primary
        if "db-superuser" not in self.secrets:
            return False
        if disk not in self.disks and not self.filled(name, pod, disk, told, primary):
            return False
        if told["BEGIN"] == "rewind" and not self.rewound(name, pod, disk, primary):
            return False
        if self.disks[disk]["half"]:
            return ended(pod, 5)
        standby = told["BEGIN"] in {"replica", "rewind"}
        assert standby or primary is None, f"{name} is a second server that takes writes"
        settings = dict(line.split(" = ") for line in told["PARAMETERS"].splitlines())
        settings = {key: value[1:-1].replace("''", "'") for key, value in settings.items()}
        if standby and primary and room(settings) < primary["room"]:
            return False  # a standby with less room than its primary doesn't start
        if standby:
            self.disks[disk]["slots"] = set()
        if not standby and self.disks[disk]["marks"][-1:] != [(place(self.disks[disk]) - 1, True)]:
            self.mark(disk)  # what it writes once it has recovered from a crash
        self.running[uid_of(pod)] = {
            "disk": disk,
            "slot": told["SLOT"],
            "standby": standby,
            "settings": settings,
            "synchronous": told["SYNCHRONOUS"],
            "hba": told["HBA"],
            "tls": {"on": False, "stale": False},
            "room": room(settings),
            "pending": [],
        }
        return True

    def filled(self, name, pod, disk, told, primary):
        if told["BEGIN"] == "initdb" and not told["SYSTEM"]:
            return self.begun(name, disk)
        if told["BEGIN"] in {"initdb", "primary"}:
            return ended(pod, 3)
        return self.copied(name, disk, told, primary)

    def rewound(self, name, pod, disk, primary):
        """Take from a disk what the primary hasn't got, as pg_rewind does it, unless that isn't to be."""
        own = self.disks[disk]
        if own["half"]:
            return ended(pod, 5)
        if primary is None or self.role(primary["name"]) != "primary":
            return False
        source = self.disks[primary["disk"]]
        assert source["roles"]["replicator"].get("rewinds"), f"{name} is rewound as nobody"
        assert source["checkpointed"] == source["timeline"], f"{name} is rewound to an earlier timeline"
        if self.rewinds != "done":
            own["half"] = True
            return ended(pod, 5 if self.rewinds == "refused" else 137)
        own |= {key: copy.deepcopy(source[key]) for key in COPIED}
        return True

    def begun(self, name, disk):
        assert not self.disks, f"{name} begins a second database"
        own = {"password": self.secrets["db-superuser"]}
        empty = {"roles": {}, "databases": {}, "slots": set(), "rows": [], "marks": [], "timeline": 1, "forks": {}}
        empty |= {"checkpointed": 1, "half": False}
        self.disks[disk] = {"system": "7000" if not self.systems else "7001", **empty, **own}
        self.systems.add(self.disks[disk]["system"])
        return True

    def copied(self, name, disk, told, primary):
        """A copy of the primary's data, if that can be had: it takes a user, a slot, and a Service that leads there."""
        if primary is None or self.role(primary["name"]) != "primary":
            return False
        source = self.disks[primary["disk"]]
        role = source["roles"].get("replicator", {})
        assert told["SLOT"] in source["slots"], f"{name} copies without a slot of its own"
        assert role.get("replication"), f"{name} copies as nobody"
        self.disks[disk] = {**copy.deepcopy(source), "slots": set()}
        return True

    @property
    def primary(self):
        """The server that takes writes, None where there is none."""
        names = {uid_of(pod): name for name, pod in self.pods.items()}
        found = [
            {**one, "name": names[uid]} for uid, one in self.running.items() if uid in names and not one["standby"]
        ]
        assert len(found) <= 1, f"{found} take writes"
        return found[0] if found else None

    def follows(self, name):
        server, primary = self.running.get(uid_of(self.pods[name])), self.primary
        if not (server and primary and server["standby"]) or {name, primary["name"]} & self.broken:
            return False
        own, source = self.disks[server["disk"]], self.disks[primary["disk"]]
        is_behind = own["rows"] == source["rows"][: len(own["rows"])]
        return is_behind and server["slot"] in source["slots"] and self.role(primary["name"]) == "primary"

    def mark(self, disk, *, is_end=False):
        """A checkpoint is written to the log on a disk: as its end, or not. After a crash it looks the same as the one of an end."""
        if self.tells_end:
            self.disks[disk]["marks"].append((place(self.disks[disk]), is_end))

    def ends(self, slot):
        """The server of a pod stops in order: those who follow receive the record by which it says so."""
        server = self.running.get(uid_of(self.pods[slot]))
        if not self.tells_end or server is None or server["standby"] or slot in self.broken:
            return
        following = [name for name in self.pods if self.follows(name)]
        self.mark(server["disk"], is_end=True)
        for name in following:
            self.receive(name)

    def marked(self, server):
        """What a server says of checkpoints."""
        disk = self.disks[server["disk"]]
        if not self.tells_end or not disk["marks"]:
            return {}
        at, last = place(disk), disk["marks"][-1][0]
        return {"closed": lsn(last) if last == at - 1 else ""} if server["standby"] else {"checkpoint": lsn(last)}

    def kill(self, slot):
        """The server of a pod ends; nobody restarts it."""
        self.running.pop(uid_of(self.pods[slot]), None)
        state = {"terminated": {"exitCode": 137, "finishedAt": "2026-11-20T11:00:00Z"}}
        self.pods[slot]["status"] = {"phase": "Failed", "containerStatuses": [{"name": "postgres", "state": state}]}

    def fill(self, *slots):
        """Let there be no room left on volumes; servers that take writes end by that."""
        self.full |= {*slots}
        for slot in slots:
            server = self.running.get(uid_of(self.pods[slot]))
            if server and not server["standby"]:
                self.running.pop(uid_of(self.pods[slot]))
                lacked_room(self.pods[slot], NOW)

    def facts(self):
        pods = {}
        for name, pod in self.pods.items():
            if name in self.locked:
                pods[name] = {"uid": uid_of(pod), "error": "could not write init file", "full": True}
                continue
            server = self.running.get(uid_of(pod))
            if (
                server is None
                or name in self.broken
                or self.disks[server["disk"]]["password"] != self.secrets.get("db-superuser")
            ):
                pods[name] = {"uid": uid_of(pod), "error": "silent"}
                continue
            pods[name] = {
                "uid": uid_of(pod), "error": "", "full": name in self.full, "around": "0/0", "recovery": server["standby"], "system": self.disks[server["disk"]]["system"],
                "timeline": self.disks[server["disk"]]["timeline"], "checkpointed": self.disks[server["disk"]]["checkpointed"], "synchronous": server["synchronous"], "hba": hba_digest(server["hba"]), "tls": self.tls(pod, server), "version": "17.6", "major": "17", "settings": dict(server["settings"]), "pending": list(server["pending"]),
                "restarts": sorted(RESTARTS), "limits": {"max_connections": server["room"]}, **self.marked(server),
            }  # fmt: skip
        writable = sorted(name for name, each in pods.items() if not each["error"] and not each["recovery"])
        for name, each in pods.items():
            if writable and each.get("recovery"):
                each.pop("closed", None)
            follows = not writable or self.follows(name)
            if not each["error"] and each["recovery"] and not (writable and follows):
                disk = self.disks[self.running[uid_of(self.pods[name])]["disk"]]
                each.update({"lsn": position(disk)} | ({} if writable else {"receives": False}))
        certificate = self.cr["spec"].get("tls", {}).get("secretName", "db-superuser")
        within = self.disks[self.running[uid_of(self.pods[writable[0]])]["disk"]] if writable else {}
        source = self.cr["spec"].get("bootstrap", {}).get("fromCluster", {})
        copied = source.get("secretName") or f"{source.get('database', 'db')}-replication"
        users = {each["name"]: secret_of(each["name"]) for each in self.cr["spec"].get("users", ())}
        if self.cr["spec"].get("replicas", 1) > 1 or "backup" in self.cr["spec"]:
            users["replicator"] = "db-replication"
        following = {name for name in pods if writable and self.follows(name)}
        return {
            "secrets": {
                name: self.worth.get(name, "ok") if name in self.secrets else "absent" for name in ("db-superuser", certificate, copied, *users.values())
            },
            "pods": pods,
            "writable": ",".join(writable),
            "roles": {
                name: {**role, "password": role["password"] == self.secrets.get(users[name])}
                for name, role in within.get("roles", {}).items() if name in users
            },
            "databases": dict(within.get("databases", {})),
            "forks": dict(within.get("forks", {})),
            "followers": {name: {"state": "streaming", "lagBytes": 0} for name in following},
            "slots": {
                slot: {"active": slot.replace("_", "-") in following, "status": "reserved"} for slot in within.get("slots", ())
            },
        }  # fmt: skip

    def tls(self, pod, server):
        """What a server says of TLS: its pod sees the Secret that it mounts, if that is there."""
        mounted = [each["secret"]["secretName"] for each in pod["spec"]["volumes"] if each["name"] == "tls"]
        return {**server["tls"], "seen": any(name in self.secrets for name in mounted)}

    # --- what the module does -----------------------------------------------------------------------

    def ask(self, with_=outcome_of):
        owned = seen(MyDatabase, self.cr, self.objects.values(), self.others)
        return with_(MyDatabase, copy.deepcopy(self.cr), owned, self.facts(), Context(self.now, "mydatabase", self.cr))

    def step(self, with_=outcome_of, *, notes=True):
        """One pass: ask, and do what is said, unless *notes* without writing the status. Returns the outcome."""
        outcome = self.ask(with_)
        if notes:
            self.cr["status"] = {**outcome.status, "conditions": self.noted(outcome)}
        wanted = {(each["kind"], each["metadata"]["name"]): each for each in outcome.children}
        done = [self.delete(*key) for key in ended_by(MyDatabase, self.cr, self.objects, outcome)]
        for key, child in wanted.items():
            if key[1] in self.unwritten:
                self.unwritten.remove(key[1])
            elif key not in self.objects:
                new = as_stored(made(MyDatabase, self.cr, child))
                new["metadata"] |= {"uid": f"u-{next(self.new)}", "resourceVersion": "1"}
                self.objects[key] = new
                done.append(f"create {key[1]}" if key[0] == "Pod" else "")
            elif key_of(child) not in outcome.untouched:
                live = self.objects[key]
                assert key[0] != "Pod" or live["spec"] == as_stored(child)["spec"], f"{key} can't be changed so"
                live["spec"] = copy.deepcopy(child["spec"])
                live["metadata"]["annotations"] = dict(child["metadata"].get("annotations") or {})
                live["metadata"]["labels"] = made(MyDatabase, self.cr, child)["metadata"]["labels"]
        for action in outcome.actions:
            if not is_approved(action, self.cr):
                continue
            assert not (why := unmet(action, self.facts())), why
            if action.verb == "confirm-quorum" and not self.is_confirmed(action.parameters):
                continue
            self.act(action)
            self.journal(action)
            done.append(step_of(action))
        steps = [each for each in done if each]
        assert len(steps) <= 1, f"more than one step a pass: {steps}"
        self.taken += steps
        self.run()
        return outcome

    def noted(self, outcome):
        """The conditions as the engine keeps them, each with the time of its last change."""
        before = {each["type"]: each for each in self.cr.get("status", {}).get("conditions", ())}
        return [
            before[each.type]
            if before.get(each.type, {}).get("status") == each.status
            else {"type": each.type, "status": each.status, "reason": each.reason, "lastTransitionTime": self.now}
            for each in outcome.conditions
        ]

    def later(self, seconds):
        """Let time pass."""
        then = dt.datetime.fromisoformat(self.now) + dt.timedelta(seconds=seconds)
        self.now = then.isoformat().replace("+00:00", "Z")

    def delete(self, kind, name):
        if kind == "PersistentVolumeClaim":
            slot = name.removesuffix("-data")
            assert slot not in self.pods, f"the volume of {slot} is in use"
            assert self.primary["disk"] != uid_of(self.claim(slot)), "the primary's data is deleted"
            assert "example.com/kept-since" not in self.claim(slot)["metadata"]["annotations"] or self.all_follow, slot
            self.disks.pop(uid_of(self.objects.pop((kind, name))), None)
            return f"delete volume {slot}"
        if kind == "Job":
            self.objects.pop((kind, name))
            return ""
        assert kind == "Pod", f"{kind} {name} is deleted"
        self.ends(name)
        self.objects.pop((kind, name))
        return f"delete {name}"

    def is_confirmed(self, given):
        """Whether enough of those named follow, who have all that was written by the end of each pass."""
        assert self.running[uid_of(self.pods[given["instance"]])]["synchronous"] == given["setting"]
        return sum(name in self.pods and self.follows(name) for name in given["names"]) >= given["least"]

    @property
    def all_follow(self):
        """Whether there are as many replicas as there are to be, and all follow."""
        following = [name for name in self.pods if self.follows(name)]
        return len(following) == self.cr["spec"].get("replicas", 1) - 1

    def journal(self, action):
        noted = self.cr["metadata"].setdefault("annotations", {})
        noted[ACTIONS] = ActionJournal.of(self.cr).ended(action, self.now, ActionProgress.DONE).text()

    def act(self, action):
        given = action.parameters
        if action.verb == "make-secret":
            assert given["secret"] not in self.secrets
            self.secrets[given["secret"]] = f"random-{next(self.new)}"
            return
        server = self.running[uid_of(self.pods[given["instance"]])]
        disk = self.disks[server["disk"]]
        match action.verb:
            case "set-user":
                password = self.secrets[secret_of(given["user"])]
                role = {"login": True, "password": password}
                disk["roles"][given["user"]] = {
                    **role,
                    **{
                        name: given[name]
                        for name in ("superuser", "createDatabase", "replication", "rewinds")
                        if name in given
                    },
                }
            case "make-database" | "set-owner":
                assert (given["database"] in disk["databases"]) == (action.verb == "set-owner")
                assert given["owner"] in {"postgres", *disk["roles"]}
                disk["databases"][given["database"]] = given["owner"]
            case "make-slot" | "drop-slot":
                assert (given["slot"] in disk["slots"]) == (action.verb == "drop-slot")
                disk["slots"] ^= {given["slot"]}
            case "fail-over" | "confirm-quorum" | "end-volume":
                pass
            case "checkpoint":
                disk["checkpointed"] = disk["timeline"]
                self.mark(server["disk"])
            case "set-quorum" | "set-access" | "set-tls":
                named = {"setting": "synchronous", "hba": "hba"}
                news = {to: given[name] for name, to in named.items() if name in given}
                server |= news or {"tls": {"on": True, "stale": False}}
            case "promote":
                server["synchronous"] = given["synchronous"]
                assert self.primary is None, "there is a primary already"
                assert server["standby"]
                server["standby"] = False
                disk["slots"] |= set(given["slots"])
                disk["forks"][str(disk["timeline"])] = position(disk)
                disk["timeline"] += 1
            case _:
                server["settings"] |= given["set"]
                for name in given["reset"]:
                    del server["settings"][name]
                server["pending"] = sorted(RESTARTS & {*given["set"], *given["reset"]} | {*server["pending"]})

    def settle(self, most=80):
        """Go on until nothing is left to do. Returns the last outcome."""
        for _ in range(most):
            before = len(self.taken), self.facts(), copy.deepcopy(self.cr.get("status")), copy.deepcopy(self.objects)
            outcome = self.step()
            if before == (len(self.taken), self.facts(), self.cr["status"], self.objects):
                return outcome
        raise AssertionError(f"it never settles: {self.taken[-20:]}")


def given(pod):
    """The environment of the container that makes a data directory ready, as its node resolves it."""
    noted = pod["metadata"].get("annotations") or {}
    names = {"metadata.annotations['example.com/system-identifier']": "example.com/system-identifier"}
    env = pod["spec"]["initContainers"][0]["env"]
    fields = {
        each["name"]: each["valueFrom"]["fieldRef"]["fieldPath"]
        for each in env
        if "fieldRef" in each.get("valueFrom", {})
    }
    return (
        {each["name"]: each.get("value", "") for each in env}
        | {"SYSTEM": ""}
        | {name: noted.get(names[path], "") for name, path in fields.items()}
    )


def waits_for(setting):
    """For how many, of whom, a server waits that was told so."""
    found = re.fullmatch(r"ANY ([0-9]+) \((.*)\)", setting)
    return (int(found[1]), [name.strip('"') for name in found[2].split(", ")]) if found else (0, [])


def position(disk):
    """How far the log on a disk goes."""
    return lsn(place(disk))


def place(disk):
    return 1000 + len(disk["rows"]) + len(disk["marks"])


def lsn(place):
    return f"0/{place:X}"


def ended(pod, code):
    """The container of a pod that makes its data directory ready ends with this code."""
    state = {"terminated": {"exitCode": code, "finishedAt": "2026-11-20T11:00:00Z"}}
    pod["status"] = {"phase": "Failed", "initContainerStatuses": [{"name": "prepare", "state": state}]}
    return False


def lacked_room(pod, now):
    """A server ends since it can't write to its volume."""
    said = f"PANIC:  {NO_ROOM}\nLOG:  database system is shut down"
    state = {"terminated": {"exitCode": 1, "finishedAt": now, "message": said}}
    pod["metadata"]["creationTimestamp"] = now
    pod["status"] = {"phase": "Failed", "containerStatuses": [{"name": "postgres", "state": state}]}
    return False


def room(settings):
    """How many connections a server that starts with these settings has room for."""
    return int(settings.get("max_connections", 100))


def secret_of(user):
    if user == "replicator":
        return "db-replication"
    return f"db-user-{user.replace('_', '-')}"


def as_stored(manifest):
    """A manifest as the API server keeps it: a variable without a value has none."""
    for each in manifest["spec"].get("initContainers", [{}])[0].get("env", ()):
        if each.get("value") == "":
            del each["value"]
    return manifest


def uid_of(manifest):
    return manifest["metadata"]["uid"]


def step_of(action):
    about = next(
        action.parameters[name]
        for name in ("secret", "slot", "database", "user", "instance")
        if name in action.parameters
    )
    return f"{action.verb} {about}"


def condition(outcome, type_):
    return next((each for each in outcome.conditions if each.type == type_), None)


def begun(world, slot):
    env = world.pods[slot]["spec"]["initContainers"][0]["env"]
    return next(each["value"] for each in env if each["name"] == "BEGIN")
