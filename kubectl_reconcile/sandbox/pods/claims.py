"""Gives each PersistentVolumeClaim of our class a folder, says that it has grown when more is asked for, and deletes the folder when the claim has gone."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import shutil
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from kubectl_reconcile.sandbox.pods.api import Api, Object, RefusedError
from kubectl_reconcile.sandbox.pods.node import PROVISIONER

_LOG = logging.getLogger(__name__)
_VOLUMES = "/api/v1/persistentvolumes"
_RETRY_S = 1.0


def volume_for(claim: Object, folder: Path, reclaim: str) -> dict[str, Any]:
    """Return the PersistentVolume that *folder* is for *claim*."""
    meta = claim["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"pvc-{meta['uid']}", "annotations": {"pv.kubernetes.io/provisioned-by": PROVISIONER}},
        "spec": {
            "accessModes": claim["spec"].get("accessModes", ["ReadWriteOnce"]),
            "capacity": {"storage": claim["spec"]["resources"]["requests"]["storage"]},
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": meta["namespace"],
                "name": meta["name"],
                "uid": meta["uid"],
            },
            "hostPath": {"path": str(folder), "type": "Directory"},
            "persistentVolumeReclaimPolicy": reclaim,
            "storageClassName": claim["spec"]["storageClassName"],
            "volumeMode": claim["spec"].get("volumeMode", "Filesystem"),
        },
    }


def folder_of(volume: Object, folder: Path) -> Path | None:
    """Return what a PersistentVolume has below *folder*, None for one that isn't ours.

    Told by its name alone, which no other volume can have: its path may be anybody's word.
    """
    kind, _, uid = volume["metadata"]["name"].partition("-")
    return folder / uid if kind == "pvc" and uid else None


async def _done(work: Coroutine[Any, Any, None]) -> bool:
    """Do *work*; tell whether that was possible. One claim that can't be provided for mustn't hold up others."""
    try:
        await work
    except (RefusedError, OSError) as error:
        _LOG.warning("claims: %s", error)
        return False
    return True


class Claims:
    """Follows claims, and keeps their folders in *folder*."""

    def __init__(self, api: Api, folder: Path) -> None:
        self._api = api
        self._folder = folder
        self._classes: dict[str, Object] = {}
        self._claims: dict[str, Object] = {}
        self._volumes: dict[str, Object] = {}
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Provide forever."""
        async with asyncio.TaskGroup() as group:
            for path, name in (
                ("/apis/storage.k8s.io/v1/storageclasses", "_classes"),
                ("/api/v1/persistentvolumeclaims", "_claims"),
                (_VOLUMES, "_volumes"),
            ):
                group.create_task(self._api.follow(path, "limit=0", functools.partial(self._see, name)))
            group.create_task(self._provide())

    def _see(self, name: str, found: dict[str, Object]) -> None:
        setattr(self, name, found)
        self._changed.set()

    async def _provide(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            ours = {
                one["metadata"]["name"]: one.get("reclaimPolicy", "Delete")
                for one in self._classes.values()
                if one["provisioner"] == PROVISIONER
            }
            wanting = [
                self._create(claim, ours[claim["spec"]["storageClassName"]])
                for claim in self._claims.values()
                if claim["spec"].get("storageClassName") in ours and not claim["spec"].get("volumeName")
            ]
            grown = [work for claim in self._claims.values() if (work := self._growing(claim))]
            done = [await _done(one) for one in [*wanting, *grown, *map(self._reclaim, list(self._volumes.values()))]]
            if not all(done):
                await asyncio.sleep(_RETRY_S)
                self._changed.set()

    async def _create(self, claim: Object, reclaim: str) -> None:
        if "deletionTimestamp" in claim["metadata"]:
            return
        folder = self._folder / str(claim["metadata"]["uid"])
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o777)
        try:
            await self._api.request("POST", _VOLUMES, volume_for(claim, folder, reclaim))
        except RefusedError as error:
            if error.status != 409:  # seen twice before it was bound
                raise

    def _growing(self, claim: Object) -> Coroutine[Any, Any, None] | None:
        """Return what gives a claim the room that it asks for by now, None where it has that. A folder has no size: it is told alone."""
        name, wanted = claim["spec"].get("volumeName"), claim["spec"]["resources"]["requests"]["storage"]
        volume = next((one for one in self._volumes.values() if one["metadata"]["name"] == name), None)
        has = claim.get("status", {}).get("capacity", {}).get("storage")
        is_ours = volume is not None and folder_of(volume, self._folder) is not None
        return self._grow(claim, wanted) if is_ours and has not in {None, wanted} else None

    async def _grow(self, claim: Object, wanted: str) -> None:
        meta = claim["metadata"]
        room = {"capacity": {"storage": wanted}}
        await self._api.patch(f"{_VOLUMES}/{claim['spec']['volumeName']}", {"spec": room})
        path = f"/api/v1/namespaces/{meta['namespace']}/persistentvolumeclaims/{meta['name']}/status"
        await self._api.patch(path, {"status": room})

    async def _reclaim(self, volume: Object) -> None:
        annotations, spec = volume["metadata"].get("annotations", {}), volume["spec"]
        if (
            annotations.get("pv.kubernetes.io/provisioned-by") != PROVISIONER
            or volume.get("status", {}).get("phase") != "Released"
            or spec["persistentVolumeReclaimPolicy"] != "Delete"
        ):
            return
        if folder := folder_of(volume, self._folder):
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        with contextlib.suppress(RefusedError):
            await self._api.request("DELETE", f"{_VOLUMES}/{volume['metadata']['name']}")
