"""Signatures as people at a terminal see them: whose a commit is, why one isn't applied, and what to do."""

from __future__ import annotations

import json

import pytest

VERIFY = {"verify": {"secretRef": {"name": "keys"}}}


@pytest.fixture
def keys(cluster, alice):
    cluster.apply(
        {
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys", "namespace": cluster.namespace},
            "stringData": {"allowed_signers": f"{alice.line}\n"},
        }
    )  # fmt: skip


def test_history_and_explain_name_signer_and_key(repository, follow, plugin, config_map, keys, alice, mallory):
    good = repository.push({"web.json": config_map("web", color="blue")}, alice)
    follow(repository.url, git=VERIFY)
    assert plugin("sync", "shop", "-y").status == 0
    table = plugin("history", "shop").out
    assert "SIGNER" in table
    assert "alice@example.com" in table
    assert alice.print in plugin("history", "shop", "-o", "wide").out
    [entry] = json.loads(plugin("history", "shop", "-o", "json").out)["entries"]
    assert (entry["signer"], entry["key"]) == ("alice@example.com", f"ED25519 {alice.print}")
    told = plugin("explain", "cm/web").out
    assert f"commit {good[:7]} is signed by alice@example.com (ED25519 {alice.print})" in " ".join(told.split())
    repository.push({"web.json": config_map("web", color="evil")}, mallory)
    told = " ".join(plugin("explain", "cm/web").out.split())
    assert "unverified, so no sync applies it" in told
    assert mallory.print in told
    found = json.loads(plugin("explain", "cm/web", "-o", "json").out)["verification"]
    assert (found["verified"], found["reason"]) == (False, "UnknownKey")


def test_a_sync_without_signatures_has_no_column_for_them(repository, follow, plugin, config_map):
    repository.push({"web.json": config_map("web")})
    follow(repository.url)
    assert plugin("sync", "shop", "-y").status == 0
    assert "SIGNER" not in plugin("history", "shop").out
    assert "signed" not in plugin("explain", "cm/web").out


def test_a_sync_is_made_once_its_newest_commit_is_signed(repository, plugin, cluster, config_map, keys, alice, mallory):
    repository.push({"web.json": config_map("web")}, mallory)
    asked = ("create", "shop", "--url", repository.url, "--verify-secret", "keys")
    refused = plugin(*asked)
    assert refused.status == 4, refused
    assert mallory.print in refused.err
    assert cluster.get("Sync", "shop") is None
    repository.push({"web.json": config_map("web")}, alice)
    made = plugin(*asked)
    assert made.status == 0, made
    assert "is signed by alice@example.com" in made.err
    assert cluster.get("Sync", "shop")["spec"]["source"]["git"]["verify"] == {
        "mode": "Commit",
        "secretRef": {"name": "keys"},
    }


MISTAKES = {
    "two places": (("--verify-secret", "a", "--verify-configmap", "b"), "exclude each other"),
    "a mode alone": (("--verify-mode", "Tag"), "needs --verify-secret or --verify-configmap"),
    "a tag of a branch": (("--verify-secret", "a", "--verify-mode", "Tag", "--branch", "main"), "needs a --tag"),
}


@pytest.mark.parametrize(("flags", "said"), MISTAKES.values(), ids=MISTAKES)
def test_flags_that_can_not_be_meant_together(plugin, flags, said):
    answer = plugin("create", "shop", "--url", "https://git.example.com/shop.git", *flags)
    assert answer.status == 2, answer
    assert said in answer.err


def test_the_doctor_says_which_keys_can_not_be_used(repository, follow, plugin, cluster, config_map, keys, alice):
    repository.push({"web.json": config_map("web")}, alice)
    follow(repository.url, git=VERIFY)
    assert f"{cluster.namespace}/keys" not in plugin("doctor").out
    cluster.edit("Secret", "keys", {"stringData": {"allowed_signers": "alice"}})
    said = " ".join(plugin("doctor").out.split())
    assert f"Secret {cluster.namespace}/keys entry allowed_signers, line 1: has no SSH key" in said
    cluster.delete("Secret", "keys")
    assert f"Secret {cluster.namespace}/keys isn't there" in " ".join(plugin("doctor").out.split())


def test_a_sync_that_verifies_tags_goes_back_by_its_tag(repository, follow, plugin, cluster, config_map, keys, alice):
    good = repository.push({"web.json": config_map("web", color="blue")})
    repository.tag("v1", good, alice)
    sync = follow(repository.url, git={"tag": "v1", "verify": {"mode": "Tag", "secretRef": {"name": "keys"}}})
    assert plugin("sync", "shop", "-y").status == 0
    assert sync.status["verified"]["signer"] == "alice@example.com"
    refused = plugin("rollback", "shop", "--to", good, "-y")
    assert refused.status == 4, refused
    assert "only tags are verified" in refused.err
    assert sync.live["spec"]["source"]["git"]["tag"] == "v1"


def test_what_rollback_commits_is_signed_by_whoever_runs_it(
    repository, follow, plugin, config_map, keys, alice, home, monkeypatch, tmp_path
):
    (tmp_path / "config").write_text(
        f"[user]\n\tname = alice\n\temail = alice@example.com\n\tsigningKey = {alice.settings['user.signingKey']}\n[gpg]\n\tformat = ssh\n"
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    good = repository.push({"web.json": config_map("web", color="blue")}, alice)
    sync = follow(repository.url, git={"branch": "main", **VERIFY})
    assert plugin("sync", "shop", "-y").status == 0
    repository.push({"web.json": config_map("web", color="green")}, alice)
    assert plugin("sync", "shop", "-y").status == 0
    back = plugin("rollback", "shop", "--to", good, "--commit", "-y")
    assert back.status == 0, back
    assert sync.status["verified"]["signer"] == "alice@example.com"
    assert sync.status["lastAppliedRevision"] == repository.git("rev-parse", "refs/heads/main")
