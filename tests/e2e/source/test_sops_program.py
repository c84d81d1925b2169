"""The program that decrypts: what the real sops encrypted, and what somebody made of that."""

import contextlib
import gzip
import json
import re
import shutil
import socket
import subprocess
import time
from base64 import b64decode, b64encode

import pytest
from msgspec.structs import replace

from kubectl_reconcile.core.manifests.encrypted import SopsFormat, format_of
from kubectl_reconcile.core.resources.decryption import Alter, Decryption
from kubectl_reconcile.source.sops.decrypter import DECRYPTER, Decrypter
from tests.sops_fixtures import RECORDED

SHARED = Decrypter()


@pytest.fixture(scope="module", autouse=True)
def _closed(decrypts):
    yield
    SHARED.close()
    DECRYPTER.close()


FOUND = json.loads(gzip.decompress(RECORDED.read_bytes()))
AGE = {f"{at}.agekey": text for at, text in enumerate(FOUND["age"])}
KEYS = Decryption.of(AGE | {f"{at}.asc": text for at, text in enumerate(FOUND["openpgp"])}, "Secret shop/keys")
SECRET = """\
apiVersion: v1
kind: Secret
metadata:
  name: db
stringData:
  password: hunter2-and-more
  user: admin
"""


def sealed(each):
    return b64decode(each["sealed"])


def opened(data, form=SopsFormat.YAML, keys=KEYS):
    return SHARED.of(data, form, keys)


def test_each_recorded_file_says_what_sops_says():
    assert len(FOUND["files"]) > 100
    assert {each["options"] for each in FOUND["files"]} > {
        "a suffix",
        "comments that say so",
        "a MAC of what is encrypted",
    }
    for each in FOUND["files"]:
        form = format_of(each["name"], sealed(each))
        assert form is not None, each["name"]
        said = DECRYPTER.of(sealed(each), form, KEYS)
        assert (said.data, said.fault) == (b64decode(each["plain"]), ""), (each["name"], each["options"])


def test_two_keys_of_three_groups_suffice_and_one_does_not():
    data = sealed(FOUND["groups"])
    assert opened(data).data == b64decode(FOUND["groups"]["plain"])
    alone = opened(data, keys=Decryption.of({"0.agekey": FOUND["age"][0]}, "here"))
    assert alone.fault == "needs keys of 2 of its 3 groups, and those that are here don't fit so many"


def test_a_key_that_does_not_fit_is_told_with_those_that_would():
    data = next(
        sealed(each) for each in FOUND["files"] if sealed(each).count(b"recipient:") == 1 and b"fp:" not in sealed(each)
    )
    [recipient] = re.findall(rb"recipient: (age1\w+)", data)
    other = next(text for text in FOUND["age"] if recipient.decode() not in text)
    said = opened(data, format_of("x.yaml", data), keys=Decryption.of({"x.agekey": other}, "here"))
    assert said.data == b""
    assert said.fault == f"is for other keys than those that are here: age {recipient.decode()}"


VALUE = re.compile(rb"ENC\[AES256_GCM,data:[^,]+,iv:[^\]]*type:str\]")


def lines_of(data):
    return [line for line in data.splitlines() if VALUE.search(line) and not line.lstrip().startswith((b"#", b"mac:"))]


def with_two(data):
    found = lines_of(data)
    return found[0], found[1]


def swapped(data):
    first, second = (VALUE.search(line)[0] for line in with_two(data))
    return data.replace(first, b"@@").replace(second, first).replace(b"@@", second)


def cut_short(data):
    value = VALUE.search(lines_of(data)[0])[0]
    return data.replace(value, value.replace(b"data:", b"data:AAAA", 1))


TAMPERED = {
    "a value swapped between keys": (swapped, "was changed, cut short, or moved here"),
    "a value cut short": (cut_short, "was changed, cut short, or moved here"),
    "the MAC removed": (lambda data: re.sub(rb"\n *mac: .*", b"", data), "MAC"),
    "a plain field changed": (lambda data: data.replace(b"kind: Secret", b"kind: secret", 1), "changed after it was encrypted"),
    "the time of change changed": (lambda data: re.sub(rb'lastmodified: "....', b'lastmodified: "2001', data), "time of change"),
    "a plain value beside encrypted ones": (lambda data: data.replace(b"stringData:\n", b"stringData:\n    more: plain\n", 1), "isn't encrypted where all are"),
    "the file cut in the middle": (lambda data: data[: len(data) // 2], ""),
}  # fmt: skip


def two_values():
    return next(
        sealed(each) for each in FOUND["files"]
        if each["name"] == "x.yaml" and each["options"] == "a regex" and len(lines_of(sealed(each))) > 1
        and b"kind: Secret" in sealed(each) and b"\n---" not in sealed(each)
    )  # fmt: skip


@pytest.mark.parametrize(("tamper", "said"), TAMPERED.values(), ids=TAMPERED)
def test_nothing_is_taken_of_a_file_with(tamper, said):
    data = two_values()
    assert opened(data).fault == ""
    assert tamper(data) != data
    found = opened(tamper(data))
    assert found.data == b""
    assert found.fault
    assert said in found.fault


def test_nothing_is_taken_of_a_file_whose_documents_were_swapped():
    data = next(
        sealed(each) for each in FOUND["files"] if each["name"] == "x.yaml" and sealed(each).count(b"\n---\n") == 1
    )
    assert opened(data).fault == ""
    first, second = data.removesuffix(b"\n").split(b"\n---\n")
    assert "MAC" in opened(second + b"\n---\n" + first + b"\n").fault


def test_a_value_of_another_type_is_not_quoted_by_the_error():
    data = two_values()
    found = opened(data.replace(b"type:str", b"type:int", 1))
    plain = opened(data).data.decode()
    texts = [line.split(": ", 1)[1] for line in plain.splitlines() if line.startswith("    ") and ": " in line]
    assert found.fault
    assert not any(text in f"{found.fault} {found.hint}" for text in texts if len(text) > 6)


BLOCK = b"sops:\n    age: []\n    lastmodified: x\n    mac: ENC[AES256_GCM,data:x]\n"
ENTRY = b"        - recipient: age1x\n          enc: |\n            -----BEGIN AGE ENCRYPTED FILE-----\n            YQ==\n            -----END AGE ENCRYPTED FILE-----\n"
LARGE = {
    "more recipients than are tried": (b"a: ENC[AES256_GCM,x]\nsops:\n    age:\n" + ENTRY * 100_000 + b"    mac: x\n", "more than 1000 keys"),
    "more documents than are read": ((b"a: x\n" + b"---\n") * 100_000 + BLOCK, "more than 1000 documents"),
    "deep nesting": (b"a: " + b"[" * 9_000 + b"]" * 9_000 + b"\n" + BLOCK, ""),
    "references that multiply": (b"a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + b"".join(b"a%d: &a%d [%s]\n" % (at, at, b", ".join([b"*a%d" % (at - 1)] * 10)) for at in range(1, 12)) + BLOCK, "refers to itself"),
}  # fmt: skip


@pytest.mark.parametrize(("data", "said"), LARGE.values(), ids=LARGE)
def test_there_is_an_end_soon_to(data, said):
    opened(two_values())  # the process runs
    began_s = time.monotonic()
    found = opened(data)
    assert time.monotonic() - began_s < 5  # a machine may be busy; it takes a tenth
    assert found.data == b""
    assert found.fault
    assert said in found.fault


def test_json_that_is_nested_deeply_is_refused_before_it_is_read():
    data = b'{"a": ' + b"[" * 1_000_000 + b"]" * 1_000_000 + b', "sops": {"mac": "x"}}'
    assert opened(data, SopsFormat.JSON).fault == "is nested deeper than 500"


def test_a_passphrase_that_takes_long_to_try_is_not_tried():
    armor = b64encode(
        b"age-encryption.org/v1\n-> scrypt bBjlhJVYZeE4aqUdmtRHfw 30\n"
        + b"A" * 43
        + b"\n--- "
        + b"A" * 43
        + b"\n"
        + b"x" * 48
    ).decode()
    key = f"-----BEGIN AGE ENCRYPTED FILE-----\n{armor}\n-----END AGE ENCRYPTED FILE-----"
    body = "\n".join(f"            {line}" for line in key.splitlines())
    data = f'a: ENC[AES256_GCM,data:eA==,iv:eA==,tag:eA==,type:str]\nsops:\n    age:\n        - recipient: age1x\n          enc: |\n{body}\n    lastmodified: "2026-01-01T00:00:00Z"\n    mac: ENC[AES256_GCM,data:eA==,iv:eA==,tag:eA==,type:str]\n    version: 3.13.3\n'
    began_s = time.monotonic()
    assert opened(data.encode()).fault == "is for other keys than those that are here: age age1x"
    assert time.monotonic() - began_s < 5


SERVICES = """\
a: ENC[AES256_GCM,data:eA==,iv:eA==,tag:eA==,type:str]
sops:
    kms:
        - arn: arn:aws:kms:eu-west-1:1:key/x
          created_at: "2026-01-01T00:00:00Z"
          enc: eA==
          aws_profile: ""
    hc_vault:
        - vault_address: http://127.0.0.1:PORT
          engine_path: sops
          key_name: x
          created_at: "2026-01-01T00:00:00Z"
          enc: vault:v1:eA==
    lastmodified: "2026-01-01T00:00:00Z"
    mac: ENC[AES256_GCM,data:eA==,iv:eA==,tag:eA==,type:str]
    version: 3.13.3
"""


def test_no_key_service_is_asked():
    with socket.create_server(("127.0.0.1", 0)) as service:
        found = opened(SERVICES.replace("PORT", str(service.getsockname()[1])).encode())
        service.setblocking(False)
        with pytest.raises(BlockingIOError):
            service.accept()
    assert found.fault == "is encrypted for key services alone, which aren't asked: kms, hc_vault"


def test_a_plugin_of_age_is_not_run():
    keys = Decryption.of({"x.agekey": "AGE-PLUGIN-YUBIKEY-1QYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGP2D7CN\n"}, "here")
    assert (
        opened(two_values(), keys=keys).fault
        == "can't be decrypted: an age key is one of a plugin, and plugins aren't run"
    )


@pytest.mark.skipif(not shutil.which("strace"), reason="strace isn't here")
def test_it_opens_no_file_and_no_socket_once_libraries_begin(decrypts, tmp_path):
    trace = tmp_path / "trace"
    command = ["strace", "-f", "-e", "trace=open,openat,socket,connect,execve", "-o", trace, decrypts]
    with subprocess.Popen(command, env={}, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as traced:
        assert b"hello" in traced.stdout.read(20)
    lines = trace.read_text().splitlines()
    first = next(at for at, line in enumerate(lines) if "audit.yaml" in line)
    assert [line for line in lines[first:] if "open" in line and "EMFILE" not in line] == []
    assert not any(word in line for line in lines for word in ("socket(", "connect("))


def test_a_file_is_decrypted_once():
    with contextlib.closing(Decrypter()) as decrypter:
        for _ in range(3):
            decrypter.of(two_values(), SopsFormat.YAML, KEYS)
        assert decrypter.decrypted == 1
        decrypter.of(two_values(), SopsFormat.YAML, replace(KEYS, alter=Alter.ALL))
        assert decrypter.decrypted == 2


def test_keys_and_what_was_decrypted_are_in_no_text_of_them():
    said = f"{KEYS} {opened(two_values())}"
    assert "AGE-SECRET" not in said
    assert "kind: Secret" not in said


def test_other_values_have_the_same_shape():
    plain, other = (
        opened(two_values(), keys=replace(KEYS, alter=alter)).data.decode().splitlines()
        for alter in (Alter.NONE, Alter.ALL)
    )
    assert [line.split(":")[0] for line in plain if line[0] != " "] == [
        line.split(":")[0] for line in other if line[0] != " "
    ]
    assert plain != other
