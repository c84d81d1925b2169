"""create: a Sync is made once its repository has been read, and refused before anything is written."""

from __future__ import annotations

import re

import pytest

from kubectl_reconcile.cli.output.failures import ExitStatus
from tests import yaml_text
from tests.e2e.cli.terminal import on_terminal


@pytest.fixture
def repository(git_server, config_map):
    git_server.push({"shop/web.yaml": config_map("web"), "broken/web.yaml": "kind: [", "README.md": "x"})
    return git_server


def test_a_sync_is_created_and_followed(plugin, repository, daemon, cluster, eventually):
    done = plugin("create", "shop", "--url", repository.url, "--path", "shop", "--interval", "5s")
    assert (done.status, done.out) == (0, "sync.reconcile.dev/shop created\n")
    assert " has 1 object in 1 file\n" in done.err
    assert cluster.get("Sync", "shop")["spec"]["source"]["git"]["interval"] == "5s"
    eventually(lambda: cluster.get("ConfigMap", "web"), "the daemon applies it")


def test_without_a_daemon_it_says_what_to_do_next(plugin, repository, namespace):
    done = plugin("create", "shop", "--url", repository.url, "--path", "shop")
    assert done.status == 0
    assert (
        f"no daemon is running: kubectl reconcile daemon follows it, kubectl reconcile sync shop -n {namespace}"
        in done.err
    )


def test_all_its_flags_reach_the_spec(plugin, repository, cluster):
    flags = ["--branch", "main", "--target-namespace", "other", "--no-prune", "--drift", "Ask", "--conflicts", "Yield"]
    flags += ["--field-manager", "team", "--service-account", "deployer", "--no-grant"]
    assert plugin("create", "shop", "--url", repository.url, *flags, "--suspend").status == 0
    spec = cluster.get("Sync", "shop")["spec"]
    assert (spec["source"]["git"]["branch"], spec["targetNamespace"], spec["suspend"]) == ("main", "other", True)
    assert (spec["prune"], spec["drift"], spec["conflicts"]) == (False, "Ask", "Yield")
    assert (spec["fieldManager"], spec["serviceAccountName"]) == ("team", "deployer")


def test_a_dry_run_prints_what_could_be_kept_in_git(plugin, repository, cluster, namespace):
    done = plugin("create", "shop", "--url", repository.url, "--path", "shop", "--secret=", "--dry-run", "-o", "yaml")
    assert done.status == 0
    assert yaml_text.document(done.out) == {
        "apiVersion": "reconcile.dev/v1alpha1", "kind": "Sync", "metadata": {"name": "shop", "namespace": namespace},
        "spec": {"source": {"git": {"url": repository.url, "interval": "1m"}, "path": "shop"}},
    }  # fmt: skip
    assert cluster.get("Sync", "shop") is None
    assert (
        plugin("create", "shop", "--url", repository.url, "--dry-run").out
        == "sync.reconcile.dev/shop created (dry run)\n"
    )


def test_problems_of_the_source_are_told_and_keep_nobody_from_creating(plugin, repository):
    done = plugin("create", "shop", "--url", repository.url, "--path", "broken", "-o", "name")
    assert (done.status, done.out) == (0, "sync.reconcile.dev/shop\n")
    assert "warning: broken/web.yaml:2: not valid YAML" in done.err


REFUSED = {
    "no such path": (["--path", "nowhere"], ExitStatus.SOURCE, "there is no nowhere at "),
    "no such branch": (["--branch", "nobody"], ExitStatus.SOURCE, 'it has no branch "nobody"'),
    "two refs": (["--branch", "a", "--tag", "b"], ExitStatus.USAGE, "exclude each other"),
    "a range of versions and a tag": (["--tag", "a", "--semver", "1.x"], ExitStatus.USAGE, "exclude each other"),
    "a range that is none": (["--semver", "newest"], ExitStatus.USAGE, "spec.source.git.semver: has 'newest'"),
    "a range of a chart's Git": (
        ["--chart", "web", "--version", "1.2.3", "--semver", "1.x"], ExitStatus.USAGE, "--semver and --chart exclude each other",
    ),
    "a chart without a version": (["--chart", "web"], ExitStatus.USAGE, "--chart needs --version"),
    "a branch of an artifact": (
        ["--url", "oci://registry.example.com/shop", "--branch", "main"],
        ExitStatus.USAGE,
        "--branch and an artifact (oci://…) exclude each other",
    ),
    "what of Git an artifact is signed by": (
        ["--url", "oci://registry.example.com/shop", "--verify-secret", "a", "--verify-mode", "Commit"],
        ExitStatus.USAGE,
        "--verify-mode and an artifact (oci://…) exclude each other",
    ),
    "an artifact with its tag in the URL": (
        ["--url", "oci://registry.example.com/shop:1"],
        ExitStatus.USAGE,
        "spec.source.oci.url: oci://registry.example.com/shop:1 has a tag or a digest, which are fields of their own",
    ),
    "a digest without a chart": (["--digest", "sha256:ab"], ExitStatus.USAGE, "--digest needs --chart"),
    "a version without a chart": (["--version", "1.2.3"], ExitStatus.USAGE, "--version needs --chart"),
    "a branch of a chart": (
        ["--chart", "web", "--version", "1.2.3", "--branch", "a"], ExitStatus.USAGE, "--branch and --chart exclude each other",
    ),
    "signatures of a chart of a Helm repository": (
        ["--url", "https://charts.example.com", "--chart", "web", "--version", "1.2.3", "--verify-secret", "a"],
        ExitStatus.USAGE, "spec.source.chart.verify: is for charts of registries (oci://…)",
    ),
    "a range of versions": (
        ["--chart", "web", "--version", "^1.2"], ExitStatus.USAGE, "spec.source.chart.version: '^1.2' isn't an exact version",
    ),
    "an interval that is none": (["--interval", "soon"], ExitStatus.USAGE, "'soon' isn't a duration"),
    "a path that leads out": (["--path", "../../etc"], ExitStatus.SOURCE, "is not within the repository"),
    "a Secret that isn't there": (["--secret", "nobody"], ExitStatus.SOURCE, "/nobody"),
}  # fmt: skip


@pytest.mark.parametrize(("flags", "status", "message"), REFUSED.values(), ids=REFUSED)
def test_what_could_not_be_followed_is_refused(plugin, repository, cluster, flags, status, message):
    refused = plugin("create", "shop", "--url", repository.url, *flags)
    assert (refused.status, refused.out, message in refused.err) == (status, "", True)
    assert cluster.get("Sync", "shop") is None


def test_unless_told_not_to_look(plugin, cluster):
    url = "https://127.0.0.1:1/gone.git"
    refused = plugin("create", "shop", "--url", url)
    assert (refused.status, "--no-check creates the Sync anyway" in refused.err) == (ExitStatus.SOURCE, True)
    assert plugin("create", "shop", "--url", url, "--no-check").status == 0
    assert cluster.get("Sync", "shop")


def test_what_the_server_refuses_is_told_with_its_field(plugin, repository, cluster):
    refused = plugin("create", "Shop_1", "--url", repository.url)
    assert (refused.status, "Shop_1" in refused.err, "metadata.name" in refused.err) == (ExitStatus.FAILED, True, True)
    refused = plugin("create", "shop", "--url", "ext::sh -c id", "--no-check")
    assert (refused.status, "spec.source.git.url" in refused.err) == (ExitStatus.FAILED, True)


def test_one_of_that_name_stays_as_it_is(plugin, repository, namespace):
    plugin("create", "shop", "--url", repository.url)
    refused = plugin("create", "shop", "--url", repository.url, "--branch", "main")
    assert refused.status == ExitStatus.FAILED
    assert f"error: there is a Sync shop in namespace {namespace} already\n" in refused.err
    assert "kubectl edit sync shop" in refused.err


# --- the rights of its account ------------------------------------------------------------------


@pytest.fixture
def account(cluster, may, namespace, eventually):
    """The account that a Sync has unless it names another, which may nothing."""
    cluster.distrust()
    name = f"system:serviceaccount:{namespace}:kubectl-reconcile"
    eventually(lambda: not may(name, "create", "configmaps", namespace), "the account may do nothing")
    return name


def test_with_grant_the_account_is_made_and_given_its_rights(
    plugin, repository, cluster, namespace, account, may, eventually
):
    done = plugin("create", "shop", "--url", repository.url, "--path", "shop", "--grant", "-o", "name")
    assert (done.status, done.out) == (0, "sync.reconcile.dev/shop\n")
    assert f"created  ServiceAccount {namespace}/kubectl-reconcile\n" in done.err
    eventually(lambda: may(account, "create", "configmaps", namespace), "the account may write")
    assert plugin("diff", "shop").status == ExitStatus.DIFFERENT


def test_an_account_of_another_name_is_noted_and_given_its_rights(
    plugin, repository, cluster, namespace, account, may, eventually
):
    flags = ["--service-account", "deployer", "--grant"]
    assert plugin("create", "shop", "--url", repository.url, "--path", "shop", *flags).status == 0
    assert cluster.get("Sync", "shop")["spec"]["serviceAccountName"] == "deployer"
    user = f"system:serviceaccount:{namespace}:deployer"
    eventually(lambda: may(user, "create", "configmaps", namespace), "the account may write")
    daemon = "system:serviceaccount:reconcile-system:kubectl-reconcile"
    eventually(lambda: may(daemon, "impersonate", "serviceaccounts", namespace, "deployer"), "the daemon may act as it")


def test_without_a_terminal_nothing_is_given_unasked_and_the_command_is_told(
    plugin, repository, namespace, account, may, kubectl
):
    done = plugin("create", "shop", "--url", repository.url, "--path", "shop")
    assert done.status == 0
    told = f"to grant that account its rights: kubectl reconcile grant shop -n {namespace} --apply\n"
    assert f"it applies as ServiceAccount {namespace}/kubectl-reconcile; {told}" in done.err
    assert kubectl("get", "roles", "-n", namespace) == ""


def test_nothing_is_offered_where_it_is_declined_or_nothing_is_missing(
    plugin, repository, cluster, account, may, namespace, eventually
):
    flags = ["--url", repository.url, "--path", "shop"]
    assert "kubectl reconcile grant" not in plugin("create", "shop", *flags, "--no-grant").err
    cluster.trust()
    eventually(lambda: may(account, "create", "configmaps", namespace), "the account may do everything")
    assert "kubectl reconcile grant" not in plugin("create", "other", *flags).err


@pytest.mark.parametrize("answer", ["y", "n"])
def test_on_a_terminal_the_rights_are_shown_and_offered(repository, kubectl, kubeconfig, namespace, account, answer):
    words = ["create", "shop", "-n", namespace, "--url", repository.url, "--path", "shop"]
    ended, seen = on_terminal(*words, typed={"[y/N]": f"{answer}\n"}, KUBECONFIG=kubeconfig)
    assert ended == 0
    assert "+ get, list, watch, create, update, patch, delete: configmaps" in seen
    assert f"Give ServiceAccount {namespace}/kubectl-reconcile these rights, to apply the source? [y/N]" in seen
    assert bool(kubectl("get", "roles", "-n", namespace)) is (answer == "y")
    assert ("to grant that account its rights: " in " ".join(re.sub(r"\x1b\[\d*m", "", seen).split())) is (
        answer == "n"
    )


def test_a_dry_run_gives_nothing(plugin, repository):
    refused = plugin("create", "shop", "--url", repository.url, "--dry-run", "--grant")
    assert (refused.status, "--dry-run writes nothing" in refused.err) == (ExitStatus.USAGE, True)
