"""Where backups are: a folder of a volume, or one of a bucket; by the same arguments for the program that writes them and the one that reads them."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Protocol

from kubectl_reconcile_operators.backups.agent.folder import Folder
from kubectl_reconcile_operators.backups.agent.kinds import BackupKind, PlaceError, Written

_SPOOL = "passing"


class BackupPlace(Protocol):
    """The backups of one thing. What is asked here may raise PlaceError, NoRoomError, DamagedError and OSError."""

    @property
    def label(self) -> str:
        """Return what it is called in messages and in the status."""

    def check_room(self, needed: int) -> None:
        """Refuse to begin where so many bytes don't fit."""

    def write(self, parts: Iterable[bytes], began: datetime, *, least: int = 0, of: str = "") -> Written:
        """Write a backup and check it; nothing is left of one that isn't whole."""

    def names(self) -> list[str]:
        """Return the names of the backups that are there, the oldest first."""

    def fetched(self, name: str) -> Path:
        """Return the file of a backup, on this machine."""

    def delete(self, names: Iterable[str]) -> None:
        """Delete backups; one that is gone already is none to delete."""

    def sweep(self, older_than_s: float) -> None:
        """Delete what broke off so long ago that nobody can be writing it any more."""


def add_place_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what names a place."""
    parser.add_argument("--folder", type=Path, required=True, help="the folder of the backups")
    parser.add_argument("--work", type=Path, default=Path(), help="folder for what passes through this machine")
    for name, hint in (
        ("bucket", "the folder is one of this bucket: what its keys begin with"),
        ("endpoint", "the server; AWS without"),
        ("region", "of the bucket"),
        ("path-style", "the bucket's name is in the path, and not in the server's"),
        ("ca", "file with the authority that the server's certificate is checked by"),
        ("field", "what the spec calls the place"),
    ):
        parser.add_argument(f"--s3-{name}", default="", help=hint)


def place_of(given: argparse.Namespace, kind: BackupKind) -> BackupPlace:
    """Return the place that arguments name, with backups of this *kind*.

    Raises:
        PlaceError: it is in a bucket, and there is no client for S3, or no reading the authority's file.
    """
    if not given.s3_bucket:
        return Folder(given.folder, kind)
    try:
        from kubectl_reconcile_operators.backups.agent.bucket import BucketAddress, BucketFolder  # noqa: PLC0415 - what it imports is an extra
    except ImportError as error:
        hint = "pip install 'kubectl-reconcile[s3]', or our own image"
        raise PlaceError("NoClient", f"the image of this Job has no client for S3: {error} (hint: {hint})") from error
    address = BucketAddress(
        given.s3_bucket, given.s3_endpoint, given.s3_region or "us-east-1", bool(given.s3_path_style), given.s3_ca, given.s3_field,
    )  # fmt: skip
    spool = given.work / _SPOOL
    spool.mkdir(parents=True, exist_ok=True)
    return BucketFolder(address.client(), address, str(given.folder), Folder(spool, kind))
