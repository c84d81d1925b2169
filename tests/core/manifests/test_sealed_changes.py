"""What somebody without a key sees of a change to a file that the real sops has encrypted, edited and rotated."""

import gzip
import json

import pytest

from kubectl_reconcile.core.manifests.sealed_changes import SealedChange, sealed_change
from tests.sops_fixtures import RECORDED

FIRST, EDITED, ROTATED = (
    json.loads(gzip.decompress(RECORDED.read_bytes()))["edits"][name].encode()
    for name in ("first", "edited", "rotated")
)
CASES = {
    "nothing": (FIRST, FIRST, ""),
    "an edit": (FIRST, EDITED, "stringData.password changed, stringData.pin added, stringData.old removed"),
    "the edit undone": (EDITED, FIRST, "stringData.password changed, stringData.old added, stringData.pin removed"),
    "a rotation": (EDITED, ROTATED, "re-encrypted, contents unknown"),
    "a rotation with a key more": (FIRST, ROTATED, "re-encrypted, contents unknown, stringData.pin added, stringData.old removed"),
    "a plain field": (FIRST, FIRST.replace(b"name: db", b"name: dc"), "metadata.name changed"),
    "a file that wasn't there": (b"", EDITED[: EDITED.index(b"sops:")], "apiVersion, kind, metadata.name, stringData.password, stringData.user, stringData.pin added"),
}  # fmt: skip


@pytest.mark.parametrize(("before", "after", "said"), CASES.values(), ids=CASES)
def test_without_a_key_is_seen_of(before, after, said):
    assert str(sealed_change(before, after, "db.yaml")) == said


DOTENV = b"USER=%s\n# a comment\nPASS=ENC[AES256_GCM,data:%s]\nsops_mac=ENC[AES256_GCM,data:x]\n"
INI = b"[db]\npass = ENC[AES256_GCM,data:%s]\n\n[sops]\nmac = ENC[AES256_GCM,data:%s]\n"


def test_other_formats_tell_the_same():
    assert sealed_change(DOTENV % (b"a", b"1"), DOTENV % (b"a", b"2"), "x.env").changed == ("PASS",)
    assert sealed_change(INI % (b"1", b"1"), INI % (b"1", b"2"), "x.ini") == SealedChange()
    assert "db.pass" in str(sealed_change(INI % (b"1", b"1"), b"", "x.ini"))


def test_documents_are_told_apart_by_their_names():
    one = b"kind: Secret\nmetadata: {name: %s}\ndata: {a: 'ENC[AES256_GCM,data:%s]'}\n"
    before, after = (one % (b"db", b"1") + b"---\n" + one % (b"web", each) for each in (b"1", b"2"))
    keyed = b"sops:\n  mac: x\n  age: '-----BEGIN AGE ENCRYPTED FILE-----same-----END AGE ENCRYPTED FILE-----'\n"
    assert str(sealed_change(before + keyed, after + keyed, "a.yaml")) == "Secret web: data.a changed"
