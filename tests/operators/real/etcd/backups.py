"""EtcdBackups and EtcdRestores of the EtcdCluster db, as people make and look at them."""

import json

from kubectl_reconcile_operators.etcd_backup.children import AGENT
from tests.operators.real.etcd.cluster import API, NEW

BACKUPS = {"name": "backups", "persistentVolumeClaim": {"claimName": "backups"}}
MOUNTS = [{"name": "backups", "mountPath": "/backups"}]
_NOT_YET = {"type": "", "status": "", "reason": "", "message": ""}


def backup(real, name, **spec):
    """Make an EtcdBackup of db, to the claim backups unless told otherwise."""
    whole = {
        "clusterRef": {"name": "db"}, "image": "python", "backupPolicy": {"retries": 0, "timeoutInSecond": 900},
        "storage": {"persistentVolumeClaim": {"claimName": "backups"}}, **spec,
    }  # fmt: skip
    real.apply({"apiVersion": API, "kind": "EtcdBackup", "metadata": {"name": name}, "spec": whole})


def restoring(name, backup="once", **source):
    """The manifest of an EtcdRestore of db, from that backup."""
    spec = {"clusterRef": {"name": "db"}, "backup": {"name": backup, **source}, "image": "python", "retries": 0}
    return {"apiVersion": API, "kind": "EtcdRestore", "metadata": {"name": name}, "spec": spec}


def restore(real, name, backup="once", **source):
    real.apply(restoring(name, backup, **source))


def status(real, name, plural="etcdbackups"):
    return real.get(f"/apis/{API}/namespaces/{real.namespace}/{plural}/{name}").get("status", {})


def condition(real, name, type_="Ready", plural="etcdbackups"):
    found = status(real, name, plural).get("conditions", [])
    return next((each for each in found if each["type"] == type_), _NOT_YET)


def reason(real, name, wanted, plural="etcdbackups"):
    """What is said of a backup once its condition Ready gives that reason."""

    def reached():
        found = condition(real, name, plural=plural)
        return found if found["reason"] == wanted else None

    return real.eventually(reached, f"{name} is {wanted}")["message"]


def restored(real, name):
    """The status of an EtcdRestore."""
    return status(real, name, "etcdrestores")


def waits_for(real, name, wanted):
    """What is said of a restore once its condition Ready gives that reason."""
    return reason(real, name, wanted, "etcdrestores")


def forget(real, kind):
    """Delete all backups or all restores; the cluster and what was written stay."""
    real.kubectl("delete", kind, "--all", "-n", real.namespace, "--timeout=300s")


def in_volume(real, name, *command, image="system", phase="Succeeded"):
    """What a command prints that has the claim of the backups as /backups."""
    pod = {"restartPolicy": "Never", "volumes": [BACKUPS]}
    real.run(*command, name=name, image=image, volumeMounts=MOUNTS, pod=pod)
    real.phase(phase, name)
    return real.logs(name)


def agent(real, name, *arguments, volume=BACKUPS, phase="Succeeded"):
    """What the program of backup Jobs says in the end."""
    pod = {"restartPolicy": "Never", "volumes": [volume]}
    real.run("python", "-m", AGENT, *arguments, name=name, image="python", volumeMounts=MOUNTS, pod=pod)
    real.phase(phase, name)
    return json.loads(real.container(name)["state"]["terminated"]["message"])


RESTORE = ["snapshot", "restore", "--data-dir=/restored/data", "--name=main"]
RESTORE += ["--initial-cluster=main=http://localhost:2380", "--initial-advertise-peer-urls=http://localhost:2380"]


def begun_by_hand(real, file, name):
    """Begin a pod of a member that etcdutl has given what a file holds."""
    image = f"quay.io/coreos/etcd:v{NEW}"
    mounts = [*MOUNTS, {"name": "restored", "mountPath": "/restored"}]
    first = {"name": "restore", "image": image, "volumeMounts": mounts}
    first |= {"command": ["etcdutl"], "args": [*RESTORE, f"/backups/{file}"]}
    volumes = [BACKUPS, {"name": "restored", "emptyDir": {}}]
    pod = {"restartPolicy": "Never", "initContainers": [first], "volumes": volumes}
    ready = {"exec": {"command": ["etcdctl", "endpoint", "health"]}, "periodSeconds": 1, "timeoutSeconds": 5}
    real.run(
        "etcd", "--name=main", "--data-dir=/restored/data",
        name=name, image=image, volumeMounts=mounts, readinessProbe=ready, pod=pod,
    )  # fmt: skip
