"""TLS of EtcdClusters on real members: by certificates that are named, and by such as the cluster issues and renews itself while a client writes."""

import base64
import json
import subprocess
from pathlib import Path

import pytest

from tests.operators.real.etcd.cluster import acked

pytestmark = pytest.mark.scenario(minutes=2)
FLAGS = [
    f"--{name}=/etc/etcd/server/{file}"
    for name, file in (("cacert", "ca.crt"), ("cert", "tls.crt"), ("key", "tls.key"))
]


def test_members_and_clients_talk_tls_by_certificates_that_are_named(db, tmp_path):
    real = db.real
    real.apply(*certificates(tmp_path, real.namespace))
    static = {"member": {"peerSecret": "peer", "serverSecret": "server"}, "operatorSecret": "operator"}
    db.apply(TLS={"static": static})
    db.settled(3)
    urls = f"--endpoints=https://db-client.{real.namespace}.svc:2379"
    assert db.etcdctl("db-0", *FLAGS, urls, "put", "first", "1") == "OK\n"
    found = json.loads(db.etcdctl("db-0", *FLAGS, urls, "member", "list", "-w", "json"))["members"]
    assert {each["peerURLs"][0] for each in found} == {
        f"https://db-{at}.db.{real.namespace}.svc:2380" for at in range(3)
    }
    real.kubectl("delete", "secret", "operator", "-n", real.namespace)
    real.eventually(lambda: "operator can't be read" in observed(db), "nobody can ask the members")
    assert db.pods() == ["db-0", "db-1", "db-2"]
    db.lose()
    real.kubectl("delete", "secret", "peer", "server", "-n", real.namespace)


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
    real.eventually(lambda: len(acked(real)) > 20, "the client writes")
    lines = real.logs("writer")
    assert [line for line in lines if line.startswith("without")] == ["without refused"]
    assert [line for line in lines if line.startswith("as a peer")] == ["as a peer refused"]

    before, uids = issued(real), running(real)
    at = len(acked(real))
    db.apply(TLS={"auto": {**auto["auto"], "duration": "24h"}})
    real.eventually(lambda: not set(issued(real).values()) & set(before.values()), "all are renewed")
    real.eventually(lambda: len(acked(real)) > at + 50, "the client still writes")
    real.eventually(lambda: len(shown(real)) > 1, "members show the new certificate")
    db.settled(3)
    assert running(real) == uids

    real.kubectl("delete", "secret", "db-ca", "-n", real.namespace)
    real.eventually(
        lambda: not set(running(real).values()) & set(uids.values()),
        "all members trust another authority",
    )
    db.settled(3)
    at = len(acked(real))
    real.eventually(lambda: len(acked(real)) > at + 20, "the client still writes")
    found = db.etcdctl("db-0", *FLAGS, "get", "n/", "--prefix", "--keys-only", "--limit=1000000").split()
    assert not {f"n/{number:08}" for number, _ in acked(real)[: at + 20]} - set(found)


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
