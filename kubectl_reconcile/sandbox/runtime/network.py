"""The network of a sandbox's pods: a bridge, and for each pod a namespace with one end of a cable to it.

All of it is inside the network namespace of the calling process, so the machine's own network isn't touched and nothing is left once
that process has ended. Pods find one another by addresses of 10.200.0.0/16; whatever goes to an address of a Service arrives here.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import subprocess
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kubectl_reconcile.sandbox.runtime import kernel
from kubectl_reconcile.sandbox.runtime.channel import CallError

GATEWAY = "10.200.0.1"
"""Address of the bridge: the pods' way out, and their name server."""
POD_RANGE = ipaddress.ip_network("10.200.0.0/16")
SERVICE_RANGE = "10.0.0.0/16"

_FIRST = 256  # 10.200.1.0: so that no pod's address looks like the bridge's
_PATH = "/usr/sbin:/sbin:/usr/bin:/bin"
_EVERYWHERE = ("0.0.0.0/1", "128.0.0.0/1", *(str(half) for half in POD_RANGE.subnets(1)))
"""All addresses, in parts that win over the way to all pods and the way out, being longer."""
_FILTER = Path("/proc/sys/net/ipv4/conf/eth0/rp_filter")
"""Whether a pod loses what comes from where it can't send to. A thread sees its own network's."""


@dataclass(frozen=True, slots=True)
class PodNetwork:
    """Where a pod's processes are at home."""

    ip: str
    namespaces: tuple[int, ...]
    """Open files of its network, host name and IPC namespaces, which live as long as they are open."""

    def close(self) -> None:
        """Release the namespaces; they end once no process is in them."""
        for fd in self.namespaces:
            os.close(fd)


class Network:
    """The bridge and who is connected to it."""

    def __init__(self) -> None:
        self._next = _FIRST
        self._used: set[str] = set()

    def set_up(self) -> None:
        """Make the bridge, and the addresses of Services our own.

        Raises:
            CallError: the kernel refuses.
        """
        _ip(
            "link set lo up",
            "link add br0 type bridge",
            f"addr add {GATEWAY}/{POD_RANGE.prefixlen} dev br0",
            "link set br0 up",
            f"route add local {SERVICE_RANGE} dev lo",
        )

    def add(self, hostname: str) -> PodNetwork:
        """Connect a new pod.

        Raises:
            CallError: the kernel refuses.
        """
        ip = self._free_address()
        cable = f"v{int(ipaddress.ip_address(ip)) - int(POD_RANGE[0])}"
        namespaces: list[int] = []

        def inside() -> None:
            kernel.unshare(kernel.CLONE_NEWNET | kernel.CLONE_NEWUTS | kernel.CLONE_NEWIPC)
            socket.sethostname(hostname)
            namespaces.extend(os.open(f"/proc/thread-self/ns/{one}", os.O_RDONLY) for one in ("net", "uts", "ipc"))
            _ip(
                "link set lo up",
                f"link add eth0 type veth peer name {cable} netns /proc/1/ns/net",
                f"addr add {ip}/{POD_RANGE.prefixlen} dev eth0",
                "link set eth0 up",
                f"route add default via {GATEWAY}",
            )

        try:
            _in_thread(inside)
            _ip(f"link set {cable} master br0 up")
        except BaseException:
            PodNetwork(ip, tuple(namespaces)).close()
            raise
        self._used.add(ip)
        return PodNetwork(ip, tuple(namespaces))

    def remove(self, place: PodNetwork) -> None:
        """Disconnect a pod."""
        self._used.discard(place.ip)
        place.close()

    def cut(self, place: PodNetwork, peers: Iterable[str]) -> None:
        """Lose whatever a pod sends to *peers* and they to it, or all that goes in and out where there are none: what comes by way of Services or of the bridge, too.

        Raises:
            CallError: the kernel refuses.
        """
        targets = [f"{ip}/32" for ip in peers] or _EVERYWHERE
        self._inside(place, [f"route replace blackhole {target}" for target in targets], "1")

    def repair(self, place: PodNetwork) -> None:
        """Lose nothing any more.

        Raises:
            CallError: the kernel refuses.
        """
        self._inside(place, ["route flush type blackhole"], "0")

    def _inside(self, place: PodNetwork, lines: Sequence[str], is_filtered: str) -> None:
        def inside() -> None:
            kernel.setns(place.namespaces[0], kernel.CLONE_NEWNET)
            try:
                _FILTER.write_text(is_filtered)  # first: connections that are open take notice of it once routes change
            except OSError as error:
                raise CallError(f"the kernel refuses {_FILTER}: {error.strerror}") from error
            _ip(*lines)

        _in_thread(inside)

    def _free_address(self) -> str:
        for _ in range(POD_RANGE.num_addresses):
            candidate = str(POD_RANGE[self._next])
            self._next = self._next + 1 if self._next < POD_RANGE.num_addresses - 2 else _FIRST
            if candidate not in self._used:  # one that was given back comes again after all others
                return candidate
        raise CallError(f"all addresses of {POD_RANGE} are taken")


def _ip(*lines: str) -> None:
    answer = subprocess.run(
        ["ip", "-batch", "-"],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": _PATH},
    )
    if answer.returncode:
        raise CallError(f"ip can't do {' / '.join(lines)}: {answer.stderr.strip()}")


def _in_thread(work: Callable[[], None]) -> None:
    """Do *work* in a thread of its own, whose namespaces are nobody else's."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
