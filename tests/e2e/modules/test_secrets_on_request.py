"""Secrets that a module reads and makes by name: those that it said it would, in the namespace of its custom resource, and as it may."""

import base64

import pytest

from kubectl_reconcile.cluster.access import Access
from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.core.module.api import module
from kubectl_reconcile.core.module.inputs import Reads, Select
from kubectl_reconcile.core.module.outcome import Outcome
from kubectl_reconcile.engine.modules.external_systems import OutsideError
from kubectl_reconcile.engine.modules.secrets_of_cr import secrets_of

OF = Reads("v1", "Secret", of=lambda _: Select(names=("own", "odd")), on_request=True)
LEDGER = module(api="example.com/v1", kind="Ledger", owns=[], reads=[OF])(lambda *_: Outcome())


def secrets_for(client, namespace, *, acts=False):
    cr = {"metadata": {"name": "ledger", "namespace": namespace}}
    return secrets_of(LEDGER, cr, client, acts=acts)


OWN = Reads("v1", "Secret", of=lambda _: Select(names=("mine", "taken")), on_request=True, rewrites=True)
VAULT = module(api="v1", kind="ConfigMap", name="vault", owns=[], reads=[OF, OWN])(lambda *_: Outcome())


async def test_a_secret_is_made_as_the_custom_resources_own_and_only_such_a_one_is_rewritten(kubeconfig, namespace):
    async with await Client.connect(Access(kubeconfig=kubeconfig)) as client:
        path = f"/api/v1/namespaces/{namespace}"
        plain = {"apiVersion": "v1", "metadata": {"name": "taken"}}
        cr = await client.create(f"{path}/configmaps", {**plain, "kind": "ConfigMap"})
        cr |= {"apiVersion": "v1", "kind": "ConfigMap"}
        await client.create(f"{path}/secrets", {**plain, "kind": "Secret"})
        looking, acting = (secrets_of(VAULT, cr, client, acts=acts) for acts in (False, True))
        with pytest.raises(OutsideError, match="observe must change nothing"):
            await looking.put("mine", {}, {}, None)
        with pytest.raises(OutsideError, match="the module doesn't declare that it rewrites Secret own"):
            await acting.put("own", {}, {}, None)

        assert await looking.see("mine") is None
        await acting.put("mine", {"key": "first", "old": "x"}, {"a": "b"}, None)
        with pytest.raises(OutsideError, match="mine can't be created"):
            await acting.put("mine", {"key": "late"}, {}, None)
        seen = await looking.see("mine")
        assert (seen.is_own, seen.values) == (True, {"key": "first", "old": "x"})
        assert "first" not in repr(seen)
        made = await client.get(f"{path}/secrets/mine")
        assert [each["uid"] for each in made["metadata"]["ownerReferences"]] == [cr["metadata"]["uid"]]
        assert made["metadata"]["labels"]["a"] == "b"

        await acting.put("mine", {"key": "second"}, {}, seen)
        assert (await looking.see("mine")).values == {"key": "second"}
        with pytest.raises(OutsideError, match="mine can't be changed"):
            await acting.put("mine", {"key": "stale"}, {}, seen)

        taken = await looking.see("taken")
        assert not taken.is_own
        with pytest.raises(OutsideError, match="taken isn't this custom resource's own"):
            await acting.put("taken", {"key": "x"}, {}, taken)


async def test_secrets_are_read_and_made_by_name_and_no_others(kubeconfig, namespace):
    async with await Client.connect(Access(kubeconfig=kubeconfig)) as client:
        acting, looking = secrets_for(client, namespace, acts=True), secrets_for(client, namespace)
        with pytest.raises(OutsideError, match="observe must change nothing, but creating Secret own would"):
            await looking.make("own", {}, {})
        assert await looking.read("own") is None
        await acting.make("own", {"password": "first"}, {"a": "b"})
        await acting.make("own", {"password": "second"}, {})
        assert await looking.read("own") == {"password": "first"}
        found = await client.get(f"/api/v1/namespaces/{namespace}/secrets/own")
        assert found["metadata"]["labels"] == {"a": "b"}
        assert "ownerReferences" not in found["metadata"]

        with pytest.raises(OutsideError, match="the module doesn't declare that it reads Secret other"):
            await looking.read("other")
        with pytest.raises(OutsideError, match="the module doesn't declare that it reads Secret other"):
            await acting.make("other", {}, {})

        values = {"text": base64.b64encode(b"abc").decode(), "bytes": base64.b64encode(b"\xff\xfe").decode()}
        odd = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "odd", "namespace": namespace},
            "data": values,
        }
        await client.create(f"/api/v1/namespaces/{namespace}/secrets", odd)
        assert await looking.read("odd") == {"text": "abc"}

        stranger = secrets_for(client.impersonate("stranger"), namespace, acts=True)
        with pytest.raises(
            OutsideError, match=r"own can't be read: .*its rights in this namespace: get and create on secrets, .*\)"
        ):
            await stranger.read("own")
        with pytest.raises(
            OutsideError, match=r"own can.t be created: .*its rights in this namespace: get and create on secrets, .*\)"
        ):
            await stranger.make("own", {}, {})
