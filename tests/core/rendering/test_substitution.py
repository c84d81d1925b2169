"""Variables in parsed objects: where values go, what stays as it is, and what is said of what is missing."""

import re

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from kubectl_reconcile.core.manifests.parse import Located, VariableUse, parse
from kubectl_reconcile.core.objects import walk
from kubectl_reconcile.core.rendering import substitution
from kubectl_reconcile.core.rendering.substitution import Value, Values, substituted
from kubectl_reconcile.core.rendering.uses import without_secrets
from kubectl_reconcile.core.resources.substitute import MOST_VALUE_BYTES, Expressions, Holder, ValueType

INTEGER, NUMBER, BOOLEAN = ValueType.INTEGER, ValueType.NUMBER, ValueType.BOOLEAN
KNOWN = {
    "ENV": Value("prod"),
    "REPLICAS": Value("3", INTEGER),
    "SHARE": Value("0.5", NUMBER),
    "ON": Value("true", BOOLEAN),
    "TOKEN": Value("s3cret-token", secret=True, stamp="uid/7"),
    "TRICKY": Value("${ENV} $${ENV}"),
}
VALUES = Values(KNOWN, {"GONE": "there is no ConfigMap shop/cluster"})


def located(spec, kind="Deployment", path="a.yaml", line=1, **metadata):
    return Located.of(
        {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web", **metadata}, "spec": spec}, path, line
    )


def filled(spec, values=VALUES, **more):
    return substituted([located(spec, **more)], values, lambda _located, steps: len(steps))


def spec_of(spec, **more):
    [made] = filled(spec, **more).manifests
    return made.manifest["spec"]


PLACES = {
    "within text": ("web-${ENV}.example.com", "web-prod.example.com"),
    "alone": ("${ENV}", "prod"),
    "alone, with a type": ("${REPLICAS}", 3),
    "a number": ("${SHARE}", 0.5),
    "a boolean": ("${ON}", True),
    "typed within text": ("n=${REPLICAS}", "n=3"),
    "several": ("${ENV}${REPLICAS}${ENV}", "prod3prod"),
    "escaped": ("$${ENV}", "${ENV}"),
    "escaped, and declared nowhere": ("$${HOME}", "${HOME}"),
    "a dollar before an escape": ("$$${ENV}", "$${ENV}"),
    "not declared": ("${HOME}", "${HOME}"),
    "a shell's default": ("${ENV:-dev}", "${ENV:-dev}"),
    "a dollar": ("$ENV costs $5", "$ENV costs $5"),
    "braces that never end": ("${ENV", "${ENV"),
    "a regular expression": (r"^/(a|b)$ \.php${", r"^/(a|b)$ \.php${"),
    "a value with variables in it": ("${TRICKY}", "${ENV} $${ENV}"),
}


@pytest.mark.parametrize(("text", "expected"), PLACES.values(), ids=PLACES)
def test_text(text, expected):
    made = spec_of({"a": [{"b": text}]})["a"][0]["b"]
    assert (made, type(made)) == (expected, type(expected))


def test_what_is_no_text_of_an_object_stays_as_it_is():
    spec = {"${ENV}": {"n": 1, "x": None, "y": True, "l": ["${ENV}"]}}
    assert spec_of(spec) == {"${ENV}": {"n": 1, "x": None, "y": True, "l": ["prod"]}}
    odd = Located.of({"apiVersion": "${ENV}/v1", "kind": "${ENV}", "metadata": {"name": "a"}, "spec": {}}, "a.yaml", 1)
    [same] = substituted([odd], VALUES, lambda *_: 0).manifests
    assert same is odd


@pytest.mark.parametrize("kind", ["ConfigMap", "Secret", "CustomResourceDefinition"])
def test_text_for_somebody_else_is_left_alone_but_for_its_metadata_unless_declared(kind):
    given_spec = {"script": "echo ${ENV} ${HOME}"}
    made = filled(given_spec, kind=kind, labels={"env": "${ENV}"})
    assert made.problems == ()
    assert (made.manifests[0].manifest["spec"], made.manifests[0].manifest["metadata"]["labels"]) == (
        given_spec,
        {"env": "prod"},
    )
    declared = Values(KNOWN, also_in=frozenset({kind}))
    assert spec_of(given_spec, kind=kind, values=declared) == {"script": "echo prod ${HOME}"}


def test_names_and_namespaces_may_have_variables_in_them_and_are_looked_at_again():
    [named] = parse(
        b"apiVersion: v1\nkind: Service\nmetadata: {name: '${ENV}-web', namespace: '${ENV}'}\n", "a.yaml"
    ).manifests
    [made] = substituted([named], VALUES, lambda *_: 3).manifests
    assert str(made.ref) == "Service prod/prod-web"
    bad = substituted([named], Values({"ENV": Value("No Name")}), lambda *_: 3)
    assert bad.manifests == ()
    assert [problem.line for problem in bad.problems] == [3, 3]
    assert 'metadata.name "No Name-web" isn\'t a DNS name' in str(bad.problems[0])
    hidden = substituted([named], Values({"ENV": Value("S3 CRET", secret=True)}), lambda *_: 3)
    assert [problem.message for problem in hidden.problems] == [
        "metadata.name contains the value of a Secret, ENV, and everybody can see it",
        "metadata.namespace contains the value of a Secret, ENV, and everybody can see it",
    ]  # fmt: skip
    [undeclared] = substituted([named], Values(), lambda *_: 3).problems[:1]
    assert "has a variable in it that isn't declared" in undeclared.message
    typed = substituted([located({}, labels={"n": "${REPLICAS}"})], VALUES, lambda *_: 0)
    assert "is a number, not text" in typed.problems[0].message


def test_a_declared_name_without_a_value_is_a_problem_at_its_line_and_its_object_is_left_out():
    found = substituted(
        [located({"a": "${GONE}"}), located({"b": "${ENV}"}, path="b.yaml")],
        VALUES,
        lambda _located, steps: len(steps) * 10,
    )
    [problem] = found.problems
    assert str(problem) == "a.yaml:20: ${GONE} has no value: there is no ConfigMap shop/cluster"
    assert problem.is_error
    assert [each.path for each in found.manifests] == ["b.yaml"]


def test_a_name_that_nobody_declares_is_left_and_said_once():
    found = substituted(
        [located({"a": "${HOME}", "b": "${HOME}"}), located({"c": "${PATH} ${HOME}"})], VALUES, lambda *_: 7
    )
    left = "the Sync doesn't declare it; it is left as it is"
    assert [problem.message for problem in found.problems] == [f"${{HOME}}: {left}", f"${{PATH}}: {left}"]
    assert str(found.problems[0]).endswith("or write $${HOME} for the literal text)")
    assert not any(problem.is_error for problem in found.problems)
    [shell] = filled({"a": "${ENV:=dev}"}).problems
    assert "set defaults in the Sync" in shell.message


def test_a_use_tells_where_values_stand_and_never_shows_a_secret():
    [made] = filled({"a": ["x", "${ENV}"], "b": "Bearer ${TOKEN}", "c": "y"}).manifests
    assert made.uses == (
        VariableUse(("spec", "a", 1), ("ENV",)),
        VariableUse(("spec", "b"), ("TOKEN",), secret=True, texts=("Bearer s3cret-token", "s3cret-token")),
    )
    assert "s3cret" not in repr(made.uses)
    assert "s3cret" not in repr(KNOWN["TOKEN"])
    assert without_secrets(made)["spec"] == {"a": ["x", "prod"], "b": "${TOKEN}", "c": "y"}
    assert made.manifest["spec"]["b"] == "Bearer s3cret-token"


def test_a_stamp_tells_values_apart_by_what_a_secret_s_version_is_and_not_by_what_it_holds():
    def stamp(**changed):
        return Values({**KNOWN, **changed}).stamp_of(["ENV", "TOKEN"])

    assert stamp() == stamp(TOKEN=Value("another", secret=True, stamp="uid/7")) == stamp(SHARE=Value("1"))
    assert (
        len(
            {
                stamp(),
                stamp(TOKEN=Value("s3cret-token", secret=True, stamp="uid/8")),
                stamp(ENV=Value("dev", stamp="dev")),
            }
        )
        == 3
    )


UNUSABLE = {
    "no integer": (Value("3.5", INTEGER), "it is no Integer"),
    "no number": (Value("nan", NUMBER), "it is no Number"),
    "no boolean": (Value("yes", BOOLEAN), "it is no Boolean"),
    "too long": (Value("x" * (MOST_VALUE_BYTES + 1)), "it is longer than 32 KiB"),
}


@pytest.mark.parametrize(("value", "said"), UNUSABLE.values(), ids=UNUSABLE)
def test_a_value_that_can_not_be_what_its_type_says_is_told_without_it(value, said):
    assert value.fault() == said


def test_what_values_come_to_is_bounded(monkeypatch):
    monkeypatch.setattr(substitution, "MOST_BYTES", 1000)
    long = Values({"A": Value("x" * 100)})
    work = substitution.Substitution(long, left_bytes=1000)
    with pytest.raises(substitution.TooLargeError, match="more than"):
        work.of(located({"a": "${A}" * 20}))
    bomb = [located({"a": "${A}" * 1000}, path=f"{number}.yaml") for number in range(400)]
    found = substituted(bomb, Values({"A": Value("x" * MOST_VALUE_BYTES)}), lambda *_: 0)
    assert sum(len(each.manifest["spec"]["a"]) for each in found.manifests) <= 32 * 2**20
    assert all(problem.is_error for problem in found.problems)
    assert len(found.problems) == 400 - len(found.manifests)


# --- laws -------------------------------------------------------------------------------------------------

WORDS = st.sampled_from(
    ["${ENV}", "$${ENV}", "${REPLICAS}", "${HOME}", "${", "}", "$", "a", "{ENV}", "", "${ON}", "${TOKEN}", "${TRICKY}"]
)
TEXTS = st.lists(WORDS, max_size=5).map("".join)
SCALARS = st.none() | st.booleans() | st.integers(-5, 5) | TEXTS
TREES = st.recursive(
    SCALARS, lambda below: st.lists(below, max_size=3) | st.dictionaries(TEXTS, below, max_size=3), max_leaves=8
)
SPECS = st.dictionaries(TEXTS, TREES, max_size=3)
PLAIN = Values({name: value for name, value in KNOWN.items() if "$" not in value.text})


def shape(tree):
    """Keys and types, with all text alike."""
    return {path: type(leaf) for path, leaf in walk(tree)}


SAFE = st.lists(st.sampled_from(["${ENV}", "${REPLICAS}", "${HOME}", "a", "}", "${TOKEN}", "{x}"]), max_size=5).map(
    "".join
)


@given(st.dictionaries(st.text(max_size=3), st.lists(SAFE, max_size=3), max_size=3))
def test_once_is_enough_where_neither_values_nor_texts_have_escapes(spec):
    once = spec_of(spec, values=PLAIN)
    assert spec_of(once, values=PLAIN) == once


@given(SPECS)
def test_keys_never_change_and_types_do_only_where_a_type_is_declared(spec):
    text_only = Values({name: Value(value.text) for name, value in KNOWN.items()})
    assert shape(spec_of(spec, values=text_only)) == shape(spec)
    typed = shape(spec_of(spec, values=PLAIN))
    assert typed.keys() == shape(spec).keys()
    changed = [path for path, kind in shape(spec).items() if typed[path] is not kind]
    leaves = dict(walk(spec))
    assert all(leaves[path] in {"${REPLICAS}", "${ON}"} for path in changed)


@given(TEXTS, st.text(max_size=20))
@example("${ENV}", "${ENV}")
@example("$${ENV}${ENV}", "$${ENV}")
def test_what_a_value_holds_is_never_substituted_again(text, value):
    values = Values({"ENV": Value(value), "HOME": Value("never")} if "HOME" in value else {"ENV": Value(value)})
    assume("${HOME}" not in text)
    made = spec_of({"a": text}, values=values)["a"]
    parts = re.split(r"(\$?\$\{[A-Za-z_]\w*\})", text)
    expected = "".join(
        {"${ENV}": value}.get(part, part[1:] if re.fullmatch(r"\$\$\{\w+\}", part) else part) for part in parts
    )
    assert made == expected


@given(SPECS)
def test_nothing_is_mutated_and_what_has_no_variable_is_shared(spec):
    before = repr(spec)
    given_one = located(spec)
    [made] = substituted([given_one], PLAIN, lambda *_: 0).manifests
    assert repr(spec) == before
    assert made.uses or made.manifest["spec"] == spec or "$$" in before


def test_values_are_the_same_whatever_else_was_written_to_what_they_are_read_from():
    read = Values(KNOWN, versions={(Holder.CONFIG_MAP, "cluster"): "1"})
    assert read.is_same_as(Values(KNOWN, versions={(Holder.CONFIG_MAP, "cluster"): "2"}))
    assert not read.is_same_as(Values({}, versions=read.versions))


# --- defaults in braces -------------------------------------------------------------------------------------------------

DEFAULTS = Values(
    {**KNOWN, "EMPTY": Value(""), "ANY": Value("", INTEGER)},
    {"GONE": "there is no ConfigMap shop/cluster", "COUNT": "there is no ConfigMap shop/cluster"},
    expressions=Expressions.DEFAULTS,
    types={"GONE": ValueType.STRING, "COUNT": INTEGER},
)
WITH_DEFAULTS = {
    "a value wins": ("${ENV:=dev}", "prod"),
    "without a value": ("a ${GONE:=x} b", "a x b"),
    "that nobody declares": ("${NEW:-x}/${NEW=y}/${NEW:=z}", "x/y/z"),
    "an empty value": ("${EMPTY:=x}${EMPTY}", "x"),
    "an empty default": ("${NEW:=}", ""),
    "with blanks, colons and dollars": ("${NEW:= a:b=$c-d }", " a:b=$c-d "),
    "text stays text": ("${NEW:=3}", "3"),
    "typed by the Sync": ("${COUNT:=3}", 3),
    "typed, where the value is empty": ("${ANY:-4}", 4),
    "typed, within text": ("n${COUNT:=3}", "n3"),
    "a typed value that is there": ("${REPLICAS:=1}", 3),
    "an escape": ("$${NEW:=x} and $${ENV%%x}", "${NEW:=x} and $${ENV%%x}"),
    "what a value says is left alone": ("${TRICKY:=x}", "${ENV} $${ENV}"),
    "braces of others": ("${{ ENV }} ${1:-x} {ENV:=x}", "${{ ENV }} ${1:-x} {ENV:=x}"),
}


@pytest.mark.parametrize(("text", "wanted"), WITH_DEFAULTS.values(), ids=WITH_DEFAULTS)
def test_a_default_stands_where_there_is_no_value(text, wanted):
    found = filled({"a": text}, DEFAULTS)
    assert found.problems == ()
    [made] = found.manifests
    assert (made.manifest["spec"]["a"], type(made.manifest["spec"]["a"])) == (wanted, type(wanted))


UNKNOWN = {
    "an edit": ("${ENV%%-*}", "${ENV%%-*} has no value: behind the name there may be a default, as in ${NAME:=text}, and nothing else"),
    "a part": ("${ENV:0:3}", "${ENV:0:3} has no value: behind the name"),
    "a demand": ("a ${NEW:?must be set}", "${NEW:?must be set} has no value: behind the name"),
    "a default in a way that Flux doesn't know": ("${NEW-x}", "${NEW-x} has no value: behind the name"),
    "a default of a default": ("${NEW:=${ENV}}", "${NEW:=${ENV} has no value: behind the name"),
    "a default of another type": ("${COUNT:=many}", "${COUNT} has no value: of its default, it is no Integer"),
    "a variable without one": ("${GONE}", "${GONE} has no value: there is no ConfigMap shop/cluster"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), UNKNOWN.values(), ids=UNKNOWN)
def test_what_is_no_default_is_a_problem_with_its_line(text, message):
    found = filled({"a": {"b": text}}, DEFAULTS)
    assert found.manifests == ()
    problem = found.problems[0]
    assert (problem.path, problem.line, problem.is_error) == ("a.yaml", 3, True)
    assert problem.message.startswith(message)


def test_without_the_option_a_default_stays_as_it_is():
    assert spec_of({"a": "${NEW:=x} ${ENV:=y}"}) == {"a": "${NEW:=x} ${ENV:=y}"}


def test_a_name_may_have_a_default():
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web-${NEW:=x}\n  labels: {a: '${ENV:=b}'}\n"
    parsed = parse(text, "a.yaml")
    assert parsed.problems == ()
    [made] = substituted(parsed.manifests, DEFAULTS, lambda *_: 0).manifests
    assert (made.ref.name, made.manifest["metadata"]["labels"]) == ("web-x", {"a": "prod"})
    hints = {each.hint for each in substituted(parsed.manifests, VALUES, lambda *_: 4).problems}
    assert "set spec.source.substitute.expressions of the Sync to Defaults" in hints


@given(st.dictionaries(st.text(max_size=3), st.text("${}AB:=-x", max_size=20), max_size=4))
def test_no_text_makes_a_default_do_more_than_stand_in_its_place(spec):
    found = filled(spec, DEFAULTS)
    for made in found.manifests:
        assert made.manifest["spec"].keys() == spec.keys()
        for name, text in spec.items():
            if "${" not in text:
                assert made.manifest["spec"][name] == text
