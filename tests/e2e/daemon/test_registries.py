"""Artifacts and charts of a registry as sources of Syncs: followed by a daemon, with the login of a Secret, taken back and forward again."""

from __future__ import annotations

import json

import pytest

from kubectl_reconcile.core.rendering.pinned.lock import Lock, text_of
from kubectl_reconcile.core.resources.chart import ChartSpec
from kubectl_reconcile.core.resources.oci.manifest import CHART_CONFIG, CHART_LAYER
from tests.e2e.followed import Followed
from tests.oci_signing import drawn, payload, payload_layer, pem, push_payloads
from tests.registry_server import FLUX_LAYER, PASSWORD, USER, Layer, password_registry
from tests.rendering_tools import packed


@pytest.fixture
def registry(registry_program, tmp_path):
    """A registry over https that wants a password."""
    with password_registry(registry_program, tmp_path) as running:
        yield running


def login(running, name):
    """A Secret as kubectl makes it of a login, with the authority of the registry beside it."""
    logins = {"auths": {running.host: {"username": USER, "password": PASSWORD}}}
    return {
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson", "metadata": {"name": name},
        "stringData": {".dockerconfigjson": json.dumps(logins), "ca.crt": running.ca},
    }  # fmt: skip


def says(words, plugin, verb, *more):
    shown = plugin(verb, *more)
    assert words in " ".join((shown.out + shown.err).split()), (verb, shown)


def test_an_artifact_is_followed_by_its_tag_and_goes_back_to_a_digest(
    daemon, plugin, cluster, registry, config_map, eventually
):
    def push(color, **files):
        made = {
            "org.opencontainers.image.revision": f"main@sha1:{color}",
            "org.opencontainers.image.source": "https://git.example.com/shop",
        }
        files = {"prod/web.yaml": config_map("web", color=color), **files}
        return registry.push("team/shop", "1.4", Layer(packed(files), FLUX_LAYER), annotations=made)

    def color():
        return cluster.get("ConfigMap", "web")["data"]["color"]

    cluster.apply(login(registry, "registry"))
    old = push("red", **{"prod/gone.yaml": config_map("gone")})
    url = f"oci://{registry.host}/team/shop"
    made = plugin(
        "create",
        "shop",
        "--url",
        url,
        "--tag",
        "1.4",
        "--path",
        "prod",
        "--secret",
        "registry",
        "--interval",
        "1s",
        "--no-grant",
    )
    assert (made.status, f"1.4@{old[:14]} has 2 objects in 2 files" in made.err) == (0, True), made
    sync = Followed(cluster, "shop")
    sync.until_synced(f"1.4@{old}")
    cluster.edit("ConfigMap", "web", {"data": {"color": "green"}})
    eventually(lambda: color() == "red", "drift is put back")
    says(f"1.4@{old[:14]}", plugin, "status", "shop", "-o", "wide")
    says(f"{url} 1.4 prod", plugin, "status", "-o", "wide")
    says(f"the registry answers, at 1.4@{old[:14]}; it is ready", plugin, "doctor")
    of = "its artifact was made of main@sha1:red in https://git.example.com/shop"
    says(f"Sync {cluster.namespace}/shop, from prod/web.yaml:1; {of}", plugin, "explain", "configmap/web")
    assert plugin("diff", "shop").status == 0

    new = push("blue")
    sync.until_synced(f"1.4@{new}")
    assert (color(), cluster.get("ConfigMap", "gone")) == ("blue", None)
    says("https://git.example.com/shop main@sha1:blue", plugin, "history", "shop")
    assert {row["revision"] for row in sync.status["history"]} == {f"1.4@{old}", f"1.4@{new}"}

    says(f"is pinned to 1.4@{old[:14]}; to follow tag 1.4 again", plugin, "rollback", "shop", "--yes")
    assert (color(), bool(cluster.get("ConfigMap", "gone"))) == ("red", True)
    assert sync.live["spec"]["source"]["oci"]["digest"] == old
    says(f"was rolled back to digest {old[:14]}; before, it followed tag 1.4", plugin, "history", "shop")
    says("follows tag 1.4 again", plugin, "resume", "shop")
    eventually(lambda: color() == "blue", "it goes on where it was")
    says("+ color: red", plugin, "diff", "shop", "--revision", old)
    assert PASSWORD not in daemon.log


def sign(running, name, digest, key):
    push_payloads(running, name, digest, payload_layer(key, payload(digest, f"{running.host}/{name}")))


def verified(sync):
    return next((each for each in sync.status.get("conditions", ()) if each["type"] == "SourceVerified"), {})


def test_of_an_artifact_that_has_to_be_signed_nothing_else_is_ever_applied(
    new_daemon, plugin, cluster, registry, config_map, eventually
):
    def push(color):
        return registry.push(
            "team/shop", "1.4", Layer(packed({"web.yaml": config_map("web", color=color)}), FLUX_LAYER)
        )

    def color():
        return (cluster.get("ConfigMap", "web") or {"data": {}})["data"].get("color")

    def refused(reason):
        return eventually(lambda: verified(sync) if verified(sync).get("reason") == reason else None, reason)["message"]

    key = drawn()
    cluster.apply(login(registry, "registry"))
    cluster.apply(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "keys"}, "data": {"cosign.pub": pem(key)}}
    )
    daemon = new_daemon(cluster.kubectl.kubeconfig, cluster.namespace, options=("--require-verify",)).start()
    unsigned = push("evil")
    wanted = [
        *("create", "shop", "--url", f"oci://{registry.host}/team/shop", "--tag", "1.4", "--secret", "registry"),
        *("--interval", "1s", "--no-grant"),
    ]
    says(f"artifact 1.4@{unsigned[:14]} has no signature", plugin, *wanted, "--verify-configmap", "keys")
    assert cluster.get("Sync", "shop") is None
    assert plugin(*wanted).status == 0
    sync = Followed(cluster, "shop")
    assert "and the Sync has no spec.source.oci.verify" in refused("VerifyRequired")
    assert color() is None

    good = push("red")
    sign(registry, "team/shop", good, key)
    sync.change(source={"oci": {"verify": {"configMapRef": {"name": "keys"}}}})
    sync.until_synced(f"1.4@{good}")
    assert (color(), sync.status["verified"]["signer"]) == ("red", "cosign.pub")
    assert sync.status["history"][0]["signer"] == "cosign.pub"
    says("cosign.pub", plugin, "history", "shop")
    says(f"artifact 1.4@{good[:14]} is signed by cosign.pub (ECDSA", plugin, "explain", "configmap/web")

    evil = push("evil")
    sign(registry, "team/shop", evil, drawn())
    assert f"1.4@{good[:14]} stays in force" in refused("UnknownKey")
    cluster.edit("ConfigMap", "web", {"data": {"color": "drifted"}})
    eventually(lambda: color() == "red", "drift is put back from what was verified")
    shown = plugin("diff", "shop")
    assert "unverified, so no sync applies it" in shown.out + shown.err, shown
    assert "evil" in shown.out
    for words in (("sync", "shop", "-y"), ("rollback", "shop", "--to", evil, "-y")):
        assert plugin(*words).status == 4, words
    daemon.stop()
    assert plugin("sync", "shop", "--revision", evil, "-y").status == 4
    cluster.edit("ConfigMap", "web", {"data": {"color": "drifted"}})
    daemon.start()
    eventually(lambda: color() == "red", "who begins anew verifies again what the status names, and keeps that up")
    cluster.edit("ConfigMap", "keys", {"data": {"cosign.pub": "no key"}})
    says(f"ConfigMap {cluster.namespace}/keys entry cosign.pub holds no public key", plugin, "doctor")
    assert "stays in force" in refused("KeysUnusable")
    daemon.stop()
    cluster.edit("ConfigMap", "keys", {"data": {"cosign.pub": pem(key)}})
    assert plugin("sync", "shop", "--revision", evil, "-y").status == 4
    assert plugin("sync", "shop", "--revision", good, "-y").status == 0
    assert color() == "red"
    assert PASSWORD not in daemon.log


def push_chart(running, version, color):
    template = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: web}}\ndata: {{color: {color}, size: '{{{{ .Values.size }}}}'}}\n"
    files = {"web/Chart.yaml": f"apiVersion: v2\nname: web\nversion: {version}\n", "web/templates/a.yaml": template}
    return running.push("charts/web", version, Layer(packed(files), CHART_LAYER), config=Layer(b"{}", CHART_CONFIG))


@pytest.mark.usefixtures("renders")
def test_a_chart_of_a_registry_is_followed(daemon, plugin, cluster, registry, eventually):
    cluster.apply(login(registry, "registry"))
    old, new = push_chart(registry, "1.2.3", "red"), push_chart(registry, "1.3.0", "blue")
    url = f"oci://{registry.host}/charts"
    wanted = [
        "create",
        "web",
        "--url",
        url,
        "--chart",
        "web",
        "--version",
        "1.2.3",
        "--secret",
        "registry",
        "--interval",
        "1s",
        "--no-grant",
    ]
    says(f"write digest: {old}", plugin, *wanted)
    assert plugin(*wanted, "--digest", old).status == 0
    sync = Followed(cluster, "web")
    sync.until_synced(f"1.2.3@{old}")
    sync.change(source={"chart": {"version": "1.3.0", "digest": new}, "helm": {"values": {"size": 7}}})
    sync.until_synced(f"1.3.0@{new}")
    assert cluster.get("ConfigMap", "web")["data"] == {"color": "blue", "size": "7"}
    says(f"chart web 1.3.0 of {url} is there; it is ready", plugin, "doctor")
    says(f"is pinned to 1.2.3@{old[:14]}", plugin, "rollback", "web", "--yes")
    assert cluster.get("ConfigMap", "web")["data"] == {"color": "red", "size": ""}
    cluster.edit("Secret", "registry", {"stringData": {".dockerconfigjson": '{"auths": {}}'}})
    eventually(
        lambda: f"Secret {cluster.namespace}/registry has no login for {url}/web" in sync.condition()["message"],
        "it is told",
    )
    assert PASSWORD not in daemon.log


@pytest.mark.usefixtures("renders")
def test_a_chart_that_has_to_be_signed_is_applied_once_it_is(new_daemon, plugin, cluster, registry, eventually):
    key = drawn("rsa")
    cluster.apply(login(registry, "registry"))
    cluster.apply(
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "stringData": {"ci.pub": pem(key)}}
    )
    daemon = new_daemon(cluster.kubectl.kubeconfig, cluster.namespace, options=("--require-verify",)).start()
    old, new = push_chart(registry, "1.2.3", "red"), push_chart(registry, "1.3.0", "blue")
    wanted = [
        *("create", "web", "--url", f"oci://{registry.host}/charts", "--chart", "web", "--version", "1.2.3"),
        *("--digest", old, "--secret", "registry", "--verify-secret", "keys", "--interval", "1s", "--no-grant"),
    ]
    says(f"chart web 1.2.3@{old[:14]} has no signature", plugin, *wanted)
    sign(registry, "charts/web", old, key)
    assert plugin(*wanted).status == 0
    sync = Followed(cluster, "web")
    sync.until_synced(f"1.2.3@{old}")
    assert (sync.status["verified"]["signer"], sync.status["history"][0]["signer"]) == ("ci.pub", "ci.pub")

    sync.change(source={"chart": {"version": "1.3.0", "digest": new}})
    said = eventually(lambda: verified(sync) if verified(sync).get("status") == "False" else None, "it is refused")
    assert f"chart web 1.3.0@{new[:14]} has no signature; nothing is applied" in said["message"]
    assert cluster.get("ConfigMap", "web")["data"]["color"] == "red"
    shown = plugin("diff", "web")
    assert "unverified, so no sync applies it" in shown.out + shown.err, shown
    assert plugin("sync", "web", "-y").status == 4
    sign(registry, "charts/web", new, key)
    sync.until_synced(f"1.3.0@{new}")
    says(f"is pinned to 1.2.3@{old[:14]}", plugin, "rollback", "web", "--yes")
    assert sync.live["spec"]["source"]["chart"]["verify"] == {"secretRef": {"name": "keys"}}
    assert cluster.get("ConfigMap", "web")["data"]["color"] == "red"
    assert PASSWORD not in daemon.log


@pytest.mark.usefixtures("renders")
def test_what_a_chart_depends_on_is_fetched_by_the_lock_file_beside_it(
    daemon, plugin, cluster, registry, config_map, eventually
):
    charts = f"oci://{registry.host}/charts"

    def database(color):
        files = {
            "database/Chart.yaml": "apiVersion: v2\nname: database\nversion: 1.2.3\n",
            "database/templates/a.yaml": config_map("database", color=color),
        }
        layer, config = Layer(packed(files), CHART_LAYER), Layer(b"{}", CHART_CONFIG)
        return registry.push("charts/database", "1.2.3", layer, config=config)

    def push(color, lock=None):
        entry = f"dependencies: [{{name: database, version: 1.2.3, repository: '{charts}'}}]\n"
        files = {
            "web/Chart.yaml": f"apiVersion: v2\nname: web\nversion: 0.1.0\n{entry}",
            "web/templates/a.yaml": config_map("web", color=color),
        }
        if lock:
            pin = ChartSpec(charts, "database", "1.2.3", lock)
            files["web/reconcile.lock.yaml"] = text_of(Lock((pin,)))
        return registry.push("team/shop", "1.4", Layer(packed(files), FLUX_LAYER))

    def colors():
        found = (cluster.get("ConfigMap", name) for name in ("web", "database"))
        return [each and each["data"]["color"] for each in found]

    cluster.apply(login(registry, "registry"))
    locked = database("red")
    first = push("red", locked)
    url = f"oci://{registry.host}/team/shop"
    flags = ("--tag", "1.4", "--path", "web", "--secret", "registry", "--interval", "1s", "--no-grant")
    made = plugin("create", "shop", "--url", url, *flags)
    assert made.status == 0, made
    sync = Followed(cluster, "shop")
    sync.until_synced(f"1.4@{first}")
    assert colors() == ["red", "red"]
    push("yellow")
    eventually(lambda: "kubectl reconcile lock web" in sync.condition().get("message", ""), "the command is told")
    assert colors() == ["red", "red"]

    database("forged")  # the version is published again, as something else
    sync.until_synced(f"1.4@{push('blue', locked)}")
    assert colors() == ["blue", "red"]
    push("green", "sha256:" + "0" * 64)
    eventually(lambda: "charts/database has no manifest" in sync.condition().get("message", ""), "it is told")
    assert colors() == ["blue", "red"]
    assert PASSWORD not in daemon.log
