"""One EtcdCluster on real members, as its user and its owner have it."""

import json

from kubectl_reconcile.sandbox.images import catalog

OLD, NEW = catalog.ETCD_VERSIONS
API = "etcd.database.coreos.com/v1beta2"
PATIENTLY = ("--dial-timeout=20s", "--command-timeout=60s")
ASIDE = "etcd.database.coreos.com/put-aside"


class Db:
    """One EtcdCluster called db, and a daemon that looks after it."""

    def __init__(self, real, daemon):
        self.real, self.daemon = real, daemon

    def apply(self, **spec):
        self.real.apply(self.manifest(**spec))

    @staticmethod
    def manifest(**spec):
        whole = {"size": 3, "version": OLD, "pod": {"persistentVolumeClaimSpec": claim("any")["spec"]}, **spec}
        return {"apiVersion": API, "kind": "EtcdCluster", "metadata": {"name": "db"}, "spec": whole}

    @property
    def cr(self):
        return self.real.get(f"/apis/{API}/namespaces/{self.real.namespace}/etcdclusters/db")

    def condition(self, type_):
        found = self.cr.get("status", {}).get("conditions", [])
        return next((each for each in found if each["type"] == type_), {"status": "", "message": "", "reason": ""})

    def is_settled(self, members):
        cr = self.cr
        status = cr.get("status", {})
        is_newest = status.get("observedGeneration") == cr.get("metadata", {}).get("generation")
        ready = len(status.get("members", {}).get("ready", [])) == members
        return is_newest and ready and self.condition("Ready")["status"] == "True"

    def settled(self, members):
        self.real.eventually(lambda: self.is_settled(members), f"{members} members serve")
        return self

    def serving(self):
        """The slots of members that serve, by the status."""
        return sorted(self.cr["status"]["members"]["ready"])

    def etcdctl(self, member, *command):
        """What etcdctl says in a member's pod; asked again where it has no answer, so that a write may be there twice."""
        asked = ("exec", "-n", self.real.namespace, member, "--", "etcdctl", *PATIENTLY, *command)
        return self.real.eventually(lambda: [self.real.kubectl(*asked)], f"etcdctl {command} at {member}")[0]

    def value(self, member, key):
        """What a member has under a key, nothing where there is no such key."""
        return self.etcdctl(member, "get", key, "--print-value-only").strip()

    def members(self, at=""):
        """The ids of all members by name, as one that serves says."""
        found = json.loads(self.etcdctl(at or self.serving()[0], "member", "list", "-w", "json"))["members"]
        return {each["name"]: each["ID"] for each in found}

    def leader(self):
        """Who leads, as its members say."""

        def found():
            names = {id_: name for name, id_ in self.members().items()}
            return names.get(self.said().get("leader"))

        return self.real.eventually(found, "somebody leads")

    def term(self):
        return self.said()["raftTerm"]

    def said(self):
        (one,) = json.loads(self.etcdctl(self.serving()[0], "endpoint", "status", "-w", "json"))
        return one["Status"]

    def claims(self):
        """The claims of members, present and former, by slot."""
        found = self.real.kubectl.json("get", "pvc", "-n", self.real.namespace)["items"]
        named = {each["metadata"]["name"]: each for each in found}
        return {name.removesuffix("-data"): each for name, each in named.items() if name.startswith("db-")}

    def aside(self):
        """Volumes that were put aside, and whose data they hold."""
        noted = {slot: each["metadata"].get("annotations", {}) for slot, each in self.claims().items()}
        return {slot: each[ASIDE] for slot, each in noted.items() if ASIDE in each}

    def end(self):
        """Delete the cluster; returns the slots that had a pod, which are gone."""
        slots = self.pods()
        self.real.kubectl(
            "delete", "etcdcluster", "db", "-n", self.real.namespace, "--timeout=300s", "--ignore-not-found"
        )
        self.real.gone(*slots)
        return slots

    def lose(self):
        """Delete the cluster and all its volumes."""
        self.end()
        if claims := [f"{slot}-data" for slot in self.claims()]:
            self.real.kubectl("delete", "pvc", "-n", self.real.namespace, "--timeout=300s", *claims)

    def pods(self):
        found = self.real.get(f"/api/v1/namespaces/{self.real.namespace}/pods?labelSelector=etcd_cluster%3Ddb")
        return sorted(each["metadata"]["name"] for each in found.get("items", []))


def claim(name) -> dict:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}


def acked(real):
    """The numbers that a client was acknowledged, and when."""
    lines = (line.split() for line in real.logs("writer") if line.startswith("acked"))
    return [(int(number), float(at)) for _, number, at in lines]
