"""The lock file: read, refused by its lines, and written in one order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile.core.rendering.pinned.lock import MOST_PINS, Lock, lock_of, text_of
from kubectl_reconcile.core.rendering.pinned.pins import BasePin, FilePin
from kubectl_reconcile.core.resources.chart import ChartSpec

PATH = "charts/web/reconcile.lock.yaml"
DIGEST = f"sha256:{'0a' * 32}"
DATABASE = ChartSpec("https://charts.example.com", "database", "1.2.3", DIGEST)
QUEUE = ChartSpec("oci://registry.example.com/charts", "queue", "2.0.0+build.1", f"sha256:{'1b' * 32}")
TEXT = f"""\
# Written by kubectl reconcile lock: what is fetched to render this folder, by digests.
version: 1
charts:
- repository: https://charts.example.com
  name: database
  version: 1.2.3
  digest: {DIGEST}
- repository: oci://registry.example.com/charts
  name: queue
  version: 2.0.0+build.1
  digest: {QUEUE.digest}
bases:
- repository: https://git.example.com/platform/base.git
  ref: v1.2.0
  commit: {"1c" * 20}
files:
- url: https://files.example.com/crds.yaml?raw=true
  digest: {DIGEST}
"""
BASE = BasePin("https://git.example.com/platform/base.git", "v1.2.0", "1c" * 20)
FILE = FilePin("https://files.example.com/crds.yaml?raw=true", DIGEST)


def test_a_lock_file_has_one_text_whatever_order_its_pins_came_in():
    assert text_of(Lock((FILE, QUEUE, DATABASE, BASE, QUEUE))) == text_of(Lock((DATABASE, QUEUE, BASE, FILE))) == TEXT


def test_a_lock_file_is_read_with_the_lines_of_its_entries():
    assert lock_of(TEXT.encode(), PATH) == (
        Lock((DATABASE, QUEUE, BASE, FILE), {DATABASE: 4, QUEUE: 8, BASE: 13, FILE: 17}),
        (),
    )


@given(st.lists(st.from_regex(r"\A[a-z0-9]([-a-z0-9._]{0,20}[a-z0-9])?\Z"), unique=True, max_size=5))
def test_what_is_written_is_what_is_read(names):
    pins = tuple(ChartSpec("https://charts.example.com", name, "1.0.0", DIGEST) for name in sorted(names))
    lock, problems = lock_of(text_of(Lock(pins)).encode(), PATH)
    assert (lock.pins, problems) == (pins, ())


def test_a_lock_file_of_nothing_says_nothing():
    assert lock_of(text_of(Lock()).encode(), PATH) == (Lock(), ())


def test_a_pin_is_found_by_all_but_its_digest():
    lock = Lock((DATABASE,))
    assert lock.find(ChartSpec(DATABASE.repository, "database", "1.2.3")) == DATABASE
    assert lock.find(ChartSpec(DATABASE.repository, "database", "1.2.4")) is None
    assert lock.other_version(ChartSpec(DATABASE.repository, "database", "1.2.4")) == "1.2.3"
    assert not lock.other_version(QUEUE)


ENTRY = "- {{repository: 'https://charts.example.com', name: {name}, version: {version}{more}}}\n"


def entry(name="web", version="1.2.3", more=f", digest: '{DIGEST}'"):
    return ENTRY.format(name=name, version=version, more=more)


REFUSED = {
    "no YAML": ("version: [1\n", 2, "not valid YAML"),
    "several documents": ("version: 1\n---\nversion: 1\n", 0, "isn't a lock file: it must be one document"),
    "a list": ("- 1\n", 0, "isn't a lock file"),
    "another version of the format": ("# new\nversion: 2\n", 2, "has version 2, and 1 is the one that is known"),
    "a field that nobody knows": ("version: 1\nchart: []\n", 0, "the lock file.chart: isn't a field; did you mean charts?"),
    "charts that are no list": ("version: 1\ncharts: {}\n", 2, "charts isn't a list"),
    "more charts than any folder needs": ("version: 1\ncharts:\n" + entry() * (MOST_PINS + 1), 2, "charts has more than 500 entries"),
    "an entry that is text": ("version: 1\ncharts:\n- web\n", 3, "charts[0]: isn't an entry with repository, name"),
    "an entry without a digest": ("version: 1\ncharts:\n" + entry(more=""), 3, "charts[0].digest: is required"),
    "a digest that is too short": ("version: 1\ncharts:\n" + entry(more=", digest: 'sha256:00'"), 3, "charts[0].digest: isn't a digest"),
    "a range of versions": ("version: 1\ncharts:\n" + entry() + entry("api", "^1.0.0"), 4, "charts[1].version: '^1.0.0' isn't an exact version"),
    "credentials": ("version: 1\ncharts:\n" + entry(more=f", digest: '{DIGEST}', secretRef: {{name: x}}"), 3, "charts[0].secretRef: isn't a field"),
    "a base without a commit": ("version: 1\nbases:\n- {repository: 'https://git.example.com/a', ref: main}\n", 3, "bases[0].commit: is required"),
    "a base at half a commit": ("version: 1\nbases:\n- {repository: 'https://git.example.com/a', ref: main, commit: abc1234}\n", 3, "bases[0].commit: 'abc1234' isn't the full hash of a commit"),
    "a base at another commit than the one that is asked for": (
        f"version: 1\nbases:\n- {{repository: 'https://git.example.com/a', ref: '{'1c' * 20}', commit: '{'1d' * 20}'}}\n",
        3, f"bases[0].commit: is another than {'1c' * 20}",
    ),
    "a base on this machine": (f"version: 1\nbases:\n- {{repository: 'file:///srv/a', ref: main, commit: '{'1c' * 20}'}}\n", 3, "isn't the URL of a repository"),
    "a base with a password": (f"version: 1\nbases:\n- {{repository: 'ssh://a:b@git.example.com/a', ref: main, commit: '{'1c' * 20}'}}\n", 3, "isn't the URL of a repository"),
    "a ref that is a flag": (f"version: 1\nbases:\n- {{repository: 'https://git.example.com/a', ref: '--upload-pack=x', commit: '{'1c' * 20}'}}\n", 3, "isn't a branch, a tag or a commit"),
    "a file of this machine": (f"version: 1\nfiles:\n- {{url: 'file:///etc/passwd', digest: '{DIGEST}'}}\n", 3, "isn't the URL of a file"),
    "a file whose host can be read in two ways": (f"version: 1\nfiles:\n- {{url: 'https://a.example.com\\@b.example.com/x', digest: '{DIGEST}'}}\n", 3, "isn't the URL of a file"),
    "one version of a chart with two digests": (
        "version: 1\ncharts:\n" + entry() + entry(more=f", digest: '{QUEUE.digest}'"),
        4, "chart web 1.2.3 of https://charts.example.com is in line 3, too",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "line", "said"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_lock_file_is_refused_by_its_line(text, line, said):
    lock, problems = lock_of(text.encode(), PATH)
    assert lock == Lock()
    assert (problems[0].path, problems[0].line) == (PATH, line)
    assert said in problems[0].message


def test_all_that_is_wrong_is_told_at_once():
    text = "version: 1\ncharts:\n" + entry(more="") + entry("b", "1") + entry("c")
    assert [each.line for each in lock_of(text.encode(), PATH)[1]] == [3, 4]


def test_a_lock_file_that_is_too_long_is_not_read():
    _, [problem] = lock_of(b"version: 1\n" + b"#" * 300_000, PATH)
    assert "MiB" in problem.message
