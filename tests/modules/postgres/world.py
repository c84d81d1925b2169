"""A model of Kubernetes and PostgreSQL, as far as a MyDatabase needs it: what really happens when its module's steps are taken.

It knows what the module doesn't: which data lies on which volume. Whoever begins a second database, or starts a server on another's data, is found
out here.
"""

import copy
import itertools

from kubectl_reconcile.core.module.action_journal import unmet
from kubectl_reconcile.core.module.adoption import adopt_child
from kubectl_reconcile.core.module.call import outcome_of
from kubectl_reconcile.core.module.inputs import Context, Owned
from kubectl_reconcile.core.module.outcome import key_of
from kubectl_reconcile.modules.postgres import MyDatabase

NOW = "2026-11-20T12:00:00Z"
RESTARTS = {"max_connections", "shared_buffers"}


class World:
    """One database, from its CR on. *taken* are all steps so far, *secrets* what each Secret holds."""

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
        self.running = {}
        self.broken = set()
        self.taken = []
        self.new = itertools.count(1)

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

    # --- what happens by itself ---------------------------------------------------------------------

    def run(self):
        """Let all pods run what they were made for."""
        self.running = {
            uid: one for uid, one in self.running.items() if uid in {uid_of(pod) for pod in self.pods.values()}
        }
        for name, pod in self.pods.items():
            is_up = name not in self.broken and (uid_of(pod) in self.running or self.start(name, pod))
            if pod.get("status", {}).get("phase") != "Failed":
                pod["status"] = {
                    "phase": "Running", "podIP": "10.0.0.1", "conditions": [{"type": "Ready", "status": str(bool(is_up))}],
                }  # fmt: skip

    def start(self, name, pod):
        told = {each["name"]: each.get("value") for each in pod["spec"]["initContainers"][0]["env"]}
        if "db-superuser" not in self.secrets:
            return False
        disk = uid_of(self.claim(name))
        if disk not in self.disks:
            if told["BEGIN"] != "initdb":
                return False
            assert not self.disks, f"{name} begins a second database"
            self.disks[disk] = {
                "system": "7000",
                "roles": {},
                "databases": {},
                "password": self.secrets["db-superuser"],
            }
        settings = dict(line.split(" = ") for line in told["PARAMETERS"].splitlines())
        self.running[uid_of(pod)] = {
            "disk": disk,
            "settings": {key: value[1:-1].replace("''", "'") for key, value in settings.items()},
            "pending": [],
        }
        return True

    def kill(self, slot):
        """The server of a pod ends; nobody restarts it."""
        self.running.pop(uid_of(self.pods[slot]), None)
        ended = {"terminated": {"exitCode": 137, "finishedAt": "2026-11-20T11:00:00Z"}}
        self.pods[slot]["status"] = {"phase": "Failed", "containerStatuses": [{"name": "postgres", "state": ended}]}

    def facts(self):
        pods, within = {}, {}
        for name, pod in self.pods.items():
            server = self.running.get(uid_of(pod))
            if server is None or self.disks[server["disk"]]["password"] != self.secrets.get("db-superuser"):
                pods[name] = {"uid": uid_of(pod), "error": "silent"}
                continue
            within = self.disks[server["disk"]]
            pods[name] = {
                "uid": uid_of(pod), "error": "", "recovery": False, "system": within["system"], "timeline": 1, "version": "17.6", "major": "17",
                "settings": dict(server["settings"]), "pending": list(server["pending"]), "restarts": sorted(RESTARTS),
            }  # fmt: skip
        users = {each["name"]: secret_of(each["name"]) for each in self.cr["spec"].get("users", ())}
        named = ("db-superuser", *users.values())
        return {
            "secrets": {name: "ok" if name in self.secrets else "absent" for name in named},
            "pods": pods,
            "writable": ",".join(sorted(name for name, each in pods.items() if not each["error"])),
            "roles": {
                name: {**role, "password": role["password"] == self.secrets.get(users[name])}
                for name, role in within.get("roles", {}).items() if name in users
            },
            "databases": dict(within.get("databases", {})),
        }  # fmt: skip

    # --- what the module does -----------------------------------------------------------------------

    def ask(self, with_=outcome_of):
        owned = Owned(copy.deepcopy(list(self.objects.values())))
        return with_(MyDatabase, copy.deepcopy(self.cr), owned, self.facts(), Context(NOW, "mydatabase", self.cr))

    def step(self, with_=outcome_of):
        """One pass: ask, and do what is said. Returns the outcome."""
        outcome = self.ask(with_)
        self.cr["status"] = {**outcome.status, "conditions": [{"type": each.type} for each in outcome.conditions]}
        wanted = {(each["kind"], each["metadata"]["name"]): each for each in outcome.children}
        gone = [] if outcome.keep_children else [key for key in self.objects if key not in wanted]
        done = [self.delete(*key) for key in gone]
        for key, child in wanted.items():
            if key not in self.objects:
                made = adopt_child(copy.deepcopy(child), self.cr, MyDatabase)
                made["metadata"] |= {"uid": f"u-{next(self.new)}", "resourceVersion": "1"}
                self.objects[key] = made
                done.append(f"create {key[1]}" if key[0] == "Pod" else "")
            elif key_of(child) not in outcome.untouched:
                live = self.objects[key]
                assert key[0] != "Pod" or live["spec"] == child["spec"], f"{key} can't be changed so"
                live["spec"] = copy.deepcopy(child["spec"])
                live["metadata"]["annotations"] = dict(child["metadata"].get("annotations") or {})
                live["metadata"]["labels"] = adopt_child(child, self.cr, MyDatabase)["metadata"]["labels"]
        for action in outcome.actions:
            assert not (why := unmet(action, self.facts())), why
            self.act(action)
            done.append(step_of(action))
        steps = [each for each in done if each]
        assert len(steps) <= 1, f"more than one step a pass: {steps}"
        self.taken += steps
        self.run()
        return outcome

    def delete(self, kind, name):
        assert kind == "Pod", f"{kind} {name} is deleted"
        self.objects.pop((kind, name))
        return f"delete {name}"

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
                    **{name: given[name] for name in ("superuser", "createDatabase")},
                }
            case "make-database" | "set-owner":
                assert (given["database"] in disk["databases"]) == (action.verb == "set-owner")
                assert given["owner"] in {"postgres", *disk["roles"]}
                disk["databases"][given["database"]] = given["owner"]
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


def secret_of(user):
    return f"db-user-{user.replace('_', '-')}"


def uid_of(manifest):
    return manifest["metadata"]["uid"]


def step_of(action):
    about = next(
        action.parameters[name] for name in ("secret", "database", "user", "instance") if name in action.parameters
    )
    return f"{action.verb} {about}"


def condition(outcome, type_):
    return next((each for each in outcome.conditions if each.type == type_), None)
