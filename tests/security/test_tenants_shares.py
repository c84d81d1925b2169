"""Classes: forged members, and one tenant's trouble that becomes another's: webhooks, and namespaces without end.

The world is that of ``tenants.py``: team A attacks, team B's bakery must neither lose anything nor wait.
"""

from __future__ import annotations

import json
import secrets
import threading
import time

import pytest

from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.core.resources.applyset import PART_OF, applyset_id
from tests.security.admission import admission_webhook
from tests.security.tenants import config, following, manifest
from tests.waiting import patiently

pytestmark = pytest.mark.xdist_group("tenants")  # one cluster and one daemon for all of them

MANY_NAMESPACES = 3000
PATIENCE_S = 30.0
"""Far less than a webhook asks for, or may take, and much more than drift takes on a busy machine."""


def goes_on_soon(bakery):
    """Whether drift and commits of team B are seen to without waiting for anybody else."""
    began_s = time.monotonic()
    return bakery.goes_on() and time.monotonic() - began_s < PATIENCE_S


@pytest.fixture
def webhook(world, tmp_path):
    """An admission webhook of team A's namespace: it refuses and asks for ten minutes, or says nothing, until the test is over."""
    cluster, *_ = world
    asked, over = [], threading.Event()

    def answer(request):
        asked.append(request["name"])
        if "slow" in request["name"]:
            over.wait(29)
        details = {"retryAfterSeconds": 600}
        return {"allowed": False, "status": {"code": 429, "reason": "TooManyRequests", "details": details}}

    with admission_webhook(tmp_path, answer) as configuration:
        cluster.kubectl.apply([configuration("team-a")], "--server-side")
        try:
            yield asked
        finally:
            over.set()
            cluster.kubectl("delete", "validatingwebhookconfiguration/of-team-a")


def test_a_webhook_that_refuses_and_hangs_holds_up_nobody_else(attack, bakery, webhook):
    attack(config("refused"), *(config(f"slow-{number}") for number in range(60)))
    patiently(lambda: "refused" in webhook and len(webhook) > 5, "the webhook is asked")
    assert goes_on_soon(bakery)


def test_a_mark_of_another_teams_sync_makes_nobody_wait_for_themselves(world, git_host, bakery):
    cluster, *_ = world
    a, b = cluster.at("team-a"), cluster.at("team-b")
    first, second = (git_host.create(f"{name}-{secrets.token_hex(4)}") for name in ("first", "second"))
    sha = first.push({"a.json": json.dumps(config("first-oven"))})
    following(b, "first", first.url).until_synced(sha)
    sync = following(b, "second", second.url, dependsOn=[{"name": "first"}])
    sync.until_synced(second.push({"a.json": json.dumps(config("second-cake", price="1"))}))
    spec = {
        "source": {"git": {"url": first.url}},
        "suspend": True,
        "dependsOn": [{"name": "second", "namespace": "team-b"}],
    }
    forged = manifest("reconcile.dev/v1alpha1", "Sync", "forged", "team-a", spec=spec)
    set_id = applyset_id(ObjectRef("reconcile.dev", "Sync", "team-b", "first"))
    forged["metadata"]["labels"] = {PART_OF: set_id, "applyset.kubernetes.io/id": set_id}
    a.apply(forged)
    sync.until_synced(second.push({"a.json": json.dumps(config("second-cake", price="2"))}))
    assert sync.condition()["status"] == "True"
    for name in ("first", "second"):
        b.delete("Sync", name)
    a.delete("Sync", "forged")
    assert bakery.goes_on()


def test_three_thousand_namespaces_hold_up_nobody(world, attack, bakery):
    cluster, *_ = world
    sync, sha = attack(config("own-of-three-thousand", color="red"))
    sync.until_synced(sha)
    names = ",".join(f"no-such-{number}" for number in range(MANY_NAMESPACES))
    noted = {
        "applyset.kubernetes.io/contains-group-kinds": "ConfigMap,Secret,Service,Deployment.apps,Job.batch",
        "applyset.kubernetes.io/additional-namespaces": names,
    }
    cluster.at("team-a").edit("Sync", sync.name, {"metadata": {"annotations": noted}})
    sync.ask()
    assert goes_on_soon(bakery)
    assert "no-such" not in json.dumps(sync.status)
