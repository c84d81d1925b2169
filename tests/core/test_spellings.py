"""A value of a Secret never shows, however it is spelled, and however spellings are nested: one law over all that we know of."""

import base64
import html
import json
import urllib.parse

import pytest
import yaml
from hypothesis import assume, example, given
from hypothesis import strategies as st

from kubectl_reconcile.core.redaction import redacted, without
from kubectl_reconcile.core.spellings import SHORT, Sought


def go_quoted(value, *, ascii_only=False):
    """What ``strconv.Quote`` returns, or ``QuoteToASCII``."""
    named = {
        "\a": r"\a",
        "\b": r"\b",
        "\f": r"\f",
        "\n": r"\n",
        "\r": r"\r",
        "\t": r"\t",
        "\v": r"\v",
        "\\": r"\\",
        '"': r"\"",
    }
    quoted = []
    for char in value:
        if char in named:
            quoted.append(named[char])
        elif (char.isprintable() and not ascii_only) or " " <= char < "\x7f":
            quoted.append(char)
        elif ord(char) < 0x80:
            quoted.append(f"\\x{ord(char):02x}")
        else:
            quoted.append(f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}")
    return f'"{"".join(quoted)}"'


def go_json(value):
    """What ``json.Marshal`` returns, which escapes HTML."""
    escapes = {"<": r"\u003c", ">": r"\u003e", "&": r"\u0026", "\u2028": r"\u2028", "\u2029": r"\u2029"}
    return "".join(escapes.get(char, char) for char in json.dumps(value, ensure_ascii=False))


def git_quoted(value):
    """What git prints of a path that isn't plain."""
    escapes = {ord("\\"): r"\\", ord('"'): r"\""}
    return "".join(
        escapes.get(byte) or (chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}") for byte in value.encode()
    )


def among(before, encode):
    return lambda value: encode(before + value.encode() + b"!").decode()


def unpadded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=")


SPELLINGS = {
    "as it is": str,
    "Go's %q": go_quoted,
    "Go's %+q": lambda value: go_quoted(value, ascii_only=True),
    "JSON": lambda value: json.dumps(value, ensure_ascii=False),
    "JSON in ASCII": json.dumps,
    "Go's JSON": go_json,
    "JSON with solidus": lambda value: json.dumps(value).replace("/", r"\/"),
    "YAML in double quotes": lambda value: yaml.dump(value, default_style='"', width=20),
    "YAML in single quotes": lambda value: yaml.dump(value, default_style="'", allow_unicode=True),
    "YAML's literal": lambda value: yaml.dump({"x": value}, default_style="|", allow_unicode=True),
    "Python": repr,
    "Python's bytes": lambda value: repr(value.encode()),
    "git": git_quoted,
    "HTML": html.escape,
    "a URL's path": lambda value: urllib.parse.quote(value, safe=""),
    "a form": urllib.parse.quote_plus,
    "a shell": lambda value: value.replace("'", "'\\''"),
    "base64": lambda value: base64.b64encode(value.encode()).decode(),
    "base64 of URLs, unpadded": lambda value: unpadded(value.encode()).decode(),
    "base64 after one byte": among(b"u", base64.b64encode),
    "base64 after two bytes": among(b"u:", base64.urlsafe_b64encode),
    "base64 after three bytes": among(b"me:", unpadded),
    "base64 in lines": lambda value: base64.encodebytes(value.encode()).decode().strip(),
    "Go's bytes": lambda value: f"[{' '.join(map(str, value.encode()))}]",
    "Go's bytes as source": lambda value: f"[]byte{{{', '.join(f'0x{byte:x}' for byte in value.encode())}}}",
    "hexadecimal": lambda value: value.encode().hex(),
    "hexadecimal with blanks": lambda value: value.encode().hex(" "),
    "hexadecimal with colons": lambda value: value.encode().hex(":").upper(),
    "base32": lambda value: base64.b32encode(value.encode()).decode(),
    "base32, unpadded": lambda value: base64.b32encode(value.encode()).decode().rstrip("="),
    "backwards": lambda value: " ".join(value.split())[::-1],
    "on one line": lambda value: " ".join(value.split()),
}
NESTED = {name: SPELLINGS[name] for name in ("as it is", "Go's %q", "Go's JSON", "JSON in ASCII", "Python", "base64")}

INK = st.characters(exclude_categories=("C", "Z"))
values = st.builds(
    "{}{}{}".format,
    INK,
    st.text(st.characters(exclude_categories=("Cs", "Co", "Cn")), min_size=SHORT, max_size=60),
    INK,
)


def is_hidden(said, spelled, value):
    """Whether nothing is left between what stands around it but the hiding place, and marks of the quoting."""
    inner = said.removeprefix("field x: ").removesuffix(" is refused")
    left = inner.replace("***", "").strip("\"'[](){}|!-x: \n\\nbyte=,")
    return "***" in inner and value not in said and len(left) <= max(3, len(spelled) // 20)


@pytest.mark.parametrize("name", SPELLINGS)
@given(value=values, outer=st.sampled_from(sorted(NESTED)))
@example(value='hunter2"quoted"value', outer="Go's %q")
@example(value="-----BEGIN KEY-----\nMIIhunter2linebreak\n-----END KEY-----", outer="as it is")
@example(value="hunter2\\back\\value", outer="Go's JSON")
@example(value="hunter2-pässwörd-ünïcode\u0007x", outer="Go's %q")
@example(value="<&>hunter2 😀 'both' \"kinds\"", outer="Python")
@example(value="a password of 58 letters whose base64 ends in a short line", outer="Go's %q")
def test_no_spelling_of_a_value_shows(name, value, outer):
    assume(len(" ".join("".join(char if char.isprintable() else " " for char in value).split())) > SHORT)
    assume({"field", "x", "is", "refused"}.isdisjoint(value.split()))  # words of the sentence that would be hidden, too
    spelled = NESTED[outer](SPELLINGS[name](value))
    said = without(f"field x: {spelled} is refused", [value])
    assert said.startswith("field x: ")
    assert said.endswith(" is refused")
    assert is_hidden(said, spelled, value), said


@given(values)
def test_each_line_of_a_value_is_hidden_by_itself(value):
    for line in (f"first-of-two:{value}", f"{value}:of-three"):
        [single, *_] = line.splitlines()
        said = without(f"line 7: {go_quoted(single)}", [f"{line}\nand another line"])
        assert single.strip() not in said or len(single.strip()) <= SHORT


CUT = {
    "at its end": ("denied: hunter2-horse-bat…", "denied: ***…"),
    "by dots": ('denied: "hunter2-horse-bat..."', 'denied: "***..."'),
    "by the text's end": ("denied: hunter2-horse-bat", "denied: ***"),
    "at its beginning": ("…horse-battery-staple", "…***"),
    "in base64": (f"denied: {base64.b64encode(b'hunter2-horse-battery')[:-4].decode()}…", "denied: ***…"),
    "nowhere: another word begins so": ("hunter2-hotel isn't there", "hunter2-hotel isn't there"),
}


@pytest.mark.parametrize(("said", "shown"), CUT.values(), ids=CUT)
def test_a_value_that_was_cut_short_is_hidden(said, shown):
    assert without(said, ["hunter2-horse-battery-staple"]) == shown


BYTES = bytes(range(0x80, 0xA0)) + b"key"
SAID_OF_BYTES = {
    "base64": (base64.b64encode(BYTES).decode(), "***"),
    "Go's %q": ('"' + "".join(f"\\x{byte:02x}" for byte in BYTES) + '"', '"***"'),
    "Go's %v": (f"[{' '.join(map(str, BYTES))}]", "[***]"),
    "hexadecimal": (BYTES.hex(), "***"),
}


@pytest.mark.parametrize(("said", "shown"), SAID_OF_BYTES.values(), ids=SAID_OF_BYTES)
def test_bytes_that_are_no_text_are_hidden_too(said, shown):
    secret = {"kind": "Secret", "data": {"key": base64.b64encode(BYTES).decode()}}
    assert redacted(f"refused: {said}", secret) == f"refused: {shown}"


WORDS = (
    'Service "web" is invalid: spec.externalName: Invalid value: "a_b": must consist of lower case characters',
    'admission webhook "policy.example.com" denied the request: /var/lib/data isn\'t allowed',
    "can't reach https://kubernetes.default.svc:443/api/v1/namespaces/team-a/secrets?limit=500",
)


@pytest.mark.parametrize("said", WORDS)
@given(values)
def test_what_has_nothing_of_a_value_stays_as_it_is(said, value):
    lines = [line.strip() for line in value.splitlines()] + [value.strip()]
    assume(not any(line and line in said for line in lines))
    assume(
        " ".join(value.split()) not in said and not any(said.startswith(line[-8:]) for line in lines if len(line) > 8)
    )
    assume(all(len(line) > SHORT for line in lines))
    assert without(said, [value]) == said


def test_text_that_is_quoted_without_end_is_read_in_bounded_time():
    assert "hunter2" not in without("\\" * 5000 + '"%25%25&amp;amp;' * 200 + "hunter2-value" * 50, ["hunter2-value"])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("x" + "a" * 1_000_000 + "y", "a" * 500_000),
        ("a" * 999_999 + "c…", "a" * 500_000 + "b" + "a" * 500_000),
        ("…" + "c" + "a" * 999_999, "a" * 500_000 + "b" + "a" * 500_000),
    ],
    ids=["that repeats itself", "that a text begins like all the time", "that a text ends like all the time"],
)
def test_a_text_that_would_be_compared_for_ever_with_a_value_is_hidden_whole(text, value):
    assert without(text, [value]) == "***"


def test_a_text_with_a_value_in_it_again_and_again_shows_the_rest():
    assert without("to hunter2-value, " * 10_000, ["hunter2-value"]) == "to ***, " * 10_000


@given(st.data())
def test_a_quick_look_passes_over_no_text_that_holds_a_value(data):
    value = data.draw(st.text(st.sampled_from("abcd 12\n'\"\\%&é"), min_size=1, max_size=24))
    spelled = [data.draw(st.sampled_from([*SPELLINGS.values()])) for _ in range(data.draw(st.integers(0, 2)))]
    text = value
    for spell in spelled:
        text = spell(text)
    text = f"x{text[data.draw(st.integers(0, 3)) : len(text) - data.draw(st.integers(0, 3))]}{data.draw(st.sampled_from(['', '…', ' y']))}"
    sought = Sought.of([value])
    assert sought.places_in(text) == Sought(sought.needles, ("",)).places_in(text)
