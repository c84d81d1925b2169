"""What pods, programs in them and neighbours on the machine may try with a nodelet, on plain values and files."""

import asyncio
import contextlib
import os
import signal
import socket
import struct
import zlib
from pathlib import Path

import pytest
from dnslib import DNSRecord

from kubectl_reconcile.sandbox.images.image import ImageError
from kubectl_reconcile.sandbox.pods import volumes
from kubectl_reconcile.sandbox.pods.api import RefusedError
from kubectl_reconcile.sandbox.pods.claims import folder_of
from kubectl_reconcile.sandbox.pods.decisions import resolve, services
from kubectl_reconcile.sandbox.pods.decisions.reported import runs_of_status, seconds
from kubectl_reconcile.sandbox.pods.decisions.resolve import ConfigError
from kubectl_reconcile.sandbox.pods.pod_containers import signal_number
from kubectl_reconcile.sandbox.pods.pod_folder import last_of
from kubectl_reconcile.sandbox.pods.probing import ProbeTarget, attempt
from kubectl_reconcile.sandbox.pods.served.logs import LogOptions, printed
from kubectl_reconcile.sandbox.pods.served.peers import owner_of
from kubectl_reconcile.sandbox.pods.served.portforward import ports_of
from kubectl_reconcile.sandbox.pods.served.spdy import _DICTIONARY, SpdyConnection
from kubectl_reconcile.sandbox.runtime.names import Zone, answer
from kubectl_reconcile.sandbox.runtime.traffic import Outside, Proxy
from tests.waiting import until

POD = {
    "metadata": {"name": "db-0", "namespace": "shop", "uid": "u-1"},
    "spec": {"containers": [{"name": "main", "image": "system"}]},
}

# --- who may ask the nodelet -----------------------------------------------------------------------------------------


def test_a_neighbour_s_connection_isn_t_taken_for_one_of_ours_that_has_the_same_port_elsewhere():
    ours = "   0: 0100007F:1F40 0100007F:9C40 01 00000000:00000000 00:00000000 00000000  1000        0 1"
    theirs = "   1: 0200007F:1F40 0100007F:2710 01 00000000:00000000 00:00000000 00000000  2000        0 2"
    table = f"  sl  local_address rem_address   st …\n{ours}\n{theirs}"
    assert owner_of(table, ("127.0.0.2", 8000), ("127.0.0.1", 10000)) == 2000
    assert owner_of(table, ("127.0.0.1", 8000), ("127.0.0.1", 40000)) == 1000
    assert owner_of(table, ("127.0.0.1", 8000), ("127.0.0.1", 10000)) is None


def test_the_owner_of_a_real_connection_is_found():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as mine:
        table = Path("/proc/net/tcp").read_text(encoding="ascii")
        assert owner_of(table, mine.getsockname(), server.getsockname()) == os.geteuid()


# --- ports -----------------------------------------------------------------------------------------------------------


def opened(block: bytes) -> bytes:
    deflate = zlib.compressobj(zdict=_DICTIONARY)
    body = struct.pack(">II", 1, 0) + bytes(2) + deflate.compress(block) + deflate.flush(zlib.Z_SYNC_FLUSH)
    return b"\x80\x03\x00\x01\x00" + len(body).to_bytes(3) + body


@pytest.mark.parametrize(
    "block",
    [struct.pack(">I", 0x7FFFFFFF), struct.pack(">II", 1, 0x7FFFFFFF), bytes(1 << 22)],
    ids=["more headers than there are", "a header longer than all", "headers without end, packed"],
)
def test_headers_of_a_stream_cost_no_more_than_they_hold(block):
    with pytest.raises(ValueError, match="headers"):
        list(SpdyConnection().receive(opened(block)))


@pytest.mark.parametrize("asked", [["0"], ["65536"], ["-1"], ["http"], [",".join(["80"] * 129)]])
def test_ports_that_are_none(asked):
    with pytest.raises(ValueError, match="port"):
        ports_of(asked)


# --- what objects of the API server say ------------------------------------------------------------------------------


def service(ip="10.0.0.7", **spec) -> dict:
    ports = [{"name": "http", "port": 80}]
    return {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"clusterIP": ip, "ports": ports, **spec}}


def endpoints(*ips, **port) -> dict:
    meta = {"name": "web-1", "namespace": "shop", "labels": {"kubernetes.io/service-name": "web"}}
    ready = [{"addresses": [ip], "conditions": {"ready": True}} for ip in ips]
    return {"metadata": meta, "addressType": "IPv4", "endpoints": ready, "ports": [{"name": "http", **port}]}


def test_an_endpoint_without_a_port_or_with_an_impossible_one_is_nobody_s():
    for port in ({}, {"port": None}, {"port": 70000}, {"port": -1}):
        slices = [endpoints("10.200.1.1", **port)]
        assert services.routes([service()], slices, 6443) == [("10.0.0.7", 80, [])]
        assert services.zone([service("None")], slices).services == {}
        assert services.zone([service("None")], slices).addresses["web.shop.svc.cluster.local"] == ["10.200.1.1"]


def test_a_service_whose_endpoint_is_a_service_leads_nowhere():
    """What carries traffic would else connect to itself again and again."""
    slices = [endpoints("10.0.0.7", "10.0.0.8", "10.200.1.1", port=80)]
    assert services.routes([service()], slices, 6443) == [("10.0.0.7", 80, [("10.200.1.1", 80)])]


def test_an_answer_about_ten_thousand_endpoints_costs_no_more_than_has_room_in_it():
    name, many = "web.shop.svc.cluster.local", [f"10.200.{one // 250}.{one % 250}" for one in range(10_000)]
    zone = Zone({name: many}, {f"_http._tcp.{name}": [(80, name)] * 10_000})
    for asked, kind in ((name, "A"), (f"_http._tcp.{name}", "SRV")):
        query = DNSRecord.question(asked, kind).pack()
        told = DNSRecord.parse(answer(query, zone, limit=1232))
        assert told.header.tc
        assert len(answer(query, zone)) <= 65535


def test_a_status_may_tell_of_containers_that_aren_t_there_and_of_times_before_any():
    ran = {"state": {"running": {"startedAt": "0000-01-01T00:00:00Z"}}, "restartCount": 1, "ready": True}
    status = {"containerStatuses": [{"name": "ghost", **ran}, {"name": "main", **ran}]}
    runs = runs_of_status({**POD, "status": status})
    assert {name: run["startedS"] for name, run in runs.items()} == {"main": 0.0}
    assert seconds("0000-01-01T00:00:00Z") == 0.0


def test_an_alias_of_a_host_needs_no_names():
    pod = {**POD, "spec": {**POD["spec"], "hostAliases": [{"ip": "1.2.3.4"}]}}
    assert resolve.hosts(pod, "10.200.1.1").splitlines()[-1].split() == ["1.2.3.4"]


@pytest.mark.parametrize(
    ("text", "number"),
    [("1Pi", 2**50), ("2E", 2e18), ("1e3", 1000), ("5E3", 5000), ("100u", 1e-4), (".5", 0.5), ("-1", 0), ("x", 0)],
)
def test_quantities(text, number):
    assert resolve.quantity(text) == pytest.approx(number)


def command(*env, args=()) -> resolve.Command:
    container = {"name": "main", "image": "system", "command": ["true"], "args": list(args), "env": list(env)}
    return resolve.command(POD, container, {}, resolve.Facts(""), default=(), environ={}, path=())


def test_variables_that_double_one_another_end_early():
    doubling = [{"name": "V0", "value": "x" * 1000}]
    doubling += [{"name": f"V{one}", "value": f"$(V{one - 1})" * 2} for one in range(1, 60)]
    with pytest.raises(ConfigError, match="V8 has more than 128 KiB"):
        command(*doubling)
    with pytest.raises(ConfigError, match="more than 128 KiB"):
        command({"name": "V", "value": "x" * 100_000}, args=["$(V)" * 100_000])


# --- volumes ---------------------------------------------------------------------------------------------------------


def test_a_link_that_a_program_left_in_a_volume_leads_nobody_out_of_it(tmp_path):
    volume, home = tmp_path / "volume", tmp_path / "home"
    volume.mkdir()
    home.mkdir()
    (home / "diary").write_text("mine")
    volumes.write(volume, {"key": (b"one", 0o644)})
    (volume / "..data").unlink()
    (volume / "..data").symlink_to(home)
    (volume / "extra").mkdir()
    assert volumes.write(volume, {"key": (b"two", 0o644)})
    assert (volume / "key").read_text() == "two"
    assert (home / "diary").read_text() == "mine"
    assert not (volume / "extra").exists()


def test_files_that_can_t_be_together_are_refused_and_leave_nothing(tmp_path):
    for _ in range(3):
        with pytest.raises(ConfigError, match=r"a/b can't be where a is"):
            volumes.write(tmp_path, {"a": (b"", 0o644), "a/b": (b"", 0o644)})
    assert list(tmp_path.iterdir()) == []


def test_a_path_may_be_written_in_more_than_one_way(tmp_path):
    content = {"./a//b": (b"one", 0o644)}
    assert volumes.write(tmp_path, content)
    assert (tmp_path / "a/b").read_text() == "one"
    assert not volumes.write(tmp_path, content)


def test_what_the_api_server_holds_can_t_be_written_to(tmp_path):
    kinds = ({"configMap": {}}, {"secret": {}}, {"downwardAPI": {}}, {"projected": {}}, {"emptyDir": {}})
    named = [{"name": next(iter(kind)).lower(), **kind} for kind in kinds]
    container = {"volumeMounts": [{"name": each["name"], "mountPath": f"/{each['name']}"} for each in named]}
    places = {each["name"]: tmp_path / each["name"] for each in named}
    found = volumes.mounts(container, named, places, {})
    assert {each["target"]: each["readOnly"] for each in found} == {
        "/configmap": True, "/secret": True, "/downwardapi": True, "/projected": True, "/emptydir": False,
    }  # fmt: skip


def test_a_part_of_a_volume_is_named_by_variables_and_never_leads_out(tmp_path):
    volume, place = {"name": "data", "emptyDir": {}}, tmp_path / "data"

    def mounted(variables, **how):
        container = {"volumeMounts": [{"name": "data", "mountPath": "/data", **how}]}
        return volumes.mounts(container, [volume], {"data": place}, variables)

    assert mounted({"POD": "db-0"}, subPathExpr="of/$(POD)")[0]["part"] == "of/db-0"
    for how in ({"subPath": "a/../.."}, {"subPath": "/etc"}, {"subPathExpr": "$(UP)/x"}):
        with pytest.raises(ConfigError, match="is outside volume data"):
            mounted({"UP": "../.."}, **how)
    assert "part" not in mounted({})[0]


def test_the_folder_of_a_claim_is_told_by_the_name_of_its_volume_alone(tmp_path):
    released = {"metadata": {"name": "pvc-1"}, "spec": {"hostPath": {"path": str(tmp_path / "2")}}}
    assert folder_of(released, tmp_path) == tmp_path / "1"
    assert folder_of({"metadata": {"name": "theirs"}, "spec": {"nfs": {}}}, tmp_path) is None


# --- what is printed -------------------------------------------------------------------------------------------------


def test_of_endless_last_words_the_end_is_read(tmp_path):
    words = tmp_path / "words"
    with words.open("wb") as file:
        file.truncate(1 << 40)
        file.seek(0, os.SEEK_END)
        file.write(b"the end")
    assert last_of(words).endswith("the end")
    assert len(last_of(words)) == 4096
    assert last_of(tmp_path / "none") == ""


async def test_a_log_is_followed_into_the_next_file_when_one_is_full(tmp_path):
    path = tmp_path / "main-0.log"
    path.write_text("2026-01-01T00:00:00Z stdout F one\n")
    lines = iter(["two", "three", ""])

    def runs() -> bool:
        line = next(lines)
        if line:
            path.rename(path.with_suffix(".old"))
            path.write_text(f"2026-01-01T00:00:00Z stdout F {line}\n")
        return bool(line)

    async with asyncio.timeout(60):
        said = [text async for text in printed(path, LogOptions(follow=True), runs)]
    assert said == [b"one\n", b"two\n", b"three\n"]


@pytest.mark.parametrize("query", [{"sinceSeconds": "99999999999999999999"}, {"sinceTime": "0000-01-01T00:00:00Z"}])
def test_a_time_before_all_others_is_none(query):
    assert LogOptions.parse(query) == LogOptions()


# --- connections -----------------------------------------------------------------------------------------------------


async def test_one_who_connects_to_services_without_end_leaves_room_for_others():
    def connected(own: str) -> socket.socket:
        return held.enter_context(socket.create_connection(address, 60, (own, 0)))

    outside, inside = socket.socketpair()
    with outside, inside, socket.create_server(("127.0.0.1", 0)) as behind, contextlib.ExitStack() as held:
        with socket.socket() as free:
            free.bind(("127.0.0.9", 0))  # an address of its own, whose ports nobody else comes from
            address = free.getsockname()
        proxy = Proxy(Outside(inside), most=4)
        assert await proxy.follow({address: [behind.getsockname()]}) == []
        for own, expected in (
            ("127.0.0.1", b"hello"),
            ("127.0.0.1", b"hello"),
            ("127.0.0.1", b""),
            ("127.0.0.2", b"hello"),
        ):
            if expected:
                one = await asyncio.to_thread(connected, own)
                there = held.enter_context((await asyncio.to_thread(behind.accept))[0])
                there.sendall(expected)
                assert await asyncio.to_thread(one.recv, 5) == expected
            else:
                with pytest.raises(ConnectionResetError):  # which may come while it is being connected
                    await asyncio.to_thread((await asyncio.to_thread(connected, own)).recv, 5)
        held.close()
        await proxy.follow({})
        await until(lambda: len(asyncio.all_tasks()) == 1, "nobody is left who carries anything")


async def test_a_probe_that_the_api_server_or_an_image_is_in_the_way_of_has_failed():
    for error in (RefusedError(0, "no answer"), ImageError("no programs"), ConfigError("no key")):

        async def enter(_: list[str], error=error) -> int:
            raise error

        target = ProbeTarget({"name": "main"}, "", None, enter)
        assert await attempt(target, {"exec": {"command": ["true"]}}, 1.0) == str(error)


def test_signals_that_have_no_name_in_python():
    assert signal_number("SIGTERM") == 15
    assert signal_number("SIGRTMIN+3") == signal.SIGRTMIN + 3
