"""An EtcdCluster that begins with a backup, and the EtcdRestore that writes it, side by side: what really happens, pass by pass."""

import copy
import itertools
import json

from kubectl_reconcile.core.module.adoption import adopt_child
from kubectl_reconcile.core.module.call import outcome_of
from kubectl_reconcile.core.module.inputs import Context, Owned
from kubectl_reconcile_operators.etcd import EtcdCluster
from kubectl_reconcile_operators.etcd_restore import EtcdRestore
from kubectl_reconcile_operators.etcd_restore.target import SeedTarget
from tests.job_pods import of_job
from tests.operators.etcd.world import NOW, World
from tests.operators.keeping import seen

API = "etcd.database.coreos.com/v1beta2"
FILE = "20261120T030000Z-r42.db"
LINE = {
    "name": "nightly-1", "phase": "Succeeded", "file": f"nightly/{FILE}", "revision": 42, "sizeBytes": 20512, "sha256": "ab" * 32,
    "etcdVersion": "3.5.35",
}  # fmt: skip


def a_backup(*lines, **spec):
    storage = {"persistentVolumeClaim": {"claimName": "backups"}}
    metadata = {"name": "nightly", "namespace": "shop", "uid": "u-backup"}
    found = {"apiVersion": API, "kind": "EtcdBackup", "metadata": metadata, "spec": {"storage": storage, **spec}}
    return {**found, "status": {"history": [dict(each) for each in lines]}}


def a_restore(**spec):
    metadata = {"name": "again", "namespace": "shop", "uid": "u-restore", "generation": 1, "resourceVersion": "1"}
    metadata["creationTimestamp"] = NOW
    whole = {"clusterRef": {"name": "db"}, "backup": {"name": "nightly"}, **spec}
    return {"apiVersion": API, "kind": "EtcdRestore", "metadata": metadata, "spec": whole}


def told_of(job):
    """What a Job's pod says once it is done: of the snapshot that it was given."""
    pod = job["spec"]["template"]["spec"]
    args = (pod.get("initContainers") or pod["containers"])[0]["args"]
    file = next((each.partition("=")[2] for each in args if each.startswith("--snapshot=")), FILE)
    revision = int(file.partition("-r")[2].removesuffix(".db"))
    return {"file": f"nightly/{file}", "revision": revision, "sizeBytes": 20512, "sha256": "ab" * 32}


def seed_of(slot):
    """Who the first member is where a backup was restored to the volume of a slot."""
    return SeedTarget(slot, "", "", "", f"http://{slot}.db.shop.svc:2380", "shop.db", "", "")


class RestoreWorld(World):
    """*restore* and *backup* are CRs, None where there is none; *jobs_fail* is what each Job's pod says instead of being done."""

    def __init__(self, size=3, **spec):
        super().__init__(size, **{"restoreFrom": {"name": "again"}, **spec})
        self.restore, self.backup = a_restore(), a_backup(LINE)
        self.jobs, self.job_pods, self.jobs_fail, self.uids = {}, {}, "", itertools.count(1)
        self.written = {}

    # --- what the cluster's module sees -------------------------------------------------------------

    def ask(self, with_=outcome_of):
        owned = seen(EtcdCluster, self.cr, self.objects.values(), [self.restore] if self.restore else [])
        return with_(
            EtcdCluster, copy.deepcopy(self.cr), owned, self.facts(), Context(self.now, "etcdcluster", self.cr)
        )

    def start(self, name, pod):
        place = self.place(pod)
        if not self.data.get(place) and place in self.written:
            self.bootstraps += 1
            old = [claim["metadata"] for (kind, _), claim in self.objects.items() if kind == "PersistentVolumeClaim"]
            assert not [each["name"] for each in old if each["uid"] in self.data and not self.aside(each["name"][:-5])]
            assert set(self.pods) == {name}, f"{name} begins another cluster while others run"
            self.cluster = seed_of(name).cluster_id
            member = {
                "id": self.written[place],
                "name": name,
                "peer": f"http://{name}.db.shop.svc:2380",
                "learner": False,
            }
            self.members, self.data[place] = [member], member["id"]
            self.ran.add(member["id"])
            return
        super().start(name, pod)

    # --- what the restore's module does -------------------------------------------------------------

    def restore_outcome(self, with_=outcome_of):
        read = [each for each in (self.cr, self.backup, *self.job_pods.values()) if each]
        owned = Owned(copy.deepcopy(list(self.jobs.values())), copy.deepcopy(read))
        return with_(EtcdRestore, copy.deepcopy(self.restore), owned, {}, Context(NOW, "etcdrestore", self.restore))

    def restore_step(self, with_=outcome_of):
        """One pass of the restore: children are put in place. Returns the outcome."""
        outcome = self.restore_outcome(with_)
        conditions = [
            {"type": each.type, "status": each.status, "reason": each.reason, "message": each.message}
            for each in outcome.conditions
        ]
        self.restore["status"] = json.loads(json.dumps({**outcome.status, "conditions": conditions}))
        wanted = {each["metadata"]["name"]: each for each in outcome.children}
        for name in [name for name in self.jobs if name not in wanted]:
            self.delete_job(name)
            self.taken.append(f"delete {name}")
        for name, job in wanted.items():
            if name not in self.jobs:
                made = adopt_child(copy.deepcopy(job), self.restore, EtcdRestore)
                made["metadata"] |= {
                    "uid": f"u-job-{next(self.uids)}",
                    "creationTimestamp": NOW,
                    "resourceVersion": "1",
                }
                self.jobs[name] = made
                self.taken.append(f"create {name}")
        return outcome

    def delete_job(self, name):
        self.jobs.pop(name)
        self.job_pods.pop(name, None)

    def run_job(self):
        """Let the Job do its work."""
        for name, job in self.jobs.items():
            if job.get("status"):
                continue
            if self.jobs_fail:
                self.end(name, "Failed", self.jobs_fail, container="prepare")
                continue
            if name.endswith("-check"):
                self.end(name, "Complete", json.dumps(told_of(job)), container="check")
                continue
            (data,) = (each for each in job["spec"]["template"]["spec"]["volumes"] if each["name"] == "data")
            claim = data["persistentVolumeClaim"]["claimName"]
            live = self.objects[("PersistentVolumeClaim", claim)]
            place = live["metadata"]["uid"]
            assert place not in self.data, "a Job writes where a member has its data"
            assert not self.pods, "a Job writes while members run"
            self.written[place] = seed_of(claim[:-5]).member_id
            self.end(name, "Complete", json.dumps(told_of(job)))

    def cluster_seed(self):
        return "76b1d76d2f14e34b"  # as etcd itself counts it, of http://db-0.db.shop.svc:2380 and shop.db

    def end(self, name, type_, message, container="finish"):
        done = type_ == "Complete"
        self.jobs[name]["status"] = {
            "conditions": [{"type": type_, "status": "True", "reason": type_, "lastTransitionTime": NOW}],
            **({"completionTime": NOW} if done else {}),
        }
        kind = "containerStatuses" if done else "initContainerStatuses"
        state = {"terminated": {"exitCode": 0 if done else 1, "message": message}}
        phase = "Succeeded" if done else "Failed"
        own = of_job(self.jobs[name])
        labels = {**Context("", "etcdrestore", self.restore).labels(), **own["labels"]}
        metadata = {"name": f"{name}-x", "namespace": "shop", **own, "labels": labels, "creationTimestamp": NOW}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
        self.job_pods[name] = {**pod, "status": {"phase": phase, kind: [{"name": container, "state": state}]}}

    def both(self, with_=outcome_of):
        """One pass of each, and what happens then by itself. Returns the restore's outcome."""
        if self.restore is None:
            self.step(with_)
            return None
        outcome = self.restore_step(with_)
        self.step(with_)
        self.note_cluster()
        self.run_job()
        return outcome

    def note_cluster(self):
        """Let the cluster's status tell its id once its first member has run."""
        if self.has_majority:
            self.cr["status"]["clusterID"] = self.cluster

    def until(self, phase, most=60):
        """Go on until the restore is in *phase*. Returns its outcome."""
        for _ in range(most):
            outcome = self.both()
            if outcome.status["phase"] == phase:
                return outcome
        raise AssertionError(f"never {phase}: {self.taken[-20:]}, {self.restore['status']}")

    def settle_both(self, most=120):
        """Go on until nothing is left to do. Returns the restore's outcome."""
        for _ in range(most):
            before = self._all()
            outcome = self.both()
            if before == self._all():
                return outcome
        raise AssertionError(f"it never settles: {self.taken[-20:]}")

    def _all(self):
        """Everything that a pass may change."""
        return copy.deepcopy([len(self.taken), self.facts(), self.cr.get("status"), self.restore, self.jobs])


def condition(outcome, type_="Ready"):
    return next((each for each in outcome.conditions if each.type == type_), None)
