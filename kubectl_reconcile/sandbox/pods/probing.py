"""Tries probes and hooks: a request, a connection or a command, at a pod that runs."""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kubectl_reconcile.sandbox.images.image import ImageError
from kubectl_reconcile.sandbox.pods.api import RefusedError
from kubectl_reconcile.sandbox.pods.decisions.probes import ProbeKind, ProbeState
from kubectl_reconcile.sandbox.pods.decisions.resolve import ConfigError, Container, port_number
from kubectl_reconcile.sandbox.runtime.channel import CallError
from kubectl_reconcile.sandbox.runtime.client import RuntimeClient

Handler = Mapping[str, Any]
RunCommand = Callable[[list[str]], Awaitable[int]]

_HOOK_S = 3600.0
_LONGEST = 300


@dataclass(frozen=True, slots=True)
class ProbeTarget:
    """A container that runs."""

    container: Container
    ip: str
    runtime: RuntimeClient
    enter: RunCommand
    """Runs a command in it, and returns the exit status."""


async def attempt(target: ProbeTarget, handler: Handler, timeout_s: float) -> str:
    """Do what *handler* says once; return why it failed, ``""`` if it succeeded."""
    try:
        async with asyncio.timeout(timeout_s):
            if "exec" in handler:
                code = await target.enter(list(handler["exec"].get("command", ())))
                return f"command exited {code}" if code else ""
            if "httpGet" in handler:
                return await _http(target, handler["httpGet"], timeout_s)
            if "tcpSocket" in handler:
                port = port_number(target.container, handler["tcpSocket"]["port"])
                (await target.runtime.dial(handler["tcpSocket"].get("host") or target.ip, port, timeout_s)).close()
            elif "sleep" in handler:
                await asyncio.sleep(handler["sleep"]["seconds"])
            else:
                return f"process pods don't have {', '.join(sorted(handler))}"
            return ""
    except TimeoutError:
        return f"no answer within {timeout_s:g} s"
    except (CallError, ConfigError, ImageError, RefusedError, OSError, ValueError) as error:
        return _one_line(error)


def _one_line(error: Exception) -> str:
    """Return what is wrong, so short that it is fit for an Event whatever a program answers."""
    return " ".join(str(error).split())[:_LONGEST] or type(error).__name__


async def hook(target: ProbeTarget, handler: Handler) -> str:
    """Do what a hook says, however long it takes; return why it failed."""
    return await attempt(target, handler, _HOOK_S)


async def watch(
    target: ProbeTarget,
    kind: ProbeKind,
    may_try: Callable[[], bool],
    tell: Callable[[ProbeState, str], None],
) -> None:
    """Try the probe of *kind* again and again while *may_try*, and tell what it counts as; ends with its startup probe."""
    probe = target.container[kind]
    state = ProbeState.begin(kind)
    await asyncio.sleep(probe.get("initialDelaySeconds", 0))
    while True:
        if may_try():
            problem = await attempt(target, _handler(probe), float(probe.get("timeoutSeconds", 1)))
            state = state.tried(probe, succeeded=not problem)
            tell(state, problem)
            if kind is ProbeKind.STARTUP and state.settled:
                return
            await asyncio.sleep(probe.get("periodSeconds", 10))
        else:
            await asyncio.sleep(0.1)


def _handler(probe: Mapping[str, Any]) -> Handler:
    return {key: probe[key] for key in ("exec", "httpGet", "tcpSocket", "grpc") if key in probe}


async def _http(target: ProbeTarget, get: Mapping[str, Any], timeout_s: float) -> str:
    port = port_number(target.container, get["port"])
    connection = await target.runtime.dial(get.get("host") or target.ip, port, timeout_s)
    context = _unverified() if get.get("scheme") == "HTTPS" else None
    reader, writer = await asyncio.open_connection(
        sock=connection, ssl=context, server_hostname="" if context else None
    )
    try:
        headers = {
            "Host": f"{target.ip}:{port}",
            "User-Agent": "kube-probe/1.36",
            "Accept": "*/*",
            "Connection": "close",
        }
        headers |= {each["name"]: each["value"] for each in get.get("httpHeaders", ())}
        lines = [f"GET {get.get('path') or '/'} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        await writer.drain()
        words = (await reader.readline()).split()
        status = int(words[1][:4]) if len(words) > 1 and words[1].isdigit() else 0
        return "" if 200 <= status < 400 else f"HTTP probe failed with statuscode: {status}"
    finally:
        writer.close()
        with contextlib.suppress(OSError, ssl.SSLError):
            await writer.wait_closed()


def _unverified() -> ssl.SSLContext:
    """Return what speaks TLS with whatever certificate, as a kubelet does for probes."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


@contextlib.contextmanager
def silent() -> Any:
    """Yield three open files that nothing comes from and nothing stays of."""
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        yield [null, null, null]
    finally:
        os.close(null)
