"""Snapshots as backups: called by the revision that they hold, and checked to their last byte."""

from __future__ import annotations

import hashlib
import mmap
from datetime import UTC, datetime
from pathlib import Path

from kubectl_reconcile_operators.backups.agent.kinds import DamagedError, Written
from kubectl_reconcile_operators.backups.retention import SNAPSHOT_NAMES
from kubectl_reconcile_operators.etcd_backup.agent.database import DIGEST_SIZE, check_size, revision_of

_AT_ONCE = 1 << 20


class EtcdSnapshots:
    """The kind of backup that an EtcdBackup makes."""

    names = SNAPSHOT_NAMES

    def checked(self, file: Path, began: datetime, of: str = "") -> Written:
        """Return what a file holds, having checked size, digest and database; it isn't renamed.

        Raises:
            DamagedError: it isn't a whole snapshot.
        """
        size = file.stat().st_size
        check_size(size)
        content, whole = hashlib.sha256(), hashlib.sha256()
        with file.open("rb") as source, mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_READ) as data:
            end = size - DIGEST_SIZE
            for at in range(0, end, _AT_ONCE):
                some = data[at : min(at + _AT_ONCE, end)]
                content.update(some)
                whole.update(some)
            digest = data[end:]
            whole.update(digest)
            if content.digest() != digest:
                raise DamagedError("its digest doesn't match its content")
            revision = revision_of(data)
        return Written(self.names.name_of(began.astimezone(UTC), revision, of), revision, size, whole.hexdigest(), of)


SNAPSHOTS = EtcdSnapshots()
