"""Policies that have the API server refuse a custom resource from whoever may not do by hand what its entrusted fields have a module do.

Vocabulary and rules: ``entrusted``. A kind has one policy, with an expression for each field, which asks the server's authorizer.

Pure: CRDs in, manifests out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kubectl_reconcile.core.module.api import Module
from kubectl_reconcile.core.objects import Manifest, account_user, map_at, maps_in
from kubectl_reconcile.core.planning.rights.entrusted import EACH, EntrustedField, entrusted_fields

_API: Final = "admissionregistration.k8s.io/v1"
_MOST_NAMES: Final = 2
"""How many Secrets are asked for one by one: an expression may cost no more. Whoever names more needs the right to get all of the namespace."""

_RESERVED: Final = frozenset(
    {
        "as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop", "namespace",
        "null", "package", "return", "true", "var", "void", "while",
    }
)  # fmt: skip


def policies(
    crds: Iterable[Manifest], modules: Iterable[Module], namespace: str, labels: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return what has the API server refuse objects of the kinds of *crds* from whoever lacks a right that they take.

    The accounts in *namespace* of those *modules* that own a kind may write it.
    """
    owners, made = tuple(modules), list[dict[str, Any]]()
    for crd in crds:
        for kind, fields in entrusted_fields([crd]).items():
            accounts = sorted(each.account for each in owners if any(own.group_kind == kind for own in each.owns))
            made += _policy(crd, fields, [account_user(namespace, each) for each in accounts], labels)
    return made


def asks_for_more(wanted: Manifest, live: Manifest | None) -> bool:
    """Tell whether a policy, or what binds one, has the API server ask for something that the *live* one doesn't: a field is new, or judged otherwise."""
    if live is None:
        return True

    def asked(policy: Manifest, part: str) -> set[str]:
        return {
            f"{each.get('name', '')} {each.get('expression')}" for each in maps_in(map_at(policy, "spec").get(part))
        }

    if any(asked(wanted, part) - asked(live, part) for part in ("validations", "variables")):
        return True
    return any(
        map_at(wanted, "spec").get(part) != map_at(live, "spec").get(part)
        for part in ("policyName", "validationActions")
    )


def _policy(
    crd: Manifest, fields: Iterable[EntrustedField], accounts: list[str], labels: Mapping[str, str]
) -> list[dict[str, Any]]:
    names = map_at(crd, "spec", "names")
    name = f"reconcile-{names.get('singular') or str(names['kind']).lower()}-rights"
    rule: dict[str, Any] = {
        "apiGroups": [crd["spec"]["group"]],
        "apiVersions": ["*"],
        "operations": ["CREATE", "UPDATE"],
        "resources": [names["plural"]],
        "scope": "*",
    }
    lists = [each for each in fields if EACH in each.path]
    # The API server keeps this part as a whole, with all its defaults: without them it would be written again each time.
    defaults: dict[str, Any] = {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}}
    spec: dict[str, Any] = {
        "failurePolicy": "Fail",
        "matchConstraints": {**defaults, "resourceRules": [rule]},
        **({"matchConditions": [_not_by(accounts)]} if accounts else {}),
        **({"variables": [_variable(each) for each in lists]} if lists else {}),
        "validations": [_validation(each) for each in fields],
    }
    binding = {"policyName": name, "validationActions": ["Deny"]}
    return [
        _object("ValidatingAdmissionPolicy", name, labels, spec),
        _object("ValidatingAdmissionPolicyBinding", name, labels, binding),
    ]


def _object(kind: str, name: str, labels: Mapping[str, str], spec: Mapping[str, Any]) -> dict[str, Any]:
    return {"apiVersion": _API, "kind": kind, "metadata": {"name": name, "labels": dict(labels)}, "spec": dict(spec)}


def _not_by(accounts: list[str]) -> dict[str, str]:
    return {
        "name": "not-by-a-module-that-makes-it",
        "expression": f"!(request.userInfo.username in {_literal(accounts)})",
    }


def _validation(each: EntrustedField) -> dict[str, str]:
    """Return what a field takes, as an expression that is true where nobody need be asked."""
    runs, names = (
        "is used in a pod, and you may not create pods in this namespace",
        "names a Secret that you may not get in this namespace",
    )
    message = f"{str(each)[1:]} {names if each.names_secret else runs}"
    return {"expression": _allowed(each), "message": message, "reason": "Forbidden"}


def _allowed(each: EntrustedField) -> str:
    if EACH in each.path:
        name = f"variables.{_variable_name(each)}"
        one_by_one = f"{name}.all(one, {_asked('secrets', 'get', 'one')})"
        return f"{name}.size() <= {_MOST_NAMES} ? {one_by_one} : {_asked('secrets', 'get')}"
    value = _select("object", each.path)
    is_set = [*_has("object", each.path), *([f"{value} != ''"] if each.names_secret else [])]
    if each.default:
        is_set.append(f"{value} != {each.default}")
    same = [
        "oldObject != null",
        *_has("oldObject", each.compared),
        f"{_select('object', each.compared)} == {_select('oldObject', each.compared)}",
    ]
    right = _asked("secrets", "get", value) if each.names_secret else _asked("pods", "create")
    return f"!({' && '.join(is_set)}) || ({' && '.join(same)}) || {right}"


def _asked(resource: str, verb: str, name: str = "") -> str:
    named = f".name({name})" if name else ""
    group = f"authorizer.group('').resource('{resource}').namespace(object.metadata.namespace)"
    return f"{group}{named}.check('{verb}').allowed()"


def _variable(each: EntrustedField) -> dict[str, str]:
    """Return the names in a list that weren't there before."""
    at = each.path.index(EACH)
    items, below = each.path[:at], each.path[at + 1 :]

    def names(root: str) -> str:
        there = " && ".join(_has("each", below))
        listed = f"{_select(root, items)}.filter(each, {there}).map(each, {_select('each', below)})"
        guards = ["oldObject != null"] if root == "oldObject" else []
        return f"({' && '.join([*guards, *_has(root, items)])} ? {listed} : [])"

    return {
        "name": _variable_name(each),
        "expression": f"{names('object')}.filter(name, !(name in {names('oldObject')}))",
    }


def _variable_name(each: EntrustedField) -> str:
    return "_".join(step for step in each.path if step != EACH)


def _select(root: str, path: Iterable[str]) -> str:
    return ".".join([root, *map(_escaped, path)])


def _has(root: str, path: tuple[str, ...]) -> list[str]:
    return [f"has({_select(root, path[: depth + 1])})" for depth in range(len(path))]


def _escaped(name: str) -> str:
    """Return a name as CEL has it."""
    if name in _RESERVED:
        return f"__{name}__"
    spelled = name.replace("__", "__underscores__")
    return spelled.replace(".", "__dot__").replace("-", "__dash__").replace("/", "__slash__")


def _literal(texts: Iterable[str]) -> str:
    return f"[{', '.join(map(repr, texts))}]"
