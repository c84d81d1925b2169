"""Rules of popular kinds: all examples beside them, what keeps the data as its head says, and statuses of any shape."""

import json
import re
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_reconcile.cli import health_kinds, health_page
from kubectl_reconcile.core.health import general_rule, kind_table
from kubectl_reconcile.core.health.judge import Expected, Health, HealthStatus, health
from kubectl_reconcile.core.health.kind_table import KindRule, TableError, groups, kinds_of, rule_of
from kubectl_reconcile.core.objects import GroupKind

ENTRIES = list(health_kinds.entries())
FOLDER = Path(health_kinds.__file__).parents[1] / "core" / "health" / "kinds"


def example_of(group, kind, fields):
    """An object of the kind with *fields* where their paths lead."""
    group, kind = group.replace("*", "x"), kind.replace("*", "Widget")
    manifest = {"apiVersion": f"{group}/v1", "kind": kind, "metadata": {"name": "x"}}
    for path, value in fields.items():
        place(manifest, kind_table.Path.parse(path), value)
    return manifest


def place(manifest, path, value):
    found = manifest.setdefault(path.root, {})
    *way, last = path.steps
    if last[0].isupper() and isinstance(value, bool):
        value = str(value)
    for step in way:
        found = condition(found, step) if step[0].isupper() else found.setdefault(step, {})
    if last[0].isupper() and value in {"True", "False", "Unknown", "Degraded"} and last not in UNLIKE_CONDITIONS:
        condition(found, last)["status"] = value
    else:
        found[last] = value


UNLIKE_CONDITIONS = {"NoMatchingInstances"}


def condition(found, name):
    conditions = found.setdefault("conditions", [])
    there = next((each for each in conditions if each["type"] == name), None)
    if there is None:
        there = {"type": name}
        conditions.append(there)
    return there


EXAMPLES = [
    (group, f"{kind}, example {number}", example_of(group, kind, fields), HealthStatus(verdict))
    for group, kind, entry, _ in ENTRIES
    for number, example in enumerate(entry["examples"])
    for verdict, fields in example.items()
]


@pytest.mark.parametrize("group", sorted({group for group, *_ in ENTRIES}))
def test_all_examples_of_a_group_are_judged_as_they_say(group):
    """Together, for there are some three thousand: a test of each costs a process far more than its verdict does."""
    judged = [(name, health(manifest), verdict) for of, name, manifest, verdict in EXAMPLES if of == group]
    assert judged
    assert [(name, found) for name, found, verdict in judged if found.status is not verdict] == []


def test_the_program_reads_what_the_files_say():
    assert (FOLDER / "kinds.json").read_text() == health_kinds.made(), "run make manifests"


def test_the_page_shows_the_rules_as_they_are():
    file = FOLDER.parents[3] / "docs" / "health.md"
    assert file.read_text() == health_page.page(file.read_text()), "run make manifests"


@pytest.mark.parametrize("name", [path.name for path in sorted(FOLDER.glob("*.yaml"))])
def test_a_file_names_its_groups_and_a_page_for_each_rule(name):
    source = health_kinds.sources()[name]
    assert source.keys() == {"groups", "docs", "kinds"}
    for entry in source["kinds"]:
        assert entry.keys() <= {"groups", "kinds", "docs", "silent", "rules", "examples"}
        assert re.match(r"https://[\w.-]+\.\w+/", entry.get("docs", source["docs"]))
        KindRule.parse(entry)


@pytest.mark.parametrize(
    "entry", {id(entry): entry for _, _, entry, _ in ENTRIES}.values(), ids=lambda each: each["kinds"][0]
)
def test_the_examples_of_a_kind_reach_each_verdict_that_its_rules_give(entry):
    given_ = {verdict for row in entry.get("rules", ()) for verdict in row if verdict != "say"}
    shown = {verdict for example in entry["examples"] for verdict in example}
    assert given_ - shown == set()


BAD = {
    "no verdict": {"say": "message"},
    "two verdicts": {"Current": {}, "Failed": {}},
    "a verdict that isn't one": {"Healthy": {}},
    "what can't be asked": {"Current": {"phase": {"like": "x"}}},
    "a path that is none": {"Current": {"": "x"}},
}


@pytest.mark.parametrize("row", BAD.values(), ids=BAD)
def test_a_rule_that_cant_be_meant_is_refused(row):
    with pytest.raises(TableError):
        KindRule.parse({"rules": [row]})


# --- anything as a status -------------------------------------------------------------------------------------------------

KINDS = sorted(
    {(group.replace("*", "x"), kind.replace("*", "Widget")) for group in groups() for kind in kinds_of(group)}
)
NAMES = sorted(
    {
        step
        for text in re.findall(r'"([\w.*#\[\]/-]+)": ', json.dumps([kinds_of(group) for group in groups()]))
        for step in re.split(r"[.\[\]]", text)
        if step
    }
)
WORDS = sorted(
    {word for words in general_rule.WORDS.values() for word in words} | {"True", "False", "Unknown", "1/2", "0", ""}
)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=8)
    | st.sampled_from(WORDS)
)
NAME = st.sampled_from([*NAMES, "type", "status", "reason", "message", "conditions", "observedGeneration"])
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAME | st.text(max_size=5), inner, max_size=5),
    max_leaves=20,
)
CONDITION = st.fixed_dictionaries(
    {"type": NAME | LEAVES, "status": LEAVES},
    optional={"reason": LEAVES, "message": JSON, "observedGeneration": LEAVES},
)
STATUS = JSON | st.fixed_dictionaries(
    {"conditions": st.lists(CONDITION | JSON, max_size=4)}, optional={"phase": LEAVES, "observedGeneration": LEAVES}
)


@settings(max_examples=10 * settings().max_examples)  # HYPOTHESIS_PROFILE=long: ten thousand
@given(kind=st.sampled_from(KINDS), status=STATUS, spec=JSON, metadata=st.dictionaries(NAME, JSON, max_size=3))
def test_any_status_of_any_kind_gets_a_verdict(kind, status, spec, metadata):
    group, name = kind
    manifest = {"apiVersion": f"{group}/v1", "kind": name, "metadata": metadata, "spec": spec, "status": status}
    before = json.dumps(manifest)
    for expected in Expected:
        verdict = health(manifest, expected=expected, now="2026-01-01T00:00:00Z")
        assert isinstance(verdict.status, HealthStatus)
        assert isinstance(verdict.message, str)
    assert json.dumps(manifest) == before


def test_a_verdict_takes_microseconds():
    manifests = [manifest for _, _, manifest, _ in EXAMPLES]
    for manifest in manifests:
        health(manifest)
    began_s = time.process_time()
    for manifest in manifests:
        health(manifest)
    assert (time.process_time() - began_s) / len(manifests) < 0.0005  # some 20 µs of processor time


def test_groups_that_differ_by_a_name_share_rules():
    of_a_bucket, of_a_database = (
        rule_of(GroupKind(f"{name}.services.k8s.aws", kind)) for name, kind in (("s3", "Bucket"), ("rds", "DBInstance"))
    )
    assert of_a_bucket is not None
    assert of_a_database is not None
    assert [row.status for row in of_a_bucket.rows] == [row.status for row in of_a_database.rows]
    assert rule_of(GroupKind("microgateway.airlock.com", "OIDCPolicy")) is not None
    assert rule_of(GroupKind("example.com", "Widget")) is None


def test_a_condition_of_an_older_generation_says_nothing():
    conditions = [{"type": "Ready", "status": "True", "observedGeneration": 1}]
    manifest = {
        "apiVersion": "cert-manager.io/v1", "kind": "Certificate", "metadata": {"name": "x", "generation": 2},
        "status": {"conditions": conditions},
    }  # fmt: skip
    assert health(manifest) == Health(HealthStatus.IN_PROGRESS, "Ready is about generation 1, the object is at 2")
