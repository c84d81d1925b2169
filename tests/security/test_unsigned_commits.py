"""Whoever may push and has no trusted key changes nothing: a push that isn't signed as a Sync asks is never applied."""

from __future__ import annotations

import json

import pytest

from tests.signing import NOBODY, gpg_home, needs_gpg


@pytest.fixture
def running(new_daemon, cluster):
    """A daemon for the test's namespace: running("--require-verify")."""

    def run(*options):
        return new_daemon(cluster.kubectl.kubeconfig, cluster.namespace, options=options).start()

    return run


@pytest.fixture
def trust(cluster):
    """Put keys where Syncs look for them: trust(alice, kind="ConfigMap")."""

    def put(*signers, kind="Secret", name="keys", **entries):
        lines = "".join(f"{each.line}\n" for each in signers)
        texts = {
            **({"allowed_signers": lines} if lines else {}),
            **{key.replace("__", "."): text for key, text in entries.items()},
        }
        holder = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": cluster.namespace}}
        cluster.apply({**holder, ("stringData" if kind == "Secret" else "data"): texts})

    return put


BY_SECRET = {"verify": {"secretRef": {"name": "keys"}}}


def app(config_map, color):
    return {"web.json": config_map("web", color=color)}


def color(cluster):
    return (cluster.get("ConfigMap", "web") or {"data": {}})["data"].get("color")


def condition(sync, type_):
    return next((each for each in sync.live.get("status", {}).get("conditions", ()) if each["type"] == type_), {})


@pytest.fixture
def refused(eventually):
    """refused(sync, "NoSignature") -> what it says once it says so."""

    def wait(sync, reason):
        def said():
            found = condition(sync, "SourceVerified")
            return (
                found
                if found.get("reason") == reason and condition(sync, "Ready").get("reason") == "Unverified"
                else None
            )

        return eventually(said, f"the commit is refused: {reason}")["message"]

    return wait


def test_a_push_that_nobody_signed_changes_nothing_and_others_go_on(
    running, follow, cluster, repository, own_git_server, config_map, trust, refused, eventually, alice, mallory
):
    running()
    trust(alice)
    good = repository.push(app(config_map, "blue"), alice)
    sync = follow(repository.url, git=BY_SECRET)
    sync.until_synced(good)
    assert (
        condition(sync, "SourceVerified")["message"]
        == f"commit {good[:7]} is signed by alice@example.com (ED25519 {alice.print})"
    )
    other = own_git_server()
    neighbour = follow(other.url, name="neighbour")
    for signer, reason in ((NOBODY, "NoSignature"), (mallory, "UnknownKey")):
        bad = repository.push(app(config_map, f"evil-{signer.name}"), signer)
        said = refused(sync, reason)
        assert f"commit {bad[:7]} by {signer.name} <{signer.name}@example.com>" in said
        assert f"{good[:7]} stays in force" in said
        neighbour.until_synced(other.push({"n.json": config_map("neighbour", by=signer.name)}))
        cluster.edit("ConfigMap", "web", {"data": {"color": "drifted"}})
        eventually(lambda: color(cluster) == "blue", "drift is put back from the commit that was verified")
    assert sync.live["status"]["lastAppliedRevision"] == good
    assert sync.live["status"]["verified"]["revision"] == good
    assert {row["result"] for row in sync.live["status"]["history"]} == {"Synced"}
    better = repository.push(app(config_map, "green"), alice)
    sync.until_synced(better)
    assert color(cluster) == "green"
    assert condition(sync, "SourceVerified")["status"] == "True"


def test_a_daemon_that_begins_anew_keeps_up_what_was_verified(
    running, follow, cluster, repository, config_map, trust, refused, eventually, alice
):
    daemon = running()
    trust(alice)
    good = repository.push(app(config_map, "blue"), alice)
    sync = follow(repository.url, git=BY_SECRET)
    sync.until_synced(good)
    repository.push(app(config_map, "evil"))
    refused(sync, "NoSignature")
    daemon.kill()
    cluster.edit("ConfigMap", "web", {"data": {"color": "drifted"}})
    daemon.start()
    eventually(lambda: color(cluster) == "blue", "drift is put back from what the status names and was verified again")
    assert f"{good[:7]} stays in force" in refused(sync, "NoSignature")


def test_a_status_is_no_proof_of_a_signature(
    running, follow, cluster, repository, config_map, trust, refused, eventually, alice, kubectl
):
    daemon = running()
    trust(alice)
    good = repository.push(app(config_map, "blue"), alice)
    sync = follow(repository.url, git=BY_SECRET)
    sync.until_synced(good)
    evil = repository.push(app(config_map, "evil"))
    refused(sync, "NoSignature")
    daemon.kill()
    forged = {"status": {"lastAppliedRevision": evil, "verified": {"revision": evil, "signer": "alice@example.com"}}}
    kubectl(
        "patch",
        "sync",
        "shop",
        "-n",
        cluster.namespace,
        "--subresource=status",
        "--type=merge",
        "-p",
        json.dumps(forged),
    )
    cluster.edit("ConfigMap", "web", {"data": {"color": "drifted"}})
    daemon.start()
    said = eventually(
        lambda: "nothing is applied, and drift isn't corrected" in (text := refused(sync, "NoSignature")) and text,
        "nothing is in force",
    )
    assert evil[:7] in said
    assert color(cluster) == "drifted"


def test_what_was_never_signed_is_never_applied(
    running, follow, cluster, repository, config_map, trust, refused, alice
):
    running()
    trust(alice, kind="ConfigMap")
    repository.push(app(config_map, "evil"))
    sync = follow(repository.url, git={"verify": {"configMapRef": {"name": "keys"}}})
    assert "nothing is applied, and drift isn't corrected, because nothing was verified before" in refused(
        sync, "NoSignature"
    )
    assert "ConfigMap" not in refused(sync, "NoSignature")
    assert cluster.get("ConfigMap", "web") is None
    sync.until_synced(repository.push({}, alice))
    assert color(cluster) == "evil", "whoever signs the tip signs all that it holds"


def test_keys_that_are_missing_wrong_or_replaced_are_said(
    running, follow, cluster, repository, config_map, trust, refused, eventually, alice, bob
):
    running()
    good = repository.push(app(config_map, "blue"), alice)
    sync = follow(repository.url, git=BY_SECRET)
    said = refused(sync, "KeysUnusable")
    assert f"Secret {cluster.namespace}/keys isn't there" in said
    assert f"kubectl create secret generic keys -n {cluster.namespace} --from-file=allowed_signers" in said
    trust(alice)
    sync.until_synced(good)
    trust(bob)  # alice has left
    said = refused(sync, "UnknownKey")
    assert f"{good[:7]} stays in force" in said
    cluster.edit("ConfigMap", "web", {"data": {"color": "drifted"}})
    eventually(lambda: color(cluster) == "blue", "what is in force stays in force")
    cluster.edit("Secret", "keys", {"stringData": {"allowed_signers": "bob ssh-ed25519 hunter2"}})
    said = refused(sync, "KeysUnusable")
    assert "entry allowed_signers, line 1: the key is damaged" in said
    assert "hunter2" not in json.dumps(sync.live["status"])
    trust(bob)
    newer = repository.push(app(config_map, "green"), bob)
    sync.until_synced(newer)
    assert sync.live["status"]["history"][0]["signer"] == "bob@example.com"
    assert sync.live["status"]["history"][0]["key"] == f"ED25519 {bob.print}"


def test_signatures_that_are_asked_for_later_count_from_then_on(
    running, follow, cluster, repository, config_map, trust, refused, alice
):
    running()
    trust(alice)
    unsigned = repository.push(app(config_map, "blue"))
    sync = follow(repository.url)
    sync.until_synced(unsigned)
    assert condition(sync, "SourceVerified") == {}
    follow(repository.url, git=BY_SECRET)
    assert "nothing is applied, and drift isn't corrected" in refused(sync, "NoSignature")
    assert color(cluster) == "blue", "what is there stays"
    signed = repository.push(app(config_map, "green"), alice)
    sync.until_synced(signed)
    cluster.edit("Sync", "shop", {"spec": {"source": {"git": {"verify": None}}}})
    sync.until_synced(repository.push(app(config_map, "red")))
    assert condition(sync, "SourceVerified") == {}
    assert "verified" not in sync.live["status"]


def test_a_tag_that_somebody_moves_stays_where_it_was_signed(
    running, follow, cluster, repository, config_map, trust, refused, alice, mallory
):
    running()
    trust(alice)
    good = repository.push(app(config_map, "blue"))
    repository.tag("v1", good, alice)
    sync = follow(repository.url, git={"tag": "v1", "verify": {"mode": "Tag", "secretRef": {"name": "keys"}}})
    sync.until_synced(good)
    evil = repository.push(app(config_map, "evil"), mallory)
    repository.tag("v1", evil, mallory)
    assert mallory.print in refused(sync, "UnknownKey")
    repository.git("tag", "-f", "v1", evil)
    refused(sync, "LightweightTag")
    repository.git("update-ref", "refs/tags/v1", repository.tag("v0", evil, alice))
    refused(sync, "OtherTag")
    assert color(cluster) == "blue"
    repository.tag("v1", evil, alice)
    sync.until_synced(evil)
    assert sync.live["status"]["verified"]["tag"]


@needs_gpg
def test_openpgp_keys_do_as_well(running, follow, cluster, repository, config_map, trust, refused, mallory):
    with gpg_home() as gpg:
        carol = gpg.signer("carol")
        running()
        trust(carol__asc=carol.public)
        good = repository.push(app(config_map, "blue"), carol)
        sync = follow(repository.url, git=BY_SECRET)
        sync.until_synced(good)
        assert condition(sync, "SourceVerified")["message"].endswith(f"(OpenPGP {carol.print})")
        repository.push(app(config_map, "evil"), mallory)
        assert mallory.print in refused(sync, "UnknownKey")
        assert color(cluster) == "blue"


def test_a_daemon_may_want_signatures_of_everybody(
    running, follow, cluster, repository, config_map, trust, refused, alice
):
    running("--require-verify")
    trust(alice)
    repository.push(app(config_map, "evil"))
    sync = follow(repository.url)
    said = refused(sync, "VerifyRequired")
    assert "this daemon requires signatures (--require-verify)" in said
    assert "spec.source.git.verify" in said
    assert cluster.get("ConfigMap", "web") is None
    good = repository.push(app(config_map, "blue"), alice)
    follow(repository.url, git=BY_SECRET)
    sync.until_synced(good)


def test_neither_a_request_nor_the_command_line_goes_around_it(
    running, follow, cluster, repository, config_map, trust, refused, plugin, alice, mallory
):
    daemon = running()
    trust(alice)
    good = repository.push(app(config_map, "blue"), alice)
    sync = follow(repository.url, git=BY_SECRET)
    sync.until_synced(good)
    evil = repository.push(app(config_map, "evil"), mallory)
    asked = plugin("sync", "shop")
    assert asked.status == 4, asked
    assert (asked.out + asked.err).count(mallory.print) == 1
    assert refused(sync, "UnknownKey")
    assert mallory.print in refusal_of(plugin("rollback", "shop", "--to", evil, "-y"))
    assert "commit" not in sync.live["spec"]["source"]["git"], "nor is the Sync pinned there"
    daemon.stop()
    for arguments in ((), ("--revision", evil[:10]), ("--revision", "main")):
        assert mallory.print in refusal_of(plugin("sync", "shop", "-y", *arguments))
    assert color(cluster) == "blue"
    shown = plugin("diff", "shop")
    assert shown.status == 1, shown
    assert "evil" in shown.out
    assert "unverified, so no sync applies it" in shown.out + shown.err
    assert mallory.print in shown.out + shown.err
    for arguments in (("sync", "shop", "--revision", good, "-y"), ("rollback", "shop", "--to", good, "-y")):
        kept = plugin(*arguments)
        assert kept.status == 0, kept
    assert color(cluster) == "blue"


def refusal_of(answer) -> str:
    assert answer.status == 4, answer
    return answer.err
