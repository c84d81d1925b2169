"""A process that works for several parties shows nobody what another one had fetched, however a Sync says what it follows."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.engine.sync.targets import source_of
from kubectl_reconcile.source.git.source import GitSource
from kubectl_reconcile.source.remote import Credentials, Repository

SOURCES = {"as it is": {}, "only what is signed": {"verify": {"mode": "Commit", "secretRef": {"name": "keys"}}}}


@pytest.mark.parametrize("verify", SOURCES.values(), ids=SOURCES)
async def test_what_another_party_had_fetched_is_shown_to_nobody_whom_the_server_has_not_let_in(
    session, namespace, own_git_server, verify
):
    session.sources = replace(session.sources, guarded=True)
    private = own_git_server(username="robot", password="pa55word")
    sha = private.push({"plan.yaml": "a: secret"}, message="the secret plan")
    credentials = Credentials(username="robot", password="pa55word")
    owner = GitSource(Repository.of(private.url, credentials), cache_dir=session.cache_dir / "git", guarded=True)
    owner.revision()
    assert owner.commit(sha).subject == "the secret plan"
    keys = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "stringData": {"a.asc": "no key"}}
    await session.client.create(f"/api/v1/namespaces/{namespace}/secrets", keys)
    sync = Sync.of(
        {
            "apiVersion": "reconcile.dev/v1alpha1",
            "kind": "Sync",
            "metadata": {"name": "spy", "namespace": namespace},
            "spec": {"source": {"git": {"url": private.url, **verify}}},
        }
    )
    stranger = await source_of(session, sync, sync.source)
    assert stranger.commit(sha) is None
    assert stranger.read_at(sha, "plan.yaml") is None
