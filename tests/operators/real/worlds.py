"""A namespace with real servers in it, and what there is to see where something doesn't come true."""

import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from tests.e2e.program import Daemon
from tests.kubectl import KubectlError
from tests.real_pods import Real

KINDS = (
    "etcd.database.coreos.com/v1beta2/etcdclusters",
    "etcd.database.coreos.com/v1beta2/etcdbackups",
    "etcd.database.coreos.com/v1beta2/etcdrestores",
    "example.com/v1alpha1/mydatabases",
    "kafka.example.com/v1alpha1/kafkas",
    "kafka.example.com/v1alpha1/kafkarebalances",
)
"""The operators' own kinds, by API group, version and plural."""

JOURNAL = "reconcile.dev/actions"
LINES = 40
"""So many lines of each log are told."""


@dataclass(frozen=True)
class World:
    """A namespace whose pods run as processes, and the daemons that look after it."""

    real: Real
    folder: Path
    daemons: list[Daemon] = field(default_factory=list)

    def new_daemon(self, kubeconfig="") -> Daemon:
        """A daemon of this namespace, not yet started."""
        log = self.folder / f"daemon-{len(self.daemons)}.log"
        found = Daemon(str(kubeconfig or self.real.kubectl.kubeconfig), self.real.namespace, log)
        self.daemons.append(found)
        return found

    def end(self) -> None:
        """End the daemons that still run, and what was asked along."""
        self.real.close()
        for each in self.daemons:
            if each.alive:
                each.kill()

    def told(self) -> str:
        """What the resources say, their journals, their pods, and the last lines of pods and daemons; or why there is nothing to tell."""
        try:
            return "\n".join(f"--- {what}\n{text}" for what, text in self._parts().items())
        except (KubectlError, OSError, LookupError, ValueError, subprocess.SubprocessError) as error:
            return f"{type(error).__name__}: {error}"

    def _parts(self) -> dict[str, str]:
        parts = {}
        for kind in KINDS:
            for each in self._items(f"/apis/{kind.rpartition('/')[0]}", kind.rpartition("/")[2]):
                metadata = each["metadata"]
                what = f"{kind.rpartition('/')[2]} {metadata['name']}, generation {metadata['generation']}"
                parts[what] = json.dumps(each.get("status", {}), indent=1)
                parts[f"journal of {metadata['name']}"] = metadata.get("annotations", {}).get(JOURNAL, "")
        for pod in self._items("/api/v1", "pods"):
            name, status = pod["metadata"]["name"], pod.get("status", {})
            parts[f"pod {name}"] = json.dumps(status)
            for container in (*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]):
                parts[f"log of {name}, {container['name']}"] = self._tail(name, container["name"])
        for at, each in enumerate(self.daemons):
            parts[f"log of daemon {at}"] = "\n".join(each.log.splitlines()[-LINES:])
        return parts

    def _items(self, root, plural):
        try:
            status, body = self.real.asked("GET", f"{root}/namespaces/{self.real.namespace}/{plural}")
        except KubectlError:
            return []
        return json.loads(body)["items"] if status == 200 else []

    def _tail(self, name, container):
        try:
            return "\n".join(self.real.logs(name, "-c", container, f"--tail={LINES}"))
        except KubectlError as error:
            return str(error)
