"""A Sync whose files SOPS has encrypted, on a real API server: whose keys are used, who sees values, and what goes on without a key."""

import gzip
import json
from base64 import b64decode

import pytest

from tests.sops_fixtures import RECORDED

FOUND = json.loads(gzip.decompress(RECORDED.read_bytes()))
EDITS = FOUND["edits"]
SEALED = b64decode(FOUND["places"]["overlay/resource.yaml"]["sealed"])
VALUE = "resource-hidden-value"
LINE = next(at for at, line in enumerate(SEALED.decode().splitlines(), 1) if line.lstrip().startswith("value: ENC["))


@pytest.mark.usefixtures("decrypts")
def test_values_are_applied_with_the_key_for_the_repository_and_shown_to_nobody(
    daemon, follow, plugin, cluster, git_server, eventually
):
    cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "keys"},
            "stringData": {"identity.agekey": FOUND["age"][0]},
        }
    )
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}, "data": {"a": "b"}}
    sha = git_server.push({"res.yaml": SEALED.decode(), "other.json": json.dumps(other), "db.yaml": EDITS["first"]})
    sync = follow(git_server.url, interval="1s")
    sync.change(source={"decryption": {"provider": "SOPS", "secretRef": {"name": "keys"}}})
    ready = sync.until("ProblemsInSource")
    assert "isn't for http" in ready["message"]
    assert "kubectl annotate secret keys" in ready["message"]
    eventually(lambda: "other" in cluster.names("ConfigMap"), "what isn't encrypted is applied")
    assert "res" not in cluster.names("ConfigMap")

    cluster.edit("Secret", "keys", {"metadata": {"annotations": {"reconcile.dev/urls": git_server.url}}})
    eventually(lambda: "res" in cluster.names("ConfigMap"), "the file is decrypted")
    sync.until_synced(sha)
    assert cluster.get("ConfigMap", "res")["data"] == {"value": VALUE}

    looked = plugin("doctor").out
    assert "keys has keys for encrypted files (SOPS protects neither comments" in looked
    sync.change(suspend=True)
    sync.until("Suspended")
    cluster.edit("ConfigMap", "res", {"data": {"value": "somebody's"}})
    shown, explained = plugin("diff", "shop"), plugin("explain", "cm/res", ".data.value")
    accepted = plugin("accept", "shop", "--branch", "theirs", "--dry-run")
    assert shown.status == 1, shown.err
    assert "from SOPS res.yaml" in shown.out
    assert f"res.yaml:{LINE}" in explained.out
    assert "comes from SOPS res.yaml" in accepted.err
    assert "edit it by sops" in accepted.err
    said = [each.out + each.err for each in (shown, explained, accepted)]
    assert not any(VALUE in each for each in (*said, json.dumps([sync.live, cluster.list("Event")]), daemon.log))

    sync.change(suspend=False)
    eventually(lambda: cluster.get("ConfigMap", "res")["data"]["value"] == VALUE, "drift is corrected")
    cluster.delete("Secret", "keys")
    cluster.edit("ConfigMap", "res", {"data": {"value": "somebody's"}})
    eventually(lambda: cluster.get("ConfigMap", "res")["data"]["value"] == VALUE, "drift is corrected without the key")

    git_server.push({"db.yaml": EDITS["edited"]})
    sync.until("ProblemsInSource")
    shown = plugin("diff", "shop")
    told = (
        "as far as it shows without the key: stringData.password changed, stringData.pin added, stringData.old removed"
    )
    assert f"db.yaml: since {sha[:7]}, {told}" in shown.err
    assert "there is no Secret" in shown.err
    assert "db" in cluster.names("Secret")
