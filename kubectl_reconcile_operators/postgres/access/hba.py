"""Rules of ``pg_hba.conf``: who may come in from where, and how.

A server goes by the first line that fits. Ours come first, so that no rule can shut out whom we log in as, nor let anybody in as them; then those of the spec; last one that lets
everybody in with a password. A rule is rendered from parts that were checked, never taken as a line: names are quoted, so that none is a keyword, a group, a pattern or a file.

Pure.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from kubectl_reconcile.module_api import SpecError

ALL = "all"
_RULES_MAX, _NAMES_MAX = 50, 20
_FILE_MAX_BYTES = 32 * 1024
"""A server is asked for the digest of its file's first 64 KiB, and a pod's variables hold no more than 128 KiB."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,62}")
_METHODS = ("scram-sha-256", "reject")
_HINTS: Mapping[str, str] = {
    "trust": "lets anybody in without a password",
    "password": "sends passwords in clear text",
    "md5": "is weaker than what passwords are stored as",
}


@dataclass(frozen=True, slots=True)
class HbaRule:
    """Whom from where a server lets in with a password, or turns away."""

    method: str
    databases: tuple[str, ...] = (ALL,)
    users: tuple[str, ...] = (ALL,)
    address: str = ALL

    def line(self, *, is_tls_required: bool = False) -> str:
        """Return the rule as a server reads it."""
        way = "hostssl" if is_tls_required and self.method != "reject" else "host"
        return f"{way} {_listed(self.databases)} {_listed(self.users)} {self.address} {self.method}"


def check_rules(rules: Collection[HbaRule], ours: Collection[str], where: str = ".spec.hba") -> None:
    """Make sure that rules make sense; *ours* are the users that rules aren't about.

    Raises:
        SpecError: one doesn't; its field is named.
    """
    if len(rules) > _RULES_MAX:
        raise SpecError(where, f"has {len(rules)} rules, more than {_RULES_MAX}")
    for at, each in enumerate(rules):
        _check(each, ours, f"{where}[{at}]")
    size = len(hba_text(rules, is_tls_required=True))
    if size > _FILE_MAX_BYTES:
        raise SpecError(
            where,
            f"would be a file of {size} bytes, more than {_FILE_MAX_BYTES} (hint: fewer rules, or all instead of many names)",
        )


def _check(rule: HbaRule, ours: Collection[str], where: str) -> None:
    if rule.method not in _METHODS:
        why = _HINTS.get(rule.method, "is unknown")
        raise SpecError(
            f"{where}.method", f"must be one of {', '.join(_METHODS)}: {rule.method[:40]!r} {why} (hint: scram-sha-256)"
        )
    _check_names(rule.databases, f"{where}.databases")
    _check_names(rule.users, f"{where}.users")
    for name in rule.users:
        if name in ours:
            raise SpecError(
                f"{where}.users", f"{name} is who kubectl-reconcile logs in as, and may so from anywhere (hint: leave it out; no rule holds for it)"
            )  # fmt: skip
    if "replication" in rule.databases:
        raise SpecError(f"{where}.databases", "kubectl-reconcile manages replication (hint: leave it out)")
    _check_address(rule.address, f"{where}.address")


def _check_names(names: Collection[str], where: str) -> None:
    if not 1 <= len(names) <= _NAMES_MAX:
        raise SpecError(where, f"must be 1 to {_NAMES_MAX} names (hint: leave it out for all)")
    for name in names:
        if not _NAME.fullmatch(name):
            raise SpecError(
                where, f"must be names or {ALL}: letters, digits, underscores, dots and dashes, not {name[:40]!r}"
            )
    if ALL in names and len(names) > 1:
        raise SpecError(where, f"has {ALL} beside others (hint: leave the others out)")


def _check_address(address: str, where: str) -> None:
    if address == ALL:
        return
    try:
        is_network = "%" not in address and str(ipaddress.ip_network(address)) == address
    except ValueError:
        is_network = False
    if not is_network:
        raise SpecError(where, f"must be {ALL} or a network such as 10.1.0.0/16 or fd00::/8, not {address[:60]!r}")


def _listed(names: Collection[str]) -> str:
    return ",".join(name if name == ALL else f'"{name}"' for name in names)


# --- the file -------------------------------------------------------------------------------------


def hba_text(rules: Collection[HbaRule], *, is_tls_required: bool) -> str:
    """Return what a server reads, without the end of its last line. The superuser gets in without TLS too: it is us, who prove that we know a password without telling it."""
    way = "hostssl" if is_tls_required else "host"
    lines = (
        "local all postgres trust",
        "local all all scram-sha-256",
        "host all postgres all scram-sha-256",
        f"{way} replication replicator all scram-sha-256",
        f"{way} all replicator all scram-sha-256",
        *(each.line(is_tls_required=is_tls_required) for each in rules),
        f"{way} all all all scram-sha-256",
    )
    return "\n".join(lines)


def hba_digest(text: str) -> str:
    """Return what a file with this text is known by."""
    return hashlib.sha256(f"{text}\n".encode()).hexdigest()
