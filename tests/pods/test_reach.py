"""How modules reach pods: by name and port, through the API server, only those of their CR, and never for long."""

import datetime as dt

import pytest
from msgspec.structs import replace

from kubectl_reconcile.cluster.access import Access
from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.core.module.api import PodTls, SilentPodError
from kubectl_reconcile.core.module.inputs import Owned
from kubectl_reconcile.core.retry import SILENT_POD
from kubectl_reconcile.engine.modules.external_systems import ExternalSystems
from kubectl_reconcile.engine.modules.operands import NoWayError, Operands
from kubectl_reconcile.engine.modules.reach import Reach
from kubectl_reconcile_operators.certificates.keys.pairs import Subject, issue, new_authority

SERVER = """
import http.server as h, json
class Echo(h.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        found = body * 100_000 if self.path == "/large" else json.dumps([self.command, self.path, len(body)]).encode()
        self.send_response(418 if self.path == "/odd" else 200)
        self.send_header("Content-Length", str(len(found)))
        self.end_headers()
        self.wfile.write(found)
    do_GET = do_POST
h.ThreadingHTTPServer(("", 80), Echo).serve_forever()
"""
TALKS = """
import socket, threading
def endless(one):
    try:
        while True:
            one.sendall(b"x" * 65536)
    except OSError:
        one.close()
server = socket.create_server(("", 80))
while True:
    one, _ = server.accept()
    while block := one.recv(100):
        if block == b"much":
            threading.Thread(target=endless, args=(one,), daemon=True).start()
            break
        one.sendall(block.upper())
        if block == b"end":
            one.close()
            break
"""
SECRETIVE = """
import socket, ssl
context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile="/tls/ca.crt")
context.verify_mode = ssl.CERT_REQUIRED
context.load_cert_chain("/tls/tls.crt", "/tls/tls.key")
server = socket.create_server(("", 80))
while True:
    one, _ = server.accept()
    try:
        one = context.wrap_socket(one, server_side=True)
        one.sendall(one.recv(100).upper())
    except OSError:
        pass
    one.close()
"""
HANGS = "import socket, time; s = socket.create_server(('', 80), backlog=4096); time.sleep(3000)"


@pytest.fixture
def longest(monkeypatch):
    """longest(seconds) -> pods may take so long to answer: one that does may be slow, one that hangs is waited for."""

    def set_to(seconds):
        monkeypatch.setattr("kubectl_reconcile.engine.modules.operands._CALL_S", seconds)

    never = replace(SILENT_POD, first_s=10_000.0, cap_s=10_000.0)
    monkeypatch.setattr("kubectl_reconcile.engine.modules.operands.SILENT_POD", never)
    return set_to


@pytest.fixture
async def outside(kubeconfig):
    async with await Client.connect(Access(kubeconfig=kubeconfig)) as client:
        yield Reach(ExternalSystems(), Operands(directly=False), client)


async def test_pods_are_reached_by_name_within_limits(real, outside, kubectl, longest):
    longest(120.0)
    probe = {"tcpSocket": {"port": 80}, "periodSeconds": 1}
    real.run("python", "-c", SERVER, name="web", image="python", readinessProbe=probe)
    real.run("python", "-c", HANGS, name="hangs", image="python", readinessProbe=probe)
    owned = Owned([real.ready("web"), real.ready("hangs")])

    async with outside.io(owned) as io:
        web = io.pod("web", 80)
        assert (await web.ask("/x?y=%2F")).body == ["GET", "/x?y=%2F", 0]
        assert (await web.ask("/x", {"of": "a" * 200_000})).body == ["POST", "/x", 200_009]
        assert (await web.ask("/odd")).status == 418
        with pytest.raises(SilentPodError, match="pod web: no answer at port 80: it answers with more than 1 MiB"):
            await web.ask("/large", "a" * 100)
        with pytest.raises(SilentPodError, match="pod web: observe must change nothing, but PUT /x would"):
            await web.send("PUT", "/x")
        with pytest.raises(SilentPodError, match="pod web: no answer at port 81: port 81 of the pod can't be reached"):
            await io.pod("web", 81).ask("/")
        assert io.pods.unheard == ""
        with pytest.raises(SilentPodError, match="pod other: the custom resource controls no pod of that name"):
            io.pod("other", 80)
    async with outside.io(owned, "key") as io:
        assert (await io.pod("web", 80).send("POST", "/x", {}, within_s=120.0)).body == ["POST", "/x", 2]

    longest(3.0)
    async with outside.io(owned) as io:
        with pytest.raises(SilentPodError, match="pod hangs: no answer at port 80 within 3 s"):
            await io.pod("hangs", 80).ask("/")
        assert io.pods.unheard == "pod hangs: no answer at port 80 within 3 s"
    longest(120.0)
    async with outside.io(owned) as io:
        with pytest.raises(SilentPodError, match=r"pod hangs: didn't answer; it is asked again in \d+ s"):
            await io.pod("hangs", 80).ask("/")
        assert (await io.pod("web", 80).ask("/x")).status == 200
        assert io.pods.unheard.startswith("pod hangs: didn't answer; it is asked again in")

    async with outside.io(owned, "key") as io:
        with pytest.raises(SilentPodError, match=r"pod hangs: no answer at port 80 within 0\.2 s"):
            await io.pod("hangs", 80).send("POST", "/x", {}, within_s=0.2)

    stranger = Reach(outside.systems, outside.operands, outside.client.impersonate("stranger"))
    async with stranger.io(owned) as io:
        right = rf"get and create on pods/portforward in namespace {real.namespace}\)"
        with pytest.raises(NoWayError, match=right):
            await io.pod("web", 80).ask("/x")


async def test_a_pod_that_speaks_no_http_is_talked_to_within_the_same_limits(real, outside, longest):
    longest(120.0)
    probe = {"tcpSocket": {"port": 80}, "periodSeconds": 1}
    real.run("python", "-c", TALKS, name="talks", image="python", readinessProbe=probe)
    real.run("python", "-c", HANGS, name="hangs", image="python", readinessProbe=probe)
    owned = Owned([real.ready("talks"), real.ready("hangs")])
    async with outside.io(owned) as io:
        for word in (b"one", b"two"):
            async with io.pod("talks", 80).connect() as stream:
                await stream.write(word)
                assert await stream.read(100) == word.upper()
        async with io.pod("talks", 80).connect() as stream:
            await stream.write(b"end")
            assert await stream.read(100) == b"END"
            with pytest.raises(SilentPodError, match="pod talks: no answer at port 80: it ended the connection"):
                await stream.read(100)
        async with io.pod("talks", 80).connect() as stream:
            await stream.write(b"much")
            taken = []
            with pytest.raises(
                SilentPodError, match="pod talks: no answer at port 80: it answers with more than 1 MiB"
            ):
                await read_all(stream, taken)
            assert sum(map(len, taken)) <= 1 << 20
        with pytest.raises(
            SilentPodError, match="pod talks: no answer at port 81: port 81 of the pod can't be reached"
        ):
            async with io.pod("talks", 81).connect() as stream:
                await stream.read(100)
    longest(3.0)
    async with outside.io(owned) as io:
        with pytest.raises(SilentPodError, match="pod hangs: no answer at port 80 within 3 s"):
            async with io.pod("hangs", 80).connect() as stream:
                await stream.read(100)
    async with outside.io(owned) as io:
        with pytest.raises(SilentPodError, match="pod hangs: didn't answer; it is asked again in"):
            async with io.pod("hangs", 80).connect() as stream:
                await stream.read(100)


async def test_a_pod_is_talked_to_over_tls_by_the_certificates_of_a_secret_alone(real, outside, longest):
    longest(120.0)
    now = dt.datetime.now(dt.UTC)
    authority = new_authority("pods", now, 3600)
    for name, signer in (("own", authority), ("other", new_authority("others", now, 3600))):
        pair = issue(signer, Subject("pods", ("secretive.svc",)), now, 3600)
        held = {"ca.crt": signer.certificate, "tls.crt": pair.certificate, "tls.key": pair.key}
        real.apply({"kind": "Secret", "metadata": {"name": name}, "stringData": held})
    volume = {"name": "tls", "secret": {"secretName": "own"}}
    probe = {"tcpSocket": {"port": 80}, "periodSeconds": 1}
    mounts = [{"name": "tls", "mountPath": "/tls"}]
    real.run("python", "-c", SECRETIVE, name="secretive", image="python", readinessProbe=probe, volumeMounts=mounts, pod={"volumes": [volume]})  # fmt: skip
    owned = Owned([real.ready("secretive")])
    async with outside.io(owned) as io:
        async with io.pod("secretive", 80, PodTls("own", "secretive.svc")).connect() as stream:
            await stream.write(b"hush")
            assert await stream.read(100) == b"HUSH"
        for tls in (PodTls("own", "else.svc"), PodTls("other", "secretive.svc"), PodTls("absent", "secretive.svc")):
            with pytest.raises(SilentPodError):
                async with io.pod("secretive", 80, tls).connect() as stream:
                    await stream.read(100)


async def read_all(stream, taken):
    while True:
        taken.append(await stream.read(1 << 16))
