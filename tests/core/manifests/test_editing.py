"""Editing single fields of a file: what was asked for changes, everything else stays, byte by byte."""

import difflib

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from kubectl_reconcile.core.manifests.editing import Edit, EditError, dumped, edited, restated
from kubectl_reconcile.core.manifests.parse import parse
from kubectl_reconcile.core.objects import FieldPath, ObjectRef
from kubectl_reconcile.core.ssa.schema import UNKNOWN, schema_of_crd
from kubectl_reconcile.core.ssa.typed import ABSENT
from tests import yaml_text

WEB = ObjectRef("apps", "Deployment", "shop", "web")
CONFIG = ObjectRef("", "ConfigMap", "shop", "web")

FILE = """\
# The web, as of today.

apiVersion: apps/v1   # stable
kind: Deployment
metadata: {name: web,   labels: {x: "1"}}
spec:
    replicas: 2  # two are enough
    paused: no
    template:
        spec:
            containers:
            - name: web   # the one that counts
              image: 'nginx:1'
            - {name: side, image: busybox}
    note: |
       hello
         you
---
# What it is told.
apiVersion: v1
kind: ConfigMap
metadata:
    name: web
data:
    motto: >-
      less
      is more
    answer: "yes"   # quoted, or it is true
"""
CONTAINER = 'k:{"name":"web"}'
CONTAINERS = {
    "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
    "items": {"type": "object", "properties": {"name": {"type": "string"}, "image": {"type": "string"}}},
}  # fmt: skip


def nested(*names):
    """A schema whose fields of these names lead to the list of containers."""
    schema = CONTAINERS
    for name in reversed(names):
        schema = {"type": "object", "properties": {name: schema}, "x-kubernetes-preserve-unknown-fields": True}
    crd = {
        "spec": {
            "group": "apps",
            "names": {"kind": "Deployment"},
            "versions": [{"name": "v1", "served": True, "schema": {"openAPIV3Schema": schema}}],
        }
    }
    return schema_of_crd(crd, "v1").root


TYPED = nested("spec", "template", "spec", "containers")


def field(ref, *names, value, of=UNKNOWN.root):
    path = FieldPath(name if name.startswith("k:") else f"f:{name}" for name in names)
    return Edit(ref, path, value, of)


EDITS = {
    "a number": (
        [field(WEB, "spec", "replicas", value=7)],
        ["-    replicas: 2  # two are enough", "+    replicas: 7  # two are enough"],
    ),
    "a text in its quotes": (
        [field(WEB, "spec", "template", "spec", "containers", CONTAINER, "image", value="nginx:2", of=TYPED)],
        ["-              image: 'nginx:1'", "+              image: 'nginx:2'"],
    ),
    "a text that needs quotes": ([field(CONFIG, "data", "more", value="on")], ['+    more: "on"']),
    "a number as text": ([field(CONFIG, "data", "more", value="017")], ['+    more: "017"']),
    "a text of several lines": (
        [field(CONFIG, "data", "more", value="a\nb\n")],
        ["+    more: |", "+        a", "+        b"],
    ),
    "a field that goes": ([field(WEB, "spec", "paused", value=ABSENT)], ["-    paused: no"]),
    "a field that isn't there goes": ([field(WEB, "spec", "nothing", value=ABSENT)], []),
    "a field whose parents aren't there": (
        [field(CONFIG, "metadata", "labels", "app", value="web")],
        ["+    labels:", "+        app: web"],
    ),
    "a whole map": (
        [field(CONFIG, "metadata", "labels", value={"a": "1", "b": "two"})],
        ["+    labels:", '+        a: "1"', "+        b: two"],
    ),
    "an item that goes": (
        [field(WEB, "spec", "template", "spec", "containers", 'k:{"name":"side"}', value=ABSENT, of=TYPED)],
        ["-            - {name: side, image: busybox}"],
    ),
    "two objects at once": (
        [field(WEB, "spec", "replicas", value=3), field(CONFIG, "data", "answer", value="no")],
        [
            "-    replicas: 2  # two are enough",
            "+    replicas: 3  # two are enough",
            '-    answer: "yes"   # quoted, or it is true',
            '+    answer: "no"    # quoted, or it is true',
        ],
    ),
}


def changed(before, after):
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
    return [line for line in lines if not line.startswith(("---", "+++", "@@"))]


@pytest.mark.parametrize(("edits", "expected"), EDITS.values(), ids=EDITS)
def test_only_what_was_asked_for_changes(edits, expected):
    assert changed(FILE, edited(FILE.encode(), "web.yaml", edits, "shop").decode()) == expected


def test_a_list_of_objects_is_edited_within():
    text = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: web\n  data:\n    a: x # why\n"
    after = edited(text.encode(), "list.yaml", [field(CONFIG, "data", "a", value="z")], "shop").decode()
    assert changed(text, after) == ["-    a: x # why", "+    a: z # why"]


JSON_FORMS = {
    "indented by four": '{\n    "apiVersion": "v1",\n    "kind": "ConfigMap",\n    "metadata": {"name": "web"},\n    "data": {\n        "a": "ü"\n    }\n}\n',
    "on one line": '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}, "data": {"a": "ü"}}\n',
}


@pytest.mark.parametrize("text", JSON_FORMS.values(), ids=JSON_FORMS)
def test_json_stays_json(text):
    after = edited(text.encode(), "web.json", [field(CONFIG, "data", "a", value="ö")], "shop").decode()
    assert after == text.replace("ü", "ö")


REFUSED = {
    "an object that isn't there": (FILE, field(CONFIG._replace(name="other"), "data", value={}), "isn't in the file"),
    "an alias, which stands for two places": (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: &m {name: web, labels: {a: b}}\nspec: *m\n",
        field(CONFIG, "metadata", "labels", "a", value="c"),
        "without changing other fields; edit it by hand",
    ),
}


@pytest.mark.parametrize(("text", "edit", "message"), REFUSED.values(), ids=REFUSED)
def test_what_can_t_be_edited_alone_is_refused(text, edit, message):
    with pytest.raises(EditError) as raised:
        edited(text.encode(), "web.yaml", [edit], "shop")
    assert message in str(raised.value)


NAMES = st.text("abcxyz-_.", min_size=1, max_size=6).filter(lambda name: name[0].isalpha())
TEXTS = st.text(max_size=12) | st.sampled_from(
    ["yes", "017", "1e3", "null", "~", "- a", "a: b", "#", "x #y", "|", "2001-01-01"]
)


@given(data=st.dictionaries(NAMES, TEXTS, min_size=1, max_size=4), name=NAMES, value=TEXTS, style=st.booleans())
def test_whatever_is_put_into_a_file_is_read_back_from_it(data, name, value, style):
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}, "data": data}
    text = "# head\n" + yaml.safe_dump(manifest, allow_unicode=True, default_flow_style=style)
    assume(not parse(text.encode(), "a.yaml").problems)
    try:
        after = edited(text.encode(), "a.yaml", [field(CONFIG, "data", name, value=value)], "shop")
    except EditError:
        return
    [found] = parse(after, "a.yaml").manifests
    assert found.manifest["data"] == {**parse(text.encode(), "a.yaml").manifests[0].manifest["data"], name: value}
    assert after.startswith(b"# head\n")


# -- other YAML --------------------------------------------------------------------------------------------------------

SETTINGS = "# ours\nresources:   [a.yaml]\nimages:\n  - name: web   # the web\n    newTag: '1'\n"
RESTATED = {
    "a value": (("images", 0, "newTag"), "2", SETTINGS.replace("'1'", "'2'")),
    "a field more": (("images", 0, "digest"), "a", SETTINGS + "    digest: a\n"),
    "a field less": (("images", 0, "newTag"), ABSENT, SETTINGS.replace("    newTag: '1'\n", "")),
    "an item more": (("images", 1), {"name": "yes"}, SETTINGS + '  - name: "yes"\n'),
    "an item of a line more": (("resources", 1), "b", SETTINGS.replace("   [a.yaml]", " [a.yaml, b]")),
    "a list more": (("patches",), [{"path": "p.yaml"}], SETTINGS + "patches:\n  - path: p.yaml\n"),
}


@pytest.mark.parametrize(("steps", "value", "expected"), RESTATED.values(), ids=RESTATED)
def test_a_place_of_any_yaml_is_restated(steps, value, expected):
    assert restated(SETTINGS.encode(), "a.yaml", steps, value).decode() == expected


NOT_RESTATED = {
    "a place that isn't there": (SETTINGS, ("none", "x")),
    "an index too far": (SETTINGS, ("images", 5, "name")),
    "nothing to go": (SETTINGS, ("none",)),
    "no YAML": ("a: [", ("a",)),
    "nothing": ("", ("a",)),
    "what an alias shares": ("a: &x {b: 1}\nc: *x\n", ("c", "b")),
}


@pytest.mark.parametrize(("text", "steps"), NOT_RESTATED.values(), ids=NOT_RESTATED)
def test_what_cannot_be_restated_is_refused(text, steps):
    with pytest.raises(EditError, match=r"a\.yaml: it can't be "):
        restated(text.encode(), "a.yaml", steps, ABSENT)


def test_items_that_are_not_there_are_made_if_that_is_asked_for():
    path = FieldPath(("f:spec", "f:template", "f:spec", "f:containers", CONTAINER, "f:image"))
    text = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"
    schema = nested("spec", "template", "spec", "containers")
    edit = Edit(WEB._replace(namespace=""), path, "a:1", schema, creates=True)
    made = edited(text.encode(), "a.yaml", [edit], "").decode()
    assert yaml_text.document(made)["spec"]["template"]["spec"]["containers"] == [{"name": "web", "image": "a:1"}]
    with pytest.raises(EditError):
        edited(text.encode(), "a.yaml", [replace(edit, creates=False)], "")


def test_a_tree_is_dumped_in_the_quotes_that_it_needs():
    assert dumped({"a": "yes", "b": ["1", 1, None]}) == b'a: "yes"\nb:\n- "1"\n- 1\n- \n'
