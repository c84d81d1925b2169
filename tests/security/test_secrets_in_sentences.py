"""Whoever reads problems, plans, statuses or caches learns no value of a Secret, whatever else is wrong."""

from __future__ import annotations

import base64
import json
import stat
from pathlib import Path

import pytest

from kubectl_reconcile.core.manifests.parse import parse
from kubectl_reconcile.core.redaction import redacted
from kubectl_reconcile.core.resources.history import digest_of

VALUE = "hunter2horse"
BASE64 = base64.b64encode(VALUE.encode()).decode()

HEAD = "apiVersion: v1\nkind: Secret\nmetadata: {name: login}\n"
SLIPS = {
    "taken for an alias": f"{HEAD}stringData:\n  password: *{VALUE}\n",
    "taken for a tag": f"{HEAD}stringData:\n  password: !{VALUE}\n",
    "taken for a tag of ours": f"{HEAD}stringData:\n  password: !!int {VALUE}\n",
    "taken for a key": f"{HEAD}stringData:\n  password: {{{VALUE}: 1, {VALUE}: 2}}\n",
    "taken for a key that is a list": f"{HEAD}stringData:\n  password: {{[{VALUE}]: 1}}\n",
    "taken for an anchor in itself": f"{HEAD}stringData: &{VALUE}\n  password: *{VALUE}\n",
    "before its kind": f"stringData:\n  password: *{VALUE}\n{HEAD}",
    "without its kind": f"data:\n  password: *{VALUE}\n",
    "with its kind in escapes": f'apiVersion: v1\nkind: "\\x53ecre\\x74"\ndata:\n  password: !{VALUE}\n',
    "not closed": f"{HEAD}stringData:\n  password: [{VALUE}\n",
    "in an annotation": f"apiVersion: v1\nkind: Secret\nmetadata:\n  name: a\n  annotations: {{was: [{VALUE}]}}\n",
    "twice in JSON": json.dumps({"kind": "Secret", "data": {"x": 1}})[:-2] + f', "{VALUE}": 1, "{VALUE}": 2}}}}',
}


@pytest.mark.parametrize("text", SLIPS.values(), ids=SLIPS)
def test_a_problem_quotes_no_value(text):
    problems = parse(text.encode(), "login.yaml").problems
    assert problems
    assert VALUE not in " ".join(map(str, problems))


def test_numbers_in_a_secret_are_not_quoted_either():
    text = f"{HEAD}stringData:\n  pin: .inf\n  other: {{4711: x}}\n"
    assert "4711" not in " ".join(map(str, parse(text.encode(), "login.yaml").problems))


@pytest.mark.parametrize(
    "name", ["kapp.k14s.io/original", "kubectl.kubernetes.io/last-applied-configuration", "x/copy"]
)
@pytest.mark.parametrize("value", [VALUE, BASE64])
def test_a_sentence_quotes_no_copy_in_an_annotation(name, value):
    copy = json.dumps({"kind": "Secret", "data": {"password": value}})
    live = {"kind": "Secret", "metadata": {"annotations": {name: copy}}, "data": {}}
    said = redacted(f"refused: {value!r}, {VALUE!r} and {copy}", live)
    assert VALUE not in said
    assert BASE64 not in said


def login(value, **annotations):
    return {
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login", "annotations": annotations},
        "stringData": {"pin": value},
    }  # fmt: skip


def test_the_digest_of_a_state_can_not_be_guessed_at():
    assert digest_of([login("1234", copy="1234")]) == digest_of([login("9999", copy="9999")])


COPIES = ("kapp.k14s.io/original", "kubectl.kubernetes.io/last-applied-configuration", "example.com/copy")


def test_neither_diff_nor_plan_file_shows_or_tells_a_value(plugin, cluster, tmp_path):
    cluster.apply(
        login("hunter2horse", **{name: json.dumps({"data": {"pin": BASE64}, "was": VALUE}) for name in COPIES})
    )
    file = tmp_path / "login.json"
    plans = []
    for value in ("4711-4711", "0815-0815"):
        file.write_text(json.dumps(login(value, **{"example.com/copy": value})))
        for form in (("-o", "json"), ("-o", "yaml"), ()):
            said = plugin("diff", "-f", str(file), "--name", "shop", *form)
            assert said.status == 1, said
            for secret in (VALUE, BASE64, value, base64.b64encode(value.encode()).decode()):
                assert secret not in said.out + said.err
        plans.append(json.loads(plugin("diff", "-f", str(file), "--name", "shop", "-o", "json").out))
    prints = [[change["fingerprint"] for change in plan["changes"] if "fingerprint" in change] for plan in plans]
    assert prints[0]
    assert prints[0] == prints[1], "a fingerprint that hangs on a value can be guessed at"


def test_the_plan_notices_that_the_live_secret_moved(plugin, cluster, tmp_path):
    cluster.apply(login("one"))
    file, plan = tmp_path / "login.json", tmp_path / "plan.json"
    file.write_text(json.dumps(login("two")))
    plan.write_text(plugin("diff", "-f", str(file), "--name", "shop", "-o", "json").out)
    cluster.edit("Secret", "login", {"stringData": {"pin": "three"}})
    refused = plugin("sync", "-f", str(file), "--name", "shop", "--plan", str(plan), "-y")
    assert refused.status >= 2
    assert "has changed since" in refused.err
    live = cluster.get("Secret", "login")["data"]["pin"]
    assert base64.b64decode(live) == b"three"


def test_caches_are_nobody_elses_and_hold_no_secret(new_daemon, follow, cluster, git_server, config_map, tmp_path):
    cache = tmp_path / "cache"
    daemon = new_daemon(cluster.kubectl.kubeconfig, cluster.namespace, XDG_CACHE_HOME=str(cache)).start()
    files = {"login.json": json.dumps(login(VALUE)), "web.json": config_map("web", color="chartreuse")}
    follow(git_server.url).until_synced(git_server.push(files))
    assert daemon.stop() == 0  # from now on no file comes or goes
    kept = [
        path for path in cache.rglob("*") if path.is_file() and ".git" not in str(path) and "/git/" not in str(path)
    ]
    assert [path.name for path in kept if VALUE.encode() in path.read_bytes()] == []
    [parsed] = [path for path in kept if b"chartreuse" in path.read_bytes() and path.suffix == ".sqlite"]
    assert stat.S_IMODE(parsed.stat().st_mode) == 0o600
    for folder in {Path(each.parent) for each in kept}:
        assert stat.S_IMODE(folder.stat().st_mode) & 0o077 == 0, folder
