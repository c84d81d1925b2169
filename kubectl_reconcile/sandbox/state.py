"""How a sandbox is: each component asked, and one word for the whole."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum

from kubectl_reconcile.sandbox.components import Component, Layout, complaint
from kubectl_reconcile.sandbox.record import Record


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


def status_of(name: str, layout: Layout, record: Record, token: str) -> SandboxStatus:
    """Return how the sandbox *name* is: ask all of its components at once, with the administrator's *token*."""
    with ThreadPoolExecutor(max_workers=len(Component)) as pool:  # one that hangs takes seconds to say nothing
        components = tuple(pool.map(lambda one: component_status(layout, record, one, token), record.components))
    if not components or all(one.pid is None for one in components):
        stopped = not any(record.processes.values())
        return SandboxStatus(name, SandboxState.STOPPED if stopped else SandboxState.STALE, components)
    degraded = any(one.problem for one in components)
    return SandboxStatus(name, SandboxState.DEGRADED if degraded else SandboxState.RUNNING, components)


def component_status(layout: Layout, record: Record, component: Component, token: str) -> ComponentStatus:
    """Return how one component is."""
    port = record.ports.get(component, 0)
    process = record.process(component)
    if process:
        problem = complaint(component, layout, port, token)
        return ComponentStatus(component, port, process.pid, process.rss_bytes(), problem)
    ended = record.processes.get(component) is not None
    return ComponentStatus(component, port, None, 0, "ended by itself" if ended else "stopped")
