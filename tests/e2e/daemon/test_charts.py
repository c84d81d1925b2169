"""Charts as sources of Syncs: followed by the daemon, previewed and applied by the command line, on a real API server."""

from __future__ import annotations

import base64
import hashlib
import subprocess

import pytest
import yaml

from tests import yaml_text

pytestmark = pytest.mark.usefixtures("renders")

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {a: %s}\n"
FILES = {
    "web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\nkubeVersion: '>=1.20.0-0'\n",
    "web/values.yaml": "color: red\nextra: true\n",
    "web/templates/color.yaml": CONFIG % ("{{ .Release.Name }}-color", "{{ .Values.color }}"),
    "web/templates/extra.yaml": "{{ if .Values.extra }}" + CONFIG % ("extra", "{{ .Release.Namespace }}") + "{{ end }}",
    "web/templates/able.yaml": CONFIG % ("able", "'{{ .Capabilities.APIVersions.Has \"apps/v1/Deployment\" }}'"),
    "prod.yaml": "color: blue\n",
}
SOURCE = "reconcile.dev/source"


def test_a_daemon_follows_a_chart(daemon, follow, plugin, cluster, git_server, eventually):
    sync = follow(git_server.url, path="web")
    sync.until_synced(git_server.push(FILES))
    assert cluster.members("ConfigMap", "shop") == {"shop-color", "extra", "able"}
    live = cluster.get("ConfigMap", "shop-color")
    assert (live["data"], live["metadata"]["annotations"][SOURCE]) == ({"a": "red"}, "web/templates/color.yaml")
    assert cluster.get("ConfigMap", "extra")["data"]["a"] == cluster.namespace
    assert cluster.get("ConfigMap", "able")["data"]["a"] == "true"
    assert plugin("diff", "shop").status == 0
    helm = {"valuesFiles": ["../prod.yaml"], "values": {"extra": False}, "releaseName": "shop"}
    cluster.edit("Sync", "shop", {"spec": {"source": {"helm": helm}}})
    eventually(
        lambda: cluster.members("ConfigMap", "shop") == {"shop-color", "able"}, "what values switch off is pruned"
    )
    eventually(lambda: cluster.get("ConfigMap", "shop-color")["data"]["a"] == "blue", "values are applied")
    ready = sync.until("ProblemsInSource", git_server.push({"web/templates/bad.yaml": "\n{{ fail .Values.color }}"}))
    assert ready["message"].startswith("web/templates/bad.yaml:2: Helm can't render it: execution error at ")
    assert "blue" not in ready["message"]
    assert cluster.members("ConfigMap", "shop") == {"shop-color", "able"}
    sync.until_synced(git_server.push({"web/templates/bad.yaml": None, "prod.yaml": "color: green\n"}))
    assert cluster.get("ConfigMap", "shop-color")["data"]["a"] == "green"


def test_the_api_server_knows_the_fields_of_a_chart(follow, cluster, git_server):
    follow(git_server.url, path="web", suspend=True)
    for helm, said in (
        ({"releaseName": "Web"}, "must be lower-case letters"),
        ({"valuesFiles": ["a"] * 33}, "must have at most 32 items"),
        ({"values": [1]}, "must be of type object"),
    ):
        with pytest.raises(Exception, match=said):
            cluster.edit("Sync", "shop", {"spec": {"source": {"helm": helm}}})


HELD = {
    "web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
    "web/templates/a.yaml": CONFIG
    % ("url", "'{{ .Values.db.user }}:{{ .Values.db.password | upper }}@{{ toJson .Values.db.port }}'"),
    "web/templates/b.yaml": CONFIG % ("color", "{{ .Values.color }}"),
}
VALUES_FROM = [
    {"kind": "ConfigMap", "name": "values"},
    {"kind": "Secret", "name": "db", "valuesKey": "password", "targetPath": "db.password"},
    {"kind": "ConfigMap", "name": "values", "valuesKey": "port", "targetPath": "db.port", "type": "Integer"},
]


def test_values_that_the_cluster_holds_are_followed_and_those_of_secrets_are_seen_by_nobody(
    daemon, follow, plugin, cluster, git_server, kubectl, eventually
):
    def holds(kind, name, **data):
        field = "stringData" if kind == "Secret" else "data"
        return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, field: data}

    cluster.apply(holds("ConfigMap", "values", **{"values.yaml": "color: red\ndb: {user: web}\n", "port": "5432"}))
    cluster.distrust()  # whoever applies reads, too
    sha = git_server.push(HELD)
    sync = follow(git_server.url, path="web", suspend=True)
    cluster.edit("Sync", "shop", {"spec": {"source": {"helm": {"valuesFrom": VALUES_FROM}}}})
    place, entry = cluster.namespace, "spec.source.helm.valuesFrom[1]"
    missing = plugin("diff", "shop")
    assert (missing.status, f"{entry}: there is no Secret {place}/db" in missing.err) == (4, True)
    cluster.apply(holds("Secret", "db", password=LOOKED_UP))
    granted = plugin("grant", "shop").out
    cluster.edit("Sync", "shop", {"spec": {"suspend": False}})
    refused = (
        f"spec.source.helm.valuesFrom[0], spec.source.helm.valuesFrom[2]: ConfigMap {place}/values may not be read"
    )
    eventually(lambda: refused in sync.condition("Synced").get("message", ""), "the account may not read it")
    kubectl("apply", "-f", "-", stdin=granted)
    sync.until_synced(sha)
    assert cluster.get("ConfigMap", "url")["data"]["a"] == f"web:{LOOKED_UP.upper()}@5432"

    sync.change(source={"git": {"interval": "1h"}})  # what follows is the watches' doing
    eventually(lambda: sync.status["observedGeneration"] == sync.live["metadata"]["generation"], "the daemon knows it")
    cluster.edit("Secret", "db", {"stringData": {"password": f"next-{LOOKED_UP}"}})
    eventually(lambda: "NEXT-" in cluster.get("ConfigMap", "url")["data"]["a"], "the new password is applied")
    cluster.edit("ConfigMap", "values", {"data": {"values.yaml": "color: blue\ndb: {user: web}\n"}})
    eventually(lambda: cluster.get("ConfigMap", "color")["data"]["a"] == "blue", "the new colour is applied")
    cluster.edit("Sync", "shop", {"spec": {"suspend": True}})
    sync.until("Suspended")
    cluster.edit("Secret", "db", {"stringData": {"password": f"third-{LOOKED_UP}"}})
    told = [plugin("diff", "shop"), plugin("diff", "shop", "-o", "json"), plugin("explain", "configmap/url")]
    assert f"from valuesFrom Secret {place}/db" in told[0].out
    assert "***" in told[0].out
    everything = [*(each.out + each.err for each in told), str(sync.live), str(cluster.list("Event")), daemon.log]
    assert not any(LOOKED_UP in each.lower() for each in everything)

    cluster.edit("Sync", "shop", {"spec": {"suspend": False}})
    cluster.delete("Secret", "db")
    ready = sync.until("ProblemsInSource")
    assert f"{entry}: there is no Secret {place}/db" in ready["message"]
    assert cluster.members("ConfigMap", "shop") == {"url", "color"}


def test_a_preview_shows_what_a_changed_value_changes(plugin, follow, cluster, git_server, tmp_path):
    sha = git_server.push(FILES)
    folder = tmp_path / "web"
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    done = plugin("sync", "-f", str(folder), "--name", "shop", "--yes")
    assert done.status == 0, done.err
    assert cluster.members("ConfigMap", "shop") == {"shop-color", "extra", "able"}
    assert plugin("diff", "-f", str(folder), "--name", "shop").status == 0
    (folder / "values.yaml").write_text("color: pink\nextra: true\n")
    changed = plugin("diff", "-f", str(folder), "--name", "shop")
    assert (changed.status, "pink" in changed.out) == (1, True)
    assert plugin("diff", "--repo", git_server.url, "--path", "web").status == 1
    assert plugin("diff", "shop", "--revision", sha).status != 0  # it follows nothing


DRAWN = {
    "web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
    "web/templates/secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\nstringData: {password: {{ randAlphaNum 20 }}, user: me}\n",
    "web/templates/config.yaml": CONFIG % ("config", "{{ uuidv4 }}"),
}


def password(cluster):
    return base64.b64decode(cluster.get("Secret", "db")["data"]["password"]).decode()


def test_a_password_that_a_chart_draws_is_drawn_once_and_shown_nowhere(
    daemon, follow, plugin, cluster, git_server, eventually
):
    sync = follow(git_server.url, path="web", suspend=True)
    sha = git_server.push(DRAWN)
    preview = plugin("diff", "shop", "-o", "json")
    assert preview.status == 1, preview.err
    assert "<generated when applied>" in preview.out
    assert "<generated when applied>" in plugin("diff", "shop").out
    cluster.edit("Sync", "shop", {"spec": {"suspend": False}})
    sync.until_synced(sha)
    first, config = password(cluster), cluster.get("ConfigMap", "config")
    assert len(first) == 20
    shown = plugin("diff", "shop")
    assert (shown.status, first in shown.out + shown.err + preview.out) == (0, False)
    sync.until_synced(
        git_server.push(
            {"web/templates/secret.yaml": DRAWN["web/templates/secret.yaml"].replace("user: me", "user: you")}
        )
    )
    assert base64.b64decode(cluster.get("Secret", "db")["data"]["user"]) == b"you"
    assert (password(cluster), cluster.get("ConfigMap", "config")["data"]) == (first, config["data"])
    done = plugin("sync", "shop", "--yes")
    assert done.status == 0, done.err
    assert password(cluster) == first
    drawn = {first}
    for _ in range(2):
        cluster.delete("Secret", "db")
        eventually(lambda: "db" in cluster.names("Secret") and password(cluster) not in drawn, "another one is drawn")
        drawn.add(password(cluster))
    assert cluster.get("ConfigMap", "config")["data"] == config["data"]
    assert plugin("diff", "shop").status == 0
    cluster.edit("Sync", "shop", {"spec": {"source": {"helm": {"unstable": "Fail"}}}})
    ready = sync.until("ProblemsInSource", git_server.sha())
    assert ".stringData.password is generated again at each rendering" in str(ready) or ".data.a is drawn" in str(ready)
    assert "db" in cluster.names("Secret")


def test_drift_is_accepted_into_the_values_file_of_the_sync(plugin, follow, cluster, git_server, tmp_path):
    git_server.push(FILES)
    follow(git_server.url, path="web", suspend=True)
    helm = {"valuesFiles": ["../prod.yaml"], "releaseName": "shop"}
    cluster.edit("Sync", "shop", {"spec": {"source": {"helm": helm}, "suspend": False}})
    assert plugin("sync", "shop").status == 0
    cluster.edit("ConfigMap", "shop-color", {"data": {"a": "pink"}})
    cluster.edit("ConfigMap", "able", {"data": {"a": "maybe"}})
    tree = tmp_path / "checkout"
    subprocess.run(["git", "clone", "--quiet", git_server.url, tree], check=True, timeout=300)
    done = plugin("accept", "shop", "--local", str(tree))
    assert done.status == 0
    assert (tree / "prod.yaml").read_text() == "color: pink\n"
    assert (tree / "web/values.yaml").read_text() == FILES["web/values.yaml"]
    assert "left: ConfigMap" in done.err
    assert "nothing in web can set that value: " in done.err
    one = plugin("explain", "configmap/shop-color.data.a").out
    assert "web/templates/color.yaml" in one


LOOKING = {
    "web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
    "web/templates/password.yaml": '{{ $there := lookup "v1" "Secret" .Release.Namespace "own" }}'
    "apiVersion: v1\nkind: Secret\nmetadata: {name: own}\ndata:\n  password: "
    "{{ if $there }}{{ $there.data.password }}{{ else }}{{ randAlphaNum 20 | b64enc }}{{ end }}\n",
    "web/templates/found.yaml": '{{ $map := lookup "v1" "ConfigMap" .Release.Namespace "theirs" }}'
    '{{ $db := lookup "v1" "Secret" .Release.Namespace "db" }}'
    'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: found}\ndata:\n  a: {{ dig "data" "color" "none" $map }}\n'
    """  db: 'db://{{ dig "data" "password" "" $db | b64dec }}'\n""",
}
LOOKED_UP = "pa55-w0rd-of-the-db"


def test_a_chart_looks_up_what_the_account_may_read_and_nothing_else(
    daemon, follow, plugin, cluster, git_server, eventually
):
    cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs"}, "data": {"color": "red"}})
    cluster.apply(
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db"}, "stringData": {"password": LOOKED_UP}}
    )
    sha = git_server.push(LOOKING)
    sync = follow(git_server.url, path="web")
    sync.until_synced(sha)
    assert cluster.get("ConfigMap", "found")["data"] == {"a": "none", "db": "db://"}  # nothing unless the Sync says so
    own = cluster.get("Secret", "own")["data"]["password"]
    cluster.edit("Sync", "shop", {"spec": {"source": {"helm": {"lookup": "Cluster"}}}})
    eventually(
        lambda: cluster.get("ConfigMap", "found")["data"] == {"a": "red", "db": f"db://{LOOKED_UP}"}, "it is told"
    )
    assert cluster.get("Secret", "own")["data"]["password"] == own
    shown = plugin("diff", "shop")
    assert shown.status == 0, shown.out + shown.err
    place = cluster.namespace
    assert f"it looks up Secret {place}/db in the cluster, and finds it" in shown.out + shown.err
    cluster.edit("ConfigMap", "theirs", {"data": {"color": "blue"}})
    eventually(lambda: cluster.get("ConfigMap", "found")["data"]["a"] == "blue", "its change is seen")
    assert cluster.get("Secret", "own")["data"]["password"] == own

    cluster.edit("Sync", "shop", {"spec": {"suspend": True}})
    sync.until("Suspended")
    cluster.edit("ConfigMap", "found", {"data": {"db": "db://else"}})
    drifted = plugin("diff", "shop")
    assert (drifted.status, "lookup Secret" in drifted.out) == (1, True)
    everything = [shown.out, shown.err, drifted.out, drifted.err, plugin("diff", "shop", "-o", "json").out]
    assert not any(LOOKED_UP in each for each in [*everything, daemon.log, str(sync.live)])


KEEPING = {
    "web/Chart.yaml": LOOKING["web/Chart.yaml"],
    "web/templates/own.yaml": '{{ $there := lookup "v1" "Secret" .Release.Namespace "own" }}'
    "apiVersion: v1\nkind: Secret\nmetadata: {name: own}\ndata:\n  color: cmVk\n  password: "
    "{{ if $there }}{{ $there.data.password }}{{ else }}{{ randAlphaNum 20 | b64enc }}{{ end }}\n",
    "web/templates/sum.yaml": '{{ $there := (lookup "v1" "Secret" .Release.Namespace "").items | default list }}{{ $sum := "none" }}'
    '{{ range $there }}{{ if eq .metadata.name "own" }}{{ $sum = .data.password | b64dec | sha256sum }}{{ end }}{{ end }}'
    + CONFIG
    % ("sum", '"{{ $sum }}"'),
}


def test_drift_of_what_a_chart_looks_up_is_judged_by_what_is_there_then(
    daemon, follow, plugin, cluster, git_server, eventually
):
    sha = git_server.push(KEEPING)
    sync = follow(git_server.url, path="web", suspend=True)
    looking = {"helm": {"lookup": "Cluster"}}
    cluster.edit("Sync", "shop", {"spec": {"suspend": False, "source": {"git": {"interval": "1h"}, **looking}}})
    sync.until_synced(sha)

    def own():
        found = (cluster.get("Secret", "own") or {}).get("data", {})
        return {name: base64.b64decode(text).decode() for name, text in found.items()}

    def is_known(text):
        return cluster.get("ConfigMap", "sum")["data"]["a"] == hashlib.sha256(text.encode()).hexdigest()

    first = own()["password"]
    assert (len(first), cluster.get("ConfigMap", "sum")["data"]["a"]) == (20, "none")
    cluster.edit("Sync", "shop", {"spec": {"source": {"git": {"interval": "2h"}}}})
    eventually(lambda: is_known(first), "the chart finds what it drew")
    changed = {
        name: base64.b64encode(text.encode()).decode()
        for name, text in {"password": LOOKED_UP, "color": "green"}.items()
    }
    cluster.edit("Secret", "own", {"data": changed})
    eventually(lambda: own().get("color") == "red", "what the chart has of its own is put back")
    assert own()["password"] == LOOKED_UP
    eventually(lambda: is_known(LOOKED_UP), "the rest of the chart follows")
    cluster.delete("Secret", "own")
    eventually(lambda: len(own().get("password", "")) == 20, "it is drawn anew")
    assert own()["password"] not in {first, LOOKED_UP}
    assert not any(each in daemon.log + str(sync.live) for each in (first, LOOKED_UP, own()["password"]))


NEEDING = {
    "web/Chart.yaml": LOOKING["web/Chart.yaml"],
    "web/templates/lists.yaml": "{{ $ns := .Release.Namespace }}{{ $theirs := list }}"
    '{{ range (lookup "v1" "ConfigMap" $ns "").items }}{{ if hasPrefix "their" .metadata.name }}{{ $theirs = append $theirs .data.color }}{{ end }}{{ end }}'
    'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: lists}\ndata:\n  theirs: {{ join "," $theirs }}\n'
    '  place: {{ (lookup "v1" "Namespace" "" $ns).metadata.name }}\n  nodes: {{ (lookup "v1" "Node" "" "").kind }}\n'
    '  nothing: none{{ lookup "example.com/v9" "Nothing" $ns "x" | len }}\n',
    "web/templates/db.yaml": '{{ $db := lookup "v1" "Secret" .Release.Namespace "db" }}{{ if $db }}'
    + CONFIG % ("db", '"{{ $db.data.password | b64dec }}"')
    + "{{ end }}",
}


def test_what_the_account_may_not_read_is_a_problem_until_it_is_granted_and_nothing_is_pruned(
    daemon, follow, plugin, cluster, git_server, kubectl, eventually
):
    for name, color in (("their-a", "red"), ("their-b", "blue")):
        cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"color": color}})
    cluster.apply(
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db"}, "stringData": {"password": LOOKED_UP}}
    )
    cluster.distrust()
    sha = git_server.push(NEEDING)
    sync = follow(git_server.url, path="web", suspend=True)
    cluster.edit("Sync", "shop", {"spec": {"source": {"helm": {"lookup": "Cluster"}}}})
    granted = plugin("grant", "shop").out
    objects = yaml_text.documents(granted)
    read = {
        (each["metadata"].get("namespace", ""), *rule["resources"], *rule["verbs"], *rule.get("resourceNames", ()))
        for each in objects
        for rule in each.get("rules", ())
    }
    place = cluster.namespace
    assert {(place, "secrets", "get", "db"), ("", "nodes", "list"), ("", "namespaces", "get", place)} <= read
    for each in objects:
        each.update(
            {"rules": [rule for rule in each["rules"] if rule["resources"] != ["secrets"]]} if "rules" in each else {}
        )
    kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))
    cluster.edit("Sync", "shop", {"spec": {"suspend": False}})
    said = f"it looks up Secret {place}/db in the cluster, which may not be read: "
    words = (said, "may not get secrets", "kubectl reconcile grant shop")

    def is_lacking():  # what was granted is in force a moment later: until then more is lacking
        found = sync.condition("Synced")
        return found["reason"] == "ProblemsInSource" and all(each in found["message"] for each in words)

    eventually(is_lacking, said)
    assert cluster.names("ConfigMap") >= {"their-a"}
    assert "lists" not in cluster.names("ConfigMap")
    kubectl("apply", "-f", "-", stdin=granted)
    sync.until_synced(sha)
    assert cluster.get("ConfigMap", "db")["data"]["a"] == LOOKED_UP
    found = {"theirs": "red,blue", "place": place, "nodes": "NodeList", "nothing": "none0"}
    assert cluster.get("ConfigMap", "lists")["data"] == found
    [warned] = [each for each in sync.status["warnings"] if "Nothing" in each]
    assert warned.endswith("finds nothing: the cluster serves no Nothing example.com/v9")
    kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))
    eventually(is_lacking, said)
    assert cluster.members("ConfigMap", "shop") == {"lists", "db"}


def test_commands_see_what_a_chart_looks_up_within_bounds_and_show_no_secret(
    plugin, follow, cluster, git_server, tmp_path
):
    for name, data in (
        ("theirs", {"color": "red"}),
        *((f"next-{number}", {"next": f"next-{number + 1}"}) for number in range(6)),
    ):
        cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
    cluster.apply(
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db"}, "stringData": {"password": LOOKED_UP}}
    )
    git_server.push({name: text for name, text in LOOKING.items() if "password" not in name})
    follow(git_server.url, path="web", suspend=True)
    cluster.edit("Sync", "shop", {"spec": {"suspend": False, "source": {"helm": {"lookup": "Cluster"}}}})
    done = plugin("sync", "shop")
    assert done.status == 0, done.err
    assert cluster.get("ConfigMap", "found")["data"] == {"a": "red", "db": f"db://{LOOKED_UP}"}
    cluster.edit("ConfigMap", "found", {"data": {"db": "db://else"}})
    tree = tmp_path / "checkout"
    subprocess.run(["git", "clone", "--quiet", git_server.url, tree], check=True, timeout=300)
    taken, told = plugin("accept", "shop", "--local", str(tree)), plugin("explain", "configmap/found.data")
    assert f"/found: .data.db comes from lookup Secret {cluster.namespace}/db; change that value" in taken.err
    assert "web/templates/found.yaml" in told.out
    drifted = plugin("diff", "shop")
    assert (drifted.status, f"lookup Secret {cluster.namespace}/db" in drifted.out) == (1, True)
    assert not any(LOOKED_UP in text for each in (done, taken, told, drifted) for text in (each.out, each.err))

    chain = """{{ $at := "next-0" }}{{ range until 6 }}{{ $at = dig "data" "next" "none" (lookup "v1" "ConfigMap" $.Release.Namespace $at) }}{{ end }}"""
    many = """{{ range until 101 }}{{ $_ := lookup "v1" "ConfigMap" $.Release.Namespace (printf "c%d" .) }}{{ end }}"""
    long = (
        """{{ range until 2 }}{{ $_ := lookup "v1" "ConfigMap" $.Release.Namespace (printf "long-%d" .) }}{{ end }}"""
    )
    for name in ("long-0", "long-1"):
        cluster.apply(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "x" * 600_000}}
        )
    for text, said in (
        (chain, "it looks up something different each of 5 times"),
        (many, "it looks up more than 100 objects"),
        (long, "the objects that it looks up have more than 1024 KiB"),
    ):
        git_server.push({"web/templates/found.yaml": text + CONFIG % ("other", "b")})
        shown = plugin("diff", "shop")
        assert (shown.status, f"web/Chart.yaml: {said}" in shown.out + shown.err) == (4, True), shown.out + shown.err
        assert "to delete" not in shown.out
