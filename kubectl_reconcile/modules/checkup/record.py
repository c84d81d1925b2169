"""What the status of a Checkup keeps of results, and how one is compared with the one before.

Of each finding a fingerprint is kept, so that what is new and what is fixed is known even where there are more findings than are listed. Lists are bounded
in bytes: what isn't in them is counted. A status is anybody's to write who has the right, so whatever it has is read.

Pure: findings and a status in, a status out.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import nsmallest
from typing import Any, Final, TypeAlias

from kubectl_reconcile.module_api import ScanFinding, ScanSeverity, maps_in

MOST_LISTED: Final = 48 * 1024
"""How long the list of findings may be, in bytes of JSON."""
_MOST_LINES: Final = MOST_LISTED // 60
"""How many findings may be listed at all: in JSON, the names of a finding's fields alone are longer than that."""
MOST_FIXED: Final = 12 * 1024
"""How long the list of those that are gone may be."""
_PRINT: Final = 5
_MOST_PRINTS: Final = 9_000
"""Of more findings than these no fingerprints are kept: then it isn't said which are new."""
_OF_LINE: Final = ("severity", "object", "check", "path", "message")
_ORDER: Final = {each: number for number, each in enumerate(ScanSeverity)}


@dataclass(frozen=True, slots=True)
class ResultComparison:
    """What a result has that the one before hadn't, by fingerprint, and what is gone; *is_known* is False where there is none before, or it is too large."""

    new: frozenset[bytes] = frozenset()
    fixed: frozenset[bytes] = frozenset()
    is_known: bool = False


Findings: TypeAlias = Mapping[bytes, ScanFinding]
"""What was found, each finding by its fingerprint, which tells it from others."""


def by_fingerprint(findings: Iterable[ScanFinding]) -> Findings:
    """Return *findings* by their fingerprints; those of one object are best asked for in a row."""
    found, ref, told = {}, None, ""
    for each in findings:
        if each.ref is not ref:
            ref, told = each.ref, _object_of(each)
        found[_print(told, each.check, each.path)] = each
    return found


def _object_of(finding: ScanFinding) -> str:
    return f"{finding.ref.group_kind}/{finding.ref.name}"


def _print(*parts: str) -> bytes:
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=_PRINT).digest()


def _line_of(finding: ScanFinding, *, is_new: bool) -> dict[str, Any]:
    line = {
        "severity": finding.severity.value,
        "object": _object_of(finding),
        "check": finding.check,
        "path": finding.path,
        "message": finding.demand,
    }
    return {**line, "new": True} if is_new else line


def _prints_in(status: Mapping[str, Any]) -> frozenset[bytes] | None:
    """Return the fingerprints of the result that a status has, None where it keeps none."""
    text = status.get("fingerprints")
    if not isinstance(text, str):
        return None
    try:
        found = base64.b64decode(text, validate=True)
    except ValueError:
        return None
    return frozenset(found[at : at + _PRINT] for at in range(0, len(found), _PRINT))


def compared(status: Mapping[str, Any], basis: str, prints: Iterable[bytes]) -> ResultComparison:
    """Return how a result compares with the one in *status*, if that is of the same *basis*."""
    now, before = frozenset(prints), _prints_in(status) if status.get("basis") == basis else None
    if before is None or len(now) > _MOST_PRINTS:
        return ResultComparison()
    return ResultComparison(now - before, before - now, is_known=True)


def is_same(status: Mapping[str, Any], basis: str, findings: Findings) -> bool:
    """Tell whether the result in *status* is this very one."""
    return status.get("basis") == basis and status.get("digest") == _digest(findings)


def _digest(findings: Findings) -> str:
    lines = sorted([print_ + f"{each.severity} {each.demand}\n".encode() for print_, each in findings.items()])
    return hashlib.sha256(b"".join(lines)).hexdigest()[:16]


def recorded(status: Mapping[str, Any], basis: str, findings: Findings, *, now: str, keep: int) -> dict[str, Any]:
    """Return a status with the result of *now* in place of the one that *status* has, which it is compared with."""
    comparison = compared(status, basis, findings)
    result = _result(findings.values(), comparison)
    listed = _bounded(_lines(findings, comparison), MOST_LISTED)
    gone = _bounded(_fixed_lines(status, comparison), MOST_FIXED)
    found: dict[str, Any] = {
        "basis": basis,
        "digest": _digest(findings),
        "lastResultTime": now,
        "result": result,
        "findings": listed,
        "notListed": len(findings) - len(listed),
        "fixed": gone,
        "history": _history(status, result, now, keep),
    }
    if len(findings) <= _MOST_PRINTS:
        found["fingerprints"] = base64.b64encode(b"".join(sorted(findings))).decode()
    return found


def _lines(findings: Findings, comparison: ResultComparison) -> Iterator[dict[str, Any]]:
    """Yield as many lines of the list as could have room there, the most severe first."""
    most_severe = nsmallest(_MOST_LINES, findings.items(), key=lambda item: (_ORDER[item[1].severity], item[1].ref))
    for print_, each in most_severe:
        yield _line_of(each, is_new=print_ in comparison.new)


def _result(findings: Collection[ScanFinding], comparison: ResultComparison) -> dict[str, Any]:
    checks = dict(sorted(Counter(each.check for each in findings).items()))
    severities = Counter(each.severity for each in findings)
    return {
        "total": len(findings),
        **{each.value: severities[each] for each in ScanSeverity},
        "new": len(comparison.new),
        "fixed": len(comparison.fixed),
        "unchanged": len(findings) - len(comparison.new) if comparison.is_known else 0,
        "compared": comparison.is_known,
        **({"checks": checks} if checks else {}),  # the server makes null of a map that becomes empty, and refuses that
    }


def _fixed_lines(status: Mapping[str, Any], comparison: ResultComparison) -> list[dict[str, Any]]:
    """Return the findings of the result before that are gone, as far as they were listed."""
    gone = (line for line in maps_in(status.get("findings")) if _print_of_line(line) in comparison.fixed)
    return [{name: line[name] for name in _OF_LINE if name in line} for line in gone]


def _print_of_line(line: Mapping[str, Any]) -> bytes:
    return _print(*(str(line.get(part) or "") for part in ("object", "check", "path")))


def _bounded(lines: Iterable[dict[str, Any]], most: int) -> list[dict[str, Any]]:
    """Return as many lines as fit."""
    found, size = [], 0
    for line in lines:
        size += len(json.dumps(line)) + 2
        if size > most:
            break
        found.append(line)
    return found


_OF_HISTORY: Final = ("total", "high", "medium", "low", "new", "fixed")


def _history(status: Mapping[str, Any], result: Mapping[str, Any], now: str, keep: int) -> list[dict[str, Any]]:
    """Return the results so far, the oldest first."""
    entry = {"time": now, **{name: result[name] for name in _OF_HISTORY}}
    before = [dict(each) for each in maps_in(status.get("history")) if each.get("time") != now]
    return [*before, entry][-keep:]
