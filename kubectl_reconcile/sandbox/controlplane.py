"""Sandboxes: real Kubernetes control planes on this machine, side by side, by name.

Vocabulary: a *sandbox* is one control plane and the folder with its data, logs and kubeconfigs; its *components* are
processes; it is in one *state* (see :class:`SandboxState`).

``up`` takes a sandbox from any state to running, with its data and, unless somebody took them, its ports; ``down``
takes it from any state to absent. Calls that change the same sandbox wait for each other. What was started is
recorded before anything waits for it, so it can always be found and stopped.

Knows nothing of the product: what runs on the control plane is its user's business.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from kubectl_reconcile.go_programs import Log
from kubectl_reconcile.sandbox.accounts import ADMIN, Accounts, url
from kubectl_reconcile.sandbox.build import Binaries, build
from kubectl_reconcile.sandbox.components import Component, Layout, Options
from kubectl_reconcile.sandbox.errors import SandboxError
from kubectl_reconcile.sandbox.names import DEFAULT_NAME
from kubectl_reconcile.sandbox.pods.disruption import Disruption
from kubectl_reconcile.sandbox.processes import stop
from kubectl_reconcile.sandbox.record import Record, RecordFile, locked
from kubectl_reconcile.sandbox.runtime.client import RuntimeClient, unavailable
from kubectl_reconcile.sandbox.startup import GRACE_S, Startup
from kubectl_reconcile.sandbox.state import ComponentStatus, SandboxState, SandboxStatus, status_of

__all__ = [
    "ADMIN",
    "DEFAULT_NAME",
    "ComponentStatus",
    "Sandbox",
    "SandboxState",
    "SandboxStatus",
    "list_sandboxes",
    "state_dir",
]

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


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
        self._layout = layout = Layout(self._root / name)
        self._records, self._accounts = RecordFile(name, layout), Accounts(name, layout)
        self._startup = Startup(name, layout, self._records, self._accounts)
        self.pods = Disruption(layout.pods, self.request)
        """Breaks and repairs pods that run as processes."""

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
        return url(self._records.require())

    @property
    def programs(self) -> Path:
        """The folder of the programs that it runs, kubectl among them."""
        return self._records.require().programs

    def log(self, component: str) -> Path:
        """Return the file that *component* logs to."""
        return self._layout.log(component)

    def port(self, component: str) -> int:
        """Return the loopback port of *component*, which it keeps as long as nobody else takes it while it is down."""
        return self._records.require().ports[Component(component)]

    def pid(self, component: str) -> int | None:
        """Return the process of *component*, None if it doesn't run."""
        process = self._records.require().process(Component(component))
        return process.pid if process else None

    # -- the whole -----------------------------------------------------------------------------------------------------

    def up(
        self, options: Options | None = None, *, binaries: Binaries | None = None, log: Log = lambda _: None
    ) -> SandboxStatus:
        """Bring the sandbox to running, whatever it is now, and return how it is then.

        *options* hold as long as it exists; None means those that it has, or the defaults. *binaries* are built where
        they aren't given. What runs is left alone, and what it stores is kept.

        Raises:
            BuildError: the programs could not be built or found.
            SandboxError: it exists with other options, or a component did not become well.
        """
        binaries = binaries or build(log)
        with self._locked():
            record = self._records.load()
            if record and options and options != record.options:
                raise SandboxError(
                    f"sandbox {self.name} exists with other options", f"stop it first: {self._records.command('down')}"
                )
            record = record or self._create(options or Options(), binaries)
            components = _possible(record, binaries, log)
            record = self._records.save(replace(record, components=components, programs=binaries.folder))
            if self._status(record).state is not SandboxState.RUNNING:
                self._startup.start_missing(record, log)
            return self._status(self._records.require())

    def down(self) -> bool:
        """End the sandbox and delete all it has stored; return False if there was none."""
        with self._locked():
            record = self._records.load()
            if record:
                stop(record.running(), grace_s=0)  # nothing is kept, so nothing need be written
            RuntimeClient(self._layout.pods).end()  # which outlives the nodelet
            existed = self.folder.exists()
            shutil.rmtree(self.folder, ignore_errors=True)
            self._lock.unlink()
            return existed

    def status(self) -> SandboxStatus:
        """Return how it is now. Asks each component; changes nothing and waits for nobody."""
        record = self._records.load()
        return self._status(record) if record else SandboxStatus(self.name, SandboxState.ABSENT)

    # -- single components, for those who want to see something break --------------------------------------------------

    def start(self, component: str) -> None:
        """Start *component* on the port it had, and return once it is well. Does nothing if it runs.

        Raises:
            SandboxError: it did not become well, or somebody else has its port now.
        """
        with self._locked():
            self._startup.start(Component(component))

    def stop(self, component: str, *, grace_s: float = GRACE_S) -> None:
        """Stop *component*: asked first, killed after *grace_s* seconds. Returns when it is gone."""
        with self._locked():
            record = self._records.require()
            process = record.process(Component(component))
            self._records.save(replace(record, processes={**record.processes, Component(component): None}))
            if process:
                stop([process], grace_s=grace_s)

    def signal(self, component: str, signum: int) -> None:
        """Send a signal to *component* and return at once: SIGKILL is a crash, SIGSTOP until SIGCONT a hang.

        Raises:
            SandboxError: it doesn't run.
        """
        process = self._records.require().process(Component(component))
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
        return self._accounts.kubeconfig_for(self._records.require(), user, groups, namespace)

    def request(self, method: str, path: str, body: Mapping[str, object] | None = None) -> tuple[int, bytes]:
        """Ask the API server, as the administrator; return the HTTP status and the body.

        Raises:
            OSError, http.client.HTTPException: it doesn't answer.
        """
        return self._accounts.request(self._records.require(), method, path, body)

    # -- the record ----------------------------------------------------------------------------------------------------

    @property
    def _lock(self) -> Path:
        return self._root / f"{self.name}.lock"

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        with locked(self._lock):
            yield

    def _create(self, options: Options, binaries: Binaries) -> Record:
        shutil.rmtree(self.folder, ignore_errors=True)  # no record, so a creation or deletion that was cut short
        for folder in (self.folder, self._layout.logs):
            folder.mkdir(mode=0o700)
        self._accounts.create(options.users)
        return self._records.save(Record(options, binaries.folder))

    def _status(self, record: Record) -> SandboxStatus:
        return status_of(self.name, self._layout, record, self._accounts.token())


def _possible(record: Record, binaries: Binaries, log: Log) -> tuple[Component, ...]:
    """Return what the sandbox can consist of here, of what it is asked to."""
    wanted = [one for one in Component if one in record.options.components and one not in binaries.missing]
    if Component.NODELET in wanted and record.process(Component.NODELET) is None:
        if not {Component.CONTROLLERS, Component.SCHEDULER} <= set(wanted):  # no pod would come to it
            wanted.remove(Component.NODELET)
        elif reason := unavailable():
            log(reason)
            wanted.remove(Component.NODELET)
    return tuple(wanted)


def trust_accounts(sandbox: Sandbox) -> None:
    """Let every ServiceAccount do everything, for programs that try something else than rights.

    Raises:
        OSError, http.client.HTTPException: the API server doesn't answer.
        SandboxError: it refuses.
    """
    group = "rbac.authorization.k8s.io"
    status, answer = sandbox.request(
        "POST",
        f"/apis/{group}/v1/clusterrolebindings",
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "trusted-accounts"},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"apiGroup": group, "kind": "Group", "name": "system:serviceaccounts"}],
        },
    )
    if status not in {201, 409}:
        raise SandboxError(f"the API server refuses to trust accounts: {answer.decode(errors='replace')}")
