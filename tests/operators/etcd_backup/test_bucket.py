"""Backups in a bucket of a real S3 server: what counts, what is left of what fails, and what is told; on a real snapshot of etcd 3.6.16."""

import argparse
import gzip
import hashlib
import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kubectl_reconcile_operators.backups.agent.bucket import BucketAddress, fault_of
from kubectl_reconcile_operators.backups.agent.kinds import DamagedError, PlaceError
from kubectl_reconcile_operators.backups.agent.place import add_place_arguments, place_of
from kubectl_reconcile_operators.backups.retention import RetentionRule
from kubectl_reconcile_operators.etcd_backup.agent.restore import main as restore
from kubectl_reconcile_operators.etcd_backup.agent.snapshots import SNAPSHOTS
from tests.certificates import self_signed
from tests.s3_server import KEYS, S3Server

WHOLE = gzip.decompress((Path(__file__).parent / "snapshots/r201.db.gz").read_bytes())
NOW = datetime(2026, 11, 22, 3, 0, tzinfo=UTC)
name_of = SNAPSHOTS.names.name_of
NAME = name_of(NOW, 201)


def signed(data):
    return data[:-32] + hashlib.sha256(data[:-32]).digest()


LARGE = signed(WHOLE[:-32] + bytes(20 << 20) + WHOLE[-32:])
"""The same, with pages that are free: it takes more than one part."""


@pytest.fixture(scope="module")
def s3(s3_python):
    server = S3Server("backups")
    yield server
    server.end()


class Desk:
    """A folder of the bucket, another one for each test, and what passes through this machine."""

    def __init__(self, s3, root, label):
        self.s3, self.root, self.label = s3, root, label

    def arguments(self, **other):
        given = {
            "bucket": "backups",
            "endpoint": self.s3.endpoint,
            "path-style": "true",
            "field": ".spec.storage.s3",
            **other,
        }
        places = [f"--folder={self.label}", f"--work={self.root}"]
        return [*places, *(f"--s3-{name}={value}" for name, value in given.items())]

    def place(self, **other):
        parser = argparse.ArgumentParser()
        add_place_arguments(parser)
        return place_of(parser.parse_args(self.arguments(**other)), SNAPSHOTS)

    def kept(self):
        """What the bucket holds of this test, whole or not."""
        whole = re.findall(r"<Key>([^<]*)</Key>", self.s3.ask(f"backups?list-type=2&prefix={self.label}/").decode())
        return whole + re.findall(r"<Key>([^<]*)</Key>", self.s3.ask("backups?uploads").decode())

    def passing(self):
        return sorted(each.name for each in (self.root / "passing").iterdir())


@pytest.fixture
def desk(s3, tmp_path, monkeypatch, request):
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    return Desk(s3, tmp_path, f"shop/{re.sub('[^a-z]+', '-', request.node.name)}")


@pytest.mark.parametrize("content", [WHOLE, LARGE], ids=["small", "in parts"])
def test_a_snapshot_is_an_object_once_it_is_whole_and_comes_back_as_it_was(desk, content):
    place = desk.place()
    found = place.write([content[:1000], content[1000:]], NOW, least=201)
    assert (found.name, found.number, found.size) == (NAME, 201, len(content))
    assert desk.kept() == [f"{desk.label}/{NAME}"]
    assert desk.passing() == []
    assert place.names() == [NAME]
    assert place.fetched(NAME).read_bytes() == content


def test_what_is_no_whole_snapshot_never_gets_to_the_bucket(desk):
    with pytest.raises(DamagedError, match="a complete snapshot"):
        desk.place().write([WHOLE[:-600]], NOW, least=1)
    assert desk.kept() == desk.passing() == []


def test_what_the_bucket_keeps_wrong_is_found_by_reading_it_back_and_deleted(desk):
    desk.s3.ask("fault/spoil")
    with pytest.raises(DamagedError, match="something other than what was sent"):
        desk.place().write([WHOLE], NOW, least=201)
    assert desk.kept() == desk.passing() == []


def test_an_upload_that_breaks_off_leaves_neither_object_nor_parts(desk):
    desk.s3.ask("fault/refuse")
    with pytest.raises(PlaceError, match=r"\.credentialsSecret: .* \(AccessDenied\) \(hint: "):
        desk.place().write([LARGE], NOW, least=201)
    assert desk.kept() == desk.passing() == []


def test_retention_counts_as_on_a_volume_and_leaves_alone_what_is_none_of_its_own(desk):
    place = desk.place()
    names = [name_of(NOW.replace(day=day), 201) for day in (20, 21, 22)]
    for name in names:
        desk.s3.ask(f"backups/{desk.label}/{name}", "PUT", WHOLE)
    others = [f"{desk.label}/notes.txt", f"{desk.label}/deeper/{name_of(NOW, 1)}", f"{desk.label}2/{name_of(NOW, 1)}"]
    for key in others:
        desk.s3.ask(f"backups/{key}", "PUT", b"x")
    assert place.names() == names
    for rule, now, gone in (
        (RetentionRule(2, 0), NOW, names[:1]),
        (RetentionRule(0, 1), NOW.replace(day=28), names[1:2]),
    ):
        assert SNAPSHOTS.names.surplus(place.names(), rule, now) == gone
        place.delete(gone)
    assert sorted(desk.kept()) == sorted([f"{desk.label}/{names[2]}", *others[:2]])


def prepared(desk, capsys, *more):
    (desk.root / "volume").mkdir(exist_ok=True)
    places = [f"--data={desk.root}/volume/data", "--restore=r-1", "--attempt=a", "--termination-log=/dev/null"]
    status = restore(["prepare", *desk.arguments(), *places, *more])
    return status, json.loads(capsys.readouterr().out)


def test_a_restore_fetches_the_newest_and_checks_it(desk, capsys):
    older = name_of(NOW.replace(day=1), 201)
    desk.s3.ask(f"backups/{desk.label}/{older}", "PUT", WHOLE)
    assert prepared(desk, capsys) == (0, {"checked": f"{desk.label}/{older}"})
    assert (desk.root / "snapshot.db").read_bytes() == WHOLE
    desk.s3.ask(f"backups/{desk.label}/{NAME}", "PUT", WHOLE[:-600])
    status, said = prepared(desk, capsys)
    assert (status, said["error"]) == (1, "SnapshotDamaged")
    assert f"such as {older}" in said["message"]
    status, said = prepared(desk, capsys, "--snapshot=20200101T000000Z-r1.db")
    assert (status, said["error"]) == (1, "SnapshotNotFound")


UNREACHABLE = {
    "no such bucket": ({"bucket": "elsewhere"}, "BucketNotFound", ".spec.storage.s3.bucket: "),
    "nobody listens": ({"endpoint": "http://127.0.0.1:1"}, "Unreachable", ".spec.storage.s3.endpoint: "),
    "no such name": ({"endpoint": "http://s3.invalid"}, "Unreachable", ".spec.storage.s3.endpoint: "),
    "no such file": ({"ca": "/nowhere/ca.crt"}, "CertificateRefused", ".spec.storage.s3.caSecret: "),
}


@pytest.mark.parametrize(("other", "reason", "words"), UNREACHABLE.values(), ids=UNREACHABLE)
def test_a_bucket_that_cant_be_had_is_told_by_its_field_before_anybody_is_asked_for_a_snapshot(
    desk, other, reason, words
):
    asked = [*desk.arguments(**other), "--endpoint=http://127.0.0.1:1", "--termination-log=/dev/null"]
    command = [sys.executable, "-m", "kubectl_reconcile_operators.etcd_backup.agent", *asked]
    ended = subprocess.run(
        command, env={**os.environ, **KEYS}, capture_output=True, text=True, timeout=120, check=False
    )
    said = json.loads(ended.stdout)
    assert (ended.returncode, said["error"]) == (1, reason)
    assert said["message"].startswith(words)
    assert "(hint: " in said["message"]
    assert KEYS["AWS_SECRET_ACCESS_KEY"] not in ended.stdout + ended.stderr


def test_a_key_that_the_server_doesnt_know_is_told_by_its_secret(desk):
    desk.s3.ask("moto-api/reset-auth", "POST", b"0")
    try:
        with pytest.raises(PlaceError) as refused:
            desk.place().names()
    finally:
        desk.s3.ask("moto-api/reset-auth", "POST", b"inf")
    assert refused.value.reason == "CredentialsRefused"
    assert str(refused.value).startswith(".spec.storage.s3.credentialsSecret: ")
    assert not any(value in str(refused.value) for value in KEYS.values())


def test_a_server_with_a_certificate_of_its_own_authority_is_trusted_by_that_alone(tmp_path, monkeypatch, s3_python):
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    files = tmp_path / "ca.crt", tmp_path / "tls.key"
    for path, text in zip(files, self_signed(is_authority=False), strict=True):
        path.write_text(text)
    server = S3Server("backups", certificate=files, scheme="https")
    try:
        desk = Desk(server, tmp_path, "shop/db")
        with pytest.raises(PlaceError, match=r"\.caSecret: ") as refused:
            desk.place().names()
        assert refused.value.reason == "CertificateRefused"
        place = desk.place(ca=files[0])
        place.write([WHOLE], NOW, least=201)
        assert place.names() == [NAME]
    finally:
        server.end()


ADDRESS = BucketAddress("backups", "", "eu-central-1", is_path_style=False, ca="", field=".spec.storage.s3")
XML = "status code: {}: <Error><Code>{}</Code><Message>{}</Message></Error>"
SAID = {
    "a wrong secret key": (XML.format(403, "SignatureDoesNotMatch", "x"), "CredentialsRefused", ".credentialsSecret: S3 of AWS in eu-central-1 "),
    "too few rights": (XML.format(403, "AccessDenied", "x"), "AccessDenied", "s3:PutObject"),
    "no more than a status": ("status code: 403 Forbidden", "AccessDenied", "(403)"),
    "another region": (XML.format(301, "PermanentRedirect", "x"), "WrongRegion", ".region: "),
    "a wrong clock": (XML.format(403, "RequestTimeTooSkewed", "x"), "ClockWrong", "clocks"),
    "no room": (XML.format(507, "XMinioStorageFull", "x"), "NoRoom", "fewer backups"),
    "anything else, without what a terminal would act on": (XML.format(400, "Odd", "a\x1b[2Jb"), "BucketFailed", "refuses: Odd: a[2Jb"),
    "silence": ("HTTP error: error sending request", "Unreachable", ".endpoint: "),
}  # fmt: skip


@pytest.mark.parametrize(("said", "reason", "words"), SAID.values(), ids=SAID)
def test_what_a_server_says_becomes_a_field_and_a_hint(said, reason, words):
    fault = fault_of(ADDRESS, f"{said} token=secret")
    assert fault.reason == reason
    assert words in str(fault)
    assert "token=secret" not in str(fault)
