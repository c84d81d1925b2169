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


async def test_secrets_are_read_and_made_by_name_and_no_others(kubeconfig, namespace):
    async with await Client.connect(Access(kubeconfig=kubeconfig)) as client:
        acting, looking = secrets_for(client, namespace, acts=True), secrets_for(client, namespace)
        with pytest.raises(OutsideError, match="observing changes nothing, but making Secret own would"):
            await looking.make("own", {}, {})
        assert await looking.read("own") is None
        await acting.make("own", {"password": "first"}, {"a": "b"})
        await acting.make("own", {"password": "second"}, {})
        assert await looking.read("own") == {"password": "first"}
        found = await client.get(f"/api/v1/namespaces/{namespace}/secrets/own")
        assert found["metadata"]["labels"] == {"a": "b"}
        assert "ownerReferences" not in found["metadata"]

        with pytest.raises(OutsideError, match="Secret other isn't one that the module says it reads"):
            await looking.read("other")
        with pytest.raises(OutsideError, match="Secret other isn't one that the module says it reads"):
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
        with pytest.raises(OutsideError, match=r"own can't be read: .*the rights get and create on secrets\)"):
            await stranger.read("own")
        with pytest.raises(OutsideError, match=r"own can't be made: .*the rights get and create on secrets\)"):
            await stranger.make("own", {}, {})
