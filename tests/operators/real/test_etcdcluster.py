"""EtcdCluster on real members: formed, scaled, hurt and upgraded while a client writes through the client Service."""

import base64
import itertools
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from kubectl_reconcile.sandbox.images import catalog
from tests.e2e.conftest import PROGRAM, crds, new_daemon  # noqa: F401 - fixtures
from tests.operators.real.promises import previewed
from tests.operators.real.test_etcd import PATIENTLY

OLD, NEW = catalog.ETCD_VERSIONS
WRITER = """
import base64, http.client, itertools, json, time, urllib.request as u
def text(of): return base64.b64encode(of.encode()).decode()
for number in itertools.count():
    body = json.dumps({"key": text(f"n/{number:08}"), "value": text(str(number))}).encode()
    try:
        u.urlopen(u.Request("http://db-client:2379/v3/kv/put", data=body), timeout=3).read()
        print("acked", number, time.monotonic(), flush=True)
    except (OSError, http.client.HTTPException) as error:
        print("failed", number, error, flush=True)
    time.sleep(0.02)
"""


@pytest.fixture(scope="session", autouse=True)
def _programs():
    catalog.build(print, only="etcd")


@pytest.fixture
def db(real, crds, new_daemon) -> "Db":  # noqa: F811 - fixtures
    found = Db(real, new_daemon(real.kubectl.kubeconfig, real.namespace).start())
    yield found
    found.end()


class Db:
    """One EtcdCluster called db, and a daemon that looks after it."""

    def __init__(self, real, daemon):
        self.real, self.daemon = real, daemon

    def apply(self, **spec):
        self.real.apply(self.manifest(**spec))

    @staticmethod
    def manifest(**spec):
        claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        whole = {"size": 3, "version": OLD, "pod": {"persistentVolumeClaimSpec": claim}, **spec}
        kind = {"apiVersion": "etcd.database.coreos.com/v1beta2", "kind": "EtcdCluster"}
        return {**kind, "metadata": {"name": "db"}, "spec": whole}

    @property
    def cr(self):
        return self.real.get(f"/apis/etcd.database.coreos.com/v1beta2/namespaces/{self.real.namespace}/etcdclusters/db")

    def condition(self, type_):
        found = self.cr.get("status", {}).get("conditions", [])
        return next((each for each in found if each["type"] == type_), {"status": "", "message": "", "reason": ""})

    def is_settled(self, members):
        cr = self.cr
        status = cr.get("status", {})
        is_newest = status.get("observedGeneration") == cr.get("metadata", {}).get("generation")
        ready = len(status.get("members", {}).get("ready", [])) == members
        return is_newest and ready and self.condition("Ready")["status"] == "True"

    def settled(self, members, timeout_s=240):
        self.real.eventually(lambda: self.is_settled(members), f"{members} members serve", timeout_s=timeout_s)
        return self

    def etcdctl(self, member, *command):
        """What etcdctl says in a member's pod; asked again where it has no answer, so that a write may be there twice."""
        asked = ("exec", "-n", self.real.namespace, member, "--", "etcdctl", *PATIENTLY, *command)
        return self.real.eventually(lambda: [self.real.kubectl(*asked)], f"etcdctl {command} at {member}")[0]

    def members(self):
        found = json.loads(self.etcdctl("db-0", "member", "list", "-w", "json"))["members"]
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
        (one,) = json.loads(self.etcdctl("db-0", "endpoint", "status", "-w", "json"))
        return one["Status"]

    def end(self):
        self.real.kubectl(
            "delete", "etcdcluster", "db", "-n", self.real.namespace, "--timeout=300s", "--ignore-not-found"
        )


def test_no_acknowledged_write_is_lost_whatever_befalls_it(db):
    real = db.real
    db.apply()
    db.settled(3)
    real.run("python", "-uc", WRITER, name="writer", image="python", pod={"terminationGracePeriodSeconds": 0})
    real.eventually(lambda: len(acked(real)) > 20, "the client writes")

    db.apply(size=5)
    db.settled(5)
    assert sorted(db.members()) == [f"db-{at}" for at in range(5)]
    db.apply(size=3)
    db.settled(3)
    left = db.members()
    assert len(left) == 3

    victim = db.leader()
    restarts = real.container(victim)["restartCount"]
    real.sandbox.pods.signal(real.namespace, victim, "KILL")
    real.eventually(lambda: real.container(victim)["restartCount"] > restarts, "the leader is restarted")
    db.settled(3)
    victim = db.leader()
    uid = real.pod(victim)["metadata"]["uid"]
    real.delete(victim)
    real.eventually(lambda: real.pod(victim).get("metadata", {}).get("uid", uid) != uid, "its pod comes back")
    db.settled(3)
    assert db.members() == left

    db.apply(version=NEW)
    db.settled(3, timeout_s=240)
    assert {real.container(name)["image"] for name in left} == {f"quay.io/coreos/etcd:v{NEW}"}
    assert db.members() == left
    assert db.cr["status"]["currentVersion"] == NEW

    db.apply(version=OLD)
    real.eventually(lambda: db.condition("Degraded")["reason"] == "VersionRefused", "the way back is refused")
    assert NEW in db.condition("Degraded")["message"]

    before = len(acked(real))
    real.eventually(lambda: len(acked(real)) > before + 20, "the client still writes")
    written = acked(real)
    found = db.etcdctl(next(iter(left)), "get", "n/", "--prefix", "--keys-only", "--limit=1000000").split()
    lost = {f"n/{number:08}" for number, _ in written} - set(found)
    assert not lost
    gaps = sorted(later - sooner for (_, sooner), (_, later) in itertools.pairwise(written))
    assert gaps[-1] < 120, f"{len(written)} writes, and a gap of {gaps[-1]:.1f} s"


def test_a_cluster_without_majority_waits_and_one_that_was_deleted_is_found_again_on_its_volumes(db):
    real = db.real
    db.apply()
    db.settled(3)
    before = db.members()
    db.etcdctl("db-0", "put", "first", "1")

    for name in ("db-1", "db-2"):
        real.sandbox.pods.pause(real.namespace, name)
    real.eventually(lambda: db.condition("Degraded")["reason"] == "QuorumLost", "no majority serves", timeout_s=240)
    assert db.condition("Available")["status"] == "False"
    assert "of 3 members don't serve" in db.condition("Degraded")["message"]
    assert sorted(name for name in before if real.pod(name)) == ["db-0", "db-1", "db-2"]
    for name in ("db-1", "db-2"):
        real.sandbox.pods.heal(real.namespace, name)
    db.settled(3)
    assert db.members() == before
    db.end()
    real.gone("db-0", "db-1", "db-2")
    claims = real.kubectl.json("get", "pvc", "-n", real.namespace)["items"]
    assert [one["metadata"]["name"] for one in claims] == ["db-0-data", "db-1-data", "db-2-data"]
    assert not any(one["metadata"].get("ownerReferences") for one in claims)
    db.apply()
    db.settled(3)
    assert db.members() == before
    assert db.etcdctl("db-1", "get", "first", "--print-value-only") == "1\n"


def test_what_is_left_of_a_majority_that_is_gone_goes_on_once_somebody_approves(db):
    real = db.real
    db.apply(size=4)
    db.settled(4)
    before = db.members()
    db.etcdctl("db-0", "put", "first", "1")

    lost = ("db-2", "db-3")
    db.daemon.kill()  # or it may replace one of them while the other three serve
    real.kubectl("delete", "pvc", "-n", real.namespace, "--wait=false", *(f"{name}-data" for name in lost))
    real.kubectl("delete", "pod", "-n", real.namespace, *lost)
    db.daemon.start()
    offered = ("continue alone", "db-2, db-3 of 4 members don't serve", "db-3: its volume is gone")

    def told():
        found = db.condition("Degraded")["message"]
        return found if all(each in found for each in offered) else None

    assert re.search(r"answers, with revision \d+ and term", real.eventually(told, "one is offered"))
    assert not real.pod("db-2")

    assert "approved recover-" in approved(real)
    real.eventually(lambda: len(aside(real)) == 1, "the other volume is put aside", timeout_s=240)
    (name,) = aside(real)
    db.settled(4, timeout_s=240)
    left = next(each for each in ("db-0", "db-1") if each != name)
    found = {
        each["name"]: each["ID"] for each in json.loads(db.etcdctl(left, "member", "list", "-w", "json"))["members"]
    }
    assert found[left] == before[left]
    assert sorted(found) == [left, "db-2", "db-3", "db-4"]
    assert db.etcdctl("db-4", "get", "first", "--print-value-only") == "1\n"
    assert list(aside(real)) == [name]
    assert aside(real)[name] == format(before[name], "x")


def approved(real):
    """Let through what is held of the cluster, and return what is said to that.

    Who approves asks the members too, which may have no time just now: then nothing is held yet.
    """
    environ = {**os.environ, "KUBECONFIG": real.kubectl.kubeconfig}
    command = [PROGRAM, "approve", "etcdcluster/db", "-n", real.namespace, "--yes"]

    def said():
        answer = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=300, check=False)
        return answer.stdout if answer.returncode == 0 and "approved " in answer.stdout else None

    return real.eventually(said, "somebody approves")


def aside(real):
    """Volumes that were put aside, and whose data they hold."""
    mark = "etcd.database.coreos.com/put-aside"
    claims = real.kubectl.json("get", "pvc", "-n", real.namespace)["items"]
    noted = {each["metadata"]["name"]: each["metadata"].get("annotations", {}) for each in claims}
    return {name.removesuffix("-data"): each[mark] for name, each in noted.items() if mark in each}


def test_a_change_is_shown_to_its_end_and_by_what_the_daemon_saw_to_whoever_reaches_no_pod(db, tmp_path):
    real, user = db.real, f"reader-of-{db.real.namespace}"
    db.apply(size=1)
    db.settled(1)
    kinds = ("pods", "services", "persistentvolumeclaims", "poddisruptionbudgets", "etcdclusters", "syncs")
    rules = [{"apiGroups": ["*"], "resources": [kind], "verbs": ["*"]} for kind in kinds]
    role, api = {"kind": "Role", "name": "reader"}, {"apiVersion": "rbac.authorization.k8s.io/v1"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}
    real.apply(
        {**api, "kind": "Role", "metadata": {"name": "reader"}, "rules": rules},
        {**api, "kind": "RoleBinding", "metadata": {"name": "reader"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", **role},
         "subjects": [subject]},
    )  # fmt: skip
    may = ("auth", "can-i", "list", "etcdclusters.etcd.database.coreos.com", "-n", real.namespace, f"--as={user}")
    real.eventually(lambda: "yes" in real.kubectl(*may), "the role is in force")
    file = tmp_path / "db.yaml"
    file.write_text(json.dumps(db.manifest(size=2)))

    def diff(*options):
        return previewed(real, "-f", file, *options)

    for who in ((), (f"--as={user}",)):
        said = diff("--until-stable", *who)
        places = [said.index(step) for step in ("add db-1 as a learner", "PersistentVolumeClaim", "promote db-1")]
        assert places == sorted(places), said
    plain = json.loads(diff("-o", "json"))
    assert plain["problems"] == []
    told = json.loads(diff("-o", "json", f"--as={user}"))
    (problem,) = told["problems"]
    assert problem["severity"] == "warning"
    assert "its pods, as the daemon observed them" in problem["message"]
    assert f"get and create on pods/portforward in namespace {real.namespace}" in problem["message"]
    assert told["observed"][0]["asOf"]

    def is_same():
        looks = [json.loads(diff("-o", "json", *who))["observed"][0]["facts"] for who in ((), (f"--as={user}",))]
        return looks[0] == looks[1]

    real.eventually(is_same, "the daemon saw what there is to see")


def test_members_and_clients_talk_tls_by_certificates_that_are_named(db, tmp_path):
    real = db.real
    real.apply(*certificates(tmp_path, real.namespace))
    static = {"member": {"peerSecret": "peer", "serverSecret": "server"}, "operatorSecret": "operator"}
    db.apply(TLS={"static": static})
    db.settled(3)
    flags = [
        f"--{name}=/etc/etcd/server/{file}"
        for name, file in (("cacert", "ca.crt"), ("cert", "tls.crt"), ("key", "tls.key"))
    ]
    urls = f"--endpoints=https://db-client.{real.namespace}.svc:2379"
    assert db.etcdctl("db-0", *flags, urls, "put", "first", "1") == "OK\n"
    found = json.loads(db.etcdctl("db-0", *flags, urls, "member", "list", "-w", "json"))["members"]
    assert {each["peerURLs"][0] for each in found} == {
        f"https://db-{at}.db.{real.namespace}.svc:2380" for at in range(3)
    }
    real.kubectl("delete", "secret", "operator", "-n", real.namespace)
    real.eventually(lambda: "operator can't be read" in observed(db), "nobody can ask the members", timeout_s=240)
    assert [name for name in ("db-0", "db-1", "db-2") if real.pod(name)] == ["db-0", "db-1", "db-2"]


@pytest.mark.minutes(5)
def test_a_cluster_issues_its_certificates_itself_and_renews_them_while_a_client_writes(db):
    real, auto = db.real, {"auto": {"duration": "48h", "renewBefore": "1h"}}
    db.apply(TLS=auto)
    db.settled(3)
    secrets = real.kubectl.json("get", "secrets", "-n", real.namespace)["items"]
    owners = {each["metadata"]["name"]: each["metadata"]["ownerReferences"][0]["name"] for each in secrets}
    assert owners == dict.fromkeys(("db-ca", "db-client", "db-operator", "db-peer", "db-server"), "db")

    client = {"name": "tls", "secret": {"secretName": "db-client"}}
    real.run(
        "python", "-uc", TLS_WRITER, name="writer", image="python", volumeMounts=[{"name": "tls", "mountPath": "/tls"}],
        pod={"terminationGracePeriodSeconds": 0, "volumes": [client]},
    )  # fmt: skip
    real.eventually(lambda: len(acked(real)) > 20, "the client writes", timeout_s=240)
    lines = real.logs("writer")
    assert [line for line in lines if line.startswith("without")] == ["without refused"]
    assert [line for line in lines if line.startswith("as a peer")] == ["as a peer refused"]

    before, uids = issued(real), running(real)
    at = len(acked(real))
    db.apply(TLS={"auto": {**auto["auto"], "duration": "24h"}})
    real.eventually(lambda: not set(issued(real).values()) & set(before.values()), "all are renewed", timeout_s=240)
    real.eventually(lambda: len(acked(real)) > at + 50, "the client still writes", timeout_s=240)
    real.eventually(lambda: len(shown(real)) > 1, "members show the new certificate", timeout_s=240)
    db.settled(3)
    assert running(real) == uids

    real.kubectl("delete", "secret", "db-ca", "-n", real.namespace)
    real.eventually(
        lambda: not set(running(real).values()) & set(uids.values()),
        "all members trust another authority",
        timeout_s=240,
    )
    db.settled(3, timeout_s=240)
    at = len(acked(real))
    real.eventually(lambda: len(acked(real)) > at + 20, "the client still writes", timeout_s=240)
    found = db.etcdctl("db-0", *FLAGS, "get", "n/", "--prefix", "--keys-only", "--limit=1000000").split()
    assert not {f"n/{number:08}" for number, _ in acked(real)[: at + 20]} - set(found)


FLAGS = [
    f"--{name}=/etc/etcd/server/{file}"
    for name, file in (("cacert", "ca.crt"), ("cert", "tls.crt"), ("key", "tls.key"))
]
TLS_WRITER = """
import base64, hashlib, http.client, itertools, json, socket, ssl, time
def text(of): return base64.b64encode(of.encode()).decode()
def context(shows=True):
    found = ssl.create_default_context(cafile="/tls/ca.crt")
    if shows: found.load_cert_chain("/tls/tls.crt", "/tls/tls.key")
    return found
def ask(path, body, tls, host="db-client", port=2379):
    connection = http.client.HTTPSConnection(host, port, context=tls, timeout=3)
    try:
        connection.connect()
        shown = hashlib.sha256(connection.sock.getpeercert(binary_form=True)).hexdigest()
        connection.request("POST" if body else "GET", path, body)
        answer = connection.getresponse()
        answer.read()
        if answer.status != 200: raise OSError(answer.status)
        return shown
    finally: connection.close()
def refused(name, *arguments):
    while True:
        try: ask(*arguments)
        except (ssl.SSLError, ConnectionResetError, BrokenPipeError): return print(name, "refused", flush=True)
        except OSError: time.sleep(0.2)  # the Service leads nowhere yet, or whoever is asked has no time
        else: return print(name, "let in", flush=True)
put = lambda number: json.dumps({"key": text(f"n/{number:08}"), "value": text(str(number))}).encode()
refused("without", "/v3/kv/put", put(0), context(False))
refused("as a peer", "/members", None, context(), "db-0.db", 2380)
last = ""
for number in itertools.count():
    try:
        shown = ask("/v3/kv/put", put(number), context())
        if shown != last: print("shown", shown, flush=True)
        last = shown
        print("acked", number, time.monotonic(), flush=True)
    except (OSError, http.client.HTTPException) as error:
        print("failed", number, error, flush=True)
    time.sleep(0.05)
"""


def running(real):
    """What runs as each member, and how often it was restarted."""
    pods = {name: real.pod(name).get("metadata", {}).get("uid") for name in ("db-0", "db-1", "db-2")}
    return {name: f"{uid} {real.container(name)['restartCount']}" for name, uid in pods.items()}


def shown(real):
    """The certificates that the client was shown."""
    return {line.split()[1] for line in real.logs("writer") if line.startswith("shown")}


def issued(real):
    """What each certificate's Secret holds now."""
    names = ("db-client", "db-operator", "db-peer", "db-server")
    return {name: real.kubectl.json("get", "secret", name, "-n", real.namespace)["data"]["tls.crt"] for name in names}


def observed(db):
    return db.cr["metadata"].get("annotations", {}).get("reconcile.dev/observed", "")


def certificates(folder: Path, namespace: str):
    """Secrets with certificates of one authority: for members, for clients, and for the daemon."""

    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True, timeout=300)

    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-noenc")
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=ca", "-days", "2")
    names = f"subjectAltName=DNS:*.db.{namespace}.svc,DNS:*.db.{namespace}.svc.cluster.local,DNS:db-client.{namespace}.svc,DNS:localhost,IP:127.0.0.1"
    for name in ("peer", "server", "operator"):
        openssl("req", "-new", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        (folder / "ext").write_text(names)
        openssl(
            "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial",
            "-out", f"{name}.crt", "-days", "2", "-extfile", "ext",
        )  # fmt: skip
        files = {"ca.crt": "ca.crt", "tls.crt": f"{name}.crt", "tls.key": f"{name}.key"}
        data = {key: base64.b64encode((folder / file).read_bytes()).decode() for key, file in files.items()}
        yield {"kind": "Secret", "metadata": {"name": name}, "data": data}


def acked(real):
    lines = (line.split() for line in real.logs("writer") if line.startswith("acked"))
    return [(int(number), float(at)) for _, number, at in lines]
