"""The cache of parsed files: it never lies, it never fails, and it stays within its bound."""

from __future__ import annotations

import multiprocessing
import resource
import signal
import sqlite3

import pytest

from kubectl_reconcile.core.manifests.parse import Parsed, parse
from kubectl_reconcile.core.manifests.revision import Revision
from kubectl_reconcile.engine.sync.desired import ManifestReader
from kubectl_reconcile.engine.sync.parse_cache import ParsedFiles

CONFIG = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web\ndata:\n  text: '1'\n---\nnot an object\n"
FILE = ("blob-1", "a/web.yaml")


@pytest.fixture
def place(tmp_path):
    return tmp_path / "cache" / "parsed.sqlite"


@pytest.fixture
def filled(place):
    ParsedFiles(place).keep({FILE: parse(CONFIG, FILE[1])})
    return place


def test_what_was_parsed_comes_back_as_it_was_problems_and_all(filled):
    assert ParsedFiles(filled).find([FILE, ("blob-2", "a/web.yaml")]) == {FILE: parse(CONFIG, FILE[1])}


def test_the_same_bytes_at_another_path_are_another_file(filled):
    assert ParsedFiles(filled).find([("blob-1", "b/web.yaml")]) == {}


def test_no_more_is_held_than_a_sync_may_have(place):
    parsed = {(f"blob-{n}", FILE[1]): parse(CONFIG, FILE[1]) for n in range(9)}
    files, one = ParsedFiles(place), parse(CONFIG, FILE[1]).weight
    files.keep(parsed)
    assert len(files.find(parsed, 3 * one)) == 4, "and the one that is too much"
    assert files.find(parsed, 9 * one) == parsed


def test_what_another_parser_made_of_it_is_not_used(filled, monkeypatch):
    monkeypatch.setattr("kubectl_reconcile.engine.sync.parse_cache._parser", lambda: b"of tomorrow")
    assert ParsedFiles(filled).find([FILE]) == {}


@pytest.mark.parametrize("number", [".nan", ".inf", "1e400", str(2**70)])
def test_numbers_that_json_can_not_say_are_not_kept(place, number):
    parsed = parse(f"apiVersion: v1\nkind: X\nmetadata: {{name: a}}\nspec: {{size: {number}}}\n".encode(), FILE[1])
    files = ParsedFiles(place)
    files.keep({FILE: parsed})
    assert list(files.find([FILE]).values()) in ([], [parsed])


def flip(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 0xFF
    path.write_bytes(data)


def test_no_flipped_byte_is_ever_believed(filled):
    right, size = {FILE: parse(CONFIG, FILE[1])}, filled.stat().st_size
    whole = filled.read_bytes()
    for at in range(0, size, 37):
        filled.write_bytes(whole)
        flip(filled, at)
        files = ParsedFiles(filled)
        assert files.find([FILE]) in ({}, right)
        files.keep(right)


DAMAGES = {
    "no database": lambda path: path.write_bytes(b"rubbish" * 1000),
    "empty": lambda path: path.write_bytes(b""),
    "cut off": lambda path: path.write_bytes(path.read_bytes()[:5000]),
    "of another shape": lambda path: path.unlink() or sqlite3.connect(path).execute("CREATE TABLE parsed (x)"),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_is_as_good_as_none_and_replaced(filled, damage):
    damage(filled)
    files, right = ParsedFiles(filled), {FILE: parse(CONFIG, FILE[1])}
    assert files.find([FILE]) == {}
    files.keep(right)
    files.keep(right)
    assert files.find([FILE]) == right


@pytest.mark.parametrize("place", ["/dev/full", "/proc/parsed.sqlite", "/dev/null/parsed.sqlite"])
def test_a_place_that_can_not_be_written_does_no_harm(place, tmp_path):
    files = ParsedFiles(tmp_path.__class__(place))
    files.keep({FILE: parse(CONFIG, FILE[1])})
    assert files.find([FILE]) == {}


def test_a_full_disk_does_no_harm(place):
    """The file may not grow: the system answers as it does where the disk is full."""

    def work(answers):
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))
        files = ParsedFiles(place)
        for number in range(40):
            files.keep({(f"blob-{number}", "a.yaml"): parse(CONFIG.replace(b"1", b"1" * 2000), "a.yaml")})
        answers.put(len(files.find([(f"blob-{number}", "a.yaml") for number in range(40)])))

    answers = multiprocessing.get_context("fork").SimpleQueue()
    process = multiprocessing.get_context("fork").Process(target=work, args=(answers,))
    process.start()
    process.join(300)
    assert process.exitcode == 0
    assert 0 < answers.get() < 40


def test_it_stays_within_its_bound_and_forgets_what_is_oldest(place):
    files = ParsedFiles(place, most_bytes=60_000)
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {text: '" + b"x" * 1000 + b"'}\n"
    for number in range(200):
        files.keep({(f"blob-{number:03}", "a.yaml"): parse(body, "a.yaml")})
    found = files.find([(f"blob-{number:03}", "a.yaml") for number in range(200)])
    assert 20 < len(found) <= 60
    assert place.stat().st_size < 150_000


class Folder:
    """A source that counts what is read of it."""

    def __init__(self, files):
        self.files, self.read = files, []

    def revision(self):
        return Revision(
            str(hash(tuple(self.files.values()))), "", {path: f"id-{data}" for path, data in self.files.items()}
        )

    def read_many(self, blob_ids):
        for blob_id in blob_ids:
            self.read.append(blob_id)
            yield blob_id, f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {blob_id}}}\n".encode()


def test_a_reader_that_begins_anew_reads_only_what_it_never_saw(place):
    source = Folder({f"{number}.yaml": f"v{number}" for number in range(20)})
    first = ManifestReader(ParsedFiles(place)).read(source)
    source.read.clear()
    again = ManifestReader(ParsedFiles(place))
    assert again.read(source) == first
    assert source.read == []
    source.files["7.yaml"] = "new"
    assert len(again.read(source).manifests) == 20
    assert source.read == ["id-new"]


def test_nothing_to_remember_is_fine(place):
    ParsedFiles(place).keep({})
    assert ParsedFiles(place).find([]) == {}
    assert isinstance(parse(b"", "a.yaml"), Parsed)
