"""The program of a backup's Job: ``python -m kubectl_reconcile_operators.etcd_backup.agent --endpoint=http://db-0.db:2379 --folder=/backups/db``.

With ``--s3-bucket``, the folder is one of a bucket.

Exit status: 0 a snapshot was written and checked, 1 it wasn't; the last line says why.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from kubectl_reconcile_operators.backups.agent.folder import opened
from kubectl_reconcile_operators.backups.agent.kinds import DamagedError, NoRoomError, Written
from kubectl_reconcile_operators.backups.agent.place import BackupPlace, add_place_arguments, place_of
from kubectl_reconcile_operators.backups.agent.program import (
    FailureError,
    add_program_arguments,
    add_retention_arguments,
    retained,
    run,
)
from kubectl_reconcile_operators.etcd_backup.agent.gateway import AnsweringMember, Gateway, GatewayError, client_tls
from kubectl_reconcile_operators.etcd_backup.agent.snapshots import SNAPSHOTS

_NOTE_MAX = 3000


def main(arguments: Sequence[str]) -> int:
    """Make a backup; return the exit status."""
    parser = argparse.ArgumentParser(prog="etcd-backup", description=__doc__)
    parser.add_argument("--endpoint", action="append", required=True, help="address of a member; may be repeated")
    add_place_arguments(parser)
    add_retention_arguments(parser)
    parser.add_argument(
        "--created-as", default="", help="what tells the cluster from others that had its name before it"
    )
    parser.add_argument("--certificates", default="", help="folder with ca.crt, tls.crt and tls.key")
    add_program_arguments(parser)
    return run(_made, parser.parse_args(arguments), {})


def _made(given: argparse.Namespace) -> dict[str, Any]:
    began, clock = datetime.now(UTC), time.monotonic()
    try:
        if not given.s3_bucket:
            opened(given.folder, SNAPSHOTS)
        folder = place_of(given, SNAPSHOTS)
        folder.sweep(given.stale_after)
        tls = client_tls(given.certificates) if given.certificates else None
    except OSError as error:
        raise FailureError(
            "CannotBegin", f"{error} (hint: the volume must be writable for user {os.getuid()})"
        ) from error
    members, silent = Gateway(given.endpoint, tls).members()
    if not members:
        raise FailureError("NoMember", f"no member answers: {'; '.join(silent)}")
    written, member = _snapshot(folder, Gateway(given.endpoint, tls), members, began, given.created_as)
    gone, stayed = retained(given, folder, SNAPSHOTS.names, written, began)
    notes = [stayed] if stayed else []
    notes += [] if member.is_sure else ["no majority confirmed that this is all that was acknowledged"]
    notes += [f"silent: {'; '.join(silent)}"] if silent else []
    return {
        "file": f"{folder.label}/{written.name}",
        "revision": written.number,
        "sizeBytes": written.size,
        "sha256": written.sha256,
        "etcdVersion": member.version,
        "member": member.endpoint,
        "durationSeconds": round(time.monotonic() - clock, 3),
        "removed": len(gone),
        "note": "; ".join(notes)[:_NOTE_MAX],
    }


def _of(member: AnsweringMember, created_as: str) -> str:
    """Return what tells a cluster from others, those that had its name before it among them: these may have the same id."""
    cluster = f"{member.cluster:x}" if member.cluster else ""
    return hashlib.sha256(f"{cluster} {created_as}".encode()).hexdigest()[:16] if created_as else cluster


def _snapshot(
    folder: BackupPlace, etcd: Gateway, members: Sequence[AnsweringMember], began: datetime, created_as: str
) -> tuple[Written, AnsweringMember]:
    """Return what was written, and who it came from: the first member whose snapshot is whole.

    Raises:
        FailureError: there is no room, or nobody's is whole.
    """
    faults = []
    for member in members:
        try:
            folder.check_room(member.size)
            written = folder.write(
                etcd.snapshot(member.endpoint), began, least=member.revision, of=_of(member, created_as)
            )
        except NoRoomError as error:
            hint = "make the volume larger, or keep fewer backups (backupPolicy.maxBackups)"
            raise FailureError("NoRoom", f"{error} (hint: {hint})") from error
        except (GatewayError, DamagedError) as error:
            faults.append(f"{member.endpoint}: {error}" if isinstance(error, DamagedError) else str(error))
        except OSError as error:
            raise FailureError("CannotWrite", str(error)) from error
        else:
            return written, member
    raise FailureError("NoWholeSnapshot", "; ".join(faults))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
