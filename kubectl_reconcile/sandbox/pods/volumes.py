"""The volumes of a pod: which files are in them (pure), and how they come to lie in its folder.

Files of ConfigMaps, Secrets, tokens and the downward API change as a whole: each name is a link through ``..data``, which is replaced
at once, as a kubelet does it.
"""

from __future__ import annotations

import contextlib
import posixpath
import secrets
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kubectl_reconcile.sandbox.pods.decisions.resolve import (
    ConfigError,
    Container,
    Facts,
    Pod,
    Sources,
    data_of,
    expanded,
    field,
    quantity,
    resource,
)

Volume = Mapping[str, Any]
Files = dict[str, tuple[bytes, int]]
"""Path in a volume -> what is in the file, and its mode."""
Tokens = Mapping[tuple[str, str], str]
"""Volume and path -> service account token."""

_DATA = "..data"
_MADE = ("configMap", "secret", "downwardAPI", "projected")


def is_made(volume: Volume) -> bool:
    """Tell whether the files of *volume* come from the API server."""
    return any(kind in volume for kind in _MADE)


def source_names(pod: Pod) -> set[tuple[str, str]]:
    """Return kind and name of each ConfigMap and Secret that volumes of *pod* come from."""
    found = set()
    for volume in pod["spec"].get("volumes", ()):
        for part in volume.get("projected", {}).get("sources", [volume]):
            if "configMap" in part:
                found.add(("ConfigMap", part["configMap"].get("name", "")))
            if "secret" in part:
                found.add(("Secret", part["secret"].get("secretName") or part["secret"].get("name", "")))
    return found


def token_requests(pod: Pod) -> dict[tuple[str, str], dict[str, Any]]:
    """Return what to ask for each service account token of *pod*'s volumes."""
    found = {}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
    for volume in pod["spec"].get("volumes", ()):
        for part in volume.get("projected", {}).get("sources", ()):
            if token := part.get("serviceAccountToken"):
                spec = {"expirationSeconds": token.get("expirationSeconds", 3600), "boundObjectRef": owner}
                audience = token.get("audience")
                found[volume["name"], token["path"]] = {**spec, **({"audiences": [audience]} if audience else {})}
    return found


def files(pod: Pod, volume: Volume, sources: Sources, tokens: Tokens, facts: Facts) -> Files:
    """Return what is in *volume*, one whose files come from the API server.

    Raises:
        ConfigError: something that it refers to isn't there.
    """
    kind = next(one for one in _MADE if one in volume)
    mode = volume[kind].get("defaultMode", 0o644)
    found: Files = {}
    for part in volume["projected"].get("sources", ()) if kind == "projected" else [volume]:
        found |= _part(pod, volume["name"], part, sources, tokens, facts, mode)
    return found


def _part(
    pod: Pod, name: str, part: Mapping[str, Any], sources: Sources, tokens: Tokens, facts: Facts, mode: int
) -> Files:
    if "serviceAccountToken" in part:
        path = part["serviceAccountToken"]["path"]
        return {path: (tokens[name, path].encode(), mode)}
    if "downwardAPI" in part:
        return {
            item["path"]: (_downward(pod, item, facts).encode(), item.get("mode", mode))
            for item in part["downwardAPI"].get("items", ())
        }
    if "configMap" in part:
        place, kind = part["configMap"], "ConfigMap"
    elif "secret" in part:
        place, kind = part["secret"], "Secret"
    else:
        raise ConfigError(f"volume {name}: process pods don't have {', '.join(part)}")
    source = place.get("secretName") or place.get("name", "")
    optional = place.get("optional", False)
    content = data_of(sources, kind, source, optional=optional)
    if "items" not in place:
        return {key: (value, mode) for key, value in content.items()}
    missing = [item["key"] for item in place["items"] if item["key"] not in content]
    if missing and not optional:
        raise ConfigError(f"volume {name}: {kind} {source} has no key {missing[0]}")
    return {
        item["path"]: (content[item["key"]], item.get("mode", mode))
        for item in place["items"]
        if item["key"] in content
    }


def _downward(pod: Pod, item: Mapping[str, Any], facts: Facts) -> str:
    if "fieldRef" in item:
        return field(pod, item["fieldRef"]["fieldPath"], facts)
    return resource(pod, item["resourceFieldRef"], None)


def in_memory(pod: Pod, folder: Path) -> dict[str, str]:
    """Return the folders of volumes that are to be in memory, with the option of tmpfs that limits their size."""
    found = {}
    for volume in pod["spec"].get("volumes", ()):
        if volume.get("emptyDir", {}).get("medium") == "Memory":
            limit = volume["emptyDir"].get("sizeLimit")
            found[str(folder / volume["name"])] = f",size={int(quantity(str(limit)))}" if limit else ""
    return found


def place_of(volume: Volume, folder: Path, claims: Mapping[str, str]) -> Path:
    """Return where *volume* lies on this machine; *folder* holds those that are the pod's own, *claims* the paths of claims.

    Raises:
        ConfigError: it isn't there, or is of a kind that process pods don't have.
    """
    if "hostPath" in volume:
        return Path(volume["hostPath"]["path"])
    claim = _claim(volume)
    if claim:
        if claim not in claims:
            raise ConfigError(
                f"volume {volume['name']}: PersistentVolumeClaim {claim} isn't bound to a folder of this machine"
            )
        return Path(claims[claim])
    if "emptyDir" in volume or is_made(volume):
        return folder / str(volume["name"])
    raise ConfigError(f"volume {volume['name']}: process pods don't have {', '.join(set(volume) - {'name'})}")


def claim_names(pod: Pod) -> dict[str, str]:
    """Return the claims of *pod* by the name in its volumes."""
    names = {}
    for volume in pod["spec"].get("volumes", ()):
        if claim := _claim(volume):
            names[claim] = claim
        if "ephemeral" in volume:
            names[volume["name"]] = f"{pod['metadata']['name']}-{volume['name']}"
    return names


def _claim(volume: Volume) -> str:
    return str(
        volume.get("persistentVolumeClaim", {}).get("claimName") or (volume["name"] if "ephemeral" in volume else "")
    )


def mounts(
    container: Container, declared: Iterable[Volume], places: Mapping[str, Path], variables: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return what is mounted in *container* of the *declared* volumes, from where they lie.

    What the API server holds can't be written to, whatever the mount says.

    Raises:
        ConfigError: a subPath is outside its volume.
    """
    made = {volume["name"] for volume in declared if is_made(volume)}
    found = []
    for each in container.get("volumeMounts", ()):
        name = each["name"]
        mount = {
            "source": str(places[name]),
            "target": each["mountPath"],
            "readOnly": name in made or each.get("readOnly", False),
        }
        sub_path = each.get("subPath") or expanded(each.get("subPathExpr", ""), variables, "subPathExpr")
        if sub_path:
            if sub_path.startswith("/") or ".." in sub_path.split("/"):
                raise ConfigError(f"subPath {sub_path} is outside volume {name}")
            mount["part"] = sub_path  # links in there are followed by who mounts it
        found.append(mount)
    return found


def write(folder: Path, content: Files) -> bool:
    """Make *content* what is in *folder*, all of it at once; return whether that changed anything.

    Nothing that is found in there is followed out of it.

    Raises:
        ConfigError: two files can't be there together.
    """
    folder.mkdir(parents=True, exist_ok=True)
    content = {posixpath.normpath(name): file for name, file in content.items()}
    _check_paths(folder.name, content)
    if _read(folder) == content:
        return False
    fresh = folder / f"..{secrets.token_hex(8)}"
    for name, (data, mode) in content.items():
        path = fresh / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        path.write_bytes(data)
        path.chmod(mode)
    fresh.mkdir(exist_ok=True)
    old = folder / _DATA
    before = _current(folder)
    link = folder / f"{_DATA}_new"
    link.symlink_to(fresh.name)
    link.replace(old)
    wanted = {name.partition("/")[0] for name in content}
    for name in wanted:
        with contextlib.suppress(FileExistsError):
            (folder / name).symlink_to(f"{_DATA}/{name}")
    for path in list(folder.iterdir()):
        if not path.name.startswith("..") and path.name not in wanted:
            if path.is_symlink() or not path.is_dir():
                path.unlink()
            else:
                shutil.rmtree(path, ignore_errors=True)
    if before is not None:
        shutil.rmtree(before, ignore_errors=True)
    return True


def _check_paths(volume: str, content: Files) -> None:
    for name in content:
        for above in map(str, Path(name).parents):
            if above in content:
                raise ConfigError(f"volume {volume}: {name} can't be where {above} is, which is a file")


def _current(folder: Path) -> Path | None:
    """Return the folder that holds what was written last, None if nothing was, or if the link to it leads elsewhere."""
    link = folder / _DATA
    name = str(link.readlink()) if link.is_symlink() else ""
    is_ours = name.strip(".") and "/" not in name and not (folder / name).is_symlink()
    return folder / name if is_ours else None


def _read(folder: Path) -> Files | None:
    data = _current(folder)
    if data is None or not data.is_dir():
        return None
    return {
        str(path.relative_to(data)): (path.read_bytes(), path.stat().st_mode & 0o7777)
        for path in data.rglob("*")
        if path.is_file()
    }
