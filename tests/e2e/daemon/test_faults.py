"""What goes wrong around the daemon: one clear message each, nothing lost, and recovery by itself.

Nobody restarts the daemon here, and nobody asks it for anything.
"""

from __future__ import annotations

import json
import secrets
import socket

import pytest
import yaml

# --- the repository ---


@pytest.mark.usefixtures("daemon")
def test_an_unreachable_repository_is_named_and_read_as_soon_as_it_is_back(follow, cluster, own_git_server, config_map):
    repository = own_git_server()
    sha = repository.push({"web.yaml": config_map("web", color="red")})
    repository.server.stop()
    sync = follow(repository.url)
    ready = sync.until("SourceUnavailable")
    assert ready["status"] == "False"
    assert repository.url in ready["message"]
    assert "refused" in ready["message"].lower() or "connect" in ready["message"].lower()
    assert sync.condition("Stalled")["status"] == "False"
    repository.server.start()
    sync.until_synced(sha)
    assert cluster.get("ConfigMap", "web")["data"] == {"color": "red"}


@pytest.mark.usefixtures("daemon")
def test_an_outage_of_the_repository_leaves_what_is_there_in_place_and_drift_put_back(
    follow, cluster, own_git_server, config_map, memcached, eventually
):
    repository = own_git_server()
    sync = follow(repository.url)
    sync.until_synced(
        repository.push({"web.yaml": config_map("web", color="red"), "cache.yaml": memcached("cache", size=1)})
    )
    repository.server.stop()
    sync.until("SourceUnavailable")
    cluster.edit("ConfigMap", "web", {"data": {"color": "blue"}})
    cluster.delete("Memcached", "cache")
    eventually(lambda: cluster.get("ConfigMap", "web")["data"] == {"color": "red"}, "the ConfigMap is put back")
    eventually(
        lambda: (
            (cluster.get("Memcached", "cache") or {"metadata": {"deletionTimestamp": 1}})["metadata"].get(
                "deletionTimestamp"
            )
            is None
        ),
        "the CR is made again",
    )
    assert sync.condition()["reason"] == "SourceUnavailable"
    sha = repository.push({"web.yaml": None})
    repository.server.start()
    sync.until_synced(sha)
    assert not cluster.get("ConfigMap", "web")


def secret(name, url, **data):
    metadata = {"name": name, "annotations": {"reconcile.dev/urls": url}}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data}


def test_wrong_credentials_are_said_and_right_ones_are_taken_up(
    daemon, follow, cluster, own_git_server, config_map, eventually
):
    repository = own_git_server(username="robot", password="right-one")
    sha = repository.push({"web.yaml": config_map("web")})
    sync = follow(repository.url, git={"secretRef": {"name": "shop-git"}})
    missing = sync.until("SourceUnavailable")
    assert f"there is no Secret {cluster.namespace}/shop-git" in missing["message"]
    cluster.apply(secret("shop-git", repository.url, username="robot", password="wrong-one"))
    eventually(
        lambda: all(each in sync.condition()["message"] for each in (repository.url, "credentials")),
        "it says who refuses the credentials",
    )
    cluster.apply(secret("shop-git", repository.url, username="robot", password="right-one"))
    sync.until_synced(sha)
    for said in (json.dumps(sync.live), json.dumps(cluster.list("Event")), daemon.log):
        assert "wrong-one" not in said
        assert "right-one" not in said


WRONG_PLACES = {
    "a branch that isn't there": ({"branch": "nowhere"}, "nowhere"),
    "a path that isn't there": ({}, "nowhere"),
    "a repository that isn't there": ({"url": "{server}/nowhere.git"}, "nowhere.git"),
    "a port where nobody listens": ({"url": "http://127.0.0.1:{port}/shop.git"}, "127.0.0.1:{port}"),
}


@pytest.mark.parametrize(("git", "named"), WRONG_PLACES.values(), ids=WRONG_PLACES)
@pytest.mark.usefixtures("daemon")
def test_a_source_that_can_not_be_read_is_named_and_a_corrected_one_is_taken_up(
    follow, cluster, git_server, config_map, git, named
):
    with socket.create_server(("127.0.0.1", 0)) as free:
        words = {"server": git_server.server.url, "port": free.getsockname()[1]}
    sha = git_server.push({"web.yaml": config_map("web")})
    path = "." if git else "nowhere"
    sync = follow(git_server.url, path=path, git={key: value.format(**words) for key, value in git.items()})
    ready = sync.until("SourceUnavailable")
    assert ready["status"] == "False"
    assert named.format(**words) in ready["message"]
    cluster.edit("Sync", "shop", {"spec": {"source": {"git": {"url": git_server.url, "branch": None}, "path": "."}}})
    sync.until_synced(sha)


# --- files ---

BROKEN = {
    "no YAML": ("a: b: c\n", "ProblemsInSource", ["broken.yaml:1"]),
    "YAML that ends in the middle": ("apiVersion: v1\nkind: [\n", "ProblemsInSource", ["broken.yaml:"]),
    "no object": ("- just\n- a list\n", "ProblemsInSource", ["broken.yaml:1"]),
    "an unknown kind": (
        "# who knows\napiVersion: nobody.example.com/v1\nkind: Gadget\nmetadata:\n  name: g\n",
        "ProblemsInSource",
        ["broken.yaml:2", "knows no kind", "Gadget", "nobody.example.com/v1"],
    ),
    "a CR that its schema refuses": (
        yaml.safe_dump(
            {
                "apiVersion": "cache.example.com/v1alpha1",
                "kind": "Memcached",
                "metadata": {"name": "broken"},
                "spec": {"size": -3},
            }
        ),
        "ApplyFailed",
        ["Memcached", "broken", "spec.size", "greater than or equal to 0"],
    ),
    "a field that doesn't exist": (
        "apiVersion: v1\nkind: Service\nmetadata:\n  name: broken\nspec:\n  prots: []\n",
        "ApplyFailed",
        ["Service", "broken", "prots"],
    ),
    "an object that the server finds invalid": (
        "apiVersion: v1\nkind: Service\nmetadata:\n  name: broken\nspec:\n  ports: [{port: 99999}]\n",
        "ApplyFailed",
        ["Service", "broken", "spec.ports[0].port", "between 1 and 65535"],
    ),
}


@pytest.mark.parametrize(("content", "reason", "said"), BROKEN.values(), ids=BROKEN)
def test_one_bad_file_is_said_and_stops_no_other(
    daemon, follow, cluster, git_server, config_map, memcached, eventually, content, reason, said
):
    sync = follow(git_server.url)
    sha = git_server.push(
        {"a.yaml": config_map("a"), "broken.yaml": content, "z/cache.yaml": memcached("cache", size=1)}
    )
    ready = sync.until(reason, sha)
    assert ready["status"] == "False"
    problems = sync.status["problems"]
    assert any(all(word in problem for word in said) for problem in problems), problems
    assert ready["message"].split(" (and")[0] in problems[0]
    assert cluster.get("ConfigMap", "a")
    eventually(lambda: cluster.get("Deployment", "cache"), "the CR beside it is looked after")
    assert "lastAppliedRevision" not in sync.status
    assert daemon.answer("/healthz")[0] == 200
    mended = git_server.push({"broken.yaml": config_map("broken")})
    sync.until_synced(mended)
    assert sync.status["problems"] == []


@pytest.mark.usefixtures("daemon")
def test_nothing_is_pruned_while_a_file_can_not_be_read(follow, cluster, git_server, config_map):
    sync = follow(git_server.url)
    sync.until_synced(git_server.push({name: config_map(name[0]) for name in ("a.yaml", "b.yaml", "c.yaml")}))
    broken = git_server.push({"a.yaml": "a: b: c\n", "b.yaml": None, "d.yaml": config_map("d")})
    sync.until("ProblemsInSource", broken)
    assert cluster.members("ConfigMap", "shop") == {"a", "b", "c", "d"}
    assert sync.status["health"]["counts"] == {"Current": 4}
    mended = git_server.push({"a.yaml": config_map("a")})
    sync.until_synced(mended)
    assert cluster.members("ConfigMap", "shop") == {"a", "c", "d"}
    assert sync.status["health"]["counts"] == {"Current": 3}


@pytest.mark.usefixtures("daemon")
def test_an_emptied_folder_deletes_nothing_until_a_person_says_so(
    follow, cluster, git_server, config_map, plugin, eventually
):
    sync = follow(git_server.url, path="shop")
    sync.until_synced(git_server.push({"shop/a.yaml": config_map("a"), "shop/b.yaml": config_map("b")}))
    emptied = git_server.push({"shop/a.yaml": None, "shop/b.yaml": None, "shop/README.md": "nothing here"})
    held = sync.until("Held", emptied)
    assert held["status"] == "False"
    assert sync.condition("Stalled")["status"] == "True"
    assert cluster.members("ConfigMap", "shop") == {"a", "b"}
    assert plugin("approve", "shop", "--yes").status == 0
    sync.until("Synced", emptied)
    said = "shop: there are no manifest files at this path"
    eventually(lambda: any(each.startswith(said) for each in sync.status.get("warnings") or ()), "it is said on")
    assert cluster.members("ConfigMap", "shop") == set()


# --- kinds that come and go ---


def a_kind(group):
    properties = {"spec": {"type": "object", "properties": {"color": {"type": "string"}}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
                }
            ],
        },
    }


def a_widget(group, color="red"):
    return {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"color": color}}


@pytest.fixture
def group(cluster):
    """An API group of which the cluster has no kind; cleaned up afterwards."""
    group = f"g{secrets.token_hex(4)}.example.com"
    yield group
    if cluster.get("CustomResourceDefinition", f"widgets.{group}"):
        cluster.delete("CustomResourceDefinition", f"widgets.{group}")


def widget(cluster, group):
    return cluster.api.ask(f"/apis/{group}/v1/namespaces/{cluster.namespace}/widgets/w")


@pytest.mark.usefixtures("daemon")
def test_a_kind_and_an_object_of_it_come_in_one_push(follow, cluster, git_server, group, eventually):
    sync = follow(git_server.url)
    sync.until_synced(git_server.push({"w.json": json.dumps(a_widget(group)), "x/crd.json": json.dumps(a_kind(group))}))
    assert widget(cluster, group)["spec"] == {"color": "red"}
    cluster.api.ask(
        f"/apis/{group}/v1/namespaces/{cluster.namespace}/widgets/w",
        method="PATCH", body={"spec": {"color": "blue"}}, type_="application/merge-patch+json",
    )  # fmt: skip
    eventually(lambda: widget(cluster, group)["spec"] == {"color": "red"}, "drift of the new kind is put back")
    gone = git_server.push({"w.json": None})
    sync.until_synced(gone)
    assert not widget(cluster, group)


def test_a_kind_that_gets_another_schema_concerns_those_who_have_objects_of_it_and_nobody_else(
    daemon, follow, cluster, git_server, group, config_map, eventually
):
    cluster.apply(a_kind(group))
    asked = {**a_widget(group), "spec": {"color": "red", "size": 3}}
    sha = git_server.push({"a/w.json": json.dumps(asked), "b/web.yaml": config_map("web", color="red")})
    sync, other = follow(git_server.url, path="a"), follow(git_server.url, "other", path="b")
    other.until_synced(sha)
    sync.until("ApplyFailed", sha)
    eventually(lambda: "/other revision=" in daemon.log, "that the other one was looked at is logged, after its status")
    looked_at = daemon.log.count("/other revision=")

    wider = a_kind(group)
    schema = wider["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["size"] = {"type": "integer"}
    cluster.apply(wider)
    sync.until_synced(sha)
    assert widget(cluster, group)["spec"] == {"color": "red", "size": 3}
    assert daemon.log.count("/other revision=") == looked_at


@pytest.mark.usefixtures("daemon")
def test_an_object_waits_for_its_kind_however_that_comes(follow, cluster, git_server, group):
    sync = follow(git_server.url)
    sha = git_server.push({"w.json": json.dumps(a_widget(group))})
    sync.until("ProblemsInSource", sha)
    cluster.apply(a_kind(group))
    sync.until_synced(sha)
    assert widget(cluster, group)["spec"] == {"color": "red"}


# --- the API server ---


def test_it_waits_for_its_kinds_and_outlives_the_api_server(
    new_daemon, own_cluster, follow, crds_of, git_server, config_map, memcached, eventually
):
    cluster, sandbox = own_cluster(components=("etcd", "kube-apiserver"))
    daemon = new_daemon(cluster.kubectl.kubeconfig).start(ready=False)
    eventually(lambda: "the cluster serves no Syncs" in daemon.log, "it says what is missing")
    assert daemon.answer("/healthz")[0] == 200
    assert daemon.answer("/readyz")[0] == 503
    crds_of(cluster)
    sync = follow(git_server.url, on=cluster)
    sync.until_synced(
        git_server.push({"web.yaml": config_map("web", color="red"), "cache.yaml": memcached("cache", size=1)})
    )
    eventually(lambda: daemon.answer("/readyz")[0] == 200, "it follows all kinds")
    eventually(lambda: cluster.get("Deployment", "cache"), "the CR is looked after")

    warned = len(daemon.log)
    sandbox.stop("kube-apiserver", grace_s=1)
    sha = git_server.push({"web.yaml": config_map("web", color="green"), "cache.yaml": memcached("cache", size=2)})
    eventually(lambda: "WARNING" in daemon.log[warned:], "it notices")
    assert daemon.answer("/healthz")[0] == 200
    sandbox.start("kube-apiserver")

    sync.until_synced(sha)
    assert cluster.get("ConfigMap", "web")["data"] == {"color": "green"}
    eventually(lambda: cluster.get("Deployment", "cache")["spec"]["replicas"] == 2, "the CR is looked after again")
    cluster.edit("ConfigMap", "web", {"data": {"color": "blue"}})
    cluster.edit("Deployment", "cache", {"spec": {"replicas": 0}})
    eventually(lambda: cluster.get("ConfigMap", "web")["data"] == {"color": "green"}, "drift is put back again")
    eventually(lambda: cluster.get("Deployment", "cache")["spec"]["replicas"] == 2, "a child's drift, too")
    assert daemon.stop() == 0
    assert "Traceback" not in daemon.log
