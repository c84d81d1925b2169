"""The real kubectl, as tests call it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

IN_A_HURRY = {"GOGC": "off", "GOMAXPROCS": "1"}
"""Variables for a Go program that ends soon: it takes a third less of the processor, and memory instead."""


CRDS = Path(__file__).parents[1] / "crds"
_NO_CONDITIONS = ".status.conditions accessor error: <nil>"
"""What kubectl wait ends with at once where an object has no conditions yet, however long it may wait."""
_SOON_S = 0.1


class KubectlError(Exception):
    """kubectl failed, or the server said no to a plain request; the text is what was said."""


@dataclass(frozen=True)
class Kubectl:
    """The real kubectl on one cluster; returns what it prints, raises KubectlError with what it complains about."""

    kubeconfig: str
    folder: Path

    def __call__(self, *arguments: str, stdin: str | Mapping[str, Any] | list = "") -> str:
        try:
            return self._told(*arguments, stdin=stdin if isinstance(stdin, str) else as_documents(stdin))
        except KubectlError as error:
            if arguments[:1] != ("wait",) or _NO_CONDITIONS not in str(error):
                raise
        time.sleep(_SOON_S)  # the server is about to say something of what was made just now
        return self(*arguments, stdin=stdin)

    def _told(self, *arguments: str, stdin: str) -> str:
        path = os.pathsep.join([str(self.folder), str(Path(sys.executable).parent), os.environ["PATH"]])
        answer = subprocess.run(
            ["kubectl", *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=360,  # more than any --timeout given to it
            env={**os.environ, **IN_A_HURRY, "KUBECONFIG": self.kubeconfig, "PATH": path},
        )
        if answer.returncode:
            raise KubectlError(f"kubectl {' '.join(arguments)} exited {answer.returncode}: {answer.stderr.strip()}")
        return answer.stdout

    def json(self, *arguments: str) -> Any:
        """What kubectl prints with -o json, parsed."""
        return json.loads(self(*arguments, "-o", "json"))

    def apply(self, manifest: Mapping[str, Any] | list, *arguments: str) -> str:
        """Apply manifests, server-side unless the arguments say otherwise."""
        return self("apply", "-f", "-", *(arguments or ("--server-side",)), stdin=manifest)

    def using(self, kubeconfig: str | Path) -> Kubectl:
        """The same on another cluster, or as another user."""
        return Kubectl(str(kubeconfig), self.folder)


def as_documents(manifests: Mapping[str, Any] | list) -> str:
    return "\n---\n".join(json.dumps(one) for one in (manifests if isinstance(manifests, list) else [manifests]))


def install_crds(kubectl: Kubectl) -> None:
    """Install our CRDs, and wait until the API server serves them."""
    kubectl("apply", "--server-side", "-f", str(CRDS))
    kubectl("wait", "--for=condition=Established", "--timeout=300s", "-f", str(CRDS))
