"""Fixtures for tests of the whole program: the daemon and the plugin as processes, a real cluster, a real Git server.

What the program did is judged from outside: by the objects that the API server holds, by what kubectl, the log
and the exit status say. Nothing of the program is imported but the names of labels.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import http.client
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import yaml

from kubectl_reconcile.core.annotations import SYNC_REQUESTED_AT
from kubectl_reconcile.core.objects import FIELD_MANAGER, ObjectRef
from kubectl_reconcile.core.resources.applyset import PART_OF, applyset_id
from tests import conftest, forked
from tests.e2e.domains import Factory
from tests.e2e.ssh_host import SshHost
from tests.forked import PROGRAM

ROOT = Path(__file__).parents[2]
PATIENCE_S = 150.0  # a machine may be busy with other tests
PLACES = {
    "CronJob": ("/apis/batch/v1", "cronjobs"),
    "Namespace": ("/api/v1", "namespaces"),
    "Node": ("/api/v1", "nodes"),
    "ConfigMap": ("/api/v1", "configmaps"),
    "Secret": ("/api/v1", "secrets"),
    "Service": ("/api/v1", "services"),
    "Pod": ("/api/v1", "pods"),
    "Event": ("/apis/events.k8s.io/v1", "events"),
    "Deployment": ("/apis/apps/v1", "deployments"),
    "StatefulSet": ("/apis/apps/v1", "statefulsets"),
    "Lease": ("/apis/coordination.k8s.io/v1", "leases"),
    "Memcached": ("/apis/cache.example.com/v1alpha1", "memcacheds"),
    "WebServer": ("/apis/demo.k8s.io/v1alpha1", "webservers"),
    "ThreeTierApp": ("/apis/apps.example.com/v1alpha1", "threetierapps"),
    "Candy": ("/apis/awesome.corp.com/v1", "candies"),
    "Kafka": ("/apis/kafka.example.com/v1alpha1", "kafkas"),
    "KafkaRebalance": ("/apis/kafka.example.com/v1alpha1", "kafkarebalances"),
    "Checkup": ("/apis/checks.reconcile.dev/v1alpha1", "checkups"),
    "Role": ("/apis/rbac.authorization.k8s.io/v1", "roles"),
    "Sync": ("/apis/reconcile.dev/v1alpha1", "syncs"),
    "CustomResourceDefinition": ("/apis/apiextensions.k8s.io/v1", "customresourcedefinitions"),
}
CLUSTER_SCOPED = {"Namespace", "Node", "CustomResourceDefinition"}


def patiently(condition: Callable[[], Any], what: str, *, timeout_s: float = PATIENCE_S, pause_s: float = 0.1) -> Any:
    """As `eventually` of all tests; a look at what a daemon does may cost more, so it is taken less often."""
    return conftest.eventually(condition, what, timeout_s=timeout_s, pause_s=pause_s)


@pytest.fixture(scope="session")
def eventually() -> Callable[..., Any]:
    """eventually(condition, "what is to come true") -> what the condition returned."""
    return patiently


# -- the cluster, looked at from outside -------------------------------------------------------------------------------


class RefusedError(conftest.KubectlError):
    """The API server answered with an error; the text is its message."""


class Api:
    """Plain requests to one cluster, along one connection: what a look costs must not slow down what is looked at."""

    def __init__(self, kubectl: Any) -> None:
        config = yaml.safe_load(Path(kubectl.kubeconfig).read_text())
        context = next(each["context"] for each in config["contexts"] if each["name"] == config["current-context"])
        cluster = next(each["cluster"] for each in config["clusters"] if each["name"] == context["cluster"])
        user = next(each["user"] for each in config["users"] if each["name"] == context["user"])
        self._proxy: subprocess.Popen[str] | None = None
        self._headers: dict[str, str] = {}
        if (set(user), set(cluster)) == ({"token"}, {"server", "certificate-authority-data"}):  # a sandbox
            self._headers = {"Authorization": f"Bearer {user['token']}"}
            authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
            address, trusted = cluster["server"].removeprefix("https://"), ssl.create_default_context(cadata=authority)
            self._connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                address, timeout=60, context=trusted
            )
        else:
            self._connection = http.client.HTTPConnection(self._proxied(kubectl), timeout=60)

    def _proxied(self, kubectl: Any) -> str:
        command = [shutil.which("kubectl", path=str(kubectl.folder)) or "kubectl", "proxy", "--port=0"]
        environ = {**os.environ, "KUBECONFIG": kubectl.kubeconfig}
        self._proxy = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ)
        return self._proxy.stdout.readline().rpartition(" ")[2].strip()

    def ask(self, path: str, *, method: str = "GET", body: Any = None, type_: str = "application/json") -> Any:
        """What the server answers, None where nothing is.

        Raises:
            RefusedError: it refuses.
        """
        text = json.dumps(body) if body is not None else None
        headers = {**self._headers, "Content-Type": type_}
        try:
            answer, content = self._answer(method, path, text, headers)
        except TimeoutError:
            raise
        except (OSError, http.client.HTTPException):  # a server closes what nobody has used for a while
            answer, content = self._answer(method, path, text, headers)
        if answer.status == 404:
            return None
        if answer.status >= 300:
            raise RefusedError(content.decode(errors="replace"))
        return json.loads(content)

    def _answer(
        self, method: str, path: str, text: str | None, headers: Mapping[str, str]
    ) -> tuple[http.client.HTTPResponse, bytes]:
        try:
            self._connection.request(method, path, text, dict(headers))
            answer = self._connection.getresponse()
            return answer, answer.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            raise

    def close(self) -> None:
        self._connection.close()
        if self._proxy:
            self._proxy.terminate()
            self._proxy.wait(30)
            self._proxy.stdout.close()


@dataclass(frozen=True)
class Cluster:
    """What the API server holds, and what people do to it. *namespace* is where objects are looked for."""

    api: Api
    kubectl: Any
    namespace: str

    def at(self, namespace: str) -> Cluster:
        """The same, from another namespace."""
        return Cluster(self.api, self.kubectl, namespace)

    def trust(self) -> Cluster:
        """Let the accounts of this namespace do everything, as a cluster's administrators may; return this cluster once that is in force."""
        body = everything_for(self.namespace)
        path = f"{BINDINGS}/{body['metadata']['name']}?fieldManager=by-hand&force=true"
        self.api.ask(path, method="PATCH", body=body, type_="application/apply-patch+yaml")
        patiently(self._is_trusted, f"accounts of {self.namespace} may do everything", pause_s=0.02)
        return self

    def distrust(self) -> None:
        """Take back what ``trust`` gave, if it isn't taken back already, and wait until that is in force: an authorizer hears of it later."""
        self.api.ask(f"{BINDINGS}/{everything_for(self.namespace)['metadata']['name']}", method="DELETE")
        patiently(lambda: not self._is_trusted(), f"accounts of {self.namespace} may do nothing", pause_s=0.02)

    def _is_trusted(self) -> bool:
        asked = {"verb": "create", "group": "nobody.example.com", "resource": "anything", "namespace": self.namespace}
        return is_allowed(self.api, "anybody", [f"system:serviceaccounts:{self.namespace}"], asked)

    def path(self, kind: str, name: str = "") -> str:
        root, plural = PLACES[kind]
        place = "" if kind in CLUSTER_SCOPED else f"/namespaces/{self.namespace}"
        return f"{root}{place}/{plural}" + (f"/{name}" if name else "")

    def get(self, kind: str, name: str) -> Any:
        """The live object, or None."""
        return self.api.ask(self.path(kind, name))

    def list(self, kind: str, selector: str = "") -> list[dict[str, Any]]:
        query = f"?labelSelector={quote(selector)}" if selector else ""
        return (self.api.ask(self.path(kind) + query) or {"items": []})["items"]

    def names(self, kind: str, selector: str = "") -> set[str]:
        return {one["metadata"]["name"] for one in self.list(kind, selector)}

    def members(self, kind: str, sync: str) -> set[str]:
        """Names of the objects that carry the mark of a Sync of this namespace."""
        set_id = applyset_id(ObjectRef("reconcile.dev", "Sync", self.namespace, sync))
        return self.names(kind, f"{PART_OF}={set_id}")

    def version(self, kind: str, name: str) -> str:
        return self.get(kind, name)["metadata"]["resourceVersion"]

    def edit(self, kind: str, name: str, patch: Mapping[str, Any]) -> dict[str, Any]:
        """Change an object by hand, by a merge patch; return it."""
        path = f"{self.path(kind, name)}?fieldManager=by-hand"
        changed = self.api.ask(path, method="PATCH", body=patch, type_="application/merge-patch+json")
        assert changed, f"there is no {kind} {name} to change"
        return changed

    def apply(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Make an object by hand, or change it, by a server-side apply; return it."""
        path = f"{self.path(manifest['kind'], manifest['metadata']['name'])}?fieldManager=by-hand&force=true"
        return self.api.ask(path, method="PATCH", body=manifest, type_="application/apply-patch+yaml")

    def delete(self, kind: str, name: str) -> None:
        path = f"{self.path(kind, name)}?propagationPolicy=Background"
        assert self.api.ask(path, method="DELETE"), f"there is no {kind} {name} to delete"


BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


def is_allowed(api: Api, user: str, groups: Sequence[str], asked: Mapping[str, str]) -> bool:
    """Tell whether the server lets somebody do what was *asked*: attributes of a resource."""
    spec = {"user": user, "groups": groups, "resourceAttributes": asked}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    return bool(api.ask(REVIEWS, method="POST", body=review)["status"]["allowed"])


def until_may(kubectl: Any, user: str, verb: str, resource: str, namespace: str) -> None:
    """Wait until a right that was just given is in force: the API server's authorizer hears of it later than who gave it."""
    words = ("auth", "can-i", verb, resource, "-n", namespace, "--as", user)
    patiently(lambda: "yes" in kubectl(*words), f"{user} may {verb} {resource}")


def everything_for(namespace: str) -> dict[str, Any]:
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"everything-for-{namespace}"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "Group", "apiGroup": group, "name": f"system:serviceaccounts:{namespace}"}],
    }


def install_crds(kubectl: Any) -> None:
    kubectl("apply", "--server-side", "-f", str(ROOT / "crds"))
    kubectl("wait", "--for=condition=Established", "--timeout=300s", "-f", str(ROOT / "crds"))


@pytest.fixture(scope="session")
def crds(kubectl, run_folder) -> None:
    """Our CRDs on the shared cluster, installed once a run."""
    with (run_folder / "crds.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = run_folder / "crds.installed"
        if not done.exists():
            install_crds(kubectl)
            done.touch()


@pytest.fixture(scope="session")
def crds_of() -> Callable[[Cluster], None]:
    """crds_of(cluster) installs our CRDs on a cluster of the test's own."""
    return lambda cluster: install_crds(cluster.kubectl)


@pytest.fixture(scope="session")
def api(kubectl) -> Iterator[Api]:
    """Plain requests to the shared cluster."""
    with contextlib.closing(Api(kubectl)) as api:
        yield api


@pytest.fixture
def cluster(api, kubectl, namespace, crds) -> Iterator[Cluster]:
    """The shared cluster, as seen from the test's own namespace, whose accounts may do everything."""
    cluster = Cluster(api, kubectl, namespace).trust()
    yield cluster
    cluster.distrust()


@pytest.fixture
def own_cluster(own_sandbox, kubectl) -> Iterator[Callable[..., tuple[Cluster, Any]]]:
    """own_cluster() -> a cluster for one test, as seen from its namespace default, and the sandbox that it is."""
    with contextlib.ExitStack() as stack:

        def start(**options: Any) -> tuple[Cluster, Any]:
            sandbox = own_sandbox(**options)
            own = kubectl.using(sandbox.kubeconfig)
            return Cluster(stack.enter_context(contextlib.closing(Api(own))), own, "default").trust(), sandbox

        yield start


@pytest.fixture
def may(api) -> Callable[..., bool]:
    """may(user, "get", "deployments.apps/status", namespace, "web") -> whether the server says that they may."""

    def ask(user: str, verb: str, resource: str, namespace: str, name: str = "") -> bool:
        whole, _, sub = resource.partition("/")
        plural, _, group = whole.partition(".")
        asked = {
            "verb": verb,
            "group": group,
            "resource": plural,
            "subresource": sub,
            "namespace": namespace,
            "name": name,
        }
        groups = [f"system:serviceaccounts:{user.split(':')[2]}"] if user.startswith("system:serviceaccount:") else []
        return is_allowed(api, user, groups, asked)

    return ask


# -- the daemon --------------------------------------------------------------------------------------------------------


@dataclass
class Daemon:
    """The real daemon as a process. Its log goes on over restarts."""

    kubeconfig: str
    namespace: str
    log_file: Path
    environ: Mapping[str, str] = field(default_factory=dict)
    options: Sequence[str] = ()
    process: forked.Process | None = None
    address: str = ""
    hooks: str = ""
    """Where it answers, and where Git servers may tell it of pushes."""

    @property
    def log(self) -> str:
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def start(self, *, ready: bool = True) -> Daemon:
        """Start it, and wait until it answers; if *ready*, until its caches are filled."""
        said = len(self.log)
        command = [
            "daemon",
            "--listen=127.0.0.1:0",
            "--listen-hooks=127.0.0.1:0",
            f"--kubeconfig={self.kubeconfig}",
            *self.options,
        ]
        if self.namespace:
            command.append(f"--namespace={self.namespace}")
        with self.log_file.open("ab") as log:
            environ = {**os.environ, **self.environ}
            self.process = forked.start(command, env=environ, stdout=log.fileno(), stderr=log.fileno())

        def listening() -> re.Match[str] | None:
            alive = self.alive  # before its log is read, so that what has ended has written all of it
            found = re.search(r" started .*listen=([\w.:]+) hooks=([\w.:]+)", self.log[said:])
            assert found or alive, f"the daemon ended by itself:\n{self.log[said:]}"
            return found

        _, self.address, self.hooks = patiently(listening, "the daemon listens").group(0, 1, 2)
        if ready:
            patiently(self._is_ready, "the daemon is ready")
        return self

    def _is_ready(self) -> bool:
        """Whether it says that it is ready. One that says nothing at all writes to its log where it hangs."""
        try:
            return self.answer("/readyz")[0] == 200
        except TimeoutError:
            assert self.process is not None
            self.process.send_signal(signal.SIGABRT)
            self.process.wait(PATIENCE_S)
            raise

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def answer(self, path: str) -> tuple[int, str]:
        """Status and text of what it says over HTTP."""
        try:
            with urllib.request.urlopen(f"http://{self.address}{path}", timeout=120) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def count(self, metric: str, **labels: str) -> float:
        """Sum of a metric's samples that carry these labels."""
        total = 0.0
        for line in self.answer("/metrics")[1].splitlines():
            name, _, rest = line.partition("{" if "{" in line else " ")
            if name == metric and all(f'{key}="{value}"' in rest for key, value in labels.items()):
                total += float(line.rpartition(" ")[2])
        return total

    def stop(self, *, within_s: float = PATIENCE_S) -> int:
        """End it as an orderly shutdown does (SIGTERM); return its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(within_s)

    def kill(self) -> None:
        """End it as a crash or the OOM killer does (SIGKILL)."""
        self.process.kill()
        self.process.wait(PATIENCE_S)


@pytest.fixture
def new_daemon(tmp_path) -> Iterator[Callable[..., Daemon]]:
    """new_daemon(kubeconfig, namespace) -> a daemon, not yet started; its log is shown where the test fails."""
    daemons: list[Daemon] = []

    def new(kubeconfig: str | Path, namespace: str = "", options: Sequence[str] = (), **environ: str) -> Daemon:
        log = tmp_path / f"daemon-{len(daemons)}.log"
        daemon = Daemon(str(kubeconfig), namespace, log, environ, options)
        daemons.append(daemon)
        return daemon

    yield new
    for daemon in daemons:
        if daemon.alive:
            daemon.kill()
        sys.stdout.write(f"--- {daemon.log_file}\n{daemon.log}")  # pytest shows it where the test fails


@pytest.fixture
def starting_with(tmp_path_factory) -> Callable[[str], dict[str, str]]:
    """starting_with("import …") -> variables for a daemon that runs this before it begins: with other constants, times needn't be measured."""

    def variables(code: str) -> dict[str, str]:
        folder = tmp_path_factory.mktemp("start")
        (folder / "sitecustomize.py").write_text(code)
        return {"PYTHONPATH": str(folder)}

    return variables


@pytest.fixture
def daemon(new_daemon, cluster) -> Daemon:
    """A daemon that follows the test's namespace, running."""
    return new_daemon(cluster.kubectl.kubeconfig, cluster.namespace).start()


# -- a Sync, followed --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Followed:
    """A Sync in the cluster, and what people do with it."""

    cluster: Cluster
    name: str

    @property
    def live(self) -> dict[str, Any]:
        return self.cluster.get("Sync", self.name)

    @property
    def status(self) -> dict[str, Any]:
        return self.live.get("status") or {}

    def condition(self, type_: str = "Ready") -> dict[str, Any]:
        found = self.status.get("conditions") or ()
        return next((one for one in found if one["type"] == type_), {})

    def change(self, **spec: Any) -> None:
        """Change the spec by hand."""
        self.cluster.edit("Sync", self.name, {"spec": spec})

    def until(self, reason: str, revision: str = "", *, timeout_s: float = PATIENCE_S) -> dict[str, Any]:
        """Wait until its condition Synced gives *reason* (at *revision*); return the condition."""

        def reached() -> dict[str, Any]:
            status = self.status
            synced = next((one for one in status.get("conditions") or () if one["type"] == "Synced"), {})
            right = synced.get("reason") == reason and (not revision or status["lastAttemptedRevision"] == revision)
            return synced if right else {}

        try:
            return patiently(reached, f"{self.name} is {reason} {revision[:7]}", timeout_s=timeout_s)
        except AssertionError as error:
            raise AssertionError(f"{error}; its status is {json.dumps(self.status, indent=1)}") from None

    def until_synced(self, revision: str, *, timeout_s: float = PATIENCE_S) -> dict[str, Any]:
        return self.until("Synced", revision, timeout_s=timeout_s)

    def forge_member(self, name: str, namespace: str) -> None:
        """Make a ConfigMap with all marks of a member: label, annotation and field manager."""
        set_id = applyset_id(ObjectRef("reconcile.dev", "Sync", self.cluster.namespace, self.name))
        metadata = {
            "name": name,
            "namespace": namespace,
            "labels": {PART_OF: set_id},
            "annotations": {"reconcile.dev/source": "0.json"},
        }
        path = f"{self.cluster.at(namespace).path('ConfigMap', name)}?fieldManager={FIELD_MANAGER}&force=true"
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"x": "forged"}}
        self.cluster.api.ask(path, method="PATCH", body=body, type_="application/apply-patch+yaml")

    def ask(self) -> dict[str, Any]:
        """Ask for a sync, as people do with kubectl, and wait for the answer; return the status."""
        token = f"asked-{time.time_ns()}"
        self.cluster.kubectl(
            "annotate", "sync", self.name, "-n", self.cluster.namespace, f"{SYNC_REQUESTED_AT}={token}", "--overwrite"
        )
        patiently(lambda: self.status.get("lastHandledSyncAt") == token, "the request for a sync is answered")
        return self.status


@pytest.fixture
def follow(cluster) -> Callable[..., Followed]:
    """follow(url, path=…, suspend=…) -> a Sync that follows that repository into the test's namespace."""

    def follow(
        url: str, name: str = "shop", *, path: str = ".", interval: str = "1s", on: Cluster = cluster,
        git: Mapping[str, Any] | None = None, trusted: bool = True, **spec: Any,
    ) -> Followed:  # fmt: skip
        source = {"git": {"url": url, "path": path, "interval": interval, **(git or {})}}
        metadata = {"name": name, "namespace": on.namespace}
        if trusted and on is not cluster:
            on.trust()
        on.apply(
            {
                "apiVersion": "reconcile.dev/v1alpha1",
                "kind": "Sync",
                "metadata": metadata,
                "spec": {"source": source, **spec},
            }
        )
        return Followed(on, name)

    return follow


# -- the plugin --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Answer:
    """How a command ended, and what it printed."""

    status: int
    out: str
    err: str


@dataclass(frozen=True)
class Plugin:
    """``kubectl reconcile``, as kubectl runs it, in the test's namespace."""

    kubectl: Any
    namespace: str

    def __call__(self, *arguments: str) -> Answer:
        path = os.pathsep.join([str(self.kubectl.folder), str(PROGRAM.parent), os.environ["PATH"]])
        environ = {**os.environ, "KUBECONFIG": self.kubectl.kubeconfig, "PATH": path}
        words = [*arguments, *(("-n", self.namespace) if self.namespace else ())]
        done = forked.run(words, env=environ, timeout=PATIENCE_S)
        said = f"{done.stdout}{done.stderr}({done.returncode})"
        sys.stdout.write(f"$ kubectl reconcile {' '.join(arguments)} -n {self.namespace}\n{said}\n")
        return Answer(done.returncode, done.stdout, done.stderr)

    def on(self, cluster: Cluster) -> Plugin:
        """The same on another cluster."""
        return Plugin(cluster.kubectl, cluster.namespace)


@pytest.fixture
def plugin(cluster) -> Plugin:
    """plugin("diff", "-f", path) -> Answer(status, out, err)."""
    return Plugin(cluster.kubectl, cluster.namespace)


# -- domain modules ----------------------------------------------------------------------------------------------------


@pytest.fixture
def written(tmp_path) -> Callable[[Mapping[str, Any]], Path]:
    """written(cr) -> the folder that holds just this manifest."""

    def write(manifest):
        folder = tmp_path / "source"
        folder.mkdir(exist_ok=True)
        (folder / "cr.json").write_text(json.dumps(manifest))
        return folder

    return write


@pytest.fixture
def idle_factory(tmp_path, monkeypatch) -> Iterator[Factory]:
    """A chocolate factory, known to all programs that the test starts."""
    started = Factory(tmp_path).start()
    monkeypatch.setenv("KUBECTL_RECONCILE_SYSTEM_CANDY_FACTORY", started.url)
    yield started
    started.stop()


@pytest.fixture
def factory(idle_factory, daemon) -> Factory:
    """A chocolate factory, and a daemon that knows it and follows the test's namespace."""
    return idle_factory


# -- what stands in repositories ---------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def ssh_host() -> Iterator[SshHost]:
    """An SSH server of the repositories on this machine, for all of this worker's tests."""
    with SshHost() as host:
        yield host


@pytest.fixture(scope="session")
def config_map() -> Callable[..., str]:
    """config_map("web", color="red") -> the text of its file."""

    def text(name: str, **data: str) -> str:
        return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})

    return text


@pytest.fixture(scope="session")
def memcached() -> Callable[..., str]:
    """memcached("cache", size=2) -> the text of its file."""

    def text(name: str, **spec: Any) -> str:
        metadata = {"name": name}
        return json.dumps(
            {"apiVersion": "cache.example.com/v1alpha1", "kind": "Memcached", "metadata": metadata, "spec": spec}
        )

    return text
