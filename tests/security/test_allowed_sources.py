"""Repositories that the administrator doesn't allow: nothing is fetched from them, and the API server says so in advance where it is asked to."""

from __future__ import annotations

import secrets
from functools import partial
from pathlib import Path

import pytest

from tests import yaml_text
from tests.kubectl import KubectlError
from tests.security.tarpit import tarpit

POLICY = Path(__file__).parents[2] / "deploy" / "allowed-sources.yaml"


def test_nothing_is_fetched_from_where_it_is_not_allowed(new_daemon, cluster, follow, git_server, config_map):
    allowed = git_server.url
    new_daemon(cluster.kubectl.kubeconfig, cluster.namespace, ["--allow-url-prefix", allowed]).start()
    with tarpit() as elsewhere:
        evils = [elsewhere.urls[0], f"{allowed}-evil"]
        outside = [follow(url, f"outside-{number}") for number, url in enumerate(evils)]
        for sync in outside:
            message = sync.until("SourceUnavailable")["message"]
            assert "--allow-url-prefix" in message
            assert allowed in message
        inside = follow(allowed, "inside")
        inside.until_synced(git_server.push({"a.yaml": config_map("a")}))
        assert elsewhere.taken == 0


@pytest.fixture
def policy(cluster, git_server, eventually):
    """The policy that is shipped, for the Syncs of the test's namespace alone, with these URLs."""
    name = f"allowed-{secrets.token_hex(4)}"
    prefixes, rules, binding = yaml_text.documents(POLICY.read_text())
    prefixes["metadata"] = {"name": name, "namespace": cluster.namespace}
    prefixes["data"]["urlPrefixes"] = (
        "https://git.example.com/team\n  git@git.example.com:shop  \noci://registry.example.com/team\n"
    )
    rules["metadata"]["name"] = binding["metadata"]["name"] = binding["spec"]["policyName"] = name
    binding["spec"]["paramRef"] |= {"name": name, "namespace": cluster.namespace}
    here = {"matchLabels": {"kubernetes.io/metadata.name": cluster.namespace}}
    binding["spec"]["matchResources"] = {"namespaceSelector": here}
    cluster.kubectl.apply([prefixes, rules, binding])
    eventually(
        lambda: "only those below" in refusal(cluster, "https://else.example/shop.git"), "the policy is in force"
    )
    yield
    cluster.kubectl("delete", "validatingadmissionpolicy,validatingadmissionpolicybinding", name)


def refusal(cluster, url, charts="", *, former=False) -> str:
    """What the API server says to a Sync of that URL, of none if it is empty, with a chart of that Helm repository, in its *former* place; nothing if it takes it."""
    metadata = {"name": f"s-{secrets.token_hex(4)}", "namespace": cluster.namespace}
    place = "oci" if url.startswith("oci:") else "git"
    spec = {"source": {place: {"url": url}} if url else {}, "suspend": True}
    if charts:
        chart = {"chart": {"repository": charts, "name": "web", "version": "1.2.3"}}
        spec["source"] |= {"helm": chart} if former else chart
    manifest = {"apiVersion": "reconcile.dev/v1alpha1", "kind": "Sync", "metadata": metadata, "spec": spec}
    try:
        cluster.kubectl("create", "--dry-run=server", "-f", "-", stdin=manifest)
    except KubectlError as error:
        return str(error)
    return ""


EVIL = {
    "a longer segment": "https://git.example.com/team-evil/shop.git",
    "a longer host": "https://git.example.com.evil/team/shop.git",
    "the host as a user": "https://git.example.com@evil.example/team/shop.git",
    "another scheme": "http://git.example.com/team/shop.git",
    "out of it and in again": "https://git.example.com/team/../evil/shop.git",
    "encoded": "https://git.example.com/team/%2e%2e/evil.git",
    "a backslash": "https://git.example.com/team/..\\evil.git",
}


def test_the_api_server_takes_what_is_allowed_and_refuses_what_only_looks_like_it(cluster, follow, git_server, request):
    """One policy for all of it: the server takes its time until one is in force."""
    earlier = follow(git_server.url, "before", suspend=True)
    request.getfixturevalue("policy")
    for url in (
        "https://git.example.com/team",
        "https://git.example.com/team/shop.git",
        "git@git.example.com:shop/a.git",
        "oci://registry.example.com/team/shop",
    ):
        assert not refusal(cluster, url)
    own = "https://git.example.com/team/shop.git"
    for former in (False, True):
        charts = partial(refusal, cluster, own, former=former)
        assert not charts("https://git.example.com/team/charts")
        assert "chart.repository may not be followed" in charts("https://charts.example.com/stable")
        assert "chart.repository can be read in more than one way" in charts("https://git.example.com/team/../x")
    assert not refusal(cluster, "", "https://git.example.com/team/charts")
    assert "chart.repository may not be followed" in refusal(cluster, "", "https://charts.example.com/stable")
    assert "only those below" in refusal(cluster, "oci://registry.example.com/teams")
    for what, url in EVIL.items():
        said = refusal(cluster, url)
        told = (
            "only those below: https://git.example.com/team",
            "in more than one way",
            "must not contain credentials",
        )
        assert any(each in said for each in told), what
    # One from before the policy can be changed in all but its URL.
    earlier.change(prune=False)
    cluster.kubectl("annotate", "sync", "before", "-n", cluster.namespace, "a=b")
    with pytest.raises(Exception, match="may not be followed"):
        earlier.change(source={"git": {"url": "https://elsewhere.example/shop.git"}})
    cluster.delete("Sync", "before")
