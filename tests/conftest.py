"""Fixtures for tests on the real thing: a control plane, a Git server, and a home that is nobody's.

One sandbox serves a whole run, however many workers it has: whoever needs it first starts it, and the process that
started the run ends it once all workers are done. It lives in a folder of the run, beside a file that says which
process owns the run; what a killed run has left behind is removed by the next one.

Set KUBECTL_RECONCILE_TEST_KUBECONFIG to a disposable cluster's kubeconfig to use that cluster instead.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import itertools
import json
import os
import secrets
import shutil
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, Phase, settings

from kubectl_reconcile.cache_folder import cache_dir
from kubectl_reconcile.sandbox.build import Binaries, build
from kubectl_reconcile.sandbox.components import Options
from kubectl_reconcile.sandbox.controlplane import Sandbox, list_sandboxes, state_dir
from kubectl_reconcile.sandbox.errors import SandboxError
from kubectl_reconcile.sandbox.gitserver import GitServer, ServedRepository
from kubectl_reconcile.sandbox.processes import ProcessId
from kubectl_reconcile.source.render import program
from tests.signing import SignedRepository, Signer, ssh_signer

# A machine that is busy is slow, which says nothing about a law.
settings.register_profile("busy", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
# What a change of the program does is judged on the same examples each time; which is the simplest that fails doesn't matter.
settings.register_profile(
    "mutants", settings.get_profile("busy"), derandomize=True, database=None, phases=[Phase.explicit, Phase.generate]
)
# Whether a commit lands is judged on the same examples each time too; whoever runs the tests by hand looks for new ones.
settings.register_profile("ci", settings.get_profile("busy"), derandomize=True, database=None, print_blob=True)
# Ten thousand statuses of anything, and a thousand examples of each law besides.
settings.register_profile("long", settings.get_profile("busy"), max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "busy"))

CLUSTER = "KUBECTL_RECONCILE_TEST_KUBECONFIG"
RUNS = cache_dir() / "test-runs"
RUN = pytest.StashKey[Path]()
RUNNER = pytest.StashKey[str]()  # the process that started the run, as OWNER holds it
OWNER = "owner.json"
OTHERS = "KUBE", "GIT_", "XDG_"  # variables with these prefixes never reach a test


# -- the run -----------------------------------------------------------------------------------------------------------


def pytest_configure(config: pytest.Config) -> None:
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # our programs
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell has it for what runs in its background
        signal.signal(signal.SIGINT, signal.default_int_handler)  # the programs under test are to hear Ctrl-C
    worker = getattr(config, "workerinput", None)
    if worker:
        config.stash[RUN] = Path(worker["sandbox_run"])
        config.stash[RUNNER] = worker["sandbox_runner"]
        return
    runner = ProcessId.of(os.getpid())
    config.stash[RUN] = RUNS / f"{runner.pid}-{secrets.token_hex(4)}"
    config.stash[RUNNER] = json.dumps([runner.pid, runner.born])


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node) -> None:
    node.workerinput["sandbox_run"] = str(node.config.stash[RUN])
    node.workerinput["sandbox_runner"] = node.config.stash[RUNNER]


def pytest_sessionfinish(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):
        end_run(session.config.stash[RUN])


@pytest.fixture(scope="session")
def run_folder(pytestconfig) -> Path:
    """The folder of this run, shared by its workers."""
    folder = pytestconfig.stash[RUN]
    if not folder.exists():
        RUNS.mkdir(mode=0o700, parents=True, exist_ok=True)
        end_killed_runs()
        folder.mkdir(mode=0o700, exist_ok=True)
        (folder / OWNER).write_text(pytestconfig.stash[RUNNER])
    return folder


def end_killed_runs() -> None:
    for folder in RUNS.iterdir():
        with contextlib.suppress(FileNotFoundError, SandboxError, json.JSONDecodeError):  # one may just begin
            if not ProcessId(*json.loads((folder / OWNER).read_text())).alive:
                end_run(folder)


def end_run(folder: Path) -> None:
    for root in (folder, state_dir({"XDG_STATE_HOME": str(folder)})):
        for sandbox in list_sandboxes(root):
            sandbox.down()
    shutil.rmtree(folder, ignore_errors=True)


# -- the environment ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def home(tmp_path_factory) -> Path:
    """A home folder for the run's programs, with the user's builds of the sandbox in its cache."""
    home = tmp_path_factory.mktemp("home")
    cache = home / ".cache" / "kubectl-reconcile"
    cache.mkdir(parents=True)
    builds = cache_dir() / "sandbox"
    builds.mkdir(mode=0o700, parents=True, exist_ok=True)
    (cache / "sandbox").symlink_to(builds)
    for name in ("render", "images"):
        (cache / name).symlink_to(cache_dir() / name)
    return home


@pytest.fixture(scope="session")
def renders(home) -> Path:
    """The program that renders overlays, built if it wasn't yet: that takes minutes, unless make has done it."""
    return program.build(print)


@pytest.fixture(autouse=True)
def _nobodys_home(request, monkeypatch) -> None:
    """Keep the user's settings away from the tests, and the tests away from the user's files."""
    if "core" in request.node.path.relative_to(Path(__file__).parent).parts[:1]:
        return  # pure: there is nothing to keep away
    for name in os.environ:
        if name.startswith(OTHERS) and name not in (CLUSTER, "KUBEBUILDER_ASSETS"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(request.getfixturevalue("home")))
    monkeypatch.setenv("XDG_STATE_HOME", str(request.getfixturevalue("run_folder")))  # the run ends what a test forgot
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "Tester")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "tester@localhost")


# -- the cluster -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GivenCluster:
    """A cluster that somebody else runs."""

    kubeconfig: Path

    def kubeconfig_for(self, user, groups=(), *, namespace="") -> Path:
        config = yaml.safe_load(self.kubeconfig.read_text())
        context = next(one["context"] for one in config["contexts"] if one["name"] == config["current-context"])
        context["namespace"] = namespace or "default"
        entry = next(one["user"] for one in config["users"] if one["name"] == context["user"])
        entry |= {"as": user, "as-groups": list(groups)}
        path = self.kubeconfig.with_name(f"{secrets.token_hex(8)}.kubeconfig")
        path.touch(0o600)
        path.write_text(yaml.safe_dump(config))
        return path


@pytest.fixture(scope="session")
def binaries() -> Binaries:
    """The control plane's programs, built where this user has no build yet."""
    return build(lambda line: print(line, file=sys.__stderr__, flush=True))


@pytest.fixture(scope="session")
def sandbox(request, tmp_path_factory) -> Sandbox | GivenCluster:
    """The cluster that all tests share: don't hurt it, and keep to your namespace. See own_sandbox."""
    given = os.environ.get(CLUSTER)
    if given:
        path = tmp_path_factory.mktemp("cluster") / "kubeconfig"
        path.touch(0o600)
        path.write_text(Path(given).read_text())
        return GivenCluster(path)
    shared = Sandbox("shared", root=request.getfixturevalue("run_folder"))
    shared.up(binaries=request.getfixturevalue("binaries"))  # the first worker starts it, the others wait for that
    return shared


@pytest.fixture
def own_sandbox(binaries, run_folder) -> Iterator[Callable[..., Sandbox]]:
    """Start a sandbox for one test, which may do with it what it likes: own_sandbox(flags={"kube-apiserver": (…,)})."""
    with contextlib.ExitStack() as stack:

        def start(**options: Any) -> Sandbox:
            sandbox = Sandbox(f"own-{secrets.token_hex(4)}", root=run_folder)
            stack.callback(sandbox.down)
            sandbox.up(Options(**options), binaries=binaries)
            return sandbox

        yield start


@pytest.fixture(scope="session")
def kubeconfig(sandbox) -> str:
    """Path of the shared cluster's kubeconfig, with all rights."""
    return str(sandbox.kubeconfig)


IN_A_HURRY = {"GOGC": "off", "GOMAXPROCS": "1"}
"""Variables for a Go program that ends soon: it takes a third less of the processor, and memory instead."""


class KubectlError(Exception):
    """kubectl failed, or the server said no to a plain request; the text is what was said."""


@dataclass(frozen=True)
class Kubectl:
    """The real kubectl on one cluster; returns what it prints, raises KubectlError with what it complains about."""

    kubeconfig: str
    folder: Path

    def __call__(self, *arguments: str, stdin: str | Mapping[str, Any] | list = "") -> str:
        text = stdin if isinstance(stdin, str) else as_documents(stdin)
        path = os.pathsep.join([str(self.folder), str(Path(sys.executable).parent), os.environ["PATH"]])
        answer = subprocess.run(
            ["kubectl", *arguments],
            input=text,
            capture_output=True,
            text=True,
            check=False,
            timeout=360,  # more than any --timeout given to it
            env={**os.environ, **IN_A_HURRY, "KUBECONFIG": self.kubeconfig, "PATH": path},
        )
        if answer.returncode:
            raise KubectlError(f"kubectl {' '.join(arguments)} exited {answer.returncode}: {answer.stderr.strip()}")
        return answer.stdout

    def json(self, *arguments: str) -> Any:
        """What kubectl prints with -o json, parsed."""
        return json.loads(self(*arguments, "-o", "json"))

    def apply(self, manifest: Mapping[str, Any] | list, *arguments: str) -> str:
        """Apply manifests, server-side unless the arguments say otherwise."""
        return self("apply", "-f", "-", *(arguments or ("--server-side",)), stdin=manifest)

    def using(self, kubeconfig: str | Path) -> Kubectl:
        """The same on another cluster, or as another user."""
        return Kubectl(str(kubeconfig), self.folder)


@contextlib.contextmanager
def talking(command: Sequence[str | Path], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """Run a program that is talked to while it runs; it is killed at the end, and five minutes from now at the latest.

    So a line that never comes is an empty one, and nobody waits for ever.
    """
    process = subprocess.Popen(command, text=True, **options)
    patience = threading.Timer(300, process.kill)
    patience.start()
    try:
        yield process
    finally:
        patience.cancel()
        process.kill()
        process.communicate()


def as_documents(manifests: Mapping[str, Any] | list) -> str:
    return "\n---\n".join(json.dumps(one) for one in (manifests if isinstance(manifests, list) else [manifests]))


@pytest.fixture(scope="session")
def kubectl(kubeconfig, request) -> Kubectl:
    """The real kubectl on the shared cluster: kubectl("get", "pods") -> stdout."""
    given = os.environ.get(CLUSTER)
    program = shutil.which("kubectl") if given else None
    return Kubectl(kubeconfig, Path(program).parent if program else request.getfixturevalue("binaries").folder)


@pytest.fixture(scope="session")
def namespace_names(pytestconfig) -> Iterator[str]:
    run = pytestconfig.stash[RUN].name.rpartition("-")[2]
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    return (f"test-{run}-{worker}-{number:04}" for number in itertools.count(1))  # none begins with another


@dataclass
class Administrator:
    """Requests to the shared sandbox along one connection: a new one costs both ends more than most requests."""

    sandbox: Sandbox
    _connection: http.client.HTTPSConnection | None = None
    _headers: Mapping[str, str] = field(default_factory=dict)

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> tuple[int, bytes]:
        """Status and body of what the API server answers."""
        for attempt in (1, 2):  # a server closes what nobody has used for a while
            try:
                connection = self._connection or self._connect()
                connection.request(method, path, None if body is None else json.dumps(body), dict(self._headers))
                answer = connection.getresponse()
                return answer.status, answer.read()
            except (OSError, http.client.HTTPException):
                self.close()
                if attempt == 2:
                    raise
        raise AssertionError

    def _connect(self) -> http.client.HTTPSConnection:
        config = yaml.safe_load(self.sandbox.kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self._headers = {"Authorization": f"Bearer {user['token']}", "Content-Type": "application/json"}
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        address = cluster["server"].removeprefix("https://")
        self._connection = http.client.HTTPSConnection(
            address, timeout=60, context=ssl.create_default_context(cadata=authority)
        )
        return self._connection

    def close(self) -> None:
        if self._connection:
            self._connection.close()
        self._connection = None


@pytest.fixture(scope="session")
def administrator(sandbox) -> Iterator[Administrator | None]:
    """The shared sandbox's administrator; nobody where the cluster is somebody else's."""
    if isinstance(sandbox, GivenCluster):
        yield None
        return
    with contextlib.closing(Administrator(sandbox)) as administrator:
        yield administrator


@pytest.fixture
def namespace(administrator, kubectl, namespace_names) -> Iterator[str]:
    """A namespace for one test, ready for pods.

    In a cluster of somebody else's it is deleted afterwards, which nobody waits for. The sandbox ends with the run, and
    deleting a namespace costs its control plane as much as most tests do; so there it stays, without Syncs.
    """
    name = next(namespace_names)
    if administrator is None:
        kubectl("create", "namespace", name)
        kubectl("wait", "--for=create", "serviceaccount/default", "-n", name, "--timeout=90s")
        yield name
        kubectl("delete", "namespace", name, "--wait=false", "--ignore-not-found")
        return
    namespaces = "/api/v1/namespaces"
    wanted = {"metadata": {"name": name}}
    # Nobody else has a namespace of this name: if it already exists, the answer to a first try was lost.
    eventually(lambda: administrator.ask("POST", namespaces, wanted)[0] in {201, 409}, "the namespace is created")
    account = f"{namespaces}/{name}/serviceaccounts/default"
    eventually(lambda: administrator.ask("GET", account)[0] == 200, "the namespace has its ServiceAccount")
    yield name
    administrator.ask("DELETE", f"/apis/reconcile.dev/v1alpha1/namespaces/{name}/syncs")


def eventually(condition: Callable[[], Any], what: str, *, timeout_s: float = 150.0, pause_s: float = 0.02) -> Any:
    """Return what *condition* returns once that is true; fail, saying *what* didn't come true, after *timeout_s*.

    What kubectl refuses while *condition* looks isn't true yet: an object that nobody has created so far, the
    logs of a container that hasn't begun. Nor is what lacks a part that is still to be written. The failure tells
    what was refused or lacking last.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        refused = ""
        try:
            if result := condition():
                return result
        except (KubectlError, LookupError, TypeError, ValueError, StopIteration) as error:
            refused = f"; {type(error).__name__}: {error}"
        assert time.monotonic() < deadline, f"not within {timeout_s:g} s: {what}{refused}"
        time.sleep(pause_s)


@pytest.fixture(name="eventually", scope="session")
def eventually_fixture() -> Callable[..., Any]:
    """eventually(condition, "what is to come true") -> what the condition returned: waiting without sleeping."""
    return eventually


# -- Git ---------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def git_host(tmp_path_factory) -> Iterator[GitServer]:
    """A Git server for all of this worker's tests: git_host.create("name") is a new repository."""
    with GitServer(tmp_path_factory.mktemp("git")) as server:
        yield server


@pytest.fixture
def git_server(git_host) -> ServedRepository:
    """A new bare repository for one test: .url, .push({path: content or None}, message) -> sha."""
    return git_host.create(f"repository-{secrets.token_hex(4)}")


@pytest.fixture
def repository(git_server) -> SignedRepository:
    """The test's repository, into which people push what they sign."""
    return SignedRepository(git_server)


@pytest.fixture(scope="session")
def people(tmp_path_factory) -> Mapping[str, Signer]:
    """People with SSH keys of their own, by name."""
    folder = tmp_path_factory.mktemp("people")
    return {name: ssh_signer(folder, name) for name in ("alice", "bob", "mallory")}


@pytest.fixture
def alice(people) -> Signer:
    """Somebody whose key is usually trusted."""
    return people["alice"]


@pytest.fixture
def bob(people) -> Signer:
    """Somebody whose key is trusted at times."""
    return people["bob"]


@pytest.fixture
def mallory(people) -> Signer:
    """Somebody with a key that nobody trusts."""
    return people["mallory"]


@pytest.fixture
def own_git_server(tmp_path) -> Iterator[Callable[..., ServedRepository]]:
    """Start a Git server for one test: own_git_server(username=…, password=…) -> ServedRepository; .server.stop() is an outage."""
    with contextlib.ExitStack() as stack:

        def start(**options: Any) -> ServedRepository:
            server = stack.enter_context(GitServer(tmp_path / f"git-{secrets.token_hex(4)}", **options))
            return server.create("repository")

        yield start
