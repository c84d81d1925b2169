"""Every document of a source is an object or a problem; nothing vanishes in silence."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile.core.manifests.parse import field_lines, parse

GOOD = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n"


def found(text: str, path: str = "apps/x.yaml") -> list[tuple[str, int]]:
    """Name and line of each manifest."""
    return [(located.manifest["metadata"]["name"], located.line) for located in parse(text.encode(), path).manifests]


def complaints(text: str, path: str = "apps/x.yaml") -> list[str]:
    return [str(problem) for problem in parse(text.encode(), path).problems]


def with_metadata(**metadata) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", **metadata}}, indent=1)


def test_a_manifest_is_found_with_its_file_and_line():
    [located] = parse(b"# a comment\n---\n" + GOOD.encode(), "apps/x.yaml").manifests
    assert located.path == "apps/x.yaml"
    assert located.line == 3
    assert located.manifest == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}


def test_several_documents_come_in_order():
    assert found(f"{GOOD}---\n# nothing\n---\n{GOOD.replace('name: a', 'name: b')}") == [("a", 1), ("b", 8)]


LISTS = {
    "a List": (
        (
            "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: a}\n"
            "- apiVersion: v1\n  kind: Secret\n  metadata: {name: b}\n"
        ),
        [("a", 4), ("b", 7)],
    ),
    "a typed list, whose items take their kind from it": (
        "apiVersion: v1\nkind: ConfigMapList\nitems:\n- metadata: {name: a}\n- metadata: {name: b}\n",
        [("a", 4), ("b", 5)],
    ),
    "a list within a list": (
        (
            "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: List\n  items:\n"
            "  - {apiVersion: v1, kind: Secret, metadata: {name: a}}\n"
        ),
        [("a", 7)],
    ),
    "an empty List": ("apiVersion: v1\nkind: List\nitems: []\n", []),
    "a List without items": ("apiVersion: v1\nkind: List\n", []),
    "a custom resource that is called a list": (
        "apiVersion: x.example.com/v1\nkind: AllowList\nmetadata: {name: a}\nitems: [1]\n",
        [("a", 1)],
    ),
    "items by alias": (
        "apiVersion: v1\nkind: List\nmetadata: {x: &a {apiVersion: v1, kind: Secret, metadata: {name: a}}}\nitems: [*a]\n",
        [("a", 4)],
    ),
    "JSON as kubectl prints it": (
        (
            '{\n "apiVersion": "v1",\n "kind": "List",\n "items": [\n  {"apiVersion": "v1", "kind": "Secret",\n'
            '   "metadata": {"name": "a"}},\n  {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "b"}}\n ]\n}'
        ),
        [("a", 5), ("b", 7)],
    ),
}


@pytest.mark.parametrize(("text", "expected"), LISTS.values(), ids=LISTS)
def test_a_list_stands_for_its_items(text, expected):
    assert complaints(text) == []
    assert found(text) == expected


def test_an_implied_kind_reaches_the_item():
    [located] = parse(b"apiVersion: apps/v1\nkind: DeploymentList\nitems: [{metadata: {name: a}}]", "x.yaml").manifests
    assert (located.manifest["apiVersion"], located.manifest["kind"]) == ("apps/v1", "Deployment")


PROBLEMS = {
    "values of a chart": (
        "replicas: 3\n",
        "apps/x.yaml:1: no apiVersion and no kind (hint: if the file holds no manifests, list it in .reconcileignore)",
    ),
    "no kind": ("apiVersion: v1\nmetadata: {name: a}\n", "apps/x.yaml:1: no kind (hint:"),
    "no apiVersion": ("kind: Secret\nmetadata: {name: a}\n", "apps/x.yaml:1: no apiVersion"),
    "a number as apiVersion": ("apiVersion: 1\nkind: A\nmetadata: {name: a}", ":1: apiVersion is a number, not text"),
    "an impossible apiVersion": (
        "apiVersion: a/b/c\nkind: A\nmetadata: {name: a}",
        ':1: apiVersion "a/b/c" isn\'t valid',
    ),
    "an impossible kind": ("apiVersion: v1\nkind: a b\nmetadata: {name: a}", ':2: kind "a b" isn\'t valid'),
    "a list": ("- a\n", ":1: a list, not an object (hint: each document is one object; separate them with ---)"),
    "text": ("just text\n", ":1: text, not an object"),
    "no metadata": ("apiVersion: v1\nkind: A\n", ":1: no metadata (hint: an object needs metadata.name)"),
    "text as metadata": ("apiVersion: v1\nkind: A\nmetadata: x\n", ":3: metadata is text, not a map"),
    "no name": ("apiVersion: v1\nkind: A\nmetadata: {}\n", ":3: no metadata.name"),
    "an empty name": ('apiVersion: v1\nkind: A\nmetadata:\n  name: ""\n', ":4: no metadata.name"),
    "generateName": (
        "apiVersion: v1\nkind: A\nmetadata:\n  generateName: x-\n",
        ":4: generateName would create a new object at every sync (hint: give it a metadata.name)",
    ),
    "a number as name": (
        "apiVersion: v1\nkind: A\nmetadata:\n  name: 12\n",
        ':4: metadata.name is a number, not text (hint: quote it: "12")',
    ),
    "a word that YAML takes for true": (
        "apiVersion: v1\nkind: A\nmetadata:\n  name: y\n",
        ':4: metadata.name is a boolean, not text (hint: quote it: "y")',
    ),
    "a word that YAML takes for false, in braces": (
        "apiVersion: v1\nkind: A\nmetadata: {namespace: No, name: a}\n",
        ':3: metadata.namespace is a boolean, not text (hint: quote it: "No")',
    ),
    "a number that means another one": (
        "apiVersion: v1\nkind: A\nmetadata:\n  name: 0123 # the first\n",
        ':4: metadata.name is a number, not text (hint: quote it: "0123")',
    ),
    "a name that an anchor gives": (
        "apiVersion: v1\nkind: A\nx: &it true\nmetadata:\n  name: *it\n",
        ':5: metadata.name is a boolean, not text (hint: quote it: "true")',
    ),
    "a name in JSON": (
        '{"apiVersion": "v1", "kind": "A", "metadata": {"name": true}}',
        'metadata.name is a boolean, not text (hint: quote it: "true")',
    ),
    "capitals in a name": (with_metadata(name="Web"), ':5: metadata.name "Web" isn\'t a DNS name'),
    "a slash in a name": (with_metadata(name="a/b"), ':5: metadata.name "a/b" can\'t be part of a URL'),
    "dots for a name": (with_metadata(name=".."), "can't be part of a URL"),
    "a name too long": (with_metadata(name="a" * 254), "metadata.name has 254 characters; at most 253 are allowed"),
    "capitals in a namespace": (with_metadata(namespace="Shop"), ':6: metadata.namespace "Shop" isn\'t a DNS label'),
    "a label that isn't text": (
        GOOD + "  labels:\n    a: x\n    enabled: true\n",
        'apps/x.yaml:7: label "enabled" is a boolean, not text (hint: quote it: "true")',
    ),
    "a label that is a number": (
        GOOD + "  labels: {version: 1.10}\n",
        'label "version" is a number, not text (hint: quote it: "1.10")',
    ),
    "a label that is null": (GOOD + "  labels: {a: }\n", ':5: label "a" is null, not text (hint: quote it: "")'),
    "an annotation that is a map": (GOOD + "  annotations:\n    a: {b: c}\n", ':6: annotation "a" is a map, not text'),
    "labels that are a list": (GOOD + "  labels: [a]\n", ":5: metadata.labels is a list, not a map of text to text"),
    "a label with a space": (GOOD + "  labels: {a: b c}\n", ':5: label "a" has the value "b c", which is not allowed'),
    "encrypted": (
        GOOD + "sops:\n  mac: ENC[x]\n",
        (
            ":5: encrypted with SOPS: nothing of this document is applied or pruned (hint: decrypt its file by "
            "spec.source.decryption; list the file in .reconcileignore to apply it by other means)"
        ),
    ),
    "encrypted throughout, which is one fault": (
        "apiVersion: ENC[x]\nkind: ENC[x]\nmetadata: {name: 'ENC[x]'}\nsops:\n  mac: ENC[x]\n",
        ":4: encrypted with SOPS",
    ),
    "encrypted values": ("a: ENC[x]\nsops: {mac: x}\n", ":2: encrypted with SOPS"),
    "an item that is none": ("apiVersion: v1\nkind: List\nitems:\n- 1\n", ":4: a number, not an object"),
    "items that are none": ("apiVersion: v1\nkind: List\nitems: x\n", ": text, not an object"),
    "a bad item, with its line": (
        "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Secret\n  metadata:\n    name: A\n",
        ':7: metadata.name "A" isn\'t a DNS name',
    ),
    "escape sequences in a name": (with_metadata(name="\x1b[2J"), '"\\x1b[2J" isn\'t a DNS name'),
}


@pytest.mark.parametrize(("text", "expected"), PROBLEMS.values(), ids=PROBLEMS)
def test_what_is_no_object_is_a_problem(text, expected):
    [said] = complaints(text)
    assert expected in said
    assert said.isprintable()
    assert found(text) == []


FINE = {
    "an empty namespace": with_metadata(namespace=""),
    "no labels at all": with_metadata(labels=None),
    "an empty label": with_metadata(labels={"a": ""}),
    "annotations of any text": with_metadata(annotations={"a": "b c\n☃"}),
    "a version that is exported empty": with_metadata(resourceVersion="", creationTimestamp=None),
    "a role named freely": "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: 'system:A'}",
    "an OpenShift user": "apiVersion: user.openshift.io/v1\nkind: User\nmetadata: {name: 'kube:admin'}",
    "an address": "apiVersion: networking.k8s.io/v1\nkind: IPAddress\nmetadata: {name: '2001:db8::1'}",
}


@pytest.mark.parametrize("text", FINE.values(), ids=FINE)
def test_what_the_server_takes_is_let_through(text):
    assert complaints(text) == []
    assert len(found(text)) == 1


def test_one_problem_hides_neither_other_problems_nor_other_objects():
    text = f"{GOOD}---\nkind: x\nmetadata: {{name: A, labels: {{a: 1}}}}\n---\n{GOOD.replace('name: a', 'name: b')}---\n[1]\n"
    assert found(text) == [("a", 1), ("b", 9)]
    assert [line.partition(" ")[0] for line in complaints(text)] == [
        "apps/x.yaml:6:",
        "apps/x.yaml:7:",
        "apps/x.yaml:7:",
        "apps/x.yaml:14:",
    ]


def test_a_syntax_error_keeps_the_objects_beside_it_and_says_so():
    text = f"{GOOD}---\nkind: [\n---\n{GOOD}"
    assert found(text) == [("a", 1), ("a", text.rstrip().count("\n") - GOOD.count("\n") + 2)]
    assert "not valid YAML" in complaints(text)[0]


TREES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("aB./%\x1b ", max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["apiVersion", "kind", "metadata", "name", "labels", "items", "sops", "namespace"]), inner
        )
    ),
    max_leaves=12,
)


@given(TREES)
def test_any_tree_is_objects_or_problems(tree):
    parsed = parse(json.dumps(tree).encode(), "x.json")
    for located in parsed.manifests:
        assert located.line >= 1
        assert isinstance(located.manifest["metadata"]["name"], str)
    assert all(str(problem).isprintable() for problem in parsed.problems)
    if tree is not None and not (isinstance(tree, dict) and str(tree.get("kind", "")).endswith("List")):
        assert parsed.manifests or parsed.problems


ODDITIES = {
    "exported with its managed fields": (
        GOOD + "  managedFields: [{manager: x}]\n",
        ":5: metadata.managedFields is set by the server (hint: remove it; exports contain it, but it isn't applied)",
    ),
    "exported with its uid": (GOOD + "  uid: 1-2-3\n", ":5: metadata.uid is set by the server"),
    "exported in full": (
        GOOD + "  uid: 1-2-3\n  resourceVersion: '7'\nstatus: {phase: x}\n",
        ":5: metadata.uid, metadata.resourceVersion and status are set by the server",
    ),
    "an option of Argo CD's that means nothing here": (
        GOOD + "  annotations:\n    a: b\n    argocd.argoproj.io/sync-options: Validate=false\n",
        ":7: annotation argocd.argoproj.io/sync-options Validate=false is ignored: the server validates what it is sent",
    ),
    "a hook of Helm that is none": (
        GOOD + "  annotations:\n    helm.sh/hook: post-instal\n",
        (
            ":6: annotation helm.sh/hook 'post-instal': the object is left out, neither applied nor pruned: Helm knows no such hook, "
            'and leaves the object out as well (hint: reconcile.dev/hook: "" applies it like any other object)'
        ),
    ),
    "a hook that would remove itself": (
        """apiVersion: batch/v1
kind: Job
metadata:
  name: a
  annotations: {helm.sh/hook: pre-install}
spec:
  ttlSecondsAfterFinished: 60
""",
        ":7: spec.ttlSecondsAfterFinished of a hook is ignored: the Job stays until it runs again, as the record that it ran",
    ),
}


@pytest.mark.parametrize(("text", "expected"), ODDITIES.values(), ids=ODDITIES)
def test_what_is_odd_and_usable_is_used_with_a_warning(text, expected):
    parsed = parse(text.encode(), "apps/x.yaml")
    [located], [problem] = parsed.manifests, parsed.problems
    assert not problem.is_error
    assert expected in str(problem)
    assert not {"uid", "resourceVersion", "managedFields"} & located.manifest["metadata"].keys()


def test_an_annotation_that_says_it_in_our_words_too_is_no_oddity():
    text = GOOD + "  annotations: {argocd.argoproj.io/sync-wave: 'x', reconcile.dev/wave: '1'}\n"
    assert complaints(text) == []


def test_warnings_never_crowd_an_error_out():
    many = "---\n".join(GOOD.replace("name: a", f"name: a{number}\n  uid: x") for number in range(150))
    assert any(problem.is_error for problem in parse(f"{many}---\nkind: x\n".encode(), "x.yaml").problems)


def test_the_lines_of_an_export_are_found():
    text = GOOD + "  uid: 1-2-3\ndata:\n  a: b\n"
    [located] = parse(text.encode(), "x.yaml").manifests
    assert field_lines(text.encode(), located, [("data", "a")]) == {("data", "a"): 7}
