"""What a rendering draws: found by rendering twice, held at what is live, drawn where nothing is."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile.core.manifests.parse import Located
from kubectl_reconcile.core.manifests.revision import Revision
from kubectl_reconcile.core.rendering.rendered import RenderedObject, Rendering, objects_of, paired, revision_of
from kubectl_reconcile.core.rendering.unstable import (
    DRAWN_LATER,
    RandomNameError,
    drawn_between,
    held,
    hidden,
    must_fit,
    shown,
    values_at,
    with_placeholders,
)
from kubectl_reconcile.core.resources.helm import Unstable


def encoded(text):
    return base64.b64encode(text.encode()).decode()


def secret(name="db", **fields):
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "shop"}, **fields}


def located(first, second):
    return with_placeholders(Located.of(first, "web/templates/a.yaml", -1), drawn_between(first, second))


PODS = {"containers": [{"name": "a", "env": [{"name": "X", "value": "1"}]}, {"name": "b"}]}
OTHERS = {"containers": [{"name": "a", "env": [{"name": "X", "value": "2"}]}, {"name": "b"}]}
DIFFERENCES = {
    "nothing": (secret(data={"a": "eA=="}), secret(data={"a": "eA=="}), []),
    "a value": (secret(stringData={"a": "x", "b": "y"}), secret(stringData={"a": "z", "b": "y"}), [".stringData.a"]),
    "an annotation": (
        secret(metadata={"name": "db", "annotations": {"checksum/a": "1"}}), secret(metadata={"name": "db", "annotations": {"checksum/a": "2"}}),
        ['.metadata.annotations["checksum/a"]'],
    ),
    "within lists": (secret(spec=PODS), secret(spec=OTHERS), [".spec.containers[0].env[0].value"]),
    "a list of another length": (secret(spec={"a": [1]}), secret(spec={"a": [1, 2]}), [".spec.a"]),
    "another type": (secret(spec={"a": 1}), secret(spec={"a": "1"}), [".spec.a"]),
    "true isn't one": (secret(spec={"a": 1}), secret(spec={"a": True}), [".spec.a"]),
}  # fmt: skip


@pytest.mark.parametrize(("first", "second", "paths"), DIFFERENCES.values(), ids=DIFFERENCES)
def test_where_two_renderings_differ_is_drawn(first, second, paths):
    assert [shown(each.path) for each in drawn_between(first, second)] == paths


NAMES = {
    "name": (secret("a"), secret("b"), "name"),
    "kind": (secret(), {**secret(), "kind": "ConfigMap"}, "kind"),
    "namespace": (secret(), secret(metadata={"name": "db", "namespace": "other"}), "namespace"),
    "entries": (secret(data={"a": "x"}), secret(data={"b": "x"}), "names of entries in .data"),
}


@pytest.mark.parametrize(("first", "second", "said"), NAMES.values(), ids=NAMES)
def test_a_name_can_t_be_held(first, second, said):
    with pytest.raises(RandomNameError, match=said):
        drawn_between(first, second)


def test_what_is_asked_for_is_the_same_however_often_it_is_rendered():
    one, other = (
        located(secret(data={"a": "x"}), secret(data={"a": "y"})),
        located(secret(data={"a": "p"}), secret(data={"a": "q"})),
    )
    assert one.manifest == other.manifest
    assert one == other
    assert "'x'" not in repr(one)
    assert one.manifest["data"] == {"a": DRAWN_LATER}


PASSWORD = located(
    secret(stringData={"password": "first", "user": "me"}), secret(stringData={"password": "second", "user": "me"})
)


def test_a_password_is_drawn_once_and_kept():
    created = held(PASSWORD, None)
    assert (created.manifest["stringData"], created.missing) == (
        {"password": "first", "user": "me"},
        (("stringData", "password"),),
    )
    live = secret(data={"password": encoded("first"), "user": encoded("me")})
    again = located(
        secret(stringData={"password": "third", "user": "you"}),
        secret(stringData={"password": "fourth", "user": "you"}),
    )
    kept = held(again, live)
    assert (kept.manifest["stringData"], kept.missing, kept.changed) == ({"password": "first", "user": "you"}, (), ())


def test_what_somebody_rotated_by_hand_is_kept_too():
    assert held(PASSWORD, secret(data={"password": encoded("by hand")})).manifest["stringData"]["password"] == "by hand"


def test_an_entry_that_is_gone_is_drawn():
    found = held(PASSWORD, secret(data={"user": encoded("me")}))
    assert (found.manifest["stringData"]["password"], found.missing) == ("first", (("stringData", "password"),))


def test_a_live_value_that_is_no_text_is_kept_as_it_is():
    raw = base64.b64encode(b"\xff\xfe").decode()
    manifest = held(PASSWORD, secret(data={"password": raw})).manifest
    assert (manifest["stringData"], manifest["data"]) == ({"user": "me"}, {"password": raw})


def test_items_of_lists_are_found_by_their_names():
    asked = located(secret(spec=PODS), secret(spec=OTHERS))
    live = secret(
        spec={
            "containers": [
                {"name": "injected"},
                {"name": "a", "env": [{"name": "Y", "value": "0"}, {"name": "X", "value": "7"}]},
            ]
        }
    )
    assert held(asked, live).manifest["spec"]["containers"][0]["env"][0]["value"] == "7"
    assert (
        held(asked, secret(spec={"containers": [{"name": "b"}]})).manifest["spec"]["containers"][0]["env"][0]["value"]
        == "1"
    )


AROUND = {
    "something else around it": ("user=me;pin=7abc;port=1", "user=you;pin=1234;port=1", True),
    "another end": ("user=me;pin=7abc;port=1", "user=me;pin=1234;port=2", True),
    "the same around it": ("user=me;pin=7abc;port=1", "user=me;pin=zzz;port=1", False),
}


@pytest.mark.parametrize(("rendered", "live", "is_changed"), AROUND.values(), ids=AROUND)
@pytest.mark.parametrize("field", ["data", "spec"])
def test_what_git_changes_around_a_drawn_value_is_noticed(rendered, live, is_changed, field):
    write = encoded if field == "data" else str
    other = rendered.replace("7abc", "9xyz")
    asked = located(secret(**{field: {"a": write(rendered)}}), secret(**{field: {"a": write(other)}}))
    found = held(asked, secret(**{field: {"a": write(live)}}))
    assert found.manifest[field]["a"] == write(live)
    assert bool(found.changed) is is_changed


ALPHABET = st.text("abcXYZ019", min_size=8, max_size=8)


@given(*[ALPHABET] * 3)
def test_a_held_object_asks_for_what_is_live_and_nothing_else(first, second, third):
    asked = located(secret(stringData={"a": first, "b": "c"}), secret(stringData={"a": f"{second}!", "b": "c"}))
    created = held(asked, None).manifest
    live = secret(data={name: encoded(value) for name, value in created["stringData"].items()})
    later = located(secret(stringData={"a": third, "b": "c"}), secret(stringData={"a": f"{first}!", "b": "c"}))
    assert held(later, live).manifest == created
    assert held(later, live).missing == ()


CERTIFICATE = "-----BEGIN CERTIFICATE-----\n%s\n-----END CERTIFICATE-----\n"


def test_certificates_and_hashes_must_fit_what_their_secret_draws_besides():
    def fitting(**fields):
        first = {name: value % "a" if "%s" in value else f"{value}1" for name, value in fields.items()}
        second = {name: value % "b" if "%s" in value else f"{value}2" for name, value in fields.items()}
        return [path[1] for path in must_fit(located(secret(stringData=first), secret(stringData=second)))]

    assert fitting(one="x", two="y") == []
    assert fitting(cert=CERTIFICATE, more="x") == ["cert", "more"]
    assert fitting(password="x", hash="me:$2a$10$abc%s") == ["password", "hash"]
    hook = {"apiVersion": "v1", "kind": "Hook", "metadata": {"name": "h"}}
    first = {**hook, "webhooks": [{"name": "w", "caBundle": encoded(CERTIFICATE % "a"), "id": "1"}]}
    second = {**hook, "webhooks": [{"name": "w", "caBundle": encoded(CERTIFICATE % "b"), "id": "2"}]}
    assert must_fit(located(first, second)) == (("webhooks", 0, "caBundle"),)


def test_what_was_drawn_is_hidden_and_found():
    paths = [("spec", "a"), ("spec", "none"), ("x", 3)]
    assert hidden({"spec": {"a": 1, "b": 2}}, paths) == {"spec": {"a": DRAWN_LATER, "b": 2}}
    assert hidden(None, paths) is None
    assert values_at({"spec": {"a": 1}}, paths) == [1]


# -- in a rendering ----------------------------------------------------------------------------------------------------

FILE = "web/templates/a.yaml"


def rendering(first, second):
    both = paired((RenderedObject(json.dumps(first), FILE),), (RenderedObject(json.dumps(second), FILE),))
    return Rendering(both, (), {})


def test_two_renderings_are_paired_by_their_files():
    one, other = RenderedObject("a", "x"), RenderedObject("b", "x")
    assert paired((one, one), (other, one)) == (RenderedObject("a", "x", "b"), one)
    assert paired((one,), (RenderedObject("a", "y"),)) is None
    assert paired((one,), ()) is None


POLICIES = {
    Unstable.KEEP: (
        DRAWN_LATER,
        "Secret shop/db: .data.a is generated again at each rendering; the live value is kept",
    ),
    Unstable.RENDER: (
        "x",
        "Secret shop/db: .data.a is generated again at each rendering; a different one is applied each time",
    ),
    Unstable.FAIL: (None, "Secret shop/db: .data.a is generated again at each rendering"),
}


@pytest.mark.parametrize("policy", POLICIES)
def test_what_is_drawn_is_named_and_treated_as_the_sync_says(policy):
    value, said = POLICIES[policy]
    found = objects_of(rendering(secret(data={"a": "x"}), secret(data={"a": "y"})), policy)
    [problem] = found.problems
    assert (problem.path, problem.message, problem.is_error) == (FILE, said, policy is Unstable.FAIL)
    assert [each.manifest["data"]["a"] for each in found.manifests] == [value] * (value is not None)


def test_a_random_name_is_refused_whatever_the_sync_says():
    for policy in Unstable:
        found = objects_of(rendering(secret("a"), secret("b")), policy)
        assert [(each.message, each.is_error) for each in found.problems] == [
            ("Secret: its name differs at each rendering", True)
        ]
        assert found.manifests == ()


def test_a_revision_is_the_same_whatever_was_drawn():
    def files(first, second):
        made = rendering(secret(data={"a": first, "b": "1"}), secret(data={"a": second, "b": "1"}))
        return revision_of(Revision("c0ffee", "2026-11-22T00:00:00Z", {}), made, objects_of(made)).files

    assert files("x", "y") == files("p", "q")
