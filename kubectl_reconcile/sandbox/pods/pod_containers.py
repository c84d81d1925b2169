"""The containers of one pod: started, probed, entered and ended, and what is known of each."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections.abc import Callable, Mapping
from typing import Any

from kubectl_reconcile.sandbox.images.image import ImageError
from kubectl_reconcile.sandbox.pods import probing
from kubectl_reconcile.sandbox.pods.decisions import status
from kubectl_reconcile.sandbox.pods.decisions.lifecycle import PodDecision, PodStep, RunFact, StepKind, restart_grace_s
from kubectl_reconcile.sandbox.pods.decisions.probes import ProbeKind, ProbeState
from kubectl_reconcile.sandbox.pods.decisions.reported import Run, now, runs_of_status
from kubectl_reconcile.sandbox.pods.decisions.resolve import ConfigError, Container, container_of
from kubectl_reconcile.sandbox.pods.decisions.status import ContainerFact
from kubectl_reconcile.sandbox.pods.pod_folder import PodFolder, Surroundings
from kubectl_reconcile.sandbox.runtime.channel import CallError

_RETRY_S = 1.0
_POLL_S = 0.02

Say = Callable[[str, str, str], None]
"""Leaves an Event: type, reason, message."""


class PodContainers:
    """The containers of the pod that *folder* belongs to; *known* is what the runtime reports about it, *wake* is called on a change."""

    def __init__(
        self,
        folder: PodFolder,
        place: Surroundings,
        known: Mapping[str, Any] | None,
        wake: Callable[[], None],
        say: Say,
    ) -> None:
        self._folder, self._place, self._wake, self._say = folder, place, wake, say
        self.ip = str(known["ip"]) if known else ""
        """Where they are reached; empty while they have no place to run."""
        self.runs: dict[str, Run] = {**runs_of_status(folder.pod), **(known["runs"] if known else {})}
        """The last run of each that was started."""
        self._previous: dict[str, Mapping[str, Any]] = {}
        self._started: set[str] = set()
        self._ready: set[str] = set()
        self._failing: dict[str, str] = {}
        self._waiting: dict[str, tuple[str, str]] = {}
        self._retry_s: dict[str, float] = {}
        self._probed: dict[str, list[asyncio.Task[None]]] = {}
        self._ending: dict[str, asyncio.Task[None]] = {}
        self._prepared = False
        reported = self._folder.pod.get("status", {})
        for each in [*reported.get("initContainerStatuses", ()), *reported.get("containerStatuses", ())]:
            if last := each.get("lastState", {}).get("terminated"):
                self._previous[each["name"]] = last
            run = self.runs.get(each["name"])
            if run and run["exitCode"] is None and run["attempt"] == each["restartCount"]:
                self._started |= {each["name"]} if each.get("started") else set()
                self._ready |= {each["name"]} if each["ready"] else set()

    @property
    def running(self) -> list[str]:
        """Those that run."""
        return [name for name, run in self.runs.items() if run["exitCode"] is None]

    @property
    def retries_s(self) -> list[float]:
        """When those that could not be started are tried again."""
        return list(self._retry_s.values())

    def see(self, known: Mapping[str, Any] | None) -> None:
        """Hear how the runtime has them now; None if it doesn't know the pod."""
        if known is not None:
            if any(self.runs.get(name) != run for name, run in known["runs"].items()):
                self.runs |= known["runs"]
                self._wake()
        elif self.ip:  # it died, and all that ran with it
            self.ip, self._prepared = "", False
            lost = {"exitCode": 137, "error": "", "finishedS": time.time(), "finishedAt": now()}
            self.runs = {name: {**run, **lost} if run["exitCode"] is None else run for name, run in self.runs.items()}
            self._wake()

    def stop_probing(self, *, end: bool = False) -> None:
        """Try no probes any more; with *end*, leave off ending containers, too."""
        ending = self._ending.values() if end else ()
        for task in [*(one for tasks in self._probed.values() for one in tasks), *ending]:
            task.cancel()

    async def prepare(self) -> str:
        """Make what they need, once; return what is missing."""
        if self._prepared:
            return ""
        try:
            self.ip = await self._folder.prepare()
        except ConfigError as error:
            return str(error)
        self._prepared = True
        for name in self.running:
            self._probe(name)
        return ""

    def facts(self) -> dict[str, RunFact]:
        """Return what is to be decided."""
        return {
            name: RunFact(
                run["attempt"],
                run["exitCode"] is None,
                run["exitCode"] or 0,
                run["startedS"],
                run["finishedS"],
                is_started=self._is_started(name),
                is_failing="" if name in self._ending else self._failing.get(name, ""),
            )
            for name, run in self.runs.items()
        }

    def _is_started(self, name: str) -> bool:
        return name in self._started or ProbeKind.STARTUP not in container_of(self._folder.pod, name)

    def fact(self, name: str, decision: PodDecision) -> ContainerFact:
        """Return how one of them is."""
        run = self.runs.get(name)
        running = run is not None and run["exitCode"] is None
        started = running and self._is_started(name)
        waiting = self._waiting.get(name)
        if name in decision.waiting:
            waiting = "CrashLoopBackOff", decision.waiting[name]
        is_init = any(one["name"] == name for one in self._folder.pod["spec"].get("initContainers", ()))
        done = is_init and run is not None and run["exitCode"] == 0
        ready = started and (ProbeKind.READINESS not in container_of(self._folder.pod, name) or name in self._ready)
        return ContainerFact(
            run,
            self._previous.get(name),
            ready or done,
            started,
            None if running else waiting,
            self._folder.last_words(name, run),
        )

    async def do(self, step: PodStep) -> None:
        """Start or end one of them.

        Raises:
            RefusedError, CallError, OSError: the API server or the runtime doesn't do its part.
        """
        if step.kind is StepKind.KILL:
            if step.container not in self._ending:
                self._say("Normal", "Killing", f"container {step.container}: {step.reason}")
                task = asyncio.create_task(self.kill(step.container, restart_grace_s(self._folder.pod, step.container)))
                self._ending[step.container] = task
                task.add_done_callback(lambda _: self._forget(step.container))
        elif self._retry_s.get(step.container, 0.0) <= time.time():
            await self._start(step.container, step.attempt)

    async def _start(self, name: str, attempt: int) -> None:
        container = container_of(self._folder.pod, name)
        self._retry_s.pop(name, None)
        try:
            spec = await self._folder.spec(container, self.ip)
        except (ImageError, ConfigError) as error:
            kind = "ErrImagePull" if isinstance(error, ImageError) else "CreateContainerConfigError"
            self._waiting[name] = kind, str(error)
            self._retry_s[name] = time.time() + _RETRY_S
            self._say("Warning", "Failed", f"container {name}: {error}")
            return
        if name in self.runs:
            self._previous[name] = status.terminated(self.runs[name], self._folder.last_words(name, self.runs[name]))
        for each in (self._waiting, self._failing):
            each.pop(name, None)
        self._started.discard(name)
        self._ready.discard(name)
        self._folder.forget_words(name)
        await self._place.runtime.call(
            "start",
            uid=self._folder.uid,
            container=name,
            attempt=attempt,
            spec=spec,
            log=str(self._folder.log(name, attempt)),
        )
        self._folder.drop_logs(name, attempt)
        known = (await self._place.runtime.call("state"))["pods"].get(self._folder.uid)
        self.runs |= known["runs"] if known else {}
        self._probe(name)
        if "postStart" in container.get("lifecycle", {}):
            self._probed[name].append(asyncio.create_task(self._post_start(self._target(container))))
        self._wake()

    # -- probes --------------------------------------------------------------------------------------------------------

    def _probe(self, name: str) -> None:
        """Begin to try the probes of a container that was started."""
        for task in self._probed.pop(name, ()):
            task.cancel()
        container = container_of(self._folder.pod, name)
        target = self._target(container)
        attempt = self.runs[name]["attempt"]
        tasks = []
        for kind in ProbeKind:
            if kind in container:

                def tell(state: ProbeState, problem: str, kind: ProbeKind = kind) -> None:
                    self._see_probe(name, attempt, kind, state, problem)

                def may_try(kind: ProbeKind = kind) -> bool:
                    return kind is ProbeKind.STARTUP or self._is_started(name)

                tasks.append(asyncio.create_task(probing.watch(target, kind, may_try, tell)))
        self._probed[name] = tasks

    async def _post_start(self, target: probing.ProbeTarget) -> None:
        problem = await probing.hook(target, target.container["lifecycle"]["postStart"])
        if problem:
            self._failing[target.container["name"]] = f"postStart failed: {problem}"
            self._wake()

    def _see_probe(self, name: str, attempt: int, kind: ProbeKind, state: ProbeState, problem: str) -> None:
        run = self.runs.get(name)
        if run is None or run["attempt"] != attempt or run["exitCode"] is not None:
            return
        if problem:
            self._say("Warning", "Unhealthy", f"container {name}: {kind} failed: {problem}")
        if kind is ProbeKind.READINESS:
            changed = state.passing != (name in self._ready)
            (self._ready.add if state.passing else self._ready.discard)(name)
        elif state.failed:
            changed = name not in self._failing
            self._failing[name] = f"{kind} failed: {problem}"
        else:
            changed = kind is ProbeKind.STARTUP and state.passing
            if changed:
                self._started.add(name)
        if changed:
            self._wake()

    def _target(self, container: Container) -> probing.ProbeTarget:
        async def enter(argv: list[str]) -> int:
            with probing.silent() as streams:
                return await self.enter(container, argv, streams)

        return probing.ProbeTarget(container, self.ip, self._place.runtime, enter)

    async def enter(self, container: Container, argv: list[str], streams: list[int], *, tty: bool = False) -> int:
        """Run a command in a container, on three open files; return its exit status.

        Raises:
            CallError, OSError: it could not be run.
            ConfigError, ImageError: nor could the container, as it is now.
            RefusedError: the API server doesn't say what the container's variables are.
        """
        spec = {**await self._folder.spec(container, self.ip), "argv": argv, "tty": tty}
        for key in ("mounts", "files"):
            del spec[key]
        answer = await self._place.runtime.call(
            "enter", uid=self._folder.uid, container=container["name"], spec=spec, files=streams
        )
        return int(answer["exitCode"])

    async def kill(self, name: str, grace: float) -> None:
        """Run its preStop hook, ask a container to end, and kill it when *grace* seconds have gone by in all."""
        deadline = time.monotonic() + grace
        container = container_of(self._folder.pod, name)
        hook = container.get("lifecycle", {}).get("preStop")
        with contextlib.suppress(CallError, OSError, TimeoutError):
            if hook and grace:
                async with asyncio.timeout(grace):
                    await probing.hook(self._target(container), hook)
            signum = container.get("lifecycle", {}).get("stopSignal", "SIGTERM")
            await self._signal(name, signal_number(signum))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                await self._over(name)
        while self.runs[name]["exitCode"] is None:
            with contextlib.suppress(CallError, OSError):
                await self._signal(name, signal.SIGKILL)
            await asyncio.sleep(_POLL_S)

    async def _over(self, name: str) -> None:
        while self.runs[name]["exitCode"] is None:  # noqa: ASYNC110 - it may be seen to end in two places
            await asyncio.sleep(_POLL_S)

    async def _signal(self, name: str, signum: int) -> None:
        await self._place.runtime.call("signal", uid=self._folder.uid, container=name, signum=signum)

    def _forget(self, name: str) -> None:
        self._ending.pop(name, None)
        self._wake()


def signal_number(name: str) -> int:
    """Return the number of a signal as pods name it; ``SIGRTMIN+3`` is one, too."""
    base, _, more = name.partition("+")
    found = getattr(signal, base, signal.SIGTERM)
    return int(found) + (int(more) if more.isdigit() else 0)
