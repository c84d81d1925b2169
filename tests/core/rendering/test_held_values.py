"""Values of a chart that ConfigMaps and Secrets hold: which there are, what wins, what is wrong with them, and what says nothing of those of Secrets."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile.core.rendering.held_values import MOST_BYTES, NO_HELD, Unread, held_by
from kubectl_reconcile.core.resources.helm import HelmSpec
from kubectl_reconcile.core.resources.substitute import Holder

PASSWORD = "hunter2-of-shop"


def config(**data):
    return {"kind": "ConfigMap", "metadata": {"uid": "c", "resourceVersion": "1"}, "data": data}


def secret(*, version="1", **data):
    encoded = {key.replace("_", "."): base64.b64encode(text.encode()).decode() for key, text in data.items()}
    return {"kind": "Secret", "metadata": {"uid": "s", "resourceVersion": version}, "data": encoded}


def held(*entries, config=None, secret=None):
    there = {(Holder.CONFIG_MAP, "web"): config, (Holder.SECRET, "web"): secret}
    spec = HelmSpec.of({"valuesFrom": [{"name": "web", **each} for each in entries]})
    gone = {(holder, "web"): Unread(f"there is no {holder} shop/web", is_absent=True) for holder in Holder}
    return held_by(spec.values_from, gone | {each: found for each, found in there.items() if found}, "shop")


MAPS = {"kind": "ConfigMap"}, {"kind": "Secret"}


def test_maps_are_merged_in_order_and_later_entries_win():
    below = config(**{"values.yaml": "db: {host: db, port: 5432, user: web}\nhosts: [a, b]\nextra: null\n"})
    above = secret(values_yaml=f"db: {{password: {PASSWORD}, user: shop}}\nhosts: [c]\n")
    found = held(*MAPS, config=below, secret=above)
    assert found.problems == ()
    assert found.merged() == {
        "db": {"host": "db", "port": 5432, "user": "shop", "password": PASSWORD}, "hosts": ["c"], "extra": None,
    }  # fmt: skip
    assert held(*reversed(MAPS), config=below, secret=above).merged()["db"]["user"] == "web"


def test_a_single_value_goes_to_its_place_and_is_text_unless_its_type_says_otherwise():
    there = secret(password="0123456789", port="5432", half="0.5", on="true")
    entries = [
        {"kind": "ConfigMap"},
        {"kind": "Secret", "valuesKey": "password", "targetPath": "db.password"},
        {"kind": "Secret", "valuesKey": "port", "targetPath": "db.ports[1].port", "type": "Integer"},
        {"kind": "Secret", "valuesKey": "half", "targetPath": "half", "type": "Number"},
        {"kind": "Secret", "valuesKey": "on", "targetPath": r"labels.kubernetes\.io/on", "type": "Boolean"},
        {"kind": "Secret", "valuesKey": "port", "targetPath": "text"},
    ]
    found = held(
        *entries, config=config(**{"values.yaml": "db: {user: web, ports: [{port: 1}, {name: x}]}"}), secret=there
    )
    assert found.problems == ()
    assert found.merged() == {
        "db": {"user": "web", "password": "0123456789", "ports": [{"port": 1}, {"name": "x", "port": 5432}]},
        "half": 0.5,
        "labels": {"kubernetes.io/on": True},
        "text": "5432",
    }


WRONG = {
    "no object": ({}, {}, "there is no Secret shop/web", "create it, or set optional: true in the entry"),
    "no key": (
        {"x": "a: 1"}, {}, "Secret shop/web has no key values.yaml", "name another in valuesKey, or set optional: true in the entry",
    ),
    "no YAML": ({"values_yaml": f"a: [{PASSWORD}\nb: {{"}, {}, "key values.yaml of Secret shop/web, line 2: not valid YAML", ""),
    "an alias that isn't there": (
        {"values_yaml": f"a: *{PASSWORD}"}, {}, "key values.yaml of Secret shop/web, line 1: not valid YAML", "",
    ),
    "no map": (
        {"values_yaml": PASSWORD}, {}, "key values.yaml of Secret shop/web isn't a map of values",
        "to set a single value, add targetPath to the entry",
    ),
    "two documents": ({"values_yaml": "a: 1\n---\nb: 2"}, {}, "key values.yaml of Secret shop/web has 2 YAML documents, not one", ""),
    "no number": (
        {"values_yaml": PASSWORD}, {"targetPath": "a", "type": "Integer"}, "key values.yaml of Secret shop/web is no Integer", "",
    ),
    "neither true nor false": (
        {"values_yaml": "yes"}, {"targetPath": "a", "type": "Boolean"}, "key values.yaml of Secret shop/web is no Boolean", "",
    ),
    "too much": (
        {"values_yaml": "a" * (MOST_BYTES + 1)}, {"targetPath": "a"}, "with it, all entries have more than 1024 KiB of values",
        "put what isn't secret into a values file, and name it in valuesFiles",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("data", "more", "said", "hint"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_names_the_entry_and_nothing_of_a_secret(data, more, said, hint):
    fine = config(**{"values.yaml": "a: 1"})
    found = held(
        {"kind": "ConfigMap"}, {"kind": "Secret", **more}, config=fine, secret=secret(**data) if data else None
    )
    [problem] = found.problems
    assert (problem.path, problem.line, problem.message, problem.hint) == (
        "spec.source.helm.valuesFrom[1]", 0, said, hint,
    )  # fmt: skip
    assert problem.is_error


def test_what_is_wrong_in_a_config_map_is_said_in_full():
    [problem] = held({"kind": "ConfigMap"}, config=config(**{"values.yaml": "a: *there"})).problems
    assert problem.message.startswith("key values.yaml of ConfigMap shop/web, line 1: ")
    assert "there" in problem.message


def test_bytes_that_are_no_text_are_a_problem():
    there = secret() | {"data": {"values.yaml": base64.b64encode(b"\xff\xfe").decode()}}
    [problem] = held({"kind": "Secret"}, secret=there).problems
    assert problem.message == "key values.yaml of Secret shop/web isn't text"


def test_an_optional_entry_may_lack_its_object_or_its_key_but_not_the_right_to_read_it():
    optional = {"kind": "Secret", "optional": True}
    assert held(optional) == held(optional, secret=secret(other="a: 1")) == NO_HELD
    spec = HelmSpec.of({"valuesFrom": [{"name": "web", **optional}]})
    refused = {(Holder.SECRET, "web"): Unread("Secret shop/web may not be read: no")}
    assert [each.message for each in held_by(spec.values_from, refused, "shop").problems] == [
        "Secret shop/web may not be read: no"
    ]


def test_no_repr_and_no_key_has_a_value_of_a_secret_or_lets_it_be_guessed():
    entry = {"kind": "Secret", "valuesKey": "p", "targetPath": "db.password"}
    one, other = (held(entry, secret=secret(p=text)) for text in (PASSWORD, "another"))
    assert PASSWORD not in repr(one)
    assert (one.key, one.stamp) == (other.key, other.stamp)  # whoever knows all but the value can't try values
    again = held(entry, secret=secret(version="2", p=PASSWORD))
    assert (
        len(
            {
                one.key,
                again.key,
                one.altered().key,
                held({**entry, "type": "String", "targetPath": "x"}, secret=secret(p=PASSWORD)).key,
            }
        )
        == 4
    )
    assert one.stamp != again.stamp
    assert held(MAPS[0], config=config(**{"values.yaml": "a: 1"})).stamp == ""


def test_values_of_config_maps_have_keys_of_their_own_whatever_else_is_written_to_them():
    def of(text, **more):
        return held(MAPS[0], config=config(**{"values.yaml": text}, **more)).key

    assert of("a: 1") == of("a: 1", unrelated="x")
    assert of("a: 1") != of("a: 2")


def test_what_is_wrong_with_an_entry_makes_another_key_than_to_lack_it():
    optional = {"kind": "Secret", "optional": True}
    assert held(optional).key != held(optional, secret=secret(values_yaml="- no map")).key


def test_only_what_a_secret_holds_is_altered():
    below, above = (
        config(**{"values.yaml": "a: one\nb: two\n"}),
        secret(values_yaml=f"b: {PASSWORD}\nc: 8080\nd: true\ne: ''\n"),
    )
    found = held(*MAPS, config=below, secret=above)
    altered = found.altered().merged()
    assert altered == {"a": "one", "b": "uhagre7-bs-fubcx", "c": 8079, "d": True, "e": ""}
    assert held(MAPS[0], config=below).altered().merged() == {"a": "one", "b": "two"}
    assert (found.names(), found.texts()) == (("valuesFrom Secret shop/web",), {PASSWORD})
    assert held(MAPS[0], config=below).values() == []


leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**18), 10**18),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(),
)
trees = st.recursive(
    leaves, lambda below: st.lists(below, max_size=4) | st.dictionaries(st.text(max_size=5), below, max_size=4)
)


def same_shape(one, other):
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same_shape(one[name], other[name]) for name in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same_shape, one, other))
    tells_nothing = one is None or isinstance(one, bool) or (
        isinstance(one, str) and (not one.strip() or one.lower() in {"true", "false", "null", "none", "yes", "no", "on", "off"})
    )  # fmt: skip
    return type(one) is type(other) and (one == other) is tells_nothing


@given(trees)
def test_each_value_becomes_another_of_its_sort_at_its_place(tree):
    entry = {"kind": "Secret", "valuesKey": "p", "targetPath": "a"}
    found = held(entry, secret=secret(p="x"))
    [part] = found.parts
    changed = type(found)((type(part)(tree, part.holder, part.place, part.secret, part.stamp),)).altered()
    assert same_shape(tree, changed.parts[0].value)


names = st.text("abcXYZ059_/-.\\", min_size=1, max_size=5)
steps = st.lists(st.tuples(names, st.lists(st.integers(0, 999), max_size=2)), min_size=1, max_size=4)


@given(steps)
def test_a_value_is_found_at_whatever_place_may_be_named(path):
    spelt = [
        name.replace("\\", "\\\\").replace(".", "\\.") + "".join(f"[{at}]" for at in indexes) for name, indexes in path
    ]
    found: Any = held({"kind": "Secret", "targetPath": ".".join(spelt)}, secret=secret(values_yaml="x")).merged()
    for name, indexes in path:
        found = found[name]
        for at in indexes:
            found = found[at]
    assert found == "x"
