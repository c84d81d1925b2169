"""The sandbox, as its users meet it: through its commands, with real processes."""

import base64
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
import yaml

from kubectl_reconcile.cache_folder import cache_dir
from kubectl_reconcile.go_programs import progress
from kubectl_reconcile.sandbox.build import PROGRAM, build
from kubectl_reconcile.sandbox.components import Component, Layout, Options, request
from kubectl_reconcile.sandbox.controlplane import Sandbox, SandboxState
from kubectl_reconcile.sandbox.errors import BuildError, SandboxError
from kubectl_reconcile.sandbox.processes import ProcessId, spawn, stop
from kubectl_reconcile.sandbox.record import RecordFile
from tests import yaml_text

CORE = ("etcd", "kube-apiserver")
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept", "namespace": "default"}}


@pytest.fixture(scope="module")
def whole(sandbox, run_folder, binaries) -> Sandbox:
    """A sandbox with all of its components: the one that all tests share, unless they run on somebody else's cluster."""
    if isinstance(sandbox, Sandbox):
        return sandbox
    own = Sandbox("whole", root=run_folder)  # the run ends it
    own.up(binaries=binaries)
    return own


# -- a cluster like any other ------------------------------------------------------------------------------------------


def test_the_pods_of_a_deployment_become_ready(kubectl, namespace):
    kubectl("create", "deployment", "web", "--image=web:1", "--replicas=3", "-n", namespace)
    kubectl("rollout", "status", "deployment/web", "-n", namespace, "--timeout=300s")
    (replica_set,) = kubectl.json("get", "replicasets", "-n", namespace)["items"]
    pods = kubectl.json("get", "pods", "-n", namespace)["items"]
    assert {pod["metadata"]["ownerReferences"][0]["uid"] for pod in pods} == {replica_set["metadata"]["uid"]}
    assert [pod["status"]["phase"] for pod in pods] == ["Running"] * 3


def test_a_job_completes(kubectl, namespace):
    kubectl("create", "job", "once", "--image=once:1", "-n", namespace)
    kubectl("wait", "--for=condition=Complete", "job/once", "-n", namespace, "--timeout=300s")


def test_what_an_object_owned_goes_with_it(kubectl, namespace, eventually):
    kubectl("create", "deployment", "web", "--image=web:1", "-n", namespace)
    kubectl("rollout", "status", "deployment/web", "-n", namespace, "--timeout=300s")
    kubectl("delete", "deployment", "web", "-n", namespace)
    eventually(lambda: not kubectl.json("get", "pods", "-n", namespace)["items"], "the pods are gone")


def test_a_user_may_do_what_rbac_says(sandbox, kubectl, namespace, eventually):
    alice = kubectl.using(sandbox.kubeconfig_for("alice", ["developers"], namespace=namespace))
    with pytest.raises(Exception, match='User "alice" cannot list resource "pods"'):
        alice("get", "pods")
    kubectl("create", "rolebinding", "look", "--clusterrole=view", "--group=developers", "-n", namespace)
    assert eventually(lambda: [alice("get", "pods")], "the binding is in force") == [""]


def test_all_of_it_is_well(whole, eventually):
    well = [(one, "") for one in Component]  # one that is busy may not answer in time

    def found_well():
        status = whole.status()
        return status if [(one.component, one.problem) for one in status.components] == well else None

    status = eventually(found_well, "all are well")
    assert status.state is SandboxState.RUNNING
    assert all(one.rss_bytes > 10_000_000 for one in status.components)


# -- access ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def access(whole) -> dict:
    return yaml_text.document(whole.kubeconfig.read_text())


def test_the_kubeconfig_is_its_owners_alone(whole):
    assert whole.kubeconfig.stat().st_mode & 0o777 == 0o600
    assert whole.folder.stat().st_mode & 0o777 == 0o700


def test_the_certificate_is_verified_with_the_kubeconfigs_authority_strictly(access):
    (cluster,) = (one["cluster"] for one in access["clusters"])
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    trusting = ssl.create_default_context(cadata=authority)
    trusting.verify_flags |= ssl.VERIFY_X509_STRICT  # Python's own default from 3.13 on
    host, port = re.fullmatch(r"https://(.+):(\d+)", cluster["server"]).groups()
    with socket.create_connection((host, int(port))) as plain, trusting.wrap_socket(plain, server_hostname=host) as tls:
        assert tls.version() == "TLSv1.3"
    with socket.create_connection((host, int(port))) as plain, pytest.raises(ssl.SSLCertVerificationError):
        ssl.create_default_context().wrap_socket(plain, server_hostname=host)


ANYBODY = """
import os, socket, sys
if os.geteuid() == 0:
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
with socket.socket(socket.AF_UNIX) as one:
    try:
        one.connect(sys.argv[1])
    except PermissionError:
        sys.exit(3)
"""


def test_what_etcd_stores_is_told_to_nobody_else(whole):
    """Neither over its ports, whatever is asked there, nor over its socket to another user."""
    etcd = psutil.Process(whole.pid("etcd"))
    ports = {each.laddr.port for each in etcd.net_connections("tcp") if each.status == psutil.CONN_LISTEN}
    assert ports == {whole.port("etcd")}
    everything = {"key": base64.b64encode(b"\0").decode(), "range_end": base64.b64encode(b"\0").decode()}
    for method, path in (("POST", "/v3/kv/range"), ("GET", "/v2/keys"), ("GET", "/members"), ("GET", "/raft/probing")):
        status, _ = request(whole.port("etcd"), path, authority=None, method=method, body=everything)
        assert status == 404, path
    assert request(whole.port("etcd"), "/health", authority=None)[0] == 200
    sockets = sorted(whole.folder.glob("*.sock"))
    assert [each.name for each in sockets] == ["etcd-peers.sock", "etcd.sock"]
    if os.geteuid() == 0:  # else there is nobody to become
        for each in sockets:
            answer = subprocess.run([sys.executable, "-c", ANYBODY, str(each)], check=False, timeout=300)
            assert answer.returncode == 3


def test_nobody_gets_in_without_a_token(access, kubectl, tmp_path):
    access["users"][0]["user"] = {"token": "guessed"}
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(access))
    with pytest.raises(Exception, match=r"Unauthorized|must be logged in"):
        kubectl.using(tmp_path / "kubeconfig")("get", "pods")


# -- a life ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def assets(binaries, tmp_path) -> Path:
    """A folder with the three programs that KUBEBUILDER_ASSETS usually names."""
    folder = tmp_path / "assets"
    folder.mkdir()
    for part in (*CORE, "kubectl"):
        (folder / part).symlink_to(binaries.path(part))
    return folder


@pytest.fixture
def command(tmp_path, monkeypatch, run_folder, assets):
    """The sandbox's commands, with a list of sandboxes of their own: command("up") -> (status, output, errors).

    On prebuilt programs, because two components start sooner than five.
    """
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))
    root = run_folder / tmp_path.name
    root.mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(root))
    program = Path(sys.executable).with_name("kubectl-reconcile")

    def run(*arguments):
        answer = subprocess.run([program, "sandbox", *arguments], capture_output=True, text=True, check=False)
        return answer.returncode, answer.stdout, answer.stderr

    yield run
    for name in ("one", "two"):
        run("down", "--name", name)


def shown_processes(status: str) -> dict[str, int]:
    return {name: int(pid) for name, pid in re.findall(r"^(\S+) +(\d+) +\d+ +\d+ MiB  ok$", status, re.MULTILINE)}


def test_two_side_by_side_one_dies_and_comes_back(command, eventually):
    assert command("status", "--name", "one")[0] == 3
    assert command("list")[1] == ""

    ups = {name: command("up", "--name", name, crds) for name, crds in (("one", "--crds"), ("two", "--no-crds"))}
    assert [code for code, _, _ in ups.values()] == [0, 0], ups
    assert "lacks kube-controller-manager, kube-scheduler, kwok: no pod will ever run" in ups["one"][2]
    pids = {name: shown_processes(output) for name, (_, output, _) in ups.items()}
    assert [set(one) for one in pids.values()] == [set(CORE)] * 2
    assert re.findall(r"^(\w+) +running$", command("list")[1], re.MULTILINE) == ["one", "two"]
    kinds = {name: in_shell('eval "$1" && kubectl get crd -o name', command("env", "--name", name)[1]) for name in pids}
    assert ("syncs.reconcile.dev" in kinds["one"], kinds["two"]) == (True, "")
    shell = 'eval "$1" && kubectl create configmap kept && kubectl config view --minify -o jsonpath={..server}'
    server = in_shell(shell, command("env", "--name", "one")[1])

    for pid in pids["one"].values():
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: not any(map(ProcessId.of, pids["one"].values())), "the killed processes are gone")
    code, output, advice = command("status", "--name", "one")
    assert (code, output.split()[:3]) == (3, ["sandbox", "one:", "stale"])
    assert "kubectl reconcile sandbox up --name one" in advice
    eventually(lambda: command("status", "--name", "two")[0] == 0, "the other one is well")

    assert command("up", "--name", "one")[0] == 0
    shell = 'eval "$1" && kubectl get configmap kept -o name && kubectl config view --minify -o jsonpath={..server}'
    assert in_shell(shell, command("env", "--name", "one")[1]).split() == ["configmap/kept", server.split()[-1]]
    pids["one"] = shown_processes(command("status", "--name", "one")[1])

    assert [command("down", "--name", name)[0] for name in ("one", "two")] == [0, 0]
    assert not any(ProcessId.of(pid) for one in pids.values() for pid in one.values())
    assert command("list")[1] == ""
    assert command("status", "--name", "one")[1].strip() == "sandbox one: absent"


def in_shell(script: str, *arguments: str) -> str:
    return subprocess.run(["sh", "-c", script, "sh", *arguments], check=True, capture_output=True, text=True).stdout


def test_outages_and_options(own_sandbox, kubectl, eventually):
    sandbox = own_sandbox(
        components=CORE, users={"carol": ("testers",)}, flags={"kube-apiserver": ("--max-requests-inflight=7",)}
    )
    own = kubectl.using(sandbox.kubeconfig)
    own.apply(CONFIG_MAP)
    assert "--max-requests-inflight=7" in psutil.Process(sandbox.pid("kube-apiserver")).cmdline()
    carol = kubectl.using(sandbox.kubeconfig_for("carol")).json("auth", "whoami")["status"]["userInfo"]
    assert (carol["username"], carol["groups"]) == ("carol", ["testers", "system:authenticated"])

    port, killed = sandbox.port("kube-apiserver"), sandbox.pid("kube-apiserver")
    sandbox.signal("kube-apiserver", signal.SIGKILL)
    eventually(lambda: sandbox.pid("kube-apiserver") is None, "the killed API server is gone")
    ended = {"etcd": (False, ""), "kube-apiserver": (True, "ended by itself")}
    eventually(
        lambda: {one.component: (one.pid is None, one.problem) for one in sandbox.status().components} == ended,
        "one has ended and the other is well",
    )
    assert sandbox.status().state is SandboxState.DEGRADED
    with pytest.raises(SandboxError, match="doesn't run"):
        sandbox.signal("kube-apiserver", signal.SIGTERM)

    sandbox.start("kube-apiserver")
    assert (sandbox.port("kube-apiserver"), sandbox.pid("kube-apiserver") != killed) == (port, True)
    assert own("get", "configmap", "kept", "-o", "name").strip() == "configmap/kept"
    with pytest.raises(SandboxError, match="other options"):
        sandbox.up(Options(components=CORE))

    for component in CORE[::-1]:
        sandbox.stop(component)
    assert sandbox.status().state is SandboxState.STOPPED


def test_a_port_that_somebody_took_meanwhile_is_given_up(own_sandbox, kubectl, binaries):
    sandbox = own_sandbox(components=CORE)
    server, etcd = sandbox.server, sandbox.port("etcd")
    kubectl.using(sandbox.kubeconfig).apply(CONFIG_MAP)
    sandbox.stop("kube-apiserver", grace_s=0)
    with socket.create_server(("127.0.0.1", sandbox.port("kube-apiserver"))):
        assert sandbox.up(binaries=binaries).state is SandboxState.RUNNING
    assert (sandbox.server != server, sandbox.port("etcd")) == (True, etcd)
    assert kubectl.using(sandbox.kubeconfig)("get", "configmap", "kept", "-o", "name").strip() == "configmap/kept"


def test_an_etcd_that_an_earlier_version_started_is_restarted_with_what_it_stores(own_sandbox, kubectl, binaries):
    sandbox = own_sandbox(components=CORE)
    kubectl.using(sandbox.kubeconfig).apply(CONFIG_MAP)
    layout = Layout(sandbox.folder)
    for component in CORE[::-1]:
        sandbox.stop(component)
    for each in sandbox.folder.glob("*.sock"):
        each.unlink(missing_ok=True)
    url = f"http://127.0.0.1:{sandbox.port('etcd')}"
    flags = [f"--listen-client-urls={url}", f"--advertise-client-urls={url}", "--listen-peer-urls=http://127.0.0.1:0"]
    command = [str(binaries.path("etcd")), "--name=sandbox", f"--data-dir={layout.data}", *flags]
    etcd = spawn(command, log=layout.log("etcd"), environ={"PATH": os.defpath}, folder=layout.folder)
    records = RecordFile(sandbox.name, layout)
    record = records.require()
    records.save(replace(record, processes={**record.processes, Component.ETCD: etcd}))
    with pytest.raises(SandboxError, match="started by an earlier version") as caught:
        sandbox.start("kube-apiserver")
    assert f"sandbox up --name {sandbox.name} restarts what runs, and keeps what is stored" in caught.value.hint
    assert sandbox.up(binaries=binaries).state is SandboxState.RUNNING
    assert sandbox.pid("etcd") != etcd.pid
    assert kubectl.using(sandbox.kubeconfig)("get", "configmap", "kept", "-o", "name").strip() == "configmap/kept"


def test_what_could_not_start_leaves_nothing_behind(run_folder, binaries):
    sandbox = Sandbox("broken", root=run_folder)
    with pytest.raises(SandboxError) as caught:
        sandbox.up(Options(flags={"kube-apiserver": ("--no-such-flag",)}), binaries=binaries)
    assert caught.value.message == "sandbox broken: kube-apiserver: ended by itself"
    assert "no-such-flag" in caught.value.output
    assert sandbox.status().state is SandboxState.STOPPED
    assert sandbox.down()
    assert not sandbox.folder.exists()


@pytest.mark.parametrize("name", ["", "A", "a/b", "..", "-a", "a" * 64, "a\n"])
def test_a_name_that_could_not_be_a_folder_is_refused(name):
    with pytest.raises(SandboxError, match="can't be the name"):
        Sandbox(name)


# -- processes ---------------------------------------------------------------------------------------------------------


def test_a_pid_that_somebody_else_has_now_is_left_alone():
    me = ProcessId.of(os.getpid())
    predecessor = ProcessId(me.pid, me.born + "0")
    assert (me.alive, predecessor.alive) == (True, False)
    assert not predecessor.signal_group(signal.SIGKILL)


def test_a_process_is_stopped_with_what_it_started_even_if_it_won_t_listen(tmp_path, eventually):
    script = "trap '' TERM; sleep 300 & echo $! >child; wait; wait"
    deaf = spawn(["sh", "-c", script], log=tmp_path / "log", environ={"PATH": os.defpath}, folder=tmp_path)
    child = int(
        eventually(lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text(), "it has a child")
    )
    stop([deaf], grace_s=0.2)
    assert not deaf.alive
    eventually(lambda: ProcessId.of(child) is None, "its child is gone")


# -- the build ---------------------------------------------------------------------------------------------------------


def test_without_go_the_error_says_what_will_do(tmp_path):
    with pytest.raises(BuildError, match=r"(?s)needs Go.*install Go 1\.\d+ or newer.*KUBEBUILDER_ASSETS.*KUBECONFIG"):
        build(print, environ={"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)})


def test_a_go_that_is_too_old_is_named(tmp_path):
    (tmp_path / "go").write_text("#!/bin/sh\nprintf 'go1.20.3\\nlinux\\namd64\\n'\n")
    (tmp_path / "go").chmod(0o755)
    with pytest.raises(BuildError, match=rf"needs Go 1\.\d+ or newer, and {re.escape(str(tmp_path))}/go is go1\.20"):
        build(print, environ={"PATH": f"{tmp_path}:/bin:/usr/bin", "XDG_CACHE_HOME": str(tmp_path)})


def test_what_the_user_set_for_go_changes_nothing(monkeypatch):
    for name, value in {
        "GOFLAGS": "-mod=vendor -x",
        "GOWORK": "/nowhere/go.work",
        "GOOS": "plan9",
        "GO111MODULE": "off",
    }.items():
        monkeypatch.setenv(name, value)
    go, environ = PROGRAM.find_go(os.environ)
    answer = subprocess.run(
        [go, "env", "GOFLAGS", "GOWORK", "GOOS", "GO111MODULE", "GOTOOLCHAIN"],
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stdout.split() == ["-mod=readonly", "-buildvcs=false", "off", sys.platform, "on", "local"]


def compiled(count):
    return [f"example.com/p{number}\n" for number in range(count)]


PROGRESS = {
    "nothing said yet": ([], 0, 5.0, "checking what is already compiled"),
    "downloads": (["go: downloading a v1\n", "go: downloading b v1\n"], 0, 5.0, "downloaded 2 modules"),
    "too few to tell": (compiled(10), 2000, 5.0, "compiled 10 of 2000 packages (0 %)"),
    "some": (compiled(500), 2000, 60.0, "compiled 500 of 2000 packages (25 %), about 3:00 left"),
    "what go says beside it": (
        ["go: downloading a v1\n", "# example.com/p\n", *compiled(3)], 4, 6.0,
        "compiled 3 of 4 packages (75 %), about 0:02 left",
    ),
    "all": (compiled(4), 4, 6.0, "compiled 4 of 4 packages (100 %), linking them"),
    "more than foreseen": (compiled(5), 4, 6.0, "compiled 5 of 5 packages (100 %), linking them"),
    "the last of a part": (
        [*compiled(3), "kubectl-reconcile.dev/sandbox\n"], 9, 6.0, "compiled 4 of 9 packages (44 %), linking them",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("lines", "total", "elapsed_s", "said"), PROGRESS.values(), ids=PROGRESS)
def test_a_build_says_how_far_it_is_and_how_long_it_will_take(lines, total, elapsed_s, said):
    assert progress(lines, total, elapsed_s) == said


def test_a_build_knows_how_many_packages_it_will_compile(tmp_path):
    sources, cache = tmp_path / "sources", tmp_path / "cache"
    sources.mkdir()
    (sources / "go.mod").write_text("module example.com/few\n\ngo 1.21\n")
    (sources / "main.go").write_text('package main\n\nimport "errors"\n\nfunc main() { panic(errors.New("few")) }\n')
    go, environ = PROGRAM.find_go(os.environ)
    environ["GOCACHE"] = str(cache)
    build = [go, "build", "-v", "-trimpath", "-o", str(tmp_path / "few"), "."]
    foreseen = PROGRAM.stale_packages(build, sources, environ, print)
    said = subprocess.run(build, cwd=sources, env=environ, capture_output=True, text=True, check=True, timeout=400)
    assert foreseen == len(said.stderr.splitlines())
    assert PROGRAM.stale_packages(build, sources, environ, print) <= 1  # the program itself


def test_making_the_sandbox_prints_no_bare_line(binaries):
    tools = Path(sys.executable).parent
    environ = {key: value for key, value in os.environ.items() if key not in {"MAKEFLAGS", "MAKELEVEL", "MFLAGS"}}
    command = ["make", f"VENV={tools.parent}", f"--old-file={tools.parent}/.ready", "sandbox"]
    done = subprocess.run(
        command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True, timeout=300, env=environ
    )
    said, folder = done.stdout.rstrip("\n").split(" are in ")
    assert (said, Path(folder).resolve()) == ("==> the control plane's programs", binaries.folder.resolve())


def test_a_build_is_done_once(binaries):
    said = []
    assert (build(said.append).folder.resolve(), said) == (binaries.folder.resolve(), [])


@pytest.mark.parametrize("part", CORE)
def test_prebuilt_programs_without_the_ones_it_needs_are_refused(part, assets):
    (assets / part).unlink()
    with pytest.raises(BuildError, match=f"has no {part}.*unset it to build"):
        build(print, environ={"KUBEBUILDER_ASSETS": str(assets)})


def test_the_cache_follows_xdg_if_that_is_absolute(home):
    assert cache_dir({"XDG_CACHE_HOME": "/caches"}) == Path("/caches/kubectl-reconcile")
    assert cache_dir({"XDG_CACHE_HOME": "caches"}) == home / ".cache" / "kubectl-reconcile"
