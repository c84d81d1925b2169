"""Sandboxes: real Kubernetes control planes on this machine, side by side, by name.

Vocabulary: a *sandbox* is one control plane and the folder with its data, logs and kubeconfigs; its *components* are
processes; it is in one *state* (see :class:`SandboxState`).

``up`` takes a sandbox from any state to running, with its data and, unless somebody took them, its ports; ``down``
takes it from any state to absent. Calls that change the same sandbox wait for each other. What was started is
recorded before anything waits for it, so it can always be found and stopped.

Knows nothing of the product: what runs on the control plane is its user's business.
"""

from __future__ import annotations

import base64
import contextlib
import csv
import os
import re
import secrets
import shutil
import signal
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import StrEnum
from http.client import CONFLICT, CREATED, OK
from pathlib import Path
from typing import Any

import yaml

from kubectl_reconcile.sandbox.build import Binaries, Log, build
from kubectl_reconcile.sandbox.components import NODE, Component, Layout, Options, command, complaint, request
from kubectl_reconcile.sandbox.errors import SandboxError
from kubectl_reconcile.sandbox.processes import free_ports, port_is_free, spawn, stop
from kubectl_reconcile.sandbox.record import Record, locked, write_private

DEFAULT_NAME = "default"
ADMIN = "sandbox-admin"
"""User of the kubeconfig, in group system:masters."""

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_CORE = (Component.ETCD, Component.API_SERVER)
_POLL_S = 0.05
_START_S = 120.0  # some six are usual; a machine may have other things to do
_GRACE_S = 10.0
_CERTIFICATE_S = 300 * 24 * 3600.0  # the API server makes it for a year


class SandboxState(StrEnum):
    """What a sandbox is, in one word."""

    RUNNING = "running"
    """Every component runs and says that it is well."""
    DEGRADED = "degraded"
    """Some components run; some don't, or aren't well."""
    STALE = "stale"
    """None of its processes is left, though nobody stopped them: a reboot, a kill."""
    STOPPED = "stopped"
    """All components were stopped; the data is kept."""
    ABSENT = "absent"
    """There is no such sandbox."""


@dataclass(frozen=True, slots=True)
class ComponentStatus:
    """How one component is."""

    component: Component
    port: int
    pid: int | None
    """None if it doesn't run."""
    rss_bytes: int
    problem: str
    """What is wrong with it, empty if nothing is."""


@dataclass(frozen=True, slots=True)
class SandboxStatus:
    """How a sandbox is."""

    name: str
    state: SandboxState
    components: tuple[ComponentStatus, ...] = ()


def state_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the user's folder of sandboxes, which may not exist yet."""
    base = environ.get("XDG_STATE_HOME", "")
    home = Path(base) if base.startswith("/") else Path.home() / ".local" / "state"
    return home / "kubectl-reconcile" / "sandboxes"


def list_sandboxes(root: Path | None = None) -> tuple[Sandbox, ...]:
    """Return the sandboxes in *root* (default: the user's folder), running or not, by name."""
    root = root or state_dir()
    return tuple(Sandbox(path.parent.name, root=root) for path in sorted(root.glob("*/sandbox.json")))


class Sandbox:
    """The sandbox called *name* in *root* (default: the user's folder), whether it exists yet or not.

    Raises:
        SandboxError: *name* can't be the name of one.
    """

    def __init__(self, name: str = DEFAULT_NAME, *, root: Path | None = None) -> None:
        if not _NAME.fullmatch(name):
            raise SandboxError(f"{name!r} can't be the name of a sandbox", "use lower-case letters, digits and hyphens")
        self.name = name
        self._root = root or state_dir()
        self._layout = Layout(self._root / name)

    @property
    def folder(self) -> Path:
        """Where its data, logs and kubeconfigs are."""
        return self._layout.folder

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig with all rights, readable by its owner only. There once the sandbox is up."""
        return self._layout.kubeconfig

    @property
    def server(self) -> str:
        """The URL of the API server."""
        return _url(self._record())

    @property
    def programs(self) -> Path:
        """The folder of the programs that it runs, kubectl among them."""
        return self._record().programs

    def log(self, component: str) -> Path:
        """Return the file that *component* logs to."""
        return self._layout.log(component)

    def port(self, component: str) -> int:
        """Return the loopback port of *component*, which it keeps as long as nobody else takes it while it is down."""
        return self._record().ports[Component(component)]

    def pid(self, component: str) -> int | None:
        """Return the process of *component*, None if it doesn't run."""
        process = self._record().process(Component(component))
        return process.pid if process else None

    # -- the whole -----------------------------------------------------------------------------------------------------

    def up(
        self, options: Options | None = None, *, binaries: Binaries | None = None, log: Log = lambda _: None
    ) -> SandboxStatus:
        """Bring the sandbox to running, whatever it is now, and return how it is then.

        *options* hold as long as it exists; None means those that it has, or the defaults. *binaries* are built where
        they aren't given. What runs is left alone, and what it stores is kept.

        Raises:
            BuildError: the programs could not be had.
            SandboxError: it exists with other options, or a component did not become well.
        """
        binaries = binaries or build(log)
        with self._locked():
            record = self._load()
            if record and options and options != record.options:
                raise SandboxError(
                    f"sandbox {self.name} exists with other options", f"end it first: {self._command('down')}"
                )
            record = record or self._create(options or Options(), binaries)
            components = tuple(
                one for one in Component if one in record.options.components and one not in binaries.missing
            )
            record = self._save(replace(record, components=components, programs=binaries.folder))
            if self._status(record).state is not SandboxState.RUNNING:
                with self._undone_on_error(record):
                    self._start_missing(record, log)
            return self._status(self._record())

    def down(self) -> bool:
        """End the sandbox and delete all it has stored; return False if there was none."""
        with self._locked():
            record = self._load()
            if record:
                stop(record.running(), grace_s=0)  # nothing is kept, so nothing need be written
            existed = self.folder.exists()
            shutil.rmtree(self.folder, ignore_errors=True)
            self._lock.unlink()
            return existed

    def status(self) -> SandboxStatus:
        """Return how it is now. Asks each component; changes nothing and waits for nobody."""
        record = self._load()
        return self._status(record) if record else SandboxStatus(self.name, SandboxState.ABSENT)

    # -- single components, for those who want to see something break --------------------------------------------------

    def start(self, component: str) -> None:
        """Start *component* on the port it had, and return once it is well. Does nothing if it runs.

        Raises:
            SandboxError: it did not become well, or somebody else has its port now.
        """
        with self._locked():
            self._launch(self._record(), Component(component))
            self._await_well(Component(component))

    def stop(self, component: str, *, grace_s: float = _GRACE_S) -> None:
        """Stop *component*: asked first, killed after *grace_s* seconds. Returns when it is gone."""
        with self._locked():
            record = self._record()
            process = record.process(Component(component))
            self._save(replace(record, processes={**record.processes, Component(component): None}))
            if process:
                stop([process], grace_s=grace_s)

    def signal(self, component: str, signum: int) -> None:
        """Send a signal to *component* and return at once: SIGKILL is a crash, SIGSTOP until SIGCONT a hang.

        Raises:
            SandboxError: it doesn't run.
        """
        process = self._record().process(Component(component))
        if process is None or not process.signal_group(signum):
            raise SandboxError(
                f"{component} of sandbox {self.name} doesn't run: no {signal.Signals(signum).name} for it"
            )

    # -- access --------------------------------------------------------------------------------------------------------

    def kubeconfig_for(self, user: str, groups: Iterable[str] = (), *, namespace: str = "") -> Path:
        """Return a new kubeconfig for *user*, who has the rights that RBAC gives them and no more.

        One of ``Options.users`` comes with a token of their own, in the groups given there. Anybody else comes as the
        administrator, who impersonates them in *groups*.
        """
        record = self._record()
        if user in record.options.users:
            entry: dict[str, Any] = {"token": self._token(user)}
        else:
            entry = {"token": self._token(ADMIN), "as": user, "as-groups": list(groups)}
        path = self.folder / "users" / f"{secrets.token_hex(8)}.kubeconfig"
        path.parent.mkdir(mode=0o700, exist_ok=True)
        self._write_kubeconfig(path, record, user, entry, namespace)
        return path

    def request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> tuple[int, bytes]:
        """Ask the API server, as the administrator; return the HTTP status and the body.

        Raises:
            OSError, http.client.HTTPException: it doesn't answer.
        """
        port = self.port(Component.API_SERVER)
        return request(port, path, authority=self._layout.authority, token=self._token(ADMIN), method=method, body=body)

    def _write_kubeconfig(
        self, path: Path, record: Record, user: str, entry: Mapping[str, Any], namespace: str = ""
    ) -> None:
        name = f"sandbox-{self.name}"
        authority = base64.b64encode(self._layout.authority.read_bytes()).decode()
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": {"server": _url(record), "certificate-authority-data": authority}}],
            "users": [{"name": user, "user": dict(entry)}],
            "contexts": [
                {"name": name, "context": {"cluster": name, "user": user, "namespace": namespace or "default"}}
            ],
            "current-context": name,
        }
        write_private(path, yaml.safe_dump(content, sort_keys=False))

    def _token(self, user: str) -> str:
        with self._layout.tokens.open(newline="", encoding="utf-8") as file:
            return next(token for token, name, *_ in csv.reader(file) if name == user)

    # -- the record ----------------------------------------------------------------------------------------------------

    @property
    def _lock(self) -> Path:
        return self._root / f"{self.name}.lock"

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        with locked(self._lock):
            yield

    def _load(self) -> Record | None:
        try:
            return Record.from_json(self._layout.record.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except ValueError as error:
            hint = f"end the processes that run in {self.folder}, then delete it"
            raise SandboxError(f"{self._layout.record} can't be read: {error}", hint) from error

    def _record(self) -> Record:
        record = self._load()
        if record is None:
            raise SandboxError(f"there is no sandbox {self.name}", f"start it: {self._command('up')}")
        return record

    def _save(self, record: Record) -> Record:
        write_private(self._layout.record, record.to_json())
        return record

    def _create(self, options: Options, binaries: Binaries) -> Record:
        shutil.rmtree(self.folder, ignore_errors=True)  # no record, so a creation or deletion that was cut short
        for folder in (self.folder, self._layout.logs):
            folder.mkdir(mode=0o700)
        users = {ADMIN: ("system:masters",), **options.users}
        rows = (f'{secrets.token_hex(16)},{user},{user},"{",".join(groups)}"\n' for user, groups in users.items())
        write_private(self._layout.tokens, "".join(rows))
        return self._save(Record(options, binaries.folder))

    def _command(self, verb: str) -> str:
        return f"kubectl reconcile sandbox {verb}" + ("" if self.name == DEFAULT_NAME else f" --name {self.name}")

    # -- how it is -----------------------------------------------------------------------------------------------------

    def _status(self, record: Record) -> SandboxStatus:
        with ThreadPoolExecutor(max_workers=len(Component)) as pool:  # one that hangs takes seconds to say nothing
            components = tuple(pool.map(lambda one: self._component(record, one), record.components))
        if not components or all(one.pid is None for one in components):
            stopped = not any(record.processes.values())
            return SandboxStatus(self.name, SandboxState.STOPPED if stopped else SandboxState.STALE, components)
        degraded = any(one.problem for one in components)
        return SandboxStatus(self.name, SandboxState.DEGRADED if degraded else SandboxState.RUNNING, components)

    def _component(self, record: Record, component: Component) -> ComponentStatus:
        port = record.ports.get(component, 0)
        process = record.process(component)
        if process:
            problem = complaint(component, self._layout, port, self._token(ADMIN))
            return ComponentStatus(component, port, process.pid, process.rss_bytes(), problem)
        ended = record.processes.get(component) is not None
        return ComponentStatus(component, port, None, 0, "ended by itself" if ended else "stopped")

    # -- starting ------------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _undone_on_error(self, before: Record) -> Iterator[None]:
        """Stop what was started inside again if not all of it could be, or an interrupt came."""
        kept = before.running()
        try:
            yield
        except BaseException:
            record = self._record()
            stop(record.running() - kept, grace_s=1.0)
            self._save(
                replace(
                    record, processes={name: one if one in kept else None for name, one in record.processes.items()}
                )
            )
            raise

    def _start_missing(self, record: Record, log: Log) -> None:
        for is_last in (False, False, True):
            record = self._with_ports(record)
            try:
                self._start_in_order(record, log)
            except SandboxError:
                record = self._record()
                if is_last or not _taken(record):
                    raise
                log("somebody took a port meanwhile: again, on another")
            else:
                return

    def _with_ports(self, record: Record) -> Record:
        """Give a port to each component that has none, or had one that somebody took while it didn't run."""
        moved = _taken(record)
        if moved.intersection(_CORE):  # the others know them by their ports
            stop(record.running(), grace_s=_GRACE_S)
        fresh = free_ports(but=record.ports.values())
        kept = {name: port for name, port in record.ports.items() if name not in moved}
        return self._save(replace(record, ports={name: kept.get(name) or next(fresh) for name in record.components}))

    def _start_in_order(self, record: Record, log: Log) -> None:
        log(f"starting {', '.join(record.components)}")
        for component in _CORE:
            record = self._launch(record, component)
        for component in _CORE:
            self._await_well(component)
        self._write_kubeconfig(self.kubeconfig, record, ADMIN, {"token": self._token(ADMIN)})
        rest = [component for component in record.components if component not in _CORE]
        for component in rest:
            record = self._launch(record, component)
        if Component.KWOK in rest:
            self._create_node()
        for component in rest:
            self._await_well(component)
        self._await_objects()

    def _launch(self, record: Record, component: Component) -> Record:
        if record.process(component):
            return record
        if component is Component.API_SERVER and _age_s(self._layout.authority) > _CERTIFICATE_S:
            self._layout.authority.unlink()  # it makes another
        argv = command(component, self._layout, record.ports, record.options, Binaries(record.programs))
        # Nothing of the caller's environment: etcd, kwok and every Go program take settings from it.
        environ = {"HOME": str(self.folder), "PATH": os.defpath, "KWOK_WORKDIR": str(self.folder / "kwok")}
        process = spawn(argv, log=self.log(component), environ=environ, folder=self.folder)
        return self._save(replace(record, processes={**record.processes, component: process}))

    def _await_well(self, component: Component) -> None:
        record = self._record()
        deadline = time.monotonic() + _START_S
        while problem := self._component(record, component).problem:
            if record.process(component) is None or time.monotonic() > deadline:
                log = self.log(component)
                raise SandboxError(
                    f"sandbox {self.name}: {component}: {problem}", f"its log is {log}", output=_tail(log)
                )
            time.sleep(_POLL_S)

    def _await_objects(self) -> None:
        deadline = time.monotonic() + _START_S
        while problem := self._missing_objects():
            if time.monotonic() > deadline:
                raise SandboxError(f"sandbox {self.name}: {problem}", f"the logs are in {self._layout.logs}")
            time.sleep(_POLL_S)

    def _create_node(self) -> None:
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": NODE,
                "annotations": {"kwok.x-k8s.io/node": "fake"},
                "labels": {"kubernetes.io/hostname": NODE, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"},
            },
            "status": {"allocatable": _ROOM, "capacity": _ROOM},
        }
        status, body = self.request("POST", "/api/v1/nodes", node)
        if status not in (CREATED, CONFLICT):
            raise SandboxError(f"sandbox {self.name}: the node could not be created: {body.decode(errors='replace')}")

    def _missing_objects(self) -> str:
        """Return which of the objects that every cluster has isn't there yet."""
        record = self._record()
        if Component.CONTROLLERS in record.components:
            status, _ = self.request("GET", "/api/v1/namespaces/default/serviceaccounts/default")
            if status != OK:
                return "ServiceAccount default/default is missing, so no pod can be created"
        if Component.KWOK in record.components:
            _, body = self.request("GET", f"/api/v1/nodes/{NODE}")
            conditions = yaml.safe_load(body).get("status", {}).get("conditions", [])
            if {"Ready": "True"}.items() not in [{one["type"]: one["status"]}.items() for one in conditions]:
                return f"Node {NODE} isn't Ready, so no pod can run"
        return ""


_ROOM = {"cpu": "1k", "memory": "4Ti", "pods": "100k", "ephemeral-storage": "4Ti"}


def _url(record: Record) -> str:
    return f"https://127.0.0.1:{record.ports[Component.API_SERVER]}"


def _taken(record: Record) -> set[Component]:
    """Return the components that don't run and whose port somebody else has."""
    return {one for one, port in record.ports.items() if record.process(one) is None and not port_is_free(port)}


def _age_s(path: Path) -> float:
    try:
        return time.time() - path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _tail(log: Path) -> str:
    try:
        return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-5:])
    except FileNotFoundError:
        return ""
