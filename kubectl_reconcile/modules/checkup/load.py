"""Load: requests to a Service of the namespace, by a Job that runs ``kubectl-reconcile load``.

Where requests go, the module says, out of the Service's name and that of the namespace; a Service that stands for something else (an
ExternalName, or endpoints that somebody writes) isn't asked. The Job connects to the very address that the Service had when it was looked at: by its name it
could stand for something else by then.

Pure: a spec, a context and a Service in, a Job out.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from kubectl_reconcile.module_api import (
    IMAGE,
    Between,
    Context,
    Owned,
    SpecError,
    last_words,
    map_at,
    maps_in,
    restricted_container,
    restricted_pod,
    shortened,
)

FIELD = ".spec.load"
_USER = 65532
"""Who the image runs as."""
_STARTING_S = 120
_CHANCE, _CHANCE_MS = 0.25, 5.0
"""By how much p99 may grow without being called worse: by a quarter, and by so many milliseconds."""
_NAME = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_PATH = re.compile(r"/[!-~]{0,1023}")


@dataclass(frozen=True, slots=True)
class LoadWish:
    """Which Service is asked, how often, for how long, and over how many connections."""

    service: str
    port: Annotated[int, Between(1, 65535)]
    path: str = "/"
    rate_per_second: Annotated[int, Between(1, 100_000)] = 10
    duration_seconds: Annotated[int, Between(1, 86_400)] = 30
    connections: Annotated[int, Between(1, 10_000)] = 10
    timeout_seconds: Annotated[int, Between(1, 300)] = 10
    image: str = IMAGE

    @property
    def deadline_s(self) -> int:
        """When the Job has had all the time that it needs, where nobody says: for its pod to begin, and for what is given up last."""
        return _STARTING_S + self.duration_seconds + 2 * self.timeout_seconds

    def check(self, ceilings: Mapping[str, int]) -> None:
        """Refuse what can't be meant so, or is more than the daemon allows.

        Raises:
            SpecError: a field is named.
        """
        if not _NAME.fullmatch(self.service):
            raise SpecError(
                f"{FIELD}.service", f"must be the name of a Service of this namespace, not {self.service!r}"
            )
        if not _PATH.fullmatch(self.path):
            raise SpecError(f"{FIELD}.path", "must begin with / and contain only ASCII characters without spaces")
        for field, flag, wanted in (
            ("ratePerSecond", "--load-max-rate", self.rate_per_second),
            ("connections", "--load-max-connections", self.connections),
            ("durationSeconds", "--load-max-seconds", self.duration_seconds),
        ):
            if wanted > ceilings[flag]:
                hint = f"lower it, or start the daemon with a larger {flag}"
                raise SpecError(
                    f"{FIELD}.{field}", f"must be {ceilings[flag]} or less here, not {wanted} (hint: {hint})"
                )

    def missing(self, owned: Owned) -> str:
        """Return what is wrong with the Service; nothing where it can be asked."""
        service = owned.other("Service", self.service)
        if service is None:
            return f"{FIELD}.service: there is no Service {self.service} in this namespace (hint: correct the name, or create it)"
        spec = map_at(service, "spec")
        if spec.get("type") == "ExternalName" or not map_at(spec, "selector"):
            return f"{FIELD}.service: Service {self.service} selects no pods of this namespace, so no requests are sent"
        if not _address_of(service):
            return f"{FIELD}.service: Service {self.service} has no address of its own (clusterIP), so no requests are sent"
        ports = [each.get("port") for each in maps_in(spec.get("ports"))]
        if self.port not in ports:
            told = ", ".join(map(str, ports))
            return f"{FIELD}.port: Service {self.service} has no port {self.port} (hint: it has {told})"
        return ""

    def template_of(self, ctx: Context, _job: str, owned: Owned) -> dict[str, Any]:
        """Return the pod that sends the requests."""
        address = _address_of(owned.other("Service", self.service) or {})
        url = f"http://{self.service}.{ctx.namespace}.svc:{self.port}{self.path}"
        arguments = [
            *("load", url, "-o", "json", f"--rate={self.rate_per_second}", f"--duration={self.duration_seconds}s"),
            *(f"--connections={self.connections}", f"--timeout={self.timeout_seconds}s"),
            f"--connect-to={address}",
        ]
        container = {
            "name": "load",
            "image": self.image,
            "command": ["python", "-m", "kubectl_reconcile.cli.main"],
            "args": arguments,
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}},
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "securityContext": restricted_container(),
        }
        return {"spec": {"restartPolicy": "Never", **restricted_pod(_USER), "containers": [container]}}

    @property
    def basis(self) -> str:
        """What results must have in common to be compared; the image doesn't count."""
        asked = (self.service, self.port, self.path, self.rate_per_second, self.duration_seconds, self.connections)
        return f"load-{hashlib.sha256(json.dumps([*asked, self.timeout_seconds]).encode()).hexdigest()[:12]}"

    @staticmethod
    def result_of(said: str) -> dict[str, Any]:
        """Return what the program told; nothing where that isn't its result."""
        found = last_words(said)
        is_whole = all(isinstance(found.get(name), int | float) for name in ("requests", "errors", "p50_ms", "p99_ms"))
        return dict(found) if is_whole else {}

    @staticmethod
    def why_none(said: str) -> tuple[str, str]:
        """Return why there is no result in what was said: in one word, and in a sentence."""
        return "NotAResult", f"its pod's output isn't a result: {shortened(' '.join(said.split()), 100)!r}"

    @staticmethod
    def summary(result: Mapping[str, Any]) -> str:
        """Return the result in a few words."""
        return f"p50 {result.get('p50_ms')} ms, p99 {result.get('p99_ms')} ms, {result.get('errors')} of {result.get('requests')} requests failed"

    @staticmethod
    def is_good(result: Mapping[str, Any]) -> bool:
        """Tell whether a result passes where nobody says what does."""
        return not result.get("errors")

    @staticmethod
    def is_worse(result: Mapping[str, Any]) -> bool:
        """Tell whether a result is worse than the one before: slower by more than chance, or with more errors."""
        change = map_at(result, "change")
        slower, took = (map_of.get("p99_ms") for map_of in (change, result))
        if not isinstance(slower, int | float) or not isinstance(took, int | float):
            return False
        more = change.get("errors")
        return (isinstance(more, int | float) and more > 0) or slower > max(_CHANCE_MS, (took - slower) * _CHANCE)


def _address_of(service: Mapping[str, Any]) -> str:
    """Return the address that a Service has in the cluster; empty for one that has none."""
    said = str(map_at(service, "spec").get("clusterIP") or "")
    try:
        return str(ipaddress.ip_address(said))
    except ValueError:
        return ""
