"""``spec.source.substitute`` as people write it: what is read, and what is refused by its field."""

import pytest

from kubectl_reconcile.core.resources.fields import SyncSpecError
from kubectl_reconcile.core.resources.substitute import Expressions, Holder, SubstituteSpec, ValueSource, ValueType
from kubectl_reconcile.core.resources.sync import Sync


def sync(*variables, **more):
    source = {"git": {"url": "https://g/x"}, "substitute": {"variables": list(variables), **more}}
    return Sync.of({"metadata": {"name": "shop", "namespace": "shop"}, "spec": {"source": source}})


def test_what_is_declared():
    spec = sync(
        {"name": "A", "value": "", "type": "Integer"},
        {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "cluster"}}, "default": "x"},
        {"name": "C", "valueFrom": {"secretKeyRef": {"name": "cluster", "key": "c.d"}}},
        alsoIn=["ConfigMap"],
    ).source.substitute
    assert [(each.name, each.type, each.value, each.default) for each in spec.variables] == [
        ("A", ValueType.INTEGER, "", None), ("B", ValueType.STRING, None, "x"), ("C", ValueType.STRING, None, None),
    ]  # fmt: skip
    assert [each.source for each in spec.variables][1:] == [
        ValueSource(Holder.CONFIG_MAP, "cluster", "B"), ValueSource(Holder.SECRET, "cluster", "c.d"),
    ]  # fmt: skip
    assert spec.holders == ((Holder.CONFIG_MAP, "cluster"), (Holder.SECRET, "cluster"))
    assert spec.also_in == {"ConfigMap"}
    assert sync().source.substitute.variables == ()


REFUSED = {
    "a name with a dash": ({"name": "A-B", "value": "x"}, "variables[0].name: 'A-B' can't be a name"),
    "no name": ({"value": "x"}, "variables[0].name: '' can't be a name"),
    "neither value nor source": ({"name": "A"}, "variables[0]: give either value or valueFrom"),
    "both": ({"name": "A", "value": "x", "valueFrom": {"secretKeyRef": {"name": "s"}}}, "give either value or valueFrom"),
    "two sources": (
        {"name": "A", "valueFrom": {"secretKeyRef": {"name": "s"}, "configMapKeyRef": {"name": "s"}}}, "exclude each other",
    ),
    "a path for a name": ({"name": "A", "valueFrom": {"secretKeyRef": {"name": "../../b/secrets/c"}}}, "isn't a name of a Secret"),
    "a query for a name": ({"name": "A", "valueFrom": {"configMapKeyRef": {"name": "c?x=y"}}}, "isn't a name of a ConfigMap"),
    "a path for a key": ({"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "../x"}}}, "isn't a key of a Secret"),
    "another type": ({"name": "A", "value": "x", "type": "List"}, "'List' isn't one of String, Integer, Number, Boolean"),
    "a number": ({"name": "A", "value": 3}, "must be text of at most 32 KiB"),
    "a long value": ({"name": "A", "value": "x" * 40_000}, "must be text of at most 32 KiB"),
}  # fmt: skip


@pytest.mark.parametrize(("variable", "said"), REFUSED.values(), ids=REFUSED)
def test_refused_by_its_field_is(variable, said):
    with pytest.raises(SyncSpecError) as refused:
        sync(variable)
    assert str(refused.value).startswith("spec.source.substitute.")
    assert said in str(refused.value)


def test_names_are_declared_once_and_not_by_the_hundred():
    with pytest.raises(SyncSpecError, match="A is declared twice"):
        sync({"name": "A", "value": "x"}, {"name": "A", "value": "y"})
    with pytest.raises(SyncSpecError, match="at most 100"):
        sync(*({"name": f"A{number}", "value": "x"} for number in range(101)))
    with pytest.raises(SyncSpecError, match=r"alsoIn: 'Pod' isn't one of"):
        sync(alsoIn=["Pod"])


NAMES = "can't be a name: letters, digits and _, up to 63, no digit first"
ALONE = "configMapKeyRef and secretKeyRef exclude each other; keep one"


def from_(kind, **ref):
    return {"name": "A", "valueFrom": {f"{kind}KeyRef": ref}}


WHOLE = {
    "a name with a dash": ({"name": "A-B", "value": "x"}, "variables[0].name", f"'A-B' {NAMES}"),
    "a name of 64 letters": ({"name": "a" * 64, "value": "x"}, "variables[0].name", f"'{'a' * 64}' {NAMES}"),
    "another type": (
        {"name": "A", "value": "x", "type": "List"}, "variables[0].type", "'List' isn't one of String, Integer, Number, Boolean",
    ),
    "no value": ({"name": "A"}, "variables[0]", "give either value or valueFrom"),
    "a value that is no text": ({"name": "A", "value": 3}, "variables[0].value", "must be text of at most 32 KiB"),
    "a value of one byte too many": ({"name": "A", "value": "é" * 16_384 + "x"}, "variables[0].value", "must be text of at most 32 KiB"),
    "a default that is no text": (
        {**from_("secret", name="s"), "default": 3}, "variables[0].default", "must be text of at most 32 KiB",
    ),
    "two sources": (
        {"name": "A", "valueFrom": {"secretKeyRef": {"name": "s"}, "configMapKeyRef": {"name": "s"}}}, "variables[0].valueFrom", ALONE,
    ),
    "no name of a Secret": (from_("secret", key="k"), "variables[0].valueFrom", "'' isn't a name of a Secret"),
    "no name of a ConfigMap": (from_("configMap", name="A"), "variables[0].valueFrom", "'A' isn't a name of a ConfigMap"),
    "no key": (from_("secret", name="s", key="a/b"), "variables[0].valueFrom", "'a/b' isn't a key of a Secret"),
}  # fmt: skip


@pytest.mark.parametrize(("variable", "field", "message"), WHOLE.values(), ids=WHOLE)
def test_it_is_said_in_whole(variable, field, message):
    with pytest.raises(SyncSpecError) as refused:
        sync(variable)
    assert (refused.value.field, refused.value.message) == (f"spec.source.substitute.{field}", message)


def test_what_is_wrong_with_several_is_said_in_whole():
    for given, more, field, message in (
        ([{"name": "A", "value": "x"}] * 2, {}, "variables", "A is declared twice; keep one"),
        ([{"name": "A", "value": "x"}] * 101, {}, "variables", "101 are too many; you may declare at most 100"),
        ([], {"expressions": "Bash"}, "expressions", "'Bash' isn't one of None, Defaults"),
        ([], {"alsoIn": ["Secret", "Pod"]}, "alsoIn", "'Pod' isn't one of ConfigMap, CustomResourceDefinition, Secret"),
    ):
        with pytest.raises(SyncSpecError) as refused:
            sync(*given, **more)
        assert (refused.value.field, refused.value.message) == (f"spec.source.substitute.{field}", message)


def test_what_is_at_a_limit_is_read():
    many = sync(*({"name": f"A{number}", "value": "é" * 16_384} for number in range(100))).source.substitute
    assert len(many.variables) == 100
    assert sync({"name": "a" * 63, "value": ""}).source.substitute.variables[0].value == ""


def test_expressions_are_none_unless_defaults_are_asked_for():
    assert sync({"name": "A", "value": "x"}).source.substitute.expressions is Expressions.NONE
    assert sync(expressions="Defaults").source.substitute == SubstituteSpec(expressions=Expressions.DEFAULTS)
