"""What one pod has of this machine: a folder with its volumes, logs and own files, and an address."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubectl_reconcile.sandbox.images.catalog import find
from kubectl_reconcile.sandbox.images.image import Image
from kubectl_reconcile.sandbox.pods import volumes
from kubectl_reconcile.sandbox.pods.api import Api
from kubectl_reconcile.sandbox.pods.decisions import resolve
from kubectl_reconcile.sandbox.pods.decisions.reported import Run
from kubectl_reconcile.sandbox.pods.decisions.resolve import Container, Facts, Pod, Sources, container_of
from kubectl_reconcile.sandbox.runtime.client import RuntimeClient, spec
from kubectl_reconcile.sandbox.runtime.network import GATEWAY

_PATHS = {"ConfigMap": "configmaps", "Secret": "secrets"}
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/nix", "/gnu")
_LAST_WORDS, _LAST_LOG = 4096, 2048


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where pods live: the API server that they come from, the runtime that they run in, their folders."""

    api: Api
    runtime: RuntimeClient
    folder: Path
    later: Callable[[Coroutine[Any, Any, None]], None]
    """Does something that nobody waits for."""
    environ: Mapping[str, str]
    """Where this user's caches are."""


class PodFolder:
    """The folder of one pod."""

    def __init__(self, pod: Pod, place: Surroundings) -> None:
        self.pod = pod
        self._place = place
        self.path = place.folder / str(pod["metadata"]["uid"])
        self._volumes = self.path / "volumes"
        self._etc = self.path / "etc"
        self._claims: dict[str, str] = {}
        self._tokens: dict[tuple[str, str], tuple[str, float]] = {}

    @property
    def uid(self) -> str:
        """The pod's uid."""
        return str(self.pod["metadata"]["uid"])

    async def prepare(self) -> str:
        """Make volumes and namespaces, those that aren't there yet; return the pod's address.

        Raises:
            ConfigError: something that the volumes refer to isn't there.
            RefusedError, CallError, OSError: the API server or the runtime doesn't do its part.
        """
        for folder in (self._volumes, self._etc):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for volume in self.pod["spec"].get("volumes", ()):
            if "emptyDir" in volume:
                (self._volumes / volume["name"]).mkdir(exist_ok=True)
                (self._volumes / volume["name"]).chmod(0o777)
        await self._find_claims()
        meta = self.pod["metadata"]
        tmpfs = volumes.in_memory(self.pod, self._volumes)
        answer = await self._place.runtime.call(
            "add",
            uid=meta["uid"],
            namespace=meta["namespace"],
            name=meta["name"],
            hostname=resolve.hostname(self.pod),
            tmpfs=tmpfs,
        )
        ip = str(answer["ip"])
        await self._fill(Facts(ip))
        self._write_etc(ip)
        self._places()
        return ip

    async def refresh(self) -> None:
        """Bring the files that come from the API server up to date.

        Raises:
            ConfigError, RefusedError: they can't be read now.
        """
        await self._fill(Facts(self.pod.get("status", {}).get("podIP", "")))

    async def spec(self, container: Container, ip: str) -> dict[str, Any]:
        """Return what the runtime is to run.

        Raises:
            ImageError: the programs of its image aren't there.
            ConfigError: something that it refers to isn't there.
            RefusedError: the API server doesn't answer.
        """
        image = find(container["image"], self._place.environ)
        command = resolve.command(
            self.pod,
            container,
            await self._sources(resolve.source_names(self.pod)),
            Facts(ip),
            default=image.command,
            environ=image.environ,
            path=[str(folder) for folder in image.programs],
        )
        declared = self.pod["spec"].get("volumes", ())
        words = self._words(container["name"])
        words.touch()
        words_at = container.get("terminationMessagePath") or "/dev/termination-log"
        own = [{"source": str(words), "target": words_at, "readOnly": False}]
        return spec(
            command.argv,
            environ=command.environ,
            folder=command.folder,
            mounts=[*_shown(image), *own, *volumes.mounts(container, declared, self._places(), command.environ)],
            files={path.name: str(path) for path in self._etc.iterdir()},
            empty=image.empty,
            user=command.user,
        )

    def in_memory(self) -> list[str]:
        """Return the volumes that are mounts of their own."""
        return list(volumes.in_memory(self.pod, self._volumes))

    # -- what containers print -----------------------------------------------------------------------------------------

    def log(self, container: str, attempt: int) -> Path:
        """Return the file that one run of *container* prints into."""
        return self.path / "logs" / f"{container}-{attempt}.log"

    def logs(self, container: str) -> list[Path]:
        """Return the files of all runs that are kept, the last one at the end."""
        found = (self.path / "logs").glob(f"{container}-*.log")
        kept = [path for path in found if path.stem.removeprefix(f"{container}-").isdigit()]
        return sorted(kept, key=lambda path: int(path.stem.rpartition("-")[2]))

    def drop_logs(self, container: str, attempt: int) -> None:
        """Delete what was printed before the run that came before *attempt*."""
        for path in self.logs(container)[:-2]:
            if path != self.log(container, attempt):
                path.unlink()
                path.with_suffix(".old").unlink(missing_ok=True)

    def last_words(self, name: str, run: Run | None) -> str:
        """Return the termination message of container *name* after its last *run*; the end of its log, where that is to do for one."""
        left = last_of(self._words(name))
        is_to_do = container_of(self.pod, name).get("terminationMessagePolicy") == "FallbackToLogsOnError"
        if left or not is_to_do or run is None or not run["exitCode"]:
            return left
        return end_of_log(last_of(self.log(name, run["attempt"])))

    def forget_words(self, container: str) -> None:
        """Begin with an empty termination message."""
        with contextlib.suppress(FileNotFoundError):
            self._words(container).write_bytes(b"")

    def _words(self, container: str) -> Path:
        return self.path / f"words-{container}"

    # -- volumes -------------------------------------------------------------------------------------------------------

    def _places(self) -> dict[str, Path]:
        return {
            volume["name"]: volumes.place_of(volume, self._volumes, self._claims)
            for volume in self.pod["spec"].get("volumes", ())
        }

    async def _fill(self, facts: Facts) -> None:
        made = [volume for volume in self.pod["spec"].get("volumes", ()) if volumes.is_made(volume)]
        if not made:
            return
        sources = await self._sources(volumes.source_names(self.pod))
        tokens = await self._current_tokens()
        for volume in made:
            content = volumes.files(self.pod, volume, sources, tokens, facts)
            volumes.write(self._volumes / volume["name"], content)

    async def _sources(self, names: set[tuple[str, str]]) -> Sources:
        namespace = self.pod["metadata"]["namespace"]
        return {
            (kind, name): await self._place.api.get(f"/api/v1/namespaces/{namespace}/{_PATHS[kind]}/{name}")
            for kind, name in names
        }

    async def _current_tokens(self) -> dict[tuple[str, str], str]:
        namespace = self.pod["metadata"]["namespace"]
        account = self.pod["spec"].get("serviceAccountName") or "default"
        for key, request in volumes.token_requests(self.pod).items():
            if self._tokens.get(key, ("", 0.0))[1] <= time.time():
                path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
                answer = await self._place.api.request("POST", path, {"spec": request})
                self._tokens[key] = answer["status"]["token"], time.time() + request["expirationSeconds"] / 2
        return {key: token for key, (token, _) in self._tokens.items()}

    async def _find_claims(self) -> None:
        namespace = self.pod["metadata"]["namespace"]
        for volume, name in volumes.claim_names(self.pod).items():
            claim = await self._place.api.get(f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}")
            bound = (claim or {}).get("spec", {}).get("volumeName")
            found = await self._place.api.get(f"/api/v1/persistentvolumes/{bound}") if bound else None
            path = (found or {}).get("spec", {}).get("hostPath", {}).get("path")
            if path and (claim or {}).get("status", {}).get("phase") == "Bound":
                self._claims[volume] = path

    def _write_etc(self, ip: str) -> None:
        uids = {
            int(settings.get("runAsUser") or 0)
            for settings in [
                self.pod["spec"].get("securityContext", {}),
                *(one.get("securityContext", {}) for one in resolve.containers(self.pod)),
            ]
        }
        (self._etc / "hosts").write_text(resolve.hosts(self.pod, ip))
        (self._etc / "resolv.conf").write_text(resolve.resolv_conf(self.pod, GATEWAY))
        (self._etc / "hostname").write_text(f"{resolve.hostname(self.pod)}\n")
        (self._etc / "passwd").write_text(_with_users(Path("/etc/passwd").read_text(errors="replace"), uids))


def last_of(words: Path) -> str:
    """Return the end of a termination message, however long that is; nothing where there is none."""
    try:
        with words.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _LAST_WORDS))
            return file.read(_LAST_WORDS).decode(errors="replace")
    except FileNotFoundError:
        return ""


def end_of_log(text: str) -> str:
    """Return what a container printed last, given the end of its log."""
    lines = (line.split(" ", 3) for line in text.splitlines())
    said = "\n".join(parts[3] for parts in lines if len(parts) > 3)
    return said.encode()[-_LAST_LOG:].decode(errors="ignore")


def _with_users(passwd: str, uids: set[int]) -> str:
    """Return *passwd* with a line for each of *uids*: some programs won't run as somebody without a name."""
    known = {line.split(":")[2] for line in passwd.splitlines() if line.count(":") == 6}
    lines = [f"user{uid}:x:{uid}:{uid}::/tmp:/bin/sh" for uid in sorted(uids) if str(uid) not in known]
    return "\n".join([passwd.rstrip("\n"), *lines]) + "\n"


def _shown(image: Image) -> list[dict[str, Any]]:
    """Return the mounts that show the programs of *image*, so far as they aren't among the machine's own."""
    folders = {str(folder) for folder in (*image.programs, *image.folders)}
    places = [(folder, folder) for folder in sorted(folders) if not folder.startswith(_SYSTEM)]
    places += [(str(folder), image.at) for folder in image.programs[:1] if image.at and Path(image.at).is_dir()]
    return [{"source": source, "target": target, "readOnly": True} for source, target in places]
