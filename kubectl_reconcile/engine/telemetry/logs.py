"""Log lines: a constant message, then ``key=value``, the same keys everywhere; or the same as JSON.

``2026-11-20T23:43:10Z INFO applied object="Deployment.apps shop/web" op=update fields=2 duration_ms=41``

Log where something happened with :func:`event`, so that both forms come from the same values. What is
found again at each retry is logged once: :class:`News` remembers what was said last of what.
"""

from __future__ import annotations

import datetime as dt
import json
import logging
import sys
from collections.abc import Hashable, Iterable
from typing import Any

from msgspec import Struct, field

_FIELDS = "reconcile_fields"


def event(log: logging.Logger, level: int, message: str, /, *, exc_info: bool = False, **fields: Any) -> None:
    """Log *message* with *fields*; both must be free of secrets."""
    log.log(level, message, extra={_FIELDS: fields}, exc_info=exc_info)


class News(Struct):
    """What was said last of each subject, so that only news is said."""

    _said: dict[Hashable, frozenset[str]] = field(default_factory=dict)

    def of(self, subject: Hashable, sentences: Iterable[str]) -> list[str]:
        """Return those of *sentences* that weren't said of *subject* the last time; none clears it."""
        said = list(dict.fromkeys(sentences))
        known = self._said.pop(subject, frozenset())
        if said:
            self._said[subject] = frozenset(said)
        return [sentence for sentence in said if sentence not in known]

    def level(self, subject: Hashable, sentence: str, level: int = logging.WARNING) -> int:
        """Return *level* if *sentence* is news about *subject*, else that of what nobody reads."""
        return level if self.of(subject, (sentence,)) else logging.DEBUG


def set_up(level: str, form: str) -> None:
    """Send log lines of *level* and above to standard error, as ``text`` or ``json``."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonFormatter() if form == "json" else _TextFormatter())
    root = logging.getLogger("kubectl_reconcile")
    root.handlers, root.propagate = [handler], False
    root.setLevel(level.upper())


def keep_quiet() -> None:
    """Write no log lines unless somebody has set that up: who uses a command is told by its own words."""
    logging.getLogger("kubectl_reconcile").addHandler(logging.NullHandler())


def _time(record: logging.LogRecord) -> str:
    return dt.datetime.fromtimestamp(record.created, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class _TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields = getattr(record, _FIELDS, {})
        parts = [_time(record), record.levelname, record.getMessage()]
        parts += [f"{key}={_shown(value)}" for key, value in fields.items()]
        line = " ".join(parts)
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry = {"time": _time(record), "level": record.levelname, "message": record.getMessage()}
        entry |= getattr(record, _FIELDS, {})
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str)


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    text = str(value)
    plain = text and all(letter.isalnum() or letter in "._-/:+@%," for letter in text)
    return text if plain else json.dumps(text)
