"""The model of Kubernetes and Kafka, with Secrets, certificates, users, and clients that connect."""

import datetime as dt
import functools
import json

from kubectl_reconcile.module_api import Context, SeenSecret
from kubectl_reconcile_operators.certificates.decision import CertificateDo
from kubectl_reconcile_operators.certificates.keys.kept import facts_of, values_after
from kubectl_reconcile_operators.kafka.access.driver import wish_of
from kubectl_reconcile_operators.kafka.access.users import users_named
from tests.operators.kafka.world import NOW, World

KINDS = ("ca", "broker", "operator")


@functools.cache
def _facts(secrets, foreign, cr):
    held = {
        kind: SeenSecret(json.loads(secrets)[kind], kind not in json.loads(foreign), "1") if kind in json.loads(secrets) else None
        for kind in KINDS
    }  # fmt: skip
    return held, facts_of(held, wish_of(Context(NOW, "kafka", json.loads(cr))))


class AccessWorld(World):
    """*secrets* are the Kafka's own, by kind, as values; *given* those that people make, by name: which state and version each is in. *users* are those who can log in, by the version of the Secret whose password they have."""

    def __init__(self, **spec):
        super().__init__(**spec)
        self.secrets, self.foreign = {}, set()
        self.given, self.users = {}, {}
        self.trusting, self.showing, self.listening = {}, {}, {}
        self.lagging = set()

    @property
    def ctx(self):
        return Context(self.now, "kafka", self.cr)

    def own(self):
        """The Kafka's own Secrets, as they are seen and as facts have them."""
        cr = {"metadata": {key: self.cr["metadata"][key] for key in ("name", "namespace", "uid")}}
        return _facts(json.dumps(self.secrets, sort_keys=True), json.dumps(sorted(self.foreign)), json.dumps(cr))

    def facts(self):
        noted = users_named(self.cr.get("status", {}).get("users"))
        asked = {*(each["name"] for each in self.spec.get("users", [])), *noted}
        heard = self.heard()
        for name, each in heard["pods"].items():
            uid = each["uid"]
            if not each["error"] and (cut := self.cut_off(uid)):
                each["error"] = cut
            each["shown"] = {
                listener: version == self.given[secret]["version"]
                for listener, (secret, version) in self.listening.get(uid, {}).items()
                if secret and self.given.get(secret, {}).get("state") == "ok" and name in heard["pods"]
            }
        if "cluster" in heard and all(each["error"] for each in heard["pods"].values()):
            heard = {"pods": heard["pods"]}
        users = {"users": sorted(asked & self.users.keys())} if "cluster" in heard else {}
        named = {f"kf-user-{each['name']}" for each in self.spec.get("users", [])}
        secrets = {**{name: {"state": "absent"} for name in named}, **self.given}
        return {"tls": self.own()[1], "secrets": secrets, **users, **heard}

    def cut_off(self, uid):
        told = self.own()[1]
        signers = {told[kind].get("issuer", "") for kind in ("broker", "operator")} - {""}
        if not signers <= self.trusting.get(uid, signers):
            return "its certificate isn't trusted"
        shown = self.showing.get(uid, "")
        return "" if shown in {"", *told["operator"].get("trusted", [shown])} else "it shows what isn't trusted"

    def run(self):
        for pod in self.pods.values():
            uid = pod["metadata"]["uid"]
            if uid not in self.trusting:
                assert {"broker", "operator"} <= self.secrets.keys(), "a pod waits for Secrets that aren't there"
                noted = pod["metadata"]["annotations"]["kafka.example.com/trusted"]
                self.trusting[uid] = {*self.own()[1]["broker"]["trusted"]}
                assert noted == ",".join(sorted(self.trusting[uid]))
                self.showing[uid] = self.own()[1]["broker"].get("issuer", "")
                self.listening[uid] = {}
                for name, secret in listeners_of(pod).items():
                    assert not secret or secret in self.given, f"a pod waits for Secret {secret}"
                    self.listening[uid][name] = (secret, self.given[secret]["version"] if secret else "")
        super().run()

    def delete(self, kind, name):
        """As ever; but a broker that trusts nobody who asks has nobody who could be asked about it."""
        number = int(name.rpartition("-")[2]) if kind == "Pod" else -1
        is_cut_off = number >= 0 and self.cut_off(self.pods[number]["metadata"]["uid"])
        self.down |= {number} if is_cut_off else set()
        super().delete(kind, name)
        self.down -= {number} if is_cut_off else set()

    def listens(self, name):
        """How many brokers listen there."""
        return sum(name in self.listening[pod["metadata"]["uid"]] for pod in self.pods.values())

    def put(self, name, state="ok"):
        """Somebody makes a Secret, or changes what it holds."""
        self.given[name] = {"state": state, "version": f"v{next(self.new)}"}

    def act(self, verb, given):
        match verb:
            case "make-secret":
                assert given["secret"] not in self.given, "a Secret that is there is made"
                self.put(given["secret"])
            case "set-user":
                assert self.given[given["secret"]]["state"] == "ok"
                self.users[given["user"]] = self.given[given["secret"]]["version"]
            case "lock-user":
                self.users[given["user"]] = "a password that nobody knows"
            case "reload-certificates":
                uid = self.pods[given["broker"]]["metadata"]["uid"]
                if given["broker"] not in self.lagging:
                    for name in given["listeners"]:
                        secret = self.listening[uid][name][0]
                        self.listening[uid][name] = (secret, self.given[secret]["version"])
            case _ if verb in {each.value for each in CertificateDo}:
                self.certify(CertificateDo(verb), given["kind"])
            case _:
                super().act(verb, given)

    def certify(self, do, kind):
        assert kind not in self.foreign, "what is somebody else's is changed"
        now = dt.datetime.fromisoformat(self.now)
        self.secrets[kind] = values_after(do, kind, self.own()[0], wish_of(self.ctx), now)

    def connects(self, name):
        """Whether clients get to a listener of each broker that runs."""
        return self.listens(name) == len(self.pods)


def listeners_of(pod):
    """The listeners for clients that a pod was made with, each with its Secret."""
    config = next(each["value"] for each in pod["spec"]["initContainers"][0]["env"] if each["name"] == "CONFIG")
    line = next(line for line in config.splitlines() if line.startswith("listeners="))
    names = [each.partition(":")[0].lower() for each in line.partition("=")[2].split(",")]
    mounted = {each["name"]: each["secret"]["secretName"] for each in pod["spec"]["volumes"] if "secret" in each}
    return {name: mounted.get(f"tls-{name}", "") for name in names if name not in {"broker", "controller"}}
