"""Backups in a bucket of any S3 server, by obstore: a backup is written and checked on this machine first, then sent.

What is sent is an object once all of it is there, and not before: the server holds each part against the hash that it was signed with, and a larger one is completed
last. Then it is read back and compared. What breaks off is taken back by the client; of one that was killed outright, parts may be left that are no object, which the bucket's own
rules for its lifecycle clear away.

Credentials are in the environment, and in no message.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

from kubectl_reconcile_operators.backups.agent.folder import Folder
from kubectl_reconcile_operators.backups.agent.kinds import DamagedError, PlaceError, Written

if TYPE_CHECKING:  # they are there for types alone
    from obstore.store import ClientConfig, RetryConfig, S3Config

_PART_SIZE, _AT_ONCE, _READ = 16 << 20, 2, 1 << 20
_CODE, _MESSAGE, _STATUS = (
    re.compile(pattern) for pattern in (r"<Code>(\w+)</Code>", r"<Message>([^<]*)</Message>", r"status code: (\d+)")
)
_RIGHTS = "s3:ListBucket, s3:GetObject, s3:PutObject, s3:DeleteObject and s3:AbortMultipartUpload"
_KEY_REFUSED = (
    "CredentialsRefused",
    "credentialsSecret",
    "doesn't accept the key",
    "correct AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY of that Secret",
)
_NOT_ALLOWED = (
    "AccessDenied",
    "credentialsSecret",
    "denies access to the key",
    f"correct the Secret, or give the key {_RIGHTS}",
)
_ELSEWHERE = ("WrongRegion", "region", "says that the bucket is in another region", "name that one")
_NO_BUCKET = ("BucketNotFound", "bucket", "has no such bucket", "create it, or correct the name")
_FULL = ("NoRoom", "bucket", "has no room left", "make room, or keep fewer backups")
_FAULTS = {
    "NoSuchBucket": _NO_BUCKET, "404": _NO_BUCKET,
    "InvalidAccessKeyId": _KEY_REFUSED, "SignatureDoesNotMatch": _KEY_REFUSED, "InvalidToken": _KEY_REFUSED, "ExpiredToken": _KEY_REFUSED,
    "AuthFailure": _KEY_REFUSED, "401": _KEY_REFUSED,
    "AccessDenied": _NOT_ALLOWED, "403": _NOT_ALLOWED,
    "PermanentRedirect": _ELSEWHERE, "AuthorizationHeaderMalformed": _ELSEWHERE, "301": _ELSEWHERE,
    "RequestTimeTooSkewed": ("ClockWrong", "endpoint", "has a different time than this node", "synchronize the two clocks"),
    "QuotaExceeded": _FULL, "XMinioStorageFull": _FULL, "507": _FULL,
}  # fmt: skip
_SILENCE = {
    "InvalidCertificate": ("CertificateRefused", "caSecret", "name a Secret with the ca.crt of the authority that signed its certificate"),
    "dns error": ("Unreachable", "endpoint", "that name can't be resolved: correct it"),
    "ConnectionRefused": ("Unreachable", "endpoint", "no server listens there: correct the address, or start the server"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class BucketAddress:
    """Where a bucket is; *field* is what the spec calls it."""

    bucket: str
    endpoint: str
    region: str
    is_path_style: bool
    ca: str
    field: str

    @property
    def shown(self) -> str:
        """Return who is talked to."""
        return self.endpoint or f"S3 of AWS in {self.region}"

    def client(self) -> S3Store:
        """Return a client. Whatever the environment says besides the credentials, and the node's own identity, doesn't count.

        Raises:
            PlaceError: the authority's file can't be read.
        """
        config: S3Config = {
            "access_key_id": os.environ.get("AWS_ACCESS_KEY_ID", ""),
            "secret_access_key": os.environ.get("AWS_SECRET_ACCESS_KEY", ""),
            "region": self.region,
            "virtual_hosted_style_request": not self.is_path_style,
        }
        if token := os.environ.get("AWS_SESSION_TOKEN"):
            config["session_token"] = token
        if self.endpoint:
            config["endpoint"] = self.endpoint
        options: ClientConfig = {
            "allow_http": self.endpoint.startswith("http://"),
            "connect_timeout": timedelta(seconds=5),
            "read_timeout": timedelta(seconds=60),
            "timeout": timedelta(days=1),
        }
        try:
            if self.ca:
                options["root_certificate"] = Path(self.ca).read_bytes()
            retries: RetryConfig = {"max_retries": 4, "retry_timeout": timedelta(seconds=60)}
            return S3Store(self.bucket, config=config, client_options=options, retry_config=retries)
        except (OSError, BaseError) as error:
            hint = "it needs a ca.crt in PEM"
            raise PlaceError("CertificateRefused", f"{self.field}.caSecret: it can't be read (hint: {hint})") from error


@dataclass(frozen=True, slots=True)
class BucketFolder:
    """The backups of one thing: objects below *label*. *spool* is a folder of this machine that they pass through."""

    client: S3Store
    address: BucketAddress
    label: str
    spool: Folder

    def check_room(self, needed: int) -> None:
        """Refuse to begin where so many bytes don't fit on this machine.

        Raises:
            NoRoomError: they don't.
        """
        self.spool.check_room(needed)

    def write(self, parts: Iterable[bytes], began: datetime, *, least: int = 0, of: str = "") -> Written:
        """Write a backup, check it, send it, and compare what is there now. Its number is *least* at least; *of* says what it is of.

        Raises:
            DamagedError: what came isn't a whole backup, or the bucket holds something else; nothing is left of it.
            NoRoomError: this machine is full; nothing is left of it.
            PlaceError: the bucket can't be written to.
        """
        written = self.spool.write(parts, began, least=least, of=of)
        file = self.spool.path / written.name
        try:
            with self._told(), file.open("rb") as source:
                content = iter(lambda: source.read(_READ), b"")
                obstore.put(
                    self.client, self._key(written.name), content, chunk_size=_PART_SIZE, max_concurrency=_AT_ONCE
                )
            self._compare(written)
        finally:
            file.unlink()
        return written

    def _compare(self, written: Written) -> None:
        try:
            self._read_back(written)
        except BaseException:
            with contextlib.suppress(BaseError, OSError):
                obstore.delete(self.client, self._key(written.name))
            raise

    def _read_back(self, written: Written) -> None:
        found, size = hashlib.sha256(), 0
        with self._told():
            answer = obstore.get(self.client, self._key(written.name))
        for part in self._content(answer):
            found.update(part)
            size += len(part)
        if (size, found.hexdigest()) != (written.size, written.sha256):
            raise DamagedError(f"{self.address.shown} stored something other than what was sent")

    def _content(self, answer: obstore.GetResult) -> Iterator[bytes]:
        with self._told():
            for part in answer.stream(min_chunk_size=_READ):
                yield bytes(part)

    def names(self) -> list[str]:
        """Return the names of the backups that are there, the oldest first.

        Raises:
            PlaceError: the bucket can't be read.
        """
        with self._told():
            found = obstore.list_with_delimiter(self.client, self.label)["objects"]
        return self.spool.kind.names.in_order_of_time(each["path"].rpartition("/")[2] for each in found)

    def fetched(self, name: str) -> Path:
        """Return the file of a backup, once all of it is on this machine.

        Raises:
            NoRoomError: there is no room for it.
            PlaceError: it can't be read.
        """
        with self._told():
            answer = obstore.get(self.client, self._key(name))
        return self.spool.take(name, answer.meta["size"], self._content(answer))

    def delete(self, names: Iterable[str]) -> None:
        """Delete backups.

        Raises:
            PlaceError: they can't be.
        """
        with self._told():
            for name in names:
                obstore.delete(self.client, self._key(name))

    def sweep(self, older_than_s: float) -> None:
        """Delete what broke off on this machine, so long ago that nobody can be writing it any more; see that the bucket is there.

        Raises:
            PlaceError: it can't be read.
        """
        self.spool.sweep(older_than_s)
        self.names()

    def _key(self, name: str) -> str:
        return f"{self.label}/{name}"

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except (BaseError, FileNotFoundError) as error:
            raise fault_of(self.address, str(error)) from None


def fault_of(address: BucketAddress, said: str) -> PlaceError:
    """Return what a client's error means. Its text holds requests and answers, of which nothing is shown but the server's own sentence."""
    code, status = _CODE.search(said), _STATUS.search(said)
    word = code[1] if code else status[1] if status else ""
    if word in _FAULTS:
        reason, field, what, hint = _FAULTS[word]
        text = f"{address.field}.{field}: {address.shown} {what}, asked for bucket {address.bucket} ({word})"
        return PlaceError(reason, f"{text} (hint: {hint})")
    if word:
        sentence = _MESSAGE.search(said)
        told = "".join(filter(str.isprintable, sentence[1]))[:300] if sentence else "without a reason"
        return PlaceError("BucketFailed", f"{address.field}: {address.shown} refuses: {word}: {told}")
    for sign, (reason, field, hint) in _SILENCE.items():
        if sign in said:
            return PlaceError(reason, f"{address.field}.{field}: {address.shown} can't be reached (hint: {hint})")
    hint = "make sure that pods of this namespace can reach it"
    return PlaceError("Unreachable", f"{address.field}.endpoint: {address.shown} doesn't answer (hint: {hint})")
