"""See a database run for real: from git push to members of etcd, each step shown before it is taken, in about two minutes.

Run it by ``make demo ETCD=1``. It starts a sandbox whose pods are processes, lets a daemon follow a repository with ``examples/etcd.yaml``, and then does what
happens to databases: one grows, its leader is killed, it is backed up, deleted with all its data, and restored.
Every line below a ``$`` is the real output of that command. ``--keep`` leaves all of it running.
"""

from __future__ import annotations

import json
import re
import sys
from functools import partial
from pathlib import Path

from demo import EXAMPLES, Stage, in_sandbox, main, say

from kubectl_reconcile.sandbox.images import catalog
from kubectl_reconcile.sandbox.runtime.client import unavailable

NAMESPACE = """\
apiVersion: v1
kind: Namespace
metadata:
  name: database
  labels:
    sandbox.reconcile.dev/pods: processes
"""
BACKUP = """\
apiVersion: etcd.database.coreos.com/v1beta2
kind: EtcdBackup
metadata:
  name: db-now
spec:
  clusterRef: {name: db}
  image: python    # in the sandbox, what runs kubectl-reconcile
  storage:
    volumeClaimSpec:
      accessModes: [ReadWriteOnce]
      resources: {requests: {storage: 1Gi}}
"""
RESTORE = """\
apiVersion: etcd.database.coreos.com/v1beta2
kind: EtcdRestore
metadata:
  name: db-again
spec:
  clusterRef: {name: db}
  backup: {name: db-now}
  image: python
"""
FIRST = "written before all else"


def fill(repository: Path) -> None:
    folder = repository / "database"
    folder.mkdir()
    (folder / "namespace.yaml").write_text(NAMESPACE)
    (folder / "etcd.yaml").write_text((EXAMPLES / "etcd.yaml").read_text())
    list_files(folder)


def list_files(folder: Path) -> None:
    names = sorted(path.name for path in folder.glob("*.yaml") if path.name != "kustomization.yaml")
    lines = ["namespace: database", "resources:", *(f"  - {name}" for name in names)]
    (folder / "kustomization.yaml").write_text("\n".join(lines) + "\n")


def play(stage: Stage) -> None:
    form(stage)
    grow(stage)
    kill_the_leader(stage)
    back_up(stage)
    delete(stage)
    restore(stage)


def status(stage: Stage, what: str) -> dict[str, object]:
    found = stage.json(f"kubectl -n database get {what}").get("status")
    return found if isinstance(found, dict) else {}


def is_ready(stage: Stage, what: str) -> bool:
    found = status(stage, what)
    return any(each["type"] == "Ready" and each["status"] == "True" for each in found.get("conditions", ()))


def serving(stage: Stage, size: int) -> bool:
    members = status(stage, "etcdcluster/db").get("members", {})
    return is_ready(stage, "etcdcluster/db") and len(members["ready"]) == size


def is_held(stage: Stage) -> bool:
    conditions = stage.json("kubectl get sync database").get("status", {}).get("conditions", ())
    return any(each["type"] == "Synced" and each["reason"] == "Held" for each in conditions)


def leader(stage: Stage) -> str:
    annotations = stage.json("kubectl -n database get etcdcluster/db")["metadata"]["annotations"]
    facts = json.loads(annotations["reconcile.dev/observed"])["facts"]
    return next(each["name"] for each in facts["members"] if each["id"] == facts["leader"])


def read_first(stage: Stage, member: str) -> None:
    """Show the key that was written first, which must be there."""
    command = f"kubectl -n database exec {member} -- etcdctl get first --print-value-only"
    stage.show(command)
    found = stage.run(command).stdout.strip()
    if found != FIRST:
        sys.exit(f"the key that was written first is {found!r}")


def form(stage: Stage) -> None:
    say("1. An EtcdCluster of three members. How would it come about?", stage.pace_s)
    stage.show("cat database/etcd.yaml", cwd=stage.repository)
    stage.show("kubectl reconcile diff -f database --until-stable -o summary", cwd=stage.repository)
    say("A Sync follows that folder.")
    stage.show(f"kubectl reconcile create database --url {stage.url} --path database --interval 1s --grant")
    stage.wait("three members serve", lambda: serving(stage, 3))
    stage.show("kubectl -n database get etcdclusters,pods,pvc")
    stage.show(f"kubectl -n database exec db-0 -- etcdctl put first '{FIRST}'")


def grow(stage: Stage) -> None:
    say("2. It is to have five. What does that take?", stage.pace_s)
    stage.write("database/etcd.yaml", lambda text: text.replace("size: 3", "size: 5"))
    stage.show("kubectl reconcile diff database --local . --until-stable -o summary", cwd=stage.repository)
    stage.push("Five members")
    stage.wait("five members serve", lambda: serving(stage, 5))
    stage.show("kubectl -n database exec db-0 -- etcdctl member list -w table")


def kill_the_leader(stage: Stage) -> None:
    victim = leader(stage)
    say(f"3. The leader, {victim}, is killed.", stage.pace_s)
    stage.show(f"kubectl reconcile sandbox kill {victim} -n database --name {stage.cluster}")

    def is_back() -> bool:
        (found,) = status(stage, f"pod/{victim}")["containerStatuses"]
        return found["restartCount"] > 0 and found["ready"] and serving(stage, 5)

    stage.wait("it is back as the same member, and all five serve", is_back)
    read_first(stage, victim)


def back_up(stage: Stage) -> None:
    say("4. A backup is made because Git asks for one.", stage.pace_s)
    folder = stage.repository / "database"
    (folder / "backup.yaml").write_text(BACKUP)
    list_files(folder)
    stage.push("A backup")
    say("Backups are of a new kind, which the account of this Sync may not write yet.")
    stage.show("kubectl reconcile grant database --apply --yes")
    stage.wait("it is made", lambda: is_ready(stage, "etcdbackup/db-now"))
    stage.show("kubectl -n database get etcdbackups")
    stage.show("kubectl -n database exec db-0 -- etcdctl del first")


def delete(stage: Stage) -> None:
    say("5. The cluster is deleted, and so is all that it stored.", stage.pace_s)
    folder = stage.repository / "database"
    (folder / "etcd.yaml").unlink()
    list_files(folder)
    stage.push("No cluster")
    stage.wait("it is held: it would take much along", lambda: is_held(stage))
    stage.show("kubectl reconcile status database")
    stage.show("kubectl reconcile approve database --yes")
    stage.wait("it is gone", lambda: not stage.json("kubectl -n database get etcdcluster/db"))
    say("Its volumes stay, in case that was a mistake. It wasn't.")
    stage.show("kubectl -n database delete pvc -l etcd_cluster=db")


def restore(stage: Stage) -> None:
    say("6. It was one. The backup is on a volume of its own; a new cluster begins with it.", stage.pace_s)
    folder = stage.repository / "database"
    (folder / "restore.yaml").write_text(RESTORE)
    named = re.sub(r"(version: .*\n)", r"\1  restoreFrom:\n    name: db-again\n", (EXAMPLES / "etcd.yaml").read_text())
    (folder / "etcd.yaml").write_text(named)
    list_files(folder)
    stage.show("kubectl reconcile diff database --local . --until-stable -o summary", cwd=stage.repository)
    stage.push("Back to what was")
    stage.show("kubectl reconcile grant database --apply --yes")
    stage.wait("three members serve again", lambda: serving(stage, 3))
    stage.show("kubectl -n database get etcdclusters,etcdrestores,pods")
    read_first(stage, "db-2")


if __name__ == "__main__":
    if reason := unavailable():
        sys.exit(reason)
    catalog.build(print, only="etcd")
    main(__doc__ or "", partial(in_sandbox, "database", fill), play)
