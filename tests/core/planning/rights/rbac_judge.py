"""A tiny RBAC: what a user may do by the Roles and bindings that there are, as the API server judges it.

Written from the documentation of RBAC, on its own: it shares nothing with the program.
"""

from __future__ import annotations

from itertools import product


class Rbac:
    """Rbac(objects).may("system:serviceaccount:shop:bot", "get", "", "secrets", "shop", "token")"""

    def __init__(self, objects):
        self.objects = list(objects)

    def rules(self, user, namespace):
        """The rules that hold for a user in a namespace; with none, those that hold everywhere."""
        for each in self.objects:
            place = each["metadata"].get("namespace", "")
            if each["kind"] == "ClusterRoleBinding" or (
                each["kind"] == "RoleBinding" and namespace and place == namespace
            ):
                names = [f"system:serviceaccount:{one['namespace']}:{one['name']}" for one in each["subjects"]]
                if user in names:
                    yield from self._role(each["roleRef"], place).get("rules") or ()

    def _role(self, ref, namespace):
        for each in self.objects:
            place = each["metadata"].get("namespace", "")
            if (each["kind"], each["metadata"]["name"]) == (ref["kind"], ref["name"]) and place in {namespace, ""}:
                return each
        return {}

    def may(self, user, verb, group, resource, namespace, name):
        return any(allows(rule, verb, group, resource, name) for rule in self.rules(user, namespace))

    def holds(self, user, rules, namespace):
        """Whether the user may give these rules to others: each single part of them is within one that they hold."""
        held = list(self.rules(user, namespace))
        return all(any(includes(one, part) for one in held) for rule in rules for part in parts(rule))


def has(values, value):
    return value in values or "*" in values


def allows(rule, verb, group, resource, name):
    names = rule.get("resourceNames") or []
    return (
        has(rule["verbs"], verb)
        and has(rule.get("apiGroups", ()), group)
        and has(rule.get("resources", ()), resource)
        and (not names or name in names)
    )


def parts(rule):
    if rule.get("nonResourceURLs"):
        for url, verb in product(rule["nonResourceURLs"], rule["verbs"]):
            yield {"nonResourceURLs": [url], "verbs": [verb]}
        return
    for group, resource, verb in product(rule["apiGroups"], rule["resources"], rule["verbs"]):
        for name in rule.get("resourceNames") or [None]:
            yield {
                "apiGroups": [group],
                "resources": [resource],
                "verbs": [verb],
                **({"resourceNames": [name]} if name else {}),
            }


def includes(rule, part):
    if "nonResourceURLs" in part:
        url = part["nonResourceURLs"][0]
        within = any(
            one == url or (one.endswith("*") and url.startswith(one[:-1])) for one in rule.get("nonResourceURLs") or ()
        )
        return within and has(rule["verbs"], part["verbs"][0])
    names, named = rule.get("resourceNames") or [], part.get("resourceNames") or []
    return (
        not rule.get("nonResourceURLs")
        and has(rule["verbs"], part["verbs"][0])
        and has(rule["apiGroups"], part["apiGroups"][0])
        and has(rule["resources"], part["resources"][0])
        and (not names or (bool(named) and set(named) <= set(names)))
    )
