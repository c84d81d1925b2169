"""Fixtures of the attackers' room: two teams and their daemon, on the real servers of the end-to-end tests.

Tests are named after classes of attacks. Each says what the attacker did *not* get, and that the others' work went on.
"""

from __future__ import annotations

import contextlib
import json
import secrets

import pytest

from kubectl_reconcile.sandbox.components import Options
from kubectl_reconcile.sandbox.controlplane import Sandbox
from tests.e2e.api import Api
from tests.e2e.cluster import Cluster
from tests.e2e.program import Daemon, Plugin
from tests.security.servers import hook_of_a_module, listing, redirecting, talking
from tests.security.tarpit import tarpit
from tests.security.tenants import (
    DAEMON,
    LIMITS,
    USERS,
    Bakery,
    Evil,
    account,
    following,
    hook_as_a_module,
    role,
    rule,
    user,
)
from tests.waiting import patiently


@pytest.fixture(autouse=True)
def _not_forever(request) -> None:
    """An attack that stops us is a failure, not a test that never ends."""
    if not request.node.get_closest_marker("timeout"):
        request.node.add_marker(pytest.mark.timeout(900))


@pytest.fixture(scope="session")
def eventually():
    """eventually(condition, "what is to come true") -> what the condition returned; looks of these tests cost more."""
    return patiently


@pytest.fixture(scope="session")
def evil(tmp_path_factory):
    """Git servers that misbehave, for all tests of this worker."""
    folder = tmp_path_factory.mktemp("evil")
    with contextlib.ExitStack() as stack:
        forbidden = stack.enter_context(tarpit())
        yield Evil(
            stack.enter_context(redirecting(forbidden.urls[0].removesuffix("/team/shop.git"))),
            stack.enter_context(talking(folder / "drips", "while echo still at work >&2; do sleep 0.2; done")),
            stack.enter_context(talking(folder / "floods", "yes 'the server has much to say' >&2")),
            stack.enter_context(listing(b"1" * 40 + b" refs/x/refs/heads/main", 40_000)),
            stack.enter_context(listing(b"1" * 40 + b" refs/heads/x", 10**9)),
            forbidden,
        )


@pytest.fixture(scope="session")
def hook():
    """The hook of a module of team A's choosing."""
    with hook_of_a_module() as hook:
        yield hook


@pytest.fixture(scope="session")
def world(binaries, run_folder, kubectl, tmp_path_factory, git_host, evil, hook):
    """The cluster as its administrator sees it, and the daemon: with low ceilings, and a hook as a module."""
    folder = tmp_path_factory.mktemp("tenants")
    sandbox = Sandbox(f"own-{secrets.token_hex(4)}", root=run_folder)
    with contextlib.ExitStack() as stack:
        stack.callback(sandbox.down)
        sandbox.up(Options(users=USERS), binaries=binaries)
        own = kubectl.using(sandbox.kubeconfig)
        cluster = Cluster(stack.enter_context(contextlib.closing(Api(own))), own, "reconcile-system")
        hooks = hook_as_a_module(cluster, hook.url, folder / "hooks")
        with pytest.MonkeyPatch.context() as environ:
            environ.setenv("KUBECTL_RECONCILE_WEBHOOKS", str(hooks))
            done = Plugin(own, "reconcile-system")("install")
        assert done.status == 0, done.err
        for team in ("team-a", "team-b"):
            cluster.kubectl("create", "namespace", team)
        a, b = cluster.at("team-a"), cluster.at("team-b")
        crs = rule("tenants.example.com", "hookeds")
        role(a, "members", account("team-a"), rules=[rule("", "configmaps"), rule("reconcile.dev", "syncs"), crs])
        role(
            a, "people", user("committer"), rules=[rule("reconcile.dev", "syncs"), rule("", "events", ["get", "list"])]
        )
        role(b, "members", account("team-b"), rules=[rule("", "configmaps"), rule("", "secrets"), crs])
        role(b, "people", user("baker"), rules=[rule("reconcile.dev", "syncs")])
        daemon = Daemon(
            str(sandbox.kubeconfig_for(DAEMON)),
            "",
            folder / "daemon.log",
            {"KUBECTL_RECONCILE_WEBHOOKS": str(hooks)},
            (
                "--lease-namespace=reconcile-system",
                "--module-accounts",
                *LIMITS,
                *(f"--allow-url-prefix={url}" for url in (git_host.url, *evil.allowed)),
            ),
        ).start()
        stack.callback(daemon.kill)
        yield cluster, sandbox, daemon


@pytest.fixture(scope="session")
def bakery(world, git_host):
    cluster, *_ = world
    return Bakery(cluster.at("team-b"), git_host.create(f"bakery-{secrets.token_hex(4)}"))


@pytest.fixture
def attack(world, git_host, request):
    """attack({path: manifest}) has team A's repository hold these, and a Sync of team A follow it; returns that and the commit."""
    cluster, *_ = world
    a = cluster.at("team-a")
    name = f"attack-{secrets.token_hex(4)}"
    repository = git_host.create(name)

    def begin(*manifests, **spec):
        files = {f"{number}.json": json.dumps(one) for number, one in enumerate(manifests)}
        sha = repository.push(files)
        return following(a, name, repository.url, **spec), sha

    yield begin
    with contextlib.suppress(Exception):
        a.edit("Sync", name, {"metadata": {"finalizers": []}})
    with contextlib.suppress(Exception):
        a.delete("Sync", name)
