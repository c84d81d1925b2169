"""Bringing the components of a sandbox up: in order, on free ports, each waited for until it is well."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from http.client import CONFLICT, CREATED, OK
from pathlib import Path

import yaml

from kubectl_reconcile.cache_folder import cache_dir
from kubectl_reconcile.go_programs import Log
from kubectl_reconcile.sandbox.accounts import Accounts
from kubectl_reconcile.sandbox.build import Binaries
from kubectl_reconcile.sandbox.components import NODE, Component, Layout, command
from kubectl_reconcile.sandbox.errors import SandboxError
from kubectl_reconcile.sandbox.processes import free_ports, port_is_free, spawn, stop
from kubectl_reconcile.sandbox.record import Record, RecordFile
from kubectl_reconcile.sandbox.runtime.client import python_environ
from kubectl_reconcile.sandbox.state import component_status

_CORE = (Component.ETCD, Component.API_SERVER)
GRACE_S = 10.0
"""How long a process that is asked to end may take."""

_POLL_S = 0.05
_START_S = 120.0  # some six are usual; a machine may have other things to do
_CERTIFICATE_S = 300 * 24 * 3600.0  # the API server makes it for a year


@dataclass(frozen=True, slots=True)
class Startup:
    """Starts what the sandbox *name* consists of, and records each process before anything waits for it."""

    name: str
    layout: Layout
    records: RecordFile
    accounts: Accounts

    def start_missing(self, record: Record, log: Log) -> None:
        """Start the components that don't run; on an error or an interrupt stop again what was started.

        Raises:
            SandboxError: one didn't become well.
        """
        with self._undone_on_error(record):
            self._start_missing(record, log)

    def start(self, component: Component) -> None:
        """Start one component on the port that it had, and return once it is well.

        Raises:
            SandboxError: it did not become well, or somebody else has its port now.
        """
        record = self.records.require()
        if component is Component.API_SERVER and self._is_outdated(record):
            hint = f"{self.records.command('up')} restarts what runs, and keeps what is stored"
            raise SandboxError(f"etcd of sandbox {self.name} was started by an earlier version", hint)
        self._launch(record, component)
        self._await_well(component)

    @contextlib.contextmanager
    def _undone_on_error(self, before: Record) -> Iterator[None]:
        """Stop what was started inside again if not all of it could be, or an interrupt came."""
        kept = before.running()
        try:
            yield
        except BaseException:
            record = self.records.require()
            stop(record.running() - kept, grace_s=1.0)
            self.records.save(
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
                record = self.records.require()
                if is_last or not _taken(record):
                    raise
                log("another process took the port meanwhile: retrying with another port")
            else:
                return

    def _with_ports(self, record: Record) -> Record:
        """Give a port to each component that has none, or had one that somebody took while it didn't run."""
        moved = _taken(record)
        without_storage = record.process(Component.API_SERVER) is None and self._is_outdated(record)
        if without_storage or moved.intersection(_CORE):  # the others know them by their ports
            stop(record.running(), grace_s=GRACE_S)
        fresh = free_ports(but=record.ports.values())
        kept = {name: port for name, port in record.ports.items() if name not in moved}
        return self.records.save(
            replace(record, ports={name: kept.get(name) or next(fresh) for name in record.components})
        )

    def _is_outdated(self, record: Record) -> bool:
        """Tell whether an etcd runs that listens where an earlier version had it listen, and no API server finds it."""
        return record.process(Component.ETCD) is not None and not self.layout.storage.exists()

    def _start_in_order(self, record: Record, log: Log) -> None:
        log(f"starting {', '.join(record.components)}")
        for component in _CORE:
            record = self._launch(record, component)
        for component in _CORE:
            self._await_well(component)
        self.accounts.write_own_kubeconfig(record)
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
        if component is Component.API_SERVER and _age_s(self.layout.authority) > _CERTIFICATE_S:
            self.layout.authority.unlink()  # it makes another
        argv = command(component, self.layout, record.ports, record.options, Binaries(record.programs))
        # Nothing of the caller's environment: etcd, kwok and every Go program take settings from it.
        environ = {
            "HOME": str(self.layout.folder),
            "PATH": os.defpath,
            "KWOK_WORKDIR": str(self.layout.folder / "kwok"),
        }
        if component is Component.NODELET:  # it looks for programs where this user has theirs
            path = os.environ.get("PATH", os.defpath)
            environ |= {**python_environ(), "XDG_CACHE_HOME": str(cache_dir().parent), "PATH": path}
        process = spawn(argv, log=self.layout.log(component), environ=environ, folder=self.layout.folder)
        return self.records.save(replace(record, processes={**record.processes, component: process}))

    def _await_well(self, component: Component) -> None:
        record = self.records.require()
        deadline = time.monotonic() + _START_S
        while problem := component_status(self.layout, record, component, self.accounts.token()).problem:
            if record.process(component) is None or time.monotonic() > deadline:
                log = self.layout.log(component)
                raise SandboxError(
                    f"sandbox {self.name}: {component}: {problem}", f"its log is {log}", output=_tail(log)
                )
            time.sleep(_POLL_S)

    def _await_objects(self) -> None:
        deadline = time.monotonic() + _START_S
        while problem := self._missing_objects():
            if time.monotonic() > deadline:
                raise SandboxError(f"sandbox {self.name}: {problem}", f"the logs are in {self.layout.logs}")
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
        status, body = self.accounts.request(self.records.require(), "POST", "/api/v1/nodes", node)
        if status not in (CREATED, CONFLICT):
            raise SandboxError(f"sandbox {self.name}: the node could not be created: {body.decode(errors='replace')}")

    def _missing_objects(self) -> str:
        """Return which of the objects that every cluster has isn't there yet."""
        record = self.records.require()
        if Component.CONTROLLERS in record.components:
            status, _ = self.accounts.request(record, "GET", "/api/v1/namespaces/default/serviceaccounts/default")
            if status != OK:
                return "ServiceAccount default/default is missing, so no pod can be created"
        if Component.KWOK in record.components:
            _, body = self.accounts.request(record, "GET", f"/api/v1/nodes/{NODE}")
            conditions = yaml.safe_load(body).get("status", {}).get("conditions", [])
            if {"Ready": "True"}.items() not in [{one["type"]: one["status"]}.items() for one in conditions]:
                return f"Node {NODE} isn't Ready, so no pod can run"
        return ""


_ROOM = {"cpu": "1k", "memory": "4Ti", "pods": "100k", "ephemeral-storage": "4Ti"}


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
