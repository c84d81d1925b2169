"""kubectl's JSONPath templates, on plain trees; the expected texts are what kubectl prints for the same list."""

import pytest

from kubectl_reconcile.cli.output.data.jsonpath import JsonPathError, Template

WEB = {"name": "web", "labels": {"app.kubernetes.io/name": "shop", "part-of": "front"}}
READY = {"type": "Ready", "status": "True"}
LIST = {
    "kind": "List",
    "items": [
        {"metadata": WEB, "replicas": 1, "paused": True, "status": {"conditions": [{"type": "Stalled"}, READY]}},
        {"metadata": {"name": "cache"}, "replicas": 2},
    ],
}

TEMPLATES = {
    "a field": ("{.kind}", "List"),
    "without braces": (".items[0].metadata.name", "web"),
    "without a dot either": ("items[1].metadata.name", "cache"),
    "from the root": ("{$.kind}", "List"),
    "all of a list": ("{.items[*].metadata.name}", "web cache"),
    "counted from the end": ("{.items[-1:].replicas}", "2"),
    "several by number": ("{.items[0,1].replicas}", "1 2"),
    "wherever it is": ("{..name}", "web cache"),
    "text around it": ("kind: {.kind}!", "kind: List!"),
    "quoted text": ("{.kind}{'\\t'}{\"}\"}", "List\t}"),
    "item by item": (
        '{range .items[*]}{.metadata.name}{"\\t"}{.replicas}{"\\n"}{end}',
        "web\t1\ncache\t2\n",
    ),
    "the root within a range": ("{range .items[*]}{$.kind}/{@.replicas} {end}", "List/1 List/2 "),
    "a name with dots": ("{.items[0].metadata.labels.app\\.kubernetes\\.io/name}", "shop"),
    "the same in quotes": ("{.items[0].metadata.labels['app\\.kubernetes\\.io/name']}", "shop"),
    "a name with a dash": ("{.items[0].metadata.labels.part-of}", "front"),
    "chosen by a number": ("{.items[?(@.replicas==2)].metadata.name}", "cache"),
    "chosen by a comparison with a fraction": ("{.items[?(@.replicas > 1.5)].metadata.name}", "cache"),
    "chosen by a text": ('{.items[0].status.conditions[?(@.type=="Ready")].status}', "True"),
    "chosen by being there": ("{.items[?(@.metadata.labels.part-of)].metadata.name}", "web"),
    "a boolean": ("{.items[0].paused}", "true"),
    "a map": ("{.items[1]}", '{"metadata":{"name":"cache"},"replicas":2}'),
    "what isn't there": ("{.nothing.at.all}", ""),
    "two expressions": ("{.kind .items[0].replicas}", "List1"),
}


@pytest.mark.parametrize(("template", "expected"), TEMPLATES.values(), ids=TEMPLATES)
def test_template(template, expected):
    assert Template.parse(template).fill(LIST) == expected


SHOP = {
    "metadata": {"name": "shop", "labels": {"app.kubernetes.io/name": "shop", "a": "b"}},
    "spec": {"suspend": False, "path": "apps"},
    "status": {
        "conditions": [
            {"type": "Ready", "status": "True", "generation": 3},
            {"type": "Stalled", "status": "False", "generation": 2},
        ]
    },
}
SYNCS = {"items": [SHOP, {"metadata": {"name": "blog"}}]}

FILLED = {
    "a field": ("{.metadata.name}", SHOP, "shop"),
    "a field without braces": (".metadata.name", SHOP, "shop"),
    "a field without anything": ("metadata.name", SHOP, "shop"),
    "from the root": ("{$.metadata.name}", SHOP, "shop"),
    "text around it": ("name={.metadata.name}!", SHOP, "name=shop!"),
    "a quoted text with an escape": (r'{.metadata.name}{"\n"}', SHOP, "shop\n"),
    "a text in single quotes": ("{'a'}{.metadata.name}", SHOP, "ashop"),
    "all items": ("{.items[*].metadata.name}", SYNCS, "shop blog"),
    "one item": ("{.items[1].metadata.name}", SYNCS, "blog"),
    "the last item": ("{.items[-1].metadata.name}", SYNCS, "blog"),
    "some items": ("{.items[0:1].metadata.name}", SYNCS, "shop"),
    "what isn't there": ("{.spec.nothing.at.all}", SHOP, ""),
    "a boolean": ("{.spec.suspend}", SHOP, "false"),
    "a whole map": ("{.spec}", SHOP, '{"suspend":false,"path":"apps"}'),
    "a key with dots, escaped": (r"{.metadata.labels.app\.kubernetes\.io/name}", SHOP, "shop"),
    "a key with dots, in brackets": ("{.metadata.labels['app.kubernetes.io/name']}", SHOP, "shop"),
    "a filter by text": ('{.status.conditions[?(@.type=="Ready")].status}', SHOP, "True"),
    "a filter by number": ("{.status.conditions[?(@.generation>2)].type}", SHOP, "Ready"),
    "a filter that compares apples with pears": ("{.status.conditions[?(@.type>2)].type}", SHOP, ""),
    "a filter by presence": ("{.items[?(@.spec)].metadata.name}", SYNCS, "shop"),
    "any depth": ("{..name}", SYNCS, "shop blog"),
    "a range": (r'{range .items[*]}{.metadata.name}{"\t"}{end}', SYNCS, "shop\tblog\t"),
    "a range within a range": (
        "{range .items[*]}{.metadata.name}:{range .status.conditions[*]}{.type},{end};{end}", SYNCS,
        "shop:Ready,Stalled,;blog:;",
    ),
    "the whole": ("{@}", {"a": 1}, '{"a":1}'),
}  # fmt: skip


@pytest.mark.parametrize(("template", "tree", "expected"), FILLED.values(), ids=FILLED)
def test_templates_over_syncs(template, tree, expected):
    assert Template.parse(template).fill(tree) == expected


REFUSED = {
    "an open brace": ("{.kind", "a brace isn't closed near '{.kind'"),
    "an open bracket": ("{.items[}", "{.items[} isn't an expression"),
    "nothing": ("", "a template is missing"),
    "an empty action": ("{}", "{} isn't an expression"),
    "a filter that is none": ("{.items[?(nonsense)]}", "can't be read: unexpected 'nonsense'"),
    "an end without a beginning": ("{end}", "{end} without {range}"),
    "a beginning without an end": ("{range .items[*]}", "{range} without {end}"),
    "a range of nothing": ("{range}{end}", "{range} needs one expression"),
    "a comparison with nothing": ("{.items[?(@.a=)]}", "can't be read"),
}


@pytest.mark.parametrize(("template", "message"), REFUSED.values(), ids=REFUSED)
def test_what_can_t_be_meant_is_refused(template, message):
    with pytest.raises(JsonPathError) as raised:
        Template.parse(template)
    assert message in str(raised.value)
