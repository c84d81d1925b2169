"""What values files may become so that a chart asks for a value of the cluster."""

from __future__ import annotations

import pytest

from kubectl_reconcile.core.rendering.chart_values import ValuesFile, proposals

DEFAULTS = "# defaults\nreplicas: 1\nimage: {repository: r:5000/web, tag: '1.0'}\nargs: [a, b]\ndebug: false\n"
PROD = "# prod\nreplicas: 3\n"


def proposed(now, value, *texts):
    files = [ValuesFile(f"{at}.yaml", text.encode(), at == len(texts) - 1) for at, text in enumerate(texts)]
    return [{name: data.decode() for name, data in each.files.items()} for each in proposals(files, now, value)]


ALONE = {
    "a number": (1, 2, "replicas: 1", "replicas: 2"),
    "a number that is text there": ("1", "2", "replicas: 1", 'replicas: "2"'),
    "a boolean": (False, True, "debug: false", "debug: true"),
    "a tag": ("r:5000/web:1.0", "r:5000/web:2.0", "'1.0'", "'2.0'"),
    "a repository": ("r:5000/web:1.0", "other:1.0", "r:5000/web,", "other,"),
    "a list": (["a", "b"], ["a", "c"], "args: [a, b]", "args:\n- a\n- c"),
}


@pytest.mark.parametrize(("now", "value", "old", "new"), ALONE.values(), ids=ALONE)
def test_a_value_that_is_what_the_field_is_becomes_another(now, value, old, new):
    found = proposed(now, value, DEFAULTS)
    assert len(found) == 1
    assert found[0] == {"0.yaml": DEFAULTS.replace(old, new)}


def test_the_file_that_counts_most_comes_first_and_defaults_are_stated_there():
    assert proposed(3, 5, PROD, DEFAULTS) == [{"0.yaml": PROD.replace("3", "5")}]
    assert proposed("r:5000/web:1.0", "r:5000/web:2", PROD, DEFAULTS) == [{"0.yaml": PROD + 'image:\n  tag: "2"\n'}]
    both = proposed(1, 5, PROD.replace("3", "1"), DEFAULTS)
    assert both == [{"0.yaml": PROD.replace("3", "5")}] * 2


NONE = {
    "both parts of an image": ("r:5000/web:1.0", "other:2", DEFAULTS),
    "what no value is": ("x", "y", DEFAULTS),
    "no values": ("x", "y", "[x]\n"),
    "no YAML": ("x", "y", "a: [\n"),
}


@pytest.mark.parametrize(("now", "value", "text"), NONE.values(), ids=NONE)
def test_where_no_value_can_be_told_to_set_it_nothing_is_proposed(now, value, text):
    assert proposed(now, value, text) == []


def test_an_item_of_a_list_of_defaults_is_stated_nowhere_else():
    assert proposed("a", "c", PROD, DEFAULTS) == []


def test_only_so_many_are_tried():
    many = "".join(f"v{number}: 1\n" for number in range(100))
    assert len(proposed(1, 2, many)) == 30
