"""Containers as processes, without an API server: real namespaces, real commands."""

import asyncio
import contextlib
import json
import resource
import secrets
import signal
import socket
import sys
from pathlib import Path

import psutil
import pytest

from kubectl_reconcile.sandbox.images.catalog import find
from kubectl_reconcile.sandbox.pods import probing
from kubectl_reconcile.sandbox.processes import ProcessId
from kubectl_reconcile.sandbox.runtime.channel import CallError, _short
from kubectl_reconcile.sandbox.runtime.client import RuntimeClient, spec, unavailable
from kubectl_reconcile.sandbox.runtime.server import SOCKET
from tests.waiting import until

if REASON := unavailable():
    pytest.skip(REASON, allow_module_level=True)

ENVIRON = {"PATH": "/usr/bin:/bin"}
PYTHON = [{"source": str(folder), "target": str(folder), "readOnly": True} for folder in find("python").folders]


@pytest.fixture
async def runtime(run_folder):
    """A runtime in a folder of the run, with which it ends whatever becomes of the test."""
    folder = run_folder / f"runtime-{secrets.token_hex(4)}"
    folder.mkdir()
    client = RuntimeClient(folder)
    await client.ensure(folder / "runtime.log")
    try:
        yield client
    finally:
        client.end()


async def add(runtime, uid: str) -> str:
    return (await runtime.call("add", uid=uid, namespace="test", name=uid, hostname=uid, tmpfs={}))["ip"]


async def start(runtime, uid, *argv, name="main", attempt=0, **options):
    what = spec(argv, environ=ENVIRON, **options)
    log = str(runtime.folder / uid / f"{name}.log")
    await runtime.call("start", uid=uid, container=name, attempt=attempt, spec=what, log=log)


def output(runtime, uid, name="main") -> list[str]:
    lines = (runtime.folder / uid / f"{name}.log").read_text().splitlines()
    return [line.split(" ", 3)[3] for line in lines]


async def run_of(runtime, uid, name="main"):
    return (await runtime.call("state"))["pods"][uid]["runs"][name]


async def ended(runtime, uid, name="main"):
    state = {"version": -1}
    async with asyncio.timeout(300):
        while True:
            state = await runtime.call("state", since=state["version"])
            run = state["pods"][uid]["runs"][name]
            if run["exitCode"] is not None:
                return run


async def test_a_command_runs_in_a_machine_of_its_own(runtime):
    """With its own processes, host name, address and files; of the machine it sees the system, and can't write to it."""
    ip = await add(runtime, "one")
    script = """
        echo $$; hostname; ls /proc | grep -c '^[0-9]'; ip -4 -o addr show eth0 | cut -d' ' -f7
        touch /usr/x 2>/dev/null || echo refused; touch /tmp/x && echo written; ls /home; echo end >&2; exit 3
    """
    await start(runtime, "one", "/bin/sh", "-c", script)
    run = await ended(runtime, "one")
    assert run["exitCode"] == 3
    first, host, processes, address, *rest = output(runtime, "one")
    assert (first, host, address) == ("1", "one", f"{ip}/16")
    assert int(processes) <= 4  # the shell, and what counts
    assert rest == ["refused", "written", "end"]


async def test_a_killed_command_has_the_status_that_a_container_has(runtime):
    await add(runtime, "one")
    await start(runtime, "one", "sleep", "100")
    await runtime.call("signal", uid="one", container="main", signum=signal.SIGTERM)
    assert (await run_of(runtime, "one"))["exitCode"] is None  # the first process of a container has to want to hear it
    await runtime.call("signal", uid="one", container="main", signum=signal.SIGKILL)
    assert (await ended(runtime, "one"))["exitCode"] == 137


async def test_a_command_that_can_t_be_run_says_why(runtime):
    await add(runtime, "one")
    await start(runtime, "one", "no-such-command")
    run = await ended(runtime, "one")
    assert (run["exitCode"], run["error"]) == (128, "no-such-command: there is no such program in the image")


async def test_a_run_is_never_started_twice(runtime):
    await add(runtime, "one")
    await start(runtime, "one", "sleep", "100")
    for attempt in (0, 1):  # neither the same again nor the next while it runs
        with pytest.raises(CallError, match="container main was started already"):
            await start(runtime, "one", "sleep", "100", attempt=attempt)


async def test_pods_reach_each_other_until_they_are_cut_off(runtime):
    server = await add(runtime, "server")
    await add(runtime, "client")
    listen = "import socket; s = socket.create_server(('', 80))\nwhile True: s.accept()[0].close()"
    await start(runtime, "server", sys.executable, "-c", listen, mounts=PYTHON)
    await start(runtime, "client", "sleep", "100", mounts=PYTHON)
    fetch = f"import socket; socket.create_connection(('{server}', 80), timeout=1)"

    async def asked() -> bool:
        with probing.silent() as streams:
            what = spec([sys.executable, "-c", fetch], environ=ENVIRON)
            answer = await runtime.call("enter", uid="client", container="main", spec=what, files=streams)
            return answer["exitCode"] == 0

    await until(asked, "the server answers")
    await runtime.call("cut", uid="server", peers=[], heal=False)
    assert not await asked()
    with pytest.raises((CallError, OSError)):  # nor is it reached from where Services lead to it
        (await runtime.dial(server, 80, 1.0)).close()
    await runtime.call("cut", uid="server", peers=[], heal=True)
    await until(asked, "the server answers again")


async def test_what_is_under_way_to_a_pod_that_is_cut_off_is_lost_as_is_what_it_sends(runtime):
    server = await add(runtime, "server")
    await add(runtime, "client")
    talk = """
import pathlib, socket
one = socket.create_server(('', 80)).accept()[0]
while heard := one.recv(1):
    print(heard.decode(), flush=True)
    one.sendall(heard)
"""
    await start(runtime, "server", sys.executable, "-c", talk, mounts=PYTHON)
    connections: list[socket.socket] = []

    async def reached() -> bool:
        with contextlib.suppress(CallError):
            connections.append(await runtime.dial(server, 80, 1.0))
        return bool(connections)

    await until(reached, "the server listens")
    with connections[0] as connection:
        connection.settimeout(1.0)
        connection.sendall(b"a")
        assert connection.recv(1) == b"a"
        await runtime.call("cut", uid="server", peers=[], heal=False)
        connection.sendall(b"b")
        with pytest.raises(TimeoutError):
            connection.recv(1)
        assert output(runtime, "server") == ["a"]
        await runtime.call("cut", uid="server", peers=[], heal=True)
        connection.settimeout(60.0)
        assert connection.recv(1) == b"b"


async def test_a_user_of_its_own(runtime):
    await add(runtime, "one")
    await start(runtime, "one", "/bin/sh", "-c", "id -u; id -g", user=(999, 998))
    assert (await ended(runtime, "one"))["exitCode"] == 0
    assert output(runtime, "one") == ["999", "998"]


async def test_a_container_can_t_undo_how_it_is_shown_the_machine(runtime):
    """Neither what is read-only nor its address: it has no more capabilities than containers have by default."""
    await add(runtime, "one")
    script = "mount -o remount,rw,bind /usr || echo refused; ip addr add 10.200.9.9/16 dev eth0 || echo refused"
    await start(runtime, "one", "/bin/sh", "-c", f"({script}) 2>/dev/null; touch /tmp/x && chown 0:0 /tmp/x")
    assert (await ended(runtime, "one"))["exitCode"] == 0
    assert output(runtime, "one") == ["refused", "refused"]
    await start(runtime, "one", "sleep", "100", name="other")
    with probing.silent() as streams:
        what = spec(["/bin/sh", "-c", "mount -o remount,rw,bind /usr"], environ=ENVIRON)
        answer = await runtime.call("enter", uid="one", container="other", spec=what, files=streams)
    assert answer["exitCode"] != 0


async def test_mounts_and_their_parts_stay_within_the_container_and_the_volume(runtime):
    volume, home = runtime.folder / "volume", runtime.folder / "home"
    for folder in (volume, home):
        folder.mkdir()
    (volume / "out").symlink_to(home)
    (volume / "file").write_text("in the volume")

    async def run(name, *mounts, command="cat /data/file") -> dict:
        await add(runtime, name)
        whole = [{"source": str(volume), "readOnly": False, **mount} for mount in mounts]
        await start(runtime, name, "/bin/sh", "-c", command, mounts=whole)
        return await ended(runtime, name)

    assert (await run("relative", {"target": "data"}))["exitCode"] == 0
    up = "../" * 30 + "data"
    assert (await run("up", {"target": up}))["exitCode"] == 0
    link = {"target": "/data"}, {"target": "/data/out/deep"}
    assert (await run("link", *link, command="ls -d /data/out"))["exitCode"] == 0
    assert list(home.iterdir()) == []
    assert (await run("etc", {"target": "/etc/ssl-of-ours/certs"}, command="cat /etc/ssl-of-ours/certs/file"))[
        "exitCode"
    ] == 0
    assert (await run("new", {"target": "/data", "part": "a/b"}, command="touch /data/x"))["exitCode"] == 0
    assert (volume / "a/b/x").exists()
    assert (await run("out", {"target": "/data", "part": "out"}))["error"] == "subPath out is outside its volume"
    missing = {"target": "/data", "source": str(home / "none")}
    assert "home/none" in (await run("missing", missing))["error"]
    assert (await run("root", {"target": "/"}))["error"] == "nothing can be mounted at /"


async def test_a_runtime_without_a_file_left_goes_on(runtime):
    """What could not be started has failed, and can be removed; who could not be heard is heard later."""
    await add(runtime, "one")
    inner = runtime.processes()[1].pid
    before = resource.prlimit(inner, resource.RLIMIT_NOFILE)
    few = open_files(inner) + 3
    resource.prlimit(inner, resource.RLIMIT_NOFILE, (few, before[1]))
    await start(runtime, "one", "true")
    run = await run_of(runtime, "one")
    assert (run["exitCode"], "Too many open files" in run["error"]) == (128, True)
    with contextlib.ExitStack() as many, _short(runtime.folder / SOCKET) as address:
        for _ in range(20):
            many.enter_context(socket.socket(socket.AF_UNIX)).connect(address)
        await until(lambda: open_files(inner) >= few, "it has no file left")
    async with asyncio.timeout(60):
        await runtime.call("remove", uid="one", tmpfs=[])
    assert all(one.alive for one in runtime.processes())


async def test_who_holds_connections_to_the_name_server_is_hung_up_on(runtime):
    await add(runtime, "one")
    ask = """
import socket, time
def connected():
    return socket.create_connection(("10.200.0.1", 53), 60)
def ask(one):
    query = bytes.fromhex("0001010000010000000000000377656203636f6d0000010001")
    one.sendall(len(query).to_bytes(2, "big") + query)
    return len(one.recv(2))
def answered():
    try:
        return ask(connected())
    except ConnectionError:
        return 0
held = [connected() for _ in range(100)]
print(ask(held[0]))
try:
    print(len(connected().recv(2)))
except ConnectionResetError:  # by either call
    print(0)
for one in held:
    one.close()
while not answered():  # until the server has heard that they are closed
    time.sleep(0.1)
print("answered")
"""
    await start(runtime, "one", sys.executable, "-c", ask, mounts=PYTHON)
    await ended(runtime, "one")
    assert output(runtime, "one") == ["2", "0", "answered"]


ANSWERS = {
    80: (b"HTTP/1.1 200 OK\r\n\r\n", ""),
    81: (b"x" * (1 << 17), "Separator is not found, and chunk exceed the limit"),
    82: (b"HTTP/1.1 " + b"9" * 5000 + b"\r\n", "HTTP probe failed with statuscode: 9999"),
    83: (b"\0\xff\r\n", "HTTP probe failed with statuscode: 0"),
}


async def test_no_answer_ends_a_probe(runtime):
    ip = await add(runtime, "one")
    listen = """
import json, socket, threading
def serve(port, text):
    with socket.create_server(("", port)) as server:
        while True:
            one, _ = server.accept()
            with one:
                try:
                    one.recv(65536)  # or closing it would reset it, and what was said be lost
                    one.sendall(text)
                except OSError:
                    pass
for port, text in json.load(open("/replies")).items():
    threading.Thread(target=serve, args=(int(port), text.encode("latin-1"))).start()
"""
    replies = json.dumps({port: reply.decode("latin-1") for port, (reply, _) in ANSWERS.items()})
    (runtime.folder / "replies").write_text(replies)
    shown = {"source": str(runtime.folder / "replies"), "target": "/replies", "readOnly": True}
    await start(runtime, "one", sys.executable, "-c", listen, mounts=[*PYTHON, shown])
    target = probing.ProbeTarget({"name": "main"}, ip, runtime, None)

    async def all_listen() -> bool:
        return not any([await probing.attempt(target, {"tcpSocket": {"port": port}}, 60.0) for port in ANSWERS])

    await until(all_listen, "a server listens at each port")
    for port, (_, problem) in ANSWERS.items():
        assert (await probing.attempt(target, {"httpGet": {"port": port}}, 60.0))[:51] == problem[:51]


async def test_nothing_outlives_its_end(runtime, eventually):
    await add(runtime, "one")
    seconds = str(secrets.randbelow(10**6) + 1000)
    await start(runtime, "one", "/bin/sh", "-c", f"sleep {seconds} & setsid sleep {seconds} & wait")
    processes = runtime.processes()
    eventually(lambda: len(sleeping(seconds)) == 2, "both sleep")
    started = sleeping(seconds)
    runtime.end()
    assert len(processes) == 2
    assert not [one for one in processes + started if one.alive]


async def test_it_ends_with_its_folder(runtime, eventually):
    processes = runtime.processes()
    runtime.folder.rename(runtime.folder.with_name("elsewhere"))
    eventually(lambda: not any(one.alive for one in processes), "all of it ends")


def open_files(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def sleeping(seconds: str) -> list[ProcessId]:
    return [
        ProcessId.of(one.pid) for one in psutil.process_iter(["cmdline"]) if one.info["cmdline"] == ["sleep", seconds]
    ]
