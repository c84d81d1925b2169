"""Who may talk to a sandbox's API server: its users, their tokens, and the kubeconfigs that carry them."""

from __future__ import annotations

import base64
import csv
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from kubectl_reconcile.sandbox.components import Component, Layout, request
from kubectl_reconcile.sandbox.record import Record, write_private

ADMIN = "sandbox-admin"
"""User of the kubeconfig, in group system:masters."""


@dataclass(frozen=True, slots=True)
class Accounts:
    """The users of the sandbox *name*."""

    name: str
    layout: Layout

    def create(self, users: Mapping[str, tuple[str, ...]]) -> None:
        """Give the administrator and *users*, each in their groups, a token of their own."""
        everyone = {ADMIN: ("system:masters",), **users}
        rows = (f'{secrets.token_hex(16)},{user},{user},"{",".join(groups)}"\n' for user, groups in everyone.items())
        write_private(self.layout.tokens, "".join(rows))

    def token(self, user: str = ADMIN) -> str:
        """Return the token of *user*."""
        with self.layout.tokens.open(newline="", encoding="utf-8") as file:
            return next(token for token, name, *_ in csv.reader(file) if name == user)

    def write_own_kubeconfig(self, record: Record) -> None:
        """Write the administrator's kubeconfig."""
        self._write_kubeconfig(self.layout.kubeconfig, record, ADMIN, {"token": self.token()}, "")

    def kubeconfig_for(self, record: Record, user: str, groups: Iterable[str], namespace: str) -> Path:
        """Return a new kubeconfig for *user*: with their own token, or as the administrator who impersonates them in *groups*."""
        if user in record.options.users:
            entry: dict[str, Any] = {"token": self.token(user)}
        else:
            entry = {"token": self.token(), "as": user, "as-groups": list(groups)}
        path = self.layout.folder / "users" / f"{secrets.token_hex(8)}.kubeconfig"
        path.parent.mkdir(mode=0o700, exist_ok=True)
        self._write_kubeconfig(path, record, user, entry, namespace)
        return path

    def request(
        self, record: Record, method: str, path: str, body: Mapping[str, object] | None = None
    ) -> tuple[int, bytes]:
        """Ask the API server, as the administrator; return the HTTP status and the body.

        Raises:
            OSError, http.client.HTTPException: it doesn't answer.
        """
        port = record.ports[Component.API_SERVER]
        return request(port, path, authority=self.layout.authority, token=self.token(), method=method, body=body)

    def _write_kubeconfig(
        self, path: Path, record: Record, user: str, entry: Mapping[str, Any], namespace: str
    ) -> None:
        name = f"sandbox-{self.name}"
        authority = base64.b64encode(self.layout.authority.read_bytes()).decode()
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": {"server": url(record), "certificate-authority-data": authority}}],
            "users": [{"name": user, "user": dict(entry)}],
            "contexts": [
                {"name": name, "context": {"cluster": name, "user": user, "namespace": namespace or "default"}}
            ],
            "current-context": name,
        }
        write_private(path, yaml.safe_dump(content, sort_keys=False))


def url(record: Record) -> str:
    """Return the URL of the API server."""
    return f"https://127.0.0.1:{record.ports[Component.API_SERVER]}"
