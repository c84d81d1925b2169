"""Values of a chart as they are given on a command line."""

from __future__ import annotations

import pytest

from kubectl_reconcile.core.rendering.given_values import GivenValueError, merged

SET = {
    "a name": ("a=b", {"a": "b"}),
    "within a map": ("image.tag=1.2", {"image": {"tag": "1.2"}}),
    "several": ("a=1,b=two", {"a": 1, "b": "two"}),
    "words": ("a=true,b=false,c=null,d=True", {"a": True, "b": False, "c": None, "d": "True"}),
    "numbers": ("a=0,b=-7,c=007,d=1.5", {"a": 0, "b": -7, "c": "007", "d": "1.5"}),
    "a list": ("a={x,2}", {"a": ["x", 2]}),
    "an empty list": ("a={}", {"a": []}),
    "an entry of a list": ("a[1].b=x", {"a": [None, {"b": "x"}]}),
    "an equals sign in a value": ("a=b=c", {"a": "b=c"}),
    "an empty text": ("a=", {"a": ""}),
    "a dot that belongs to a name": (r"nodes.example\.com/role=web", {"nodes": {"example.com/role": "web"}}),
    "a comma that belongs to a value": (r"a=b\,c", {"a": "b,c"}),
}


@pytest.mark.parametrize(("text", "expected"), SET.values(), ids=SET)
def test_what_is_set(text, expected):
    assert merged([], [text]) == expected


@pytest.mark.parametrize("text", ["", "a", "=b", ".a=b", "a.=b", "[0]=x", "a[x]=b", "a[1000]=b", "a=1,"])
def test_what_cant_be_meant_so(text):
    with pytest.raises(GivenValueError):
        merged([], [text])


def test_the_last_file_wins_and_what_is_set_wins_over_files():
    files = [{"image": {"name": "web", "tag": "1"}, "hosts": ["a"]}, {"image": {"tag": "2"}, "hosts": ["b"]}]
    assert merged(files, ["image.tag=3", "hosts[1]=c"]) == {"image": {"name": "web", "tag": 3}, "hosts": ["b", "c"]}


def test_a_null_stays_since_it_takes_away_what_the_chart_has():
    assert merged([{"a": {"b": 1}}, {"a": None}], []) == {"a": None}
