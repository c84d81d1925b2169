"""Files mean what the real kubectl makes of them, and are refused where it refuses them."""

from __future__ import annotations

import json

import pytest

from kubectl_reconcile.core.manifests.parse import parse

HEAD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n"
KEYS = (
    "1 -5 0x10 017 0o17 1_000 yes off 1.5 0.1 1.0 -0.0 1e3 1e5 1e6 1234567.0 123456789.5 3.3333333333 1e-4 1e-7 1e30 1e300 "
    "-.inf .nan !!str,4 !!float,5 !!int,8 !!binary,aGk= &x,6 2001-01-01 1:30 n Y ~x"
)
TEXTS = {
    "a merge key with its tag": HEAD + "  !!merge <<: {a: b}\n  c: d\n",
    "a merge key with an anchor": HEAD + "  &x <<: {a: b}\n  c: d\n",
    "a merge key": HEAD + "  <<: {a: b}\n  c: d\n",
    "a quoted merge key": HEAD + '  "<<": x\n',
    "a merge key that is told to be text": HEAD + "  !!str <<: x\n",
    "a control character, escaped": HEAD + '  a: "\\x9b\\x85\\x01"\n',
    "a control character in JSON": json.dumps(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "\x9b\x7f"}},
        ensure_ascii=False,
    ),
}
REFUSED = {
    "null as a key": HEAD + "  ~: x\n",
    "a list as a key": HEAD + "  ? [1]\n  : x\n",
    "a key beyond 64 bits": HEAD + "  12345678901234567890: x\n",
    "a control character as it is": HEAD + "  a: x\x9by\n",
}


@pytest.fixture
def read_by_kubectl(kubectl, tmp_path):
    def data(text: str):
        (tmp_path / "x.yaml").write_text(text)
        return json.loads(kubectl("create", "--dry-run=client", "-o", "json", "-f", str(tmp_path / "x.yaml")))["data"]

    return data


def test_keys_that_are_no_text_are_read_as_kubectl_reads_them(kubectl, tmp_path):
    one = "- apiVersion: v1\n  kind: ConfigMap\n  metadata: {{name: a}}\n  data:\n    ? {key}\n    : {key!r}\n"
    keys = [key.replace(",", " ") for key in KEYS.split()]
    text = "apiVersion: v1\nkind: List\nitems:\n" + "".join(one.format(key=key) for key in keys)
    (tmp_path / "x.yaml").write_text(text)
    printed = kubectl("create", "--dry-run=client", "-o", "json", "-f", str(tmp_path / "x.yaml"))
    theirs = [json.loads(f"{one}}}")["data"] for one in printed.split("\n}\n") if one]
    ours = [located.manifest["data"] for located in parse(text.encode(), "x.yaml").manifests]
    assert ours == theirs
    assert len(ours) == len(keys)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_file_is_read_as_kubectl_reads_it(read_by_kubectl, text):
    [located] = parse(text.encode(), "x.yaml").manifests
    assert located.manifest["data"] == read_by_kubectl(text)


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_what_kubectl_refuses_to_read_is_a_problem(read_by_kubectl, text):
    parsed = parse(text.encode(), "x.yaml")
    assert parsed.manifests == ()
    assert parsed.problems[0].is_error
    with pytest.raises(Exception, match="error converting YAML to JSON"):
        read_by_kubectl(text)
