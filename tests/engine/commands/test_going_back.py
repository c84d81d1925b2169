"""How a Sync is taken back to what it said of its chart, and forward again: patches, on plain values."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile.core.resources.source import chart_settings
from kubectl_reconcile.engine.commands.suspend_resume import (
    _pinned,
    _resumed,
    followed_before,
    follows_text,
    is_pinned,
    ref_of,
    ref_text,
    replacing,
    settings_as_written,
)

leaves = st.one_of(st.booleans(), st.integers(), st.text(max_size=3), st.lists(st.integers(), max_size=2))
settings = st.recursive(
    st.dictionaries(st.sampled_from("abc"), leaves, max_size=3),
    lambda below: st.dictionaries(st.sampled_from("abc"), st.one_of(leaves, below), max_size=3),
    max_leaves=8,
)


def patched(target: Any, patch: Any) -> Any:
    """A JSON merge patch, as RFC 7396 has it."""
    if not isinstance(patch, dict):
        return patch
    found = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            found.pop(name, None)
        else:
            found[name] = patched(found.get(name), value)
    return found


@given(settings, settings)
def test_the_patch_leaves_nothing_of_what_was_there(before, after):
    assert patched(before, replacing(before, after)) == after


PIN = {"repository": "https://charts.example.com", "name": "web"}
OLD, NEW = ({**PIN, "version": version} for version in ("1.2.3", "1.3.0"))
WRITTEN = {
    "where it belongs": {"chart": NEW, "helm": {"values": {"size": 1}}},
    "where earlier versions had it": {"helm": {"chart": NEW, "values": {"size": 1}}},
    "with nothing beside it": {"chart": NEW},
    "nowhere": {"helm": {"lookup": "Cluster"}},
}
BACK = {
    "another version": {"chart": OLD, "values": {"size": 1}},
    "another version with nothing beside it": {"chart": OLD},
    "no chart": {"values": {"size": 2}},
    "nothing": {},
}


@pytest.mark.parametrize("settings", BACK.values(), ids=BACK)
@pytest.mark.parametrize("source", WRITTEN.values(), ids=WRITTEN)
def test_a_chart_goes_back_where_the_sync_has_it_and_forward_again(source, settings):
    live = {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"source": {"git": {"branch": "main"}, **source}}}
    pinned = patched(live, _pinned(live, "c0ffee", settings))
    assert chart_settings(pinned) == settings
    assert pinned["spec"]["source"]["git"] == {"commit": "c0ffee"}
    assert "chart" not in pinned["spec"]["source"].get("helm", {}) or "chart" in source.get("helm", {})
    resumed = patched(pinned, _resumed(pinned))
    assert chart_settings(resumed) == chart_settings(live)
    assert resumed["spec"]["source"]["git"] == {"branch": "main"}


DIGEST = "sha256:" + "ab" * 32
ALONE = {
    "where it belongs": {"chart": {**NEW, "digest": DIGEST, "interval": "5m"}, "helm": {"values": {"size": 1}}},
    "where earlier versions had it": {"helm": {"chart": {**NEW, "digest": DIGEST}, "values": {"size": 1}}},
    "with nothing beside it": {"chart": {**NEW, "digest": DIGEST}},
    "signed": {"chart": {**NEW, "digest": DIGEST, "verify": {"secretRef": {"name": "keys"}}}},
}
EARLIER = {"chart": {**OLD, "digest": DIGEST}, "values": {"size": 2}}
REVISION = f"1.2.3@{DIGEST}"


def alone(source):
    return {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"source": source}}


@pytest.mark.parametrize("source", ALONE.values(), ids=ALONE)
def test_a_chart_without_git_goes_back_to_a_version_and_forward_again(source):
    live = alone(source)
    pinned = patched(live, _pinned(live, REVISION, EARLIER))
    assert chart_settings(pinned) == EARLIER
    assert "git" not in pinned["spec"]["source"]
    assert is_pinned(pinned)
    assert not is_pinned(live)
    assert (ref_text(ref_of(pinned)), ref_text(followed_before(pinned))) == ("chart web 1.2.3", "chart web 1.3.0")
    assert pinned["spec"]["source"].get("chart", {}).get("verify") == source.get("chart", {}).get("verify")
    resumed = patched(pinned, _resumed(pinned))
    assert resumed["spec"]["source"] == source
    assert not is_pinned(resumed)


def test_a_chart_that_has_to_be_signed_still_has_to_be_where_it_is_looked_at_as_it_was():
    written = settings_as_written(alone(ALONE["signed"]), EARLIER)
    assert written["chart"] == {**EARLIER["chart"], "verify": {"secretRef": {"name": "keys"}}}


def test_a_chart_that_is_pinned_twice_goes_forward_to_what_it_was_at_first():
    live = alone(ALONE["where it belongs"])
    once = patched(live, _pinned(live, REVISION, EARLIER))
    oldest = {"chart": {**PIN, "version": "1.0.0", "digest": DIGEST}}
    twice = patched(once, _pinned(once, f"1.0.0@{DIGEST}", oldest))
    assert (is_pinned(twice), chart_settings(twice)) == (True, oldest)
    assert patched(twice, _resumed(twice))["spec"]["source"] == live["spec"]["source"]


def test_a_chart_can_be_pinned_where_it_is():
    live = alone(ALONE["where it belongs"])
    pinned = patched(live, _pinned(live, f"1.3.0@{DIGEST}", None))
    assert (is_pinned(pinned), pinned["spec"]["source"]) == (True, live["spec"]["source"])
    assert patched(pinned, _resumed(pinned))["spec"]["source"] == live["spec"]["source"]


def test_a_chart_that_somebody_has_moved_since_is_no_longer_pinned():
    live = alone(ALONE["where it belongs"])
    pinned = patched(live, _pinned(live, REVISION, EARLIER))
    moved = patched(pinned, {"spec": {"source": {"chart": {"version": "1.4.0"}}}})
    assert not is_pinned(moved)
    assert "source" not in _resumed(moved)["spec"]


@pytest.mark.parametrize("noted", ["", "[]", "{", '{"helm": 3}', '{"to": ["x"]}', '{"helm": {"chart": 7}}'])
def test_what_somebody_else_wrote_into_the_annotation_is_no_version(noted):
    live = alone(ALONE["where it belongs"])
    live["metadata"]["annotations"] = {"reconcile.dev/pinned-from": noted}
    assert not is_pinned(live)
    assert followed_before(live) == {}


FOLLOWED = {
    "a tag": {"url": "oci://registry.example.com/shop", "tag": "1.4"},
    "a range": {"url": "oci://registry.example.com/shop", "semver": "1.x"},
    "no tag": {"url": "oci://registry.example.com/shop"},
    "a digest": {"url": "oci://registry.example.com/shop", "digest": f"sha256:{'cd' * 32}"},
}


@pytest.mark.parametrize("said", FOLLOWED.values(), ids=FOLLOWED)
def test_an_artifact_goes_back_to_a_digest_and_forward_again(said):
    live = {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"source": {"oci": said}}}
    pinned = patched(live, _pinned(live, f"1.3@{DIGEST}", None))
    assert pinned["spec"]["source"]["oci"] == {"url": said["url"], "tag": "1.3", "digest": DIGEST}
    assert (is_pinned(pinned), is_pinned(live)) == (True, False)
    assert ref_text(ref_of(pinned)) == "digest sha256:abababa"
    assert followed_before(pinned) == {name: value for name, value in said.items() if name != "url"}
    assert patched(pinned, _resumed(pinned))["spec"]["source"]["oci"] == said


REFS = {
    "the default branch": {},
    "a branch": {"branch": "main"},
    "a tag": {"tag": "v1.4.2"},
    "a range of versions": {"semver": "1.x"},
    "another commit": {"commit": "cd" * 20},
}


@pytest.mark.parametrize("ref", REFS.values(), ids=REFS)
def test_a_repository_goes_back_to_a_commit_and_forward_again(ref):
    said = {"url": "https://git.example.com/shop", **ref}
    live = {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"source": {"git": said}}}
    pinned = patched(live, _pinned(live, "ab" * 20, None))
    assert pinned["spec"]["source"]["git"] == {"url": said["url"], "commit": "ab" * 20}
    assert (is_pinned(pinned), is_pinned(live), followed_before(pinned)) == (True, False, ref)
    assert patched(pinned, _resumed(pinned))["spec"]["source"]["git"] == said


FOLLOWS = {
    "a range, which has led to a tag": ({"git": {"semver": "1.x"}}, "semver 1.x (v1.4.2)"),
    "a branch, whatever a range led to before": ({"git": {"branch": "main"}}, "branch main"),
    "a commit that it was rolled back to": ({"git": {"commit": "ab" * 20}}, "commit abababa"),
    "a range of artifacts, whose revision has the tag": ({"oci": {"semver": "1.x"}}, "semver 1.x"),
}


@pytest.mark.parametrize(("source", "said"), FOLLOWS.values(), ids=FOLLOWS)
def test_what_is_followed_is_said_with_the_tag_that_a_range_has_led_to(source, said):
    assert follows_text({"spec": {"source": source}, "status": {"lastAttemptedTag": "v1.4.2"}}) == said
    assert follows_text({"spec": {"source": source}}) == said.removesuffix(" (v1.4.2)")
