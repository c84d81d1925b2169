"""Subjects of bindings: what the API server calls whom they name, and in which groups it counts whom it knows.

Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubectl_reconcile.core.objects import ACCOUNT_USERS, account_user


def user_of(subject: Mapping[str, Any], namespace: str) -> str:
    """Return the user that a subject of a binding in *namespace* names; a group is none, and has its own name."""
    name = str(subject.get("name") or "")
    is_account = subject.get("kind") == "ServiceAccount"
    return account_user(str(subject.get("namespace") or namespace), name) if is_account else name


def groups_of(user: str) -> tuple[str, ...]:
    """Return the groups that the API server counts a user in by itself."""
    place = user.removeprefix(ACCOUNT_USERS).partition(":")[0] if user.startswith(ACCOUNT_USERS) else ""
    accounts = ("system:serviceaccounts", f"system:serviceaccounts:{place}") if place else ()
    return (*accounts, "system:authenticated")
