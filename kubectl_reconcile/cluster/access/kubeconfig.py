"""Kubeconfig files: read, merged, and overridden by flags, as kubectl does.

``--kubeconfig`` names one file that must exist; ``$KUBECONFIG`` may name several, the first that sets a value wins;
paths are relative to the file that holds them. Entries (``cluster``, ``user``, ``context``) stay the mappings that they are in the files.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from kubectl_reconcile.cluster.access.flags import Access, ImpersonationFlags, TlsFlags
from kubectl_reconcile.cluster.errors import KubeconfigError


def read(access: Access) -> dict[str, Any] | None:
    """Return the kubeconfig files that *access* means as one; None where there is none.

    Raises:
        KubeconfigError: one can't be read, or isn't a kubeconfig.
    """
    if access.kubeconfig:
        return _read_file(Path(access.kubeconfig).expanduser())
    named = [Path(part).expanduser() for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    paths = [path for path in named or [Path("~/.kube/config").expanduser()] if path.exists()]
    if not paths:
        return None
    merged: dict[str, Any] = {}
    for config in map(_read_file, paths):
        for key, value in config.items():
            if isinstance(value, dict):
                merged[key] = {**value, **merged.get(key, {})}
            else:
                merged[key] = merged.get(key) or value
    return merged


def _read_file(path: Path) -> dict[str, Any]:
    """Read one kubeconfig file: its lists as mappings by name, its relative paths made absolute."""
    try:
        loaded = yaml.load(path.read_bytes(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)) or {}  # noqa: S506 - both are safe loaders
    except OSError as error:
        raise KubeconfigError(
            f"kubeconfig {path} can't be read: {error.strerror}", "check --kubeconfig and KUBECONFIG"
        ) from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}:{mark.line + 1}" if mark else str(path)
        raise KubeconfigError(
            f"kubeconfig {where} is not YAML: {getattr(error, 'problem', None) or 'unreadable'}"
        ) from error
    if not isinstance(loaded, dict):
        raise KubeconfigError(f"kubeconfig {path} is not a mapping", "it should begin with: apiVersion: v1")
    found: dict[str, Any] = {"current-context": loaded.get("current-context") or ""}
    for plural, singular in (("clusters", "cluster"), ("users", "user"), ("contexts", "context")):
        found[singular] = dict(reversed([_entry(path, plural, singular, entry) for entry in loaded.get(plural) or ()]))
    return found


def _entry(path: Path, plural: str, singular: str, entry: Any) -> tuple[str, dict[str, Any]]:
    if not isinstance(entry, dict) or not entry.get("name") or not isinstance(entry.get(singular) or {}, dict):
        raise KubeconfigError(f"kubeconfig {path}: an entry of {plural} needs a name and a {singular}")
    body = dict(entry.get(singular) or {})
    for key in ("certificate-authority", "client-certificate", "client-key", "tokenFile"):
        if body.get(key):
            body[key] = str(path.parent / Path(str(body[key])).expanduser())
    plugin = body.get("exec")
    if isinstance(plugin, dict) and os.sep in str(plugin.get("command") or ""):
        body["exec"] = {**plugin, "command": str(path.parent / str(plugin["command"]))}
    return str(entry["name"]), body


def context_of(config: Mapping[str, Any], access: Access) -> dict[str, Any]:
    """Return the context that *access* means, empty where there is none.

    Raises:
        KubeconfigError: the kubeconfig has no such context.
    """
    name = access.context or config.get("current-context")
    return _named(config, "context", name) if name else {}


def _named(config: Mapping[str, Any], singular: str, name: str | None) -> dict[str, Any]:
    if not name:
        return {}
    entries = config.get(singular) or {}
    if name not in entries:
        known = ", ".join(sorted(entries)) or "none"
        raise KubeconfigError(f"the kubeconfig has no {singular} {name!r}", f"it has: {known}")
    found: dict[str, Any] = dict(entries[name])
    return found


def cluster_of(config: Mapping[str, Any], access: Access, context: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cluster that *access* means, the flags put over what the kubeconfig says.

    Raises:
        KubeconfigError: the kubeconfig has no such cluster, or flags contradict each other.
    """
    cluster = _named(config, "cluster", access.cluster or context.get("cluster"))
    if access.server:
        cluster["server"] = access.server
    return _with_tls_flags(cluster, access.tls)


def _with_tls_flags(cluster: dict[str, Any], tls: TlsFlags) -> dict[str, Any]:
    if tls.tls_server_name:
        cluster["tls-server-name"] = tls.tls_server_name
    if tls.insecure_skip_tls_verify and tls.certificate_authority:
        raise KubeconfigError("--insecure-skip-tls-verify and --certificate-authority contradict each other")
    if tls.insecure_skip_tls_verify:
        cluster = {key: value for key, value in cluster.items() if not key.startswith("certificate-authority")}
        cluster["insecure-skip-tls-verify"] = True
    if tls.certificate_authority:
        cluster.pop("certificate-authority-data", None)
        cluster.update({"certificate-authority": tls.certificate_authority, "insecure-skip-tls-verify": False})
    return cluster


def user_of(config: Mapping[str, Any], access: Access, context: Mapping[str, Any]) -> dict[str, Any]:
    """Return the user that *access* means, the flags put over what the kubeconfig says.

    Raises:
        KubeconfigError: the kubeconfig has no such user, or flags lack one to impersonate.
    """
    return with_user_flags(_named(config, "user", access.user or context.get("user")), access)


def with_user_flags(user: dict[str, Any], access: Access) -> dict[str, Any]:
    """Return *user* with what the flags say of credentials and impersonation put over it.

    Raises:
        KubeconfigError: groups or a uid to impersonate lack their user.
    """
    if access.token:
        kept = (
            "as",
            "as-uid",
            "as-groups",
            "as-user-extra",
            "client-certificate",
            "client-certificate-data",
            "client-key",
            "client-key-data",
        )
        user = {key: user[key] for key in kept if key in user} | {"token": access.token}
    for key, value in (("client-certificate", access.tls.client_certificate), ("client-key", access.tls.client_key)):
        if value:
            user.pop(f"{key}-data", None)
            user[key] = value
    return user | _impersonated(access.impersonation)


def _impersonated(flags: ImpersonationFlags) -> dict[str, Any]:
    if flags.as_user is not None:
        return {"as": flags.as_user, "as-groups": list(flags.as_groups), "as-uid": flags.as_uid or ""}
    if flags.as_groups or flags.as_uid:
        raise KubeconfigError("--as-group and --as-uid need --as", "name the user to impersonate")
    return {}
