"""YAML and JSON mean what they mean to Kubernetes, and hostile text costs little."""

from __future__ import annotations

import json
import struct
import time

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile.core.manifests import yaml_reader
from kubectl_reconcile.core.manifests.broken_yaml import MOST_BROKEN
from kubectl_reconcile.core.manifests.limits import MAX_BYTES, MAX_DEPTH, MAX_PROBLEMS
from kubectl_reconcile.core.manifests.scalars import key_text, resolve, shown
from kubectl_reconcile.core.manifests.yaml_reader import Document, lines, read

# What `kubectl label --local -o json` (1.32) and sigs.k8s.io/yaml (1.6.0) make of each: all rows were put to both.
SCALARS = {
    "yes": True,
    "Y": True,
    "on": True,
    "TRUE": True,
    "tRUE": "tRUE",
    "n": False,
    "No": False,
    "OFF": False,
    "null": None,
    "~": None,
    "": None,
    "nulL": "nulL",
    "2001-12-14": "2001-12-14",
    "2001-12-14T21:59:43Z": "2001-12-14T21:59:43Z",
    "1:30": "1:30",
    "190:20:30": "190:20:30",
    "017": 15,
    "-017": -15,
    "0o17": 15,
    "0O17": 15,
    "08": 8,
    "0o8": "0o8",
    "0b101": 5,
    "0B11": 3,
    "-0b11": -3,
    "0b12": "0b12",
    "0x1F": 31,
    "-0x1f": -31,
    "0x": "0x",
    "1_000": 1000,
    "1_": 1,
    "_1": "_1",
    "-_1": -1,
    "+12": 12,
    "9007199254740993": 9007199254740993,
    "9223372036854775807": 9223372036854775807,
    "9223372036854775808": 9223372036854775808.0,
    "18446744073709551616": 18446744073709551616.0,
    "-9223372036854775808": -9223372036854775808,
    "0x8000000000000000": 9223372036854775808.0,
    "0x10000000000000000": "0x10000000000000000",
    "1e3": 1000,
    "1E3": 1000,
    "1.0": 1,
    "1.": 1,
    "1.e5": 100000,
    ".5": 0.5,
    ".5_0": 0.5,
    "._5": "._5",
    ".5_": ".5_",
    "-.5": -0.5,
    "1_000.5": 1000.5,
    "12e03": 12000,
    "1.10": 1.1,
    "1e": "1e",
    "1e400": "1e400",
    "1e20": 1e20,
    "000440084179068391110": 440084179068391100,
    "-0": 0,
    "-0.0": 0,
    "0x1p4": "0x1p4",
    "infinity": "infinity",
    "nan": "nan",
    "=": "=",
    "1,000": "1,000",
    "1.2.3": "1.2.3",
    "!!str 123": "123",
    "!!str yes": "yes",
    "!!int '7'": 7,
    "!!int 0x1F": 31,
    "!!float 1": 1,
    "!!bool 'true'": True,
    "!!null ''": None,
    "!!timestamp 2001-01-01": "2001-01-01",
    "!!binary aGk=": "hi",
    '"yes"': "yes",
    "'1e3'": "1e3",
    "|\n yes\n": "yes\n",
}


def only(text: str | bytes, path: str = "x.yaml"):
    """The one tree that a file holds, which has no problems."""
    found, problems = read(text if isinstance(text, bytes) else text.encode(), path)
    assert problems == ()
    [document] = found
    return document.tree


def complaints(text: str | bytes, path: str = "x.yaml") -> list[str]:
    return [str(problem) for problem in read(text if isinstance(text, bytes) else text.encode(), path)[1]]


def same(one, other) -> bool:
    """Equal as JSON is: numbers and booleans never mix."""
    return type(one) is type(other) and one == other


@pytest.mark.parametrize(("text", "expected"), SCALARS.items(), ids=SCALARS)
def test_a_scalar_is_what_kubernetes_takes_it_for(text, expected):
    assert same(only(f"a: {text}")["a"], expected)


MERGES = {
    "merged keys come in": ("x: &x {a: 1}\nz: {<<: *x, b: 2}", {"a": 1, "b": 2}),
    "a key after the merge wins": ("z:\n  <<: {a: 2, b: 3}\n  a: 1", {"a": 1, "b": 3}),
    "a merge after the key wins, as in go-yaml": ("z:\n  a: 1\n  <<: {a: 2}", {"a": 2}),
    "the first of several maps wins": ("z: {<<: [{a: 1}, {a: 2, b: 3}]}", {"a": 1, "b": 3}),
    "two merges are fine": ("z:\n  <<: {a: 1}\n  <<: {b: 2}", {"a": 1, "b": 2}),
    "a quoted << is a key": ("z: {'<<': 1}", {"<<": 1}),
}


@pytest.mark.parametrize(("text", "expected"), MERGES.values(), ids=MERGES)
def test_merge_keys(text, expected):
    assert only(text)["z"] == expected


REFUSED = {
    "a duplicate key, with both lines": ("a: 1\nb: 2\na: 3", 'x.yaml:3: key "a" is already on line 1'),
    "a nested duplicate key": ("m:\n  a: 1\n  a: 1", 'x.yaml:3: key "a" is already on line 2'),
    "null as a key": ("~: x", "key ~ is null, not text"),
    "a list as a key": ("? [a]\n: b", "a key is a list, not text"),
    "infinity": ("a: .inf", "x.yaml:1: .inf is not a JSON number (hint: quote it if it is text)"),
    "not a number": ("a: .NaN", ".NaN is not a JSON number"),
    "a Python object": ("a: !!python/object/apply:os.system [x]", "tag !!python/object/apply:os.system has no meaning"),
    "a tag of one's own": ("a: !foo x", "tag !foo has no meaning in a manifest"),
    "a set": ("a: !!set {x}", "tag !!set has no meaning in a manifest"),
    "a tag that doesn't fit": ("a: !!int x", '"x" is no int (hint: remove the tag !!int)'),
    "binary that isn't text": ("a: !!binary //8=", "!!binary must be the base64 of UTF-8 text"),
    "an alias without an anchor": ("a: *b", "alias *b has no anchor &b before it in this document"),
    "an alias to another document": ("a: &b 1\n---\na: *b", "x.yaml:3: alias *b has no anchor"),
    "an anchor within itself": ("a: &a [*a]", "anchor &a contains itself"),
    "a merge of a number": ("<<: 3", "<< takes a map or a list of maps"),
    "a tab": ("a:\n\tb: 1", "(hint: indent with spaces, not tabs)"),
    "a template": ("a: {{ .Values.x }}", "(hint: it looks like a template"),
    "a template's control line": ("{{- if .x }}\na: 1\n{{- end }}", "(hint: it looks like a template"),
    "a merge conflict": ("<<<<<<< HEAD\na: 1\n=======\na: 2\n>>>>>>> x", "unresolved merge conflict"),
    "a missing bracket": ("a: [1, 2", "not valid YAML: while parsing a flow sequence"),
    "two values": ("a: b: c", "x.yaml:1: not valid YAML: mapping values are not allowed in this context"),
    "a control character": ("a: 1\nb: \x07", "x.yaml:2: not valid YAML: control characters are not allowed"),
}


@pytest.mark.parametrize(("text", "expected"), REFUSED.values(), ids=REFUSED)
def test_what_kubernetes_guesses_at_is_refused(text, expected):
    said = complaints(text)
    assert any(expected in line for line in said), said


ENCODINGS = {
    "a byte order mark is skipped": (b"\xef\xbb\xbfa: 1", [{"a": 1}], ""),
    "CRLF ends a line": (b"a: 1\r\nb: |\r\n  x\r\n  y\r\n", [{"a": 1, "b": "x\ny\n"}], ""),
    "UTF-16 is refused": ("a: 1".encode("utf-16"), [], "x.yaml:1: the file is UTF-16, not UTF-8"),
    "Latin-1 is refused": (b"a: 1\nb: \xe9", [], "x.yaml:2: byte 0xe9 is not UTF-8"),
    "nothing holds nothing": (b"", [], ""),
    "comments hold nothing": (b"# a\n---\n# b\n---\n", [], ""),
    "a pointer of Git LFS is refused": (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n", [], "Git LFS"),
}


@pytest.mark.parametrize(("data", "trees", "expected"), ENCODINGS.values(), ids=ENCODINGS)
def test_encodings(data, trees, expected):
    found, problems = read(data, "x.yaml")
    assert [document.tree for document in found] == trees
    assert expected in "".join(map(str, problems))
    assert bool(problems) == bool(expected)


def test_documents_know_their_line_and_number():
    found, _ = read(b"# head\na: 1\n---\n---\n\nb: 2\n", "x.yaml")
    assert found == (Document({"a": 1}, 0, 2, 2), Document({"b": 2}, 2, 6, 2))


def test_a_bad_document_hides_no_other():
    found, problems = read(b"a: 1\n---\n~: x\n---\nb: 2\n", "x.yaml")
    assert [document.tree for document in found] == [{"a": 1}, {"b": 2}]
    assert [problem.line for problem in problems] == [3]


BROKEN = {
    "a bracket that isn't closed": ("b: [", [(4, 3)]),
    "a quote that isn't closed": ("b: 'x", [(4, 3)]),
    "a mapping within a value": ("b: c: d", [(3, 3)]),
    "deep within": ("- [{x: [{y: c: d", [(3, 3)]),
    "two in a row": ("b: [\n---\nb: [", [(4, 3), (6, 5)]),
    "at the marker itself": ("--- @x", [(3, 3)]),
    "in a directive, which isn't read without it": ("...\n%YAML 3.0\n---\nb: 1", [(4, 4)]),
    "a tab": ("b:\n\tc: 1", [(4, 3)]),
}


@pytest.mark.parametrize(("broken", "expected"), BROKEN.values(), ids=BROKEN)
def test_a_syntax_error_hides_no_other_document(broken, expected):
    text = f"a: 1\n---\n{broken}\n---\n# a comment\nc: 3\n--- |\n ---\n---\nc: c: c\n".encode()
    found, problems = read(text, "x.yaml")
    assert [document.tree for document in found] == [{"a": 1}, {"c": 3}, "---\n"]
    last = text.count(b"\n")
    assert len({document.number for document in found}) == 3
    assert found[1].line == last - 4
    assert [problem.line for problem in problems][-1] == last
    assert len(problems) >= 2
    for problem, allowed in zip(problems, expected, strict=False):
        assert problem.line in allowed
    place = (found[1].number, "c")
    assert yaml_reader.lines(text, {place}) == {place: last - 4}


UNFINISHED = {
    "a merge": "a: 1\n<<<<<<< HEAD\n---\nb: 2\n---\nc: 3\n=======\n---\nb: 3\n>>>>>>> theirs\n",
    "a template": "{{- if .Values.on }}\na: 1\n---\nb: 2\n{{- end }}\n---\nc: 3\n",
    "a forbidden character": "a: 1\n---\nb: \x07\n---\nc: 3\n",
}


@pytest.mark.parametrize("text", UNFINISHED.values(), ids=UNFINISHED)
def test_of_a_file_that_nobody_is_done_with_nothing_is_read_after_an_error(text):
    found, problems = read(text.encode(), "x.yaml")
    assert {"c": 3} not in [document.tree for document in found]
    assert len(problems) == 1


def test_how_many_documents_may_be_broken_is_bounded():
    found, problems = read(b"a: [\n---\n" * 1000 + b"b: 1\n", "x.yaml")
    assert (len(found), len(problems)) == (0, MOST_BROKEN + 1)


JSON = {
    "one value": ('{"a": [1, 2.5, null, true, "x"]}', [{"a": [1, 2.5, None, True, "x"]}], ""),
    "several in a row": ('{"a": 1}\n{"b": 2}', [{"a": 1}, {"b": 2}], ""),
    "a whole number is an integer": ('{"a": 1.0, "b": 1e3}', [{"a": 1, "b": 1000}], ""),
    "both halves of a character": ('{"a": "\\ud83d\\ude00"}', [{"a": "\U0001f600"}], ""),
    "half a character": ('{"a": "\\ud83d"}', [], "\\ud83d is half of a surrogate pair"),
    "the smallest integer": ('{"a": -9223372036854775807}', [{"a": -9223372036854775807}], ""),
    "a duplicate key": ('{"a": 1,\n "a": 2}', [], 'x.json:2: key "a" is already on line 1'),
    "not a number": ('{"a": NaN}', [], "NaN is not a JSON number"),
    "too large": ('{"a": 1e999}', [], "a number is too large for 64 bits"),
    "a trailing comma": ('{"a": 1,\n}', [], "x.json:2: not valid JSON"),
    "YAML in a .json file": ("a: 1", [], "x.json:1: not valid JSON"),
}


@pytest.mark.parametrize(("text", "trees", "expected"), JSON.values(), ids=JSON)
def test_json(text, trees, expected):
    found, problems = read(text.encode(), "x.json")
    assert [document.tree for document in found] == trees
    assert expected in "".join(map(str, problems))
    assert bool(problems) == bool(expected)


def test_json_in_a_yaml_file_is_read_as_json():
    assert only('{"a": "\\ud83d\\ude00"}') == {"a": "\U0001f600"}


def test_yaml_in_braces_is_still_yaml():
    assert only("{a: yes, b: [on]}") == {"a": True, "b": [True]}


BOMBS = {
    "aliases of aliases": "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
    + "".join(f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)),
    "aliases of long text": f"a: &a {'x' * 100_000}\nb: [{','.join(['*a'] * 1000)}]",
    "merges of merges": "a0: &a0 {x: [1,1,1,1,1,1,1,1]}\n"
    + "".join(f"a{n}: &a{n} {{b: {{<<: *a{n - 1}}}, c: {{<<: *a{n - 1}}}}}\n" for n in range(1, 30)),
    "brackets": "[" * 200_000,
    "braces": "{a: " * 200_000,
    "dashes": "- " * 200_000,
    "questions": "? " * 200_000,
    "nested JSON": '{"a":' * 200_000,
    "more than is read": "# " + "x" * MAX_BYTES,
    "many documents that are none": "~: x\n---\n" * 100_000,
    "many aliases of nothing": "".join(f"? *a{n}\n" for n in range(100_000)),
    "many keys that are none": "[]: x\n" * 100_000,
    "many tags that mean nothing": "- !x a\n" * 100_000,
    "many numbers that are none": "- .inf\n" * 100_000,
}


@pytest.mark.parametrize("text", BOMBS.values(), ids=BOMBS)
def test_hostile_text_costs_little_and_is_a_problem(text):
    started = time.process_time()
    found, problems = read(text.encode(), "x.yaml")
    assert problems
    assert found == ()
    assert len(problems) <= MAX_PROBLEMS + 1
    assert time.process_time() - started < 3


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


def test_depth_up_to_the_cap_is_read():
    assert only(nested(MAX_DEPTH)) is not None
    assert only(nested(MAX_DEPTH), "x.json") is not None
    assert complaints(nested(MAX_DEPTH + 1)) == [f"x.yaml:1: nested deeper than {MAX_DEPTH} levels"]
    assert complaints(nested(MAX_DEPTH + 1), "x.json") == [f"x.json:1: nested deeper than {MAX_DEPTH} levels"]


def test_aliases_are_written_out():
    assert only("a: &a {b: [1]}\nc: *a\nd: [*a, *a]") == {
        "a": {"b": [1]},
        "c": {"b": [1]},
        "d": [{"b": [1]}, {"b": [1]}],
    }


def test_the_lines_of_places():
    text = b"a: 1\n---\nkind: List\nitems:\n- x: 1\n- y:\n    z: 2\n"
    wanted = {(1, "kind"), (1, "items", 0), (1, "items", 1, "y", "z"), (1, "gone")}
    assert lines(text, wanted) == {(1, "kind"): 3, (1, "items", 0): 5, (1, "items", 1, "y", "z"): 7}


def test_what_is_shown_is_quoted_clipped_and_harmless():
    assert shown("a\x1b[31mb") == '"a\\x1b[31mb"'
    assert len(shown("x" * 1000)) == 62
    assert shown({"a": 1}) == '{"a": 1}'


def test_problems_hold_no_control_characters():
    for text in ('"a\\e[31m": 1\n"a\\e[31m": 2', '? "\\e[2J"\n: !!int "\\e[2J"', "a: !<x%1B> 1"):
        assert all(line.isprintable() for line in complaints(text)), text


TEXT = st.text(st.sampled_from("abyn01.:-#{}[]!&*,~'\"\\ \té☃\U0001f600=<"), max_size=12)
INTEGERS = st.integers(min_value=-(2**63), max_value=2**63 - 1)
FLOATS = st.floats(allow_nan=False, allow_infinity=False).filter(lambda value: not value.is_integer())
TREES = st.dictionaries(
    TEXT,
    st.recursive(
        st.none() | st.booleans() | INTEGERS | FLOATS | TEXT,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
        max_leaves=20,
    ),
    min_size=1,
    max_size=4,
)


@given(TREES)
def test_what_is_written_as_json_reads_back(tree):
    text = json.dumps(tree)
    assert repr(only(text, "x.json")) == repr(tree)
    assert repr(only(text, "x.yaml")) == repr(tree)
    assert repr(only(f"---\n{json.dumps(tree, ensure_ascii=False)}")) == repr(tree)  # by the YAML reader


@given(TREES)
def test_what_is_written_as_yaml_reads_back(tree):
    # PyYAML leaves y, n, 1e3 and the like without quotes, so text is always quoted here.
    assert only(yaml.dump(tree, Dumper=Quoting, allow_unicode=True, sort_keys=False)) == tree


class Quoting(yaml.SafeDumper):
    def ignore_aliases(self, _):
        return True


Quoting.add_representer(str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"'))


@given(st.binary(max_size=200))
def test_no_bytes_raise(data):
    read(data, "x.yaml")
    read(data, "x.json")


@given(st.text("{}[]:,-?&*!|>'\"%#<~ \n\tab1", max_size=60))
def test_no_text_raises(text):
    found, problems = read(text.encode(), "x.yaml")
    assert all(problem.path == "x.yaml" for problem in problems)
    places = {(document.number,) for document in found}
    assert set(yaml_reader.lines(text.encode(), places)) <= places


# --- keys that aren't text ------------------------------------------------------------------------------------

# What `kubectl create --dry-run=client -o json` (1.32) makes of each; tests/cluster puts all rows to a real one.
KEYS = {
    "1": "1",
    "-5": "-5",
    "0x10": "16",
    "017": "15",
    "0o17": "15",
    "1_000": "1000",
    "yes": "true",
    "off": "false",
    "1.5": "1.5",
    "0.1": "0.1",
    "1.0": "1",
    "-0.0": "-0",
    "1e3": "1000",
    "1e5": "100000",
    "1e6": "1e+06",
    "1234567.0": "1.234567e+06",
    "123456789.5": "1.2345679e+08",
    "3.3333333333": "3.3333333",
    "1e-4": "0.0001",
    "1e-7": "1e-07",
    "1e30": "1e+30",
    "1e300": ".inf",
    ".inf": ".inf",
    "-.inf": "-.inf",
    ".nan": ".nan",
    "!!int 3": "3",
    "!!str 4": "4",
    "!!float 5": "5",
    "&anchor 6": "6",
    "2001-01-01": "2001-01-01",
    "1:30": "1:30",
}


@pytest.mark.parametrize(("written", "expected"), KEYS.items(), ids=KEYS)
def test_a_key_is_the_text_that_kubectl_makes_of_it(written, expected):
    [document], problems = read(f"? {written}\n: x\n".encode(), "x.yaml")
    assert document.tree == {expected: "x"}
    assert not any(problem.is_error for problem in problems)


def test_a_key_that_is_no_text_is_read_as_kubectl_reads_it_with_one_warning_a_document():
    [first, second], problems = read(b"a: 1\nyes: 2\n0x10: 3\n---\n1: a\n", "x.yaml")
    assert [first.tree, second.tree] == [{"a": 1, "true": 2, "16": 3}, {"1": "a"}]
    assert [str(problem) for problem in problems] == [
        'x.yaml:2: key yes isn\'t text and is read as "true", as kubectl reads it, and 1 more keys aren\'t text (hint: quote it: "yes")',
        'x.yaml:5: key 1 isn\'t text and is read as "1", as kubectl reads it (hint: quote it: "1")',
    ]
    assert not any(problem.is_error for problem in problems)


SECRET = b"kind: Secret\nstringData:\n  note: |\n    a\n  1: hunter2\n"
BESIDE_A_SECRET = {
    "before it": b"yes: 2\n---\n" + SECRET,
    "after it": SECRET + b"---\nyes: 2\n",
    "after it, with a comment": SECRET + b"--- # plain\nyes: 2\n",
    "after it, where other characters end lines as well": 'kind: Secret\nnote: "\u2028\u2028\u0085"\n1: hunter2\n---\nyes: 2\n'.encode(),
}


@pytest.mark.parametrize("data", BESIDE_A_SECRET.values(), ids=BESIDE_A_SECRET)
def test_what_is_beside_a_secret_in_a_file_is_told_and_nothing_of_the_secret(data):
    _, problems = read(data, "x.yaml")
    told = [str(problem) for problem in problems]
    assert any('key yes isn\'t text and is read as "true"' in each for each in told)
    assert any("key *** isn't text" in each for each in told)


def test_warnings_alone_end_no_reading():
    documents, problems = read(b"---\n".join([b"1: a\n"] * 300), "x.yaml")
    assert len(documents) == 300
    assert 0 < len(problems) <= MAX_PROBLEMS
    assert not any(problem.is_error for problem in problems)


REFUSED_KEYS = {"null": "~", "a list": "[1]", "a map": "{a: b}", "beyond 64 bits": "12345678901234567890"}


@pytest.mark.parametrize("key", REFUSED_KEYS.values(), ids=REFUSED_KEYS)
def test_a_key_that_kubectl_refuses_is_a_problem(key):
    documents, [problem] = read(f"? {key}\n: x\n".encode(), "x.yaml")
    assert documents == ()
    assert problem.is_error


def test_the_same_key_as_a_number_and_as_text_is_there_twice():
    documents, [problem] = read(b'1: a\n"1": b\n', "x.yaml")
    assert documents == ()
    assert 'key "1" is already on line 1' in str(problem)


MERGES = {
    "as written": "<<: {a: b}",
    "with its tag": "!!merge <<: {a: b}",
    "with an anchor": "&x <<: {a: b}",
}


@pytest.mark.parametrize("line", MERGES.values(), ids=MERGES)
def test_a_merge_key_merges_however_it_is_written(line):
    [document], problems = read(f"{line}\nc: d\n".encode(), "x.yaml")
    assert (document.tree, problems) == ({"a": "b", "c": "d"}, ())


@pytest.mark.parametrize("line", ['"<<": x', "!!str <<: x"])
def test_a_quoted_merge_key_is_a_key(line):
    [document], _ = read(line.encode(), "x.yaml")
    assert document.tree == {"<<": "x"}


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_a_float_as_a_key_has_the_fewest_digits_that_mean_it(number):
    text = key_text(number)
    assert struct.pack("f", float(text)) == struct.pack("f", number)
    assert isinstance(resolve(text), int | float)
