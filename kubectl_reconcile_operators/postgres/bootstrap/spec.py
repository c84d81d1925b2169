"""The part of a MyDatabase's spec that says how it begins.

Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from kubectl_reconcile.module_api import Between, SpecError
from kubectl_reconcile_operators.postgres.backup.spec import DAY_S, FromBackup

FIELD = ".spec.bootstrap"
CLUSTER_FIELD, INITDB_FIELD = f"{FIELD}.fromCluster", f"{FIELD}.initdb"
_DATABASE = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_HOST = re.compile(r"[A-Za-z0-9:]([-A-Za-z0-9.:]{0,251}[A-Za-z0-9:])?")
_SECRET = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_ENCODING = re.compile(r"[A-Za-z0-9_-]{1,20}")
_LOCALE = re.compile(r"[A-Za-z0-9_.@-]{1,60}")
_ICU_LOCALE = re.compile(r"[A-Za-z0-9-]{1,60}")
_ICU_SINCE, _CHECKSUMS_BY_DEFAULT_SINCE = 15, 18


@dataclass(frozen=True, slots=True)
class InitdbWish:
    """What an empty database is made with, and keeps: nothing of this can be changed afterwards."""

    encoding: str = "UTF8"
    locale: str = "C.UTF-8"
    icu_locale: str = ""
    wal_segment_size: Literal["16MB", "32MB", "64MB"] = "16MB"
    data_checksums: bool = True

    def check(self, major: int) -> None:
        """Refuse what makes no sense for this major version.

        Raises:
            SpecError: a field is named.
        """
        for name, pattern, value, example in (
            ("encoding", _ENCODING, self.encoding, "UTF8"),
            ("locale", _LOCALE, self.locale, "de_DE.utf8"),
            ("icuLocale", _ICU_LOCALE, self.icu_locale or "und", "de-AT"),
        ):
            if not pattern.fullmatch(value):
                raise SpecError(f"{INITDB_FIELD}.{name}", f"must be a name as in {example}, not {value[:60]!r}")
        if self.icu_locale and major < _ICU_SINCE:
            text = (
                f"is known to PostgreSQL {_ICU_SINCE} and later, not to {major} (hint: remove it, or set .spec.version)"
            )
            raise SpecError(f"{INITDB_FIELD}.icuLocale", text)

    def words(self, major: int) -> str:
        """Return what ``initdb`` is told; no word has a space in it, nor anything that a shell knows."""
        checksums = ["--data-checksums"] if self.data_checksums else []
        if not self.data_checksums and major >= _CHECKSUMS_BY_DEFAULT_SINCE:
            checksums = ["--no-data-checksums"]
        icu = ["--locale-provider=icu", f"--icu-locale={self.icu_locale}"] if self.icu_locale else []
        size = self.wal_segment_size.removesuffix("MB")
        return " ".join(
            (f"--encoding={self.encoding}", f"--locale={self.locale}", *icu, f"--wal-segsize={size}", *checksums)
        )


@dataclass(frozen=True, slots=True)
class FromCluster:
    """The server that a MyDatabase begins with a copy of: that of MyDatabase *database* of the same namespace, or the one at *host*.

    *secret_name* is the Secret with the username and the password of somebody who may copy that one.
    """

    database: str = ""
    host: str = ""
    port: Annotated[int, Between(1, 65_535)] = 5432
    secret_name: str = ""
    deadline_seconds: Annotated[int, Between(10, 7 * DAY_S)] = 3600
    retries: Annotated[int, Between(0, 10)] = 1
    resources: Mapping[str, Any] = field(default_factory=dict)

    @property
    def secret(self) -> str:
        """The Secret with the password that the server is copied by."""
        return f"{self.database}-replication" if self.database else self.secret_name

    @property
    def source(self) -> str:
        """How people are told of the server."""
        return self.database or f"the server at {self.host}"

    def check(self, own_name: str) -> None:
        """Refuse what names no server; *own_name* is the MyDatabase's.

        Raises:
            SpecError: a field is named.
        """
        if bool(self.database) == bool(self.host):
            raise SpecError(CLUSTER_FIELD, "must have either database or host")
        if self.database and (not _DATABASE.fullmatch(self.database) or len(self.database) > 50):
            raise SpecError(f"{CLUSTER_FIELD}.database", "must be the name of a MyDatabase of this namespace")
        if self.database == own_name:
            raise SpecError(f"{CLUSTER_FIELD}.database", "is this MyDatabase itself (hint: name another one)")
        if self.database and self.secret_name:
            raise SpecError(f"{CLUSTER_FIELD}.secretName", "is for a host; a MyDatabase has a Secret of its own")
        if self.host and not _HOST.fullmatch(self.host):
            raise SpecError(f"{CLUSTER_FIELD}.host", f"must be a host name or an address, not {self.host[:60]!r}")
        if self.host and not _SECRET.fullmatch(self.secret_name):
            text = "must be the name of a Secret with username and password of somebody who may copy the server"
            raise SpecError(f"{CLUSTER_FIELD}.secretName", text)


@dataclass(frozen=True, slots=True)
class BootstrapWish:
    """How a database begins that isn't there yet: empty, with a backup, or with a copy of a server."""

    initdb: InitdbWish | None = None
    from_backup: FromBackup | None = None
    from_cluster: FromCluster | None = None

    def check(self, major: int, own_name: str) -> None:
        """Refuse what makes no sense for this major version and the MyDatabase *own_name*.

        Raises:
            SpecError: a field is named.
        """
        if sum(each is not None for each in (self.initdb, self.from_backup, self.from_cluster)) != 1:
            raise SpecError(FIELD, "must have one of initdb, fromBackup and fromCluster")
        if self.initdb:
            self.initdb.check(major)
        if self.from_backup:
            self.from_backup.check()
        if self.from_cluster:
            self.from_cluster.check(own_name)
