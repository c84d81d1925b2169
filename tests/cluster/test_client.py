"""Requests to a real API server: what arrives, and how each failure is told."""

from __future__ import annotations

import asyncio
import base64
import datetime as dt
import json
import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from kubectl_reconcile.cluster.access.cluster import resolve
from kubectl_reconcile.cluster.client import (
    Access,
    AlreadyExists,
    ApiError,
    BadRequest,
    Cause,
    Client,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    KubeconfigError,
    NotFound,
    ServerError,
    SilentWatch,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from kubectl_reconcile.cluster.errors import error_of
from kubectl_reconcile.cluster.messages import Request
from tests import yaml_text


@pytest.fixture
def maps(namespace) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


def config_of(kubeconfig) -> dict:
    return yaml_text.document(Path(kubeconfig).read_text())


def write_config(path: Path, config: dict) -> str:
    path.write_text(yaml.safe_dump(config))
    return str(path)


# -- verbs -------------------------------------------------------------------------------------------------------------


async def test_apply_returns_the_object_with_our_fields(client, maps, config_map):
    found = await client.apply(f"{maps}/web", config_map("web", data={"a": "1"}), manager="tester")
    assert found["data"] == {"a": "1"}
    assert [entry["manager"] for entry in found["metadata"]["managedFields"]] == ["tester"]
    assert await client.get(f"{maps}/web") == found


@pytest.mark.parametrize(
    "text", ["\x9b", "\x7f", "\x85", "\u2028", "\u2029", "\ufffe", "\uffff", "\ufeff", "\x01", "\\u009b"]
)
async def test_apply_takes_every_character_that_create_takes(client, maps, config_map, text):
    data = {"text": f"a{text}b", "lines": f"a\n{text}\n"}
    created = await client.create(maps, config_map("created", data=data))
    applied = await client.apply(f"{maps}/applied", config_map("applied", data=data))
    assert applied["data"] == created["data"] == data


async def test_a_dry_run_writes_nothing(client, maps, config_map):
    assert (await client.apply(f"{maps}/web", config_map("web"), dry_run=True))["metadata"]["uid"]
    with pytest.raises(NotFound):
        await client.get(f"{maps}/web")


async def test_applying_against_another_manager_names_field_and_manager(client, maps, config_map):
    await client.apply(f"{maps}/web", config_map("web", data={"a": "1"}), manager="first")
    with pytest.raises(Conflict) as caught:
        await client.apply(f"{maps}/web", config_map("web", data={"a": "2"}), manager="second")
    assert caught.value.status == 409
    assert Cause(".data.a", "FieldManagerConflict", 'conflict with "first"') in caught.value.causes
    forced = await client.apply(f"{maps}/web", config_map("web", data={"a": "2"}), manager="second", force=True)
    assert forced["data"] == {"a": "2"}


async def test_the_status_is_applied_on_its_own(client, namespace, widget_kind):
    await widget_kind()
    path = f"/apis/{namespace}.test/v1/namespaces/{namespace}/widgets/one"
    widget = {
        "apiVersion": f"{namespace}.test/v1",
        "kind": "Widget",
        "metadata": {"name": "one", "namespace": namespace},
    }
    await client.apply(path, widget | {"spec": {"size": 1}, "status": {"size": 9}})
    assert "status" not in await client.get(path)
    assert (await client.apply(f"{path}/status", widget | {"status": {"size": 1}}))["status"] == {"size": 1}


async def test_a_name_that_is_taken_is_already_exists(client, maps, config_map):
    await client.create(maps, config_map("web"))
    with pytest.raises(AlreadyExists, match='configmaps "web" already exists'):
        await client.create(maps, config_map("web"))


async def test_replacing_an_outdated_state_is_a_conflict(client, maps, config_map):
    old = await client.create(maps, config_map("web"))
    new = await client.replace(f"{maps}/web", old | {"data": {"a": "1"}})
    assert new["data"] == {"a": "1"}
    with pytest.raises(Conflict, match="the object has been modified"):
        await client.replace(f"{maps}/web", old | {"data": {"a": "2"}})


async def test_patches_are_merge_patches_or_json_patches_by_their_form(client, maps, config_map):
    await client.create(maps, config_map("web", data={"a": "1", "b": "2"}))
    assert (await client.patch(f"{maps}/web", {"data": {"a": None}}))["data"] == {"b": "2"}
    operations = [{"op": "replace", "path": "/data/b", "value": "3"}]
    assert (await client.patch(f"{maps}/web", operations))["data"] == {"b": "3"}


async def test_a_delete_hits_only_the_object_it_means(client, maps, config_map):
    web = await client.create(maps, config_map("web"))
    uid, version = web["metadata"]["uid"], web["metadata"]["resourceVersion"]
    with pytest.raises(Conflict):
        await client.delete(f"{maps}/web", uid="00000000-0000-0000-0000-000000000000")
    await client.patch(f"{maps}/web", {"data": {"a": "1"}})
    with pytest.raises(Conflict):
        await client.delete(f"{maps}/web", uid=uid, resource_version=version)
    assert (await client.delete(f"{maps}/web", uid=uid))["status"] == "Success"
    with pytest.raises(NotFound):
        await client.delete(f"{maps}/web")


async def test_a_terminating_object_is_returned_by_its_delete(client, maps, config_map):
    held = config_map("held")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    await client.create(maps, held)
    assert (await client.delete(f"{maps}/held"))["metadata"]["deletionTimestamp"]
    await client.patch(f"{maps}/held", {"metadata": {"finalizers": None}})


async def test_warnings_of_the_server_are_told(client, maps, config_map):
    told = []
    client.on_warning = lambda path, text: told.append((path, text))
    body = config_map("web") | {"surplus": 1}
    await client.create(maps, body, field_validation="Warn")
    assert told == [(maps, 'unknown field "surplus"')]


# -- lists -------------------------------------------------------------------------------------------------------------


async def test_lists_give_every_item_its_kind(client, maps, config_map):
    await client.create(maps, config_map("one", labels={"test": "list"}))
    items, version = await client.list(maps, labelSelector="test=list")
    assert [(item["apiVersion"], item["kind"], item["metadata"]["name"]) for item in items] == [
        ("v1", "ConfigMap", "one")
    ]
    assert version.isdecimal()


async def test_a_long_list_comes_in_pages_of_one_state(client, maps, config_map):
    names = [f"map-{number}" for number in range(7)]
    for name in names:
        await client.create(maps, config_map(name, labels={"test": "pages"}))
    pages = []
    versions = set()
    async for page, version in client.pages(maps, labelSelector="test=pages", limit=3):
        pages.append(len(page))
        versions.add(version)
        if len(pages) == 1:
            await client.delete(f"{maps}/{names[-1]}")
    assert pages == [3, 3, 1]
    assert len(versions) == 1


async def test_an_empty_list_is_no_error(client, maps):
    assert (await client.list(maps, labelSelector="no=such"))[0] == []


# -- watches -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def late_server(monkeypatch):
    """A server may end a watch later than asked: it has other things to do."""
    monkeypatch.setattr("kubectl_reconcile.cluster.client._WATCH_GRACE_S", 100.0)


async def test_a_watch_tells_what_happens_and_ends_when_its_time_is_over(client, maps, config_map, late_server):
    opened = asyncio.Event()
    _, version = await client.list(maps)

    async def read():
        return [
            (type_, found["metadata"]["name"])
            async for type_, found in client.watch(maps, on_open=opened.set, resourceVersion=version, timeoutSeconds=8)
        ]

    reader = asyncio.create_task(read())
    await opened.wait()
    await client.create(maps, config_map("web"))
    await client.patch(f"{maps}/web", {"data": {"a": "1"}})
    await client.delete(f"{maps}/web")
    assert await reader == [("ADDED", "web"), ("MODIFIED", "web"), ("DELETED", "web")]


async def test_a_megabyte_in_one_event_is_no_trouble(client, maps, config_map):
    big = "x" * 1_000_000
    await client.create(maps, config_map("big", labels={"test": "big"}, data={"big": big}))
    async for type_, found in client.watch(maps, labelSelector="test=big", timeoutSeconds=120):
        assert (type_, found["data"]["big"]) == ("ADDED", big)
        break


async def test_a_version_that_is_forgotten_is_gone(client, namespace, widget_kind, until):
    await widget_kind()  # the server remembers a kind's history from its beginning only

    async def watched():
        with suppress(TooManyRequests):  # the kind is so new that its storage isn't ready
            async for _ in client.watch(f"/apis/{namespace}.test/v1/widgets", resourceVersion="1", timeoutSeconds=5):
                pass

    with pytest.raises(Gone) as caught:
        await until(watched, "the server says that it has forgotten")
    assert caught.value.status == 410


async def test_a_silent_watch_is_broken_off(through_faults, faults, maps):
    faults.silence("watch=true")
    with pytest.raises(SilentWatch, match="went silent"):
        async for _ in through_faults.watch(maps, timeoutSeconds=1):
            pass


async def test_a_watch_that_ended_while_we_stood_still_was_not_silent(client, maps):
    stood_still = []

    def stand_still() -> None:
        time.sleep(6)  # nothing else goes on
        stood_still.append(1)

    loop = asyncio.get_running_loop()
    async for _ in client.watch(maps, timeoutSeconds=4, on_open=lambda: loop.call_later(1, stand_still)):
        pass
    assert stood_still


async def test_a_watch_cut_off_in_an_event_is_unreachable(through_faults, faults, client, maps, config_map):
    await client.create(maps, config_map("web", data={"a": "x" * 1000}))
    faults.cut("watch=true", 500)
    with pytest.raises(Unreachable, match="was lost"):
        async for _ in through_faults.watch(maps):
            pass


async def test_nonsense_in_a_watch_is_a_server_error(through_faults, faults, maps):
    faults.answer("watch=true", 200, b'{"type": "ADDED"')
    faults.answer("watch=true", 200, b"<html>\n")
    for complaint in ("middle of a line", "isn't an event"):
        with pytest.raises(ServerError, match=complaint):
            async for _ in through_faults.watch(maps):
                pass


async def test_many_watches_leave_the_requests_room(client, maps, until):
    opened = []

    async def watch():
        async for _ in client.watch(maps, on_open=lambda: opened.append(1), timeoutSeconds=600):
            pass

    watches = [asyncio.create_task(watch()) for _ in range(80)]
    await until(lambda: len(opened) == 80, "all watches are open")
    assert await asyncio.wait_for(client.get("/version"), 100)
    for task in watches:
        task.cancel()
    await asyncio.gather(*watches, return_exceptions=True)


# -- refusals ----------------------------------------------------------------------------------------------------------


async def test_an_unknown_field_is_the_manifests_fault_not_the_servers(client, maps, config_map):
    with pytest.raises(Invalid, match="surplus: field not declared in schema"):
        await client.apply(f"{maps}/web", config_map("web") | {"surplus": 1})


async def test_an_invalid_object_names_the_fields(client, namespace):
    body = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "Web", "namespace": namespace},
        "spec": {"ports": [{"port": 99999}]},
    }
    with pytest.raises(Invalid) as caught:
        await client.create(f"/api/v1/namespaces/{namespace}/services", body)
    assert {"metadata.name", "spec.ports[0].port"} <= {cause.field for cause in caught.value.causes}
    assert caught.value.status == 422
    assert "\n" not in str(caught.value)


async def test_an_immutable_field_is_invalid_with_its_cause(client, maps, config_map):
    await client.create(maps, config_map("fixed") | {"immutable": True, "data": {"a": "1"}})
    with pytest.raises(Invalid) as caught:
        await client.patch(f"{maps}/fixed", {"data": {"a": "2"}})
    assert caught.value.causes[0].field == "data"
    assert "immutable" in caught.value.causes[0].message


async def test_a_malformed_selector_is_a_bad_request(client, maps):
    with pytest.raises(BadRequest, match="unable to parse requirement"):
        await client.list(maps, labelSelector="a in (")


async def test_a_path_that_nobody_serves_is_not_found(client):
    with pytest.raises(NotFound, match=r"nothing at /apis/nobody.test/v1/things \(404 NotFound\)"):
        await client.get("/apis/nobody.test/v1/things")


async def test_who_may_not_is_forbidden_and_named(client, maps):
    with pytest.raises(Forbidden, match='User "nobody-in-particular" cannot list resource "configmaps"'):
        await client.impersonate("nobody-in-particular", ("some:group",)).list(maps)


async def test_impersonation_by_flags_reaches_the_server(kubeconfig):
    access = Access.of_flags(kubeconfig=kubeconfig, as_user="jane", as_groups=("team:a", "team:b"), as_uid="77")
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    async with await Client.connect(access) as client:
        with pytest.raises(Forbidden):
            await client.get("/api/v1/nodes")
        answer = await client.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", review)
    user = answer["status"]["userInfo"]
    assert (user["username"], user["uid"]) == ("jane", "77")
    assert {"team:a", "team:b", "system:authenticated"} <= set(user["groups"])


async def test_impersonating_nobody_is_refused(client, kubeconfig):
    with pytest.raises(KubeconfigError, match="is empty"):
        client.impersonate("")
    with pytest.raises(KubeconfigError, match="is empty"):
        await Client.connect(Access.of_flags(kubeconfig=kubeconfig, as_user=""))
    with pytest.raises(KubeconfigError, match="need --as"):
        await Client.connect(Access.of_flags(kubeconfig=kubeconfig, as_groups=("system:masters",)))


ANSWERS = {
    "429": (429, TooManyRequests, 7.0),
    "500": (500, ServerError, None),
    "503": (503, ServerError, None),
    "418": (418, ApiError, None),
}


def test_who_the_server_takes_for_nobody_is_to_log_in_and_needs_no_role():
    said = (
        'pods is forbidden: User "system:anonymous" cannot list resource "pods" in API group "" in the namespace "shop"'
    )
    error = error_of({"code": 403, "reason": "Forbidden", "message": said})
    assert "log in again" in error.hint
    assert "Role" not in error.hint
    named = error_of({"code": 403, "reason": "Forbidden", "message": said.replace("system:anonymous", "ann")})
    assert "a Role in namespace shop bound to user ann" in named.hint


@pytest.mark.parametrize(("status", "kind", "retry_after_s"), ANSWERS.values(), ids=ANSWERS)
def test_statuses_have_their_types(status, kind, retry_after_s):
    details = {"retryAfterSeconds": 7} if retry_after_s else {}
    error = error_of({"code": status, "reason": "Whatever", "message": "no", "details": details})
    assert type(error) is kind
    assert error.retry_after_s == retry_after_s


UNREADABLE = "storage is (re)initializing: failed to list example.org/v2, Kind=Broken: conversion webhook failed"
INITIALIZING = {"for long": (UNREADABLE, ServerError), "for a moment": ("storage is (re)initializing", TooManyRequests)}


@pytest.mark.parametrize(("message", "kind"), INITIALIZING.values(), ids=INITIALIZING)
def test_a_kind_whose_objects_cant_be_read_is_no_overload(message, kind):
    assert type(error_of({"code": 429, "reason": "TooManyRequests", "message": message})) is kind


def test_control_characters_of_the_server_never_reach_a_terminal():
    causes = [{"field": "a\x1b[31m", "reason": "Bad\r\n", "message": "x\u202ey"}]
    error = error_of(
        {"code": 422, "message": "\x1b]0;owned\x07line one\nline two\x9b1m", "details": {"causes": causes}}
    )
    assert str(error) == "]0;owned line one line two 1m (422 Invalid)"
    assert error.causes == (Cause("a [31m", "Bad", "x y"),)


# -- trouble on the way ------------------------------------------------------------------------------------------------


async def test_reads_survive_what_passes(through_faults, faults, maps):
    faults.reset("configmaps")
    faults.answer("configmaps", 503)
    faults.answer("configmaps", 429, Retry_After="0")
    assert (await through_faults.list(maps))[0]
    assert len(faults.seen) == 4


async def test_reads_give_up_after_a_few_attempts(through_faults, faults, maps):
    faults.answer("configmaps", 503, b"nobody home", times=99)
    with pytest.raises(
        ServerError, match=r"was answered 503 Service Unavailable: nobody home \(503 ServiceUnavailable\)"
    ):
        await through_faults.list(maps)
    assert len(faults.seen) == 4


async def test_a_long_rest_is_left_to_the_caller(through_faults, faults, maps):
    faults.answer("configmaps", 429, Retry_After="600")
    with pytest.raises(TooManyRequests) as caught:
        await through_faults.list(maps)
    assert caught.value.retry_after_s == 600
    assert len(faults.seen) == 1


async def test_writes_are_never_repeated(through_faults, faults, maps, config_map):
    faults.answer("POST", 503)
    with pytest.raises(ServerError):
        await through_faults.create(maps, config_map("web"))
    faults.reset("PATCH")
    with pytest.raises(Unreachable, match="was lost"):
        await through_faults.apply(f"{maps}/web", config_map("web"))
    assert len(faults.seen) == 2


async def test_a_truncated_answer_is_read_again(through_faults, faults, maps):
    faults.cut("configmaps", 20)
    assert (await through_faults.list(maps))[0]


async def test_an_answer_that_is_no_json_is_a_server_error(through_faults, faults, maps):
    faults.answer("configmaps", 200, b'{"items": [')
    with pytest.raises(ServerError, match="is not JSON"):
        await through_faults.list(maps)
    faults.answer("configmaps", 200, b"[]")
    with pytest.raises(ServerError, match="is not a JSON object"):
        await through_faults.list(maps)


async def test_an_answer_that_never_comes_times_out(faults, maps):
    faults.silence("configmaps")
    async with await Client.connect(Access(server=faults.url, request_timeout_s=0.3)) as client:
        with pytest.raises(Unreachable, match="timed out"):
            await client.list(maps)


async def test_redirects_are_not_followed(through_faults, faults, maps):
    faults.answer("configmaps", 302, Location="http://127.0.0.1:1/")
    with pytest.raises(ApiError, match="302"):
        await through_faults.list(maps)


async def test_a_server_that_is_down_is_unreachable_at_once(kubeconfig):
    started = time.monotonic()
    async with await Client.connect(Access(kubeconfig=kubeconfig, server="https://127.0.0.1:1")) as client:
        with pytest.raises(Unreachable) as caught:
            await client.get("/version")
    assert str(caught.value).startswith("no answer from the API server https://127.0.0.1:1: connection refused (hint: ")
    assert caught.value.status == 0
    assert time.monotonic() - started < 50


async def test_a_name_that_does_not_resolve_is_unreachable(kubeconfig):
    async with await Client.connect(Access(kubeconfig=kubeconfig, server="https://no-such-host.invalid")) as client:
        with pytest.raises(Unreachable, match="can't be resolved"):
            await client.get("/version")


async def test_a_port_that_speaks_no_tls_is_unreachable(faults):
    async with await Client.connect(Access(server=faults.url.replace("http:", "https:"))) as client:
        with pytest.raises(Unreachable):
            await client.get("/version")


# -- TLS ---------------------------------------------------------------------------------------------------------------


async def test_a_server_of_an_unknown_authority_is_not_trusted(client, token):
    async with await Client.connect(Access(server=client.server, token=token)) as stranger:
        with pytest.raises(Unreachable, match=r"isn't trusted: .* certificate-authority"):
            await stranger.get("/version")


async def test_a_server_under_another_name_is_not_trusted(kubeconfig):
    async with await Client.connect(
        Access.of_flags(kubeconfig=kubeconfig, tls_server_name="elsewhere.example.com")
    ) as client:
        with pytest.raises(Unreachable, match="isn't trusted: Hostname mismatch"):
            await client.get("/version")


async def test_verification_is_skipped_only_when_told(client, token):
    access = Access.of_flags(server=client.server, token=token, insecure_skip_tls_verify=True)
    async with await Client.connect(access) as careless:
        assert await careless.get("/version")


async def test_skipping_verification_with_an_authority_is_a_contradiction(kubeconfig):
    with pytest.raises(KubeconfigError, match="contradict"):
        await Client.connect(
            Access.of_flags(kubeconfig=kubeconfig, insecure_skip_tls_verify=True, certificate_authority="ca.crt")
        )


async def test_a_client_certificate_leaves_no_key_behind(own_key_pair, kubeconfig, tmp_path, monkeypatch):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    certificate, key = own_key_pair
    config = config_of(kubeconfig)
    config["users"][0]["user"] |= {
        "client-certificate-data": base64.b64encode(certificate).decode(),
        "client-key-data": base64.b64encode(key).decode(),
    }
    async with await Client.connect(Access(kubeconfig=write_config(tmp_path / "config", config))) as client:
        assert await client.get("/version")
    assert list(scratch.iterdir()) == []


@pytest.fixture
def own_key_pair(sandbox) -> tuple[bytes, bytes]:
    """Any certificate with its key: the server's own, which it doesn't mind being shown."""
    folder = next(path.parent for path in Path(sandbox.folder).rglob("apiserver.key"))
    return (folder / "apiserver.crt").read_bytes(), (folder / "apiserver.key").read_bytes()


async def test_a_certificate_without_its_key_is_refused(own_key_pair, kubeconfig, tmp_path):
    (tmp_path / "client.crt").write_bytes(own_key_pair[0])
    with pytest.raises(KubeconfigError, match="needs its key"):
        await Client.connect(Access.of_flags(kubeconfig=kubeconfig, client_certificate=str(tmp_path / "client.crt")))


async def test_a_garbled_key_is_refused_before_any_request(own_key_pair, kubeconfig, tmp_path):
    (tmp_path / "client.crt").write_bytes(own_key_pair[0])
    (tmp_path / "client.key").write_text("no key")
    access = Access.of_flags(
        kubeconfig=kubeconfig, client_certificate=str(tmp_path / "client.crt"), client_key=str(tmp_path / "client.key")
    )
    with pytest.raises(KubeconfigError, match="certificates can't be used"):
        await Client.connect(access)


# -- kubeconfig --------------------------------------------------------------------------------------------------------


async def test_several_files_merge_and_the_first_word_counts(kubeconfig, tmp_path, monkeypatch):
    config = config_of(kubeconfig)
    cluster, user = config["clusters"][0]["name"], config["users"][0]["name"]
    first = {
        "current-context": "mine",
        "contexts": [{"name": "mine", "context": {"cluster": cluster, "user": user, "namespace": "first"}}],
    }
    second = config | {
        "contexts": [
            {"name": "mine", "context": {"cluster": "nowhere", "user": user, "namespace": "second"}},
            *config["contexts"],
        ]
    }
    paths = [write_config(tmp_path / "one", first), str(tmp_path / "absent"), write_config(tmp_path / "two", second)]
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(paths))
    async with await Client.connect() as client:
        assert client.namespace == "first"
        assert await client.get("/version")
    async with await Client.connect(Access(context=config["current-context"], namespace="flag")) as client:
        assert client.namespace == "flag"
        assert client.server == config["clusters"][0]["cluster"]["server"]


async def test_flags_overrule_the_context(kubeconfig, tmp_path):
    config = config_of(kubeconfig)
    good_cluster, good_user = config["clusters"][0]["name"], config["users"][0]["name"]
    config["clusters"].append({"name": "nowhere", "cluster": {"server": "https://127.0.0.1:1"}})
    config["users"].append({"name": "stranger", "user": {"token": "wrong"}})
    config["contexts"] = [{"name": "bad", "context": {"cluster": "nowhere", "user": "stranger"}}]
    config["current-context"] = "bad"
    path = write_config(tmp_path / "config", config)
    async with await Client.connect(Access(kubeconfig=path, cluster=good_cluster, user=good_user)) as client:
        assert (client.namespace, (await client.get("/version"))["major"]) == ("default", "1")
    async with await Client.connect(Access(kubeconfig=path, cluster=good_cluster)) as client:
        with pytest.raises(Unauthorized, match="doesn't accept the credentials"):
            await client.get("/version")


async def test_relative_paths_start_at_their_file(kubeconfig, tmp_path, monkeypatch, token):
    config = config_of(kubeconfig)
    cluster = config["clusters"][0]["cluster"]
    (tmp_path / "ca.crt").write_bytes(base64.b64decode(cluster.pop("certificate-authority-data")))
    (tmp_path / "token").write_text(f"{token}\n")
    cluster["certificate-authority"] = "ca.crt"
    config["users"][0]["user"] = {"tokenFile": "token"}
    path = write_config(tmp_path / "config", config)
    monkeypatch.chdir("/")
    async with await Client.connect(Access(kubeconfig=path)) as client:
        assert await client.get("/version")


BROKEN = {
    "an absent file": (None, {}, "can't be read: No such file"),
    "no YAML": ("a: [", {}, r"config:\d+ is not YAML"),
    "no mapping": ("- a", {}, "is not a mapping"),
    "a nameless entry": ("users: [{user: {}}]", {}, "an entry of users needs a name"),
    "an unknown context": (
        "contexts: [{name: here, context: {}}]",
        {"context": "there"},
        "no context 'there' .hint: it has: here",
    ),
    "an unknown cluster": (
        "contexts: [{name: here, context: {cluster: gone}}]",
        {"context": "here"},
        "no cluster 'gone'",
    ),
    "an unknown user": (
        "{contexts: [{name: c, context: {cluster: c, user: gone}}], clusters: [{name: c, cluster: {server: 'https://x'}}]}",
        {"context": "c"},
        "no user 'gone'",
    ),
    "nothing in it": ("{}", {}, "no cluster is configured .hint: set KUBECONFIG"),
    "a server that isn't a URL": ("{}", {"server": "https://"}, "not a URL"),
    "a password in the server": ("{}", {"server": "https://me:secret@host"}, "not a URL"),
    "a token of two lines": ("{}", {"server": "https://x", "token": "a\nb"}, "line breaks"),
    "a certificate that isn't there": (
        "{}",
        {"server": "https://x", "certificate_authority": "/nowhere"},
        "can't be read: No such",
    ),
}


@pytest.mark.parametrize(("text", "flags", "complaint"), BROKEN.values(), ids=BROKEN)
async def test_a_kubeconfig_that_leads_nowhere_says_why(tmp_path, text, flags, complaint):
    path = tmp_path / "config"
    if text is not None:
        path.write_text(text)
    with pytest.raises(KubeconfigError, match=complaint) as caught:
        await Client.connect(Access.of_flags(kubeconfig=str(path), **flags))
    assert "secret" not in str(caught.value)


async def test_without_any_kubeconfig_it_says_what_to_do():
    with pytest.raises(KubeconfigError, match="no cluster is configured"):
        await Client.connect()


def test_an_access_never_shows_its_token():
    assert "hush" not in repr(Access(token="hush"))


# -- credentials that change -------------------------------------------------------------------------------------------


def plugin_config(kubeconfig, script: Path, tmp_path: Path) -> str:
    config = config_of(kubeconfig)
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": f"./{script.name}", "installHint": "get it"}
    config["users"][0]["user"] = {"exec": plugin}
    return write_config(tmp_path / "config", config)


def write_plugin(tmp_path: Path, answers: list[dict]) -> Path:
    """A plugin that gives one answer after the other, the last again and again, and counts its runs in a file."""
    for number, status in enumerate(answers):
        credential = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
        (tmp_path / f"answer-{number}").write_text(json.dumps(credential))
    script = tmp_path / "plugin"
    script.write_text(
        f'#!/bin/sh\ncd "{tmp_path}"\nn=$(cat runs 2>/dev/null || echo 0)\necho $((n+1)) > runs\n'
        f"[ $n -lt {len(answers)} ] || n={len(answers) - 1}\ncat answer-$n\n"
    )
    script.chmod(0o700)
    return script


def runs(tmp_path: Path) -> int:
    return int((tmp_path / "runs").read_text())


async def test_a_refused_credential_is_asked_for_again(kubeconfig, tmp_path, token):
    script = write_plugin(tmp_path, [{"token": "stale"}, {"token": token}])
    async with await Client.connect(Access(kubeconfig=plugin_config(kubeconfig, script, tmp_path))) as client:
        await asyncio.gather(*(client.get("/version") for _ in range(8)))
    assert runs(tmp_path) == 2


async def test_a_credential_that_stays_refused_is_unauthorized(kubeconfig, tmp_path):
    script = write_plugin(tmp_path, [{"token": "stale"}])
    async with await Client.connect(Access(kubeconfig=plugin_config(kubeconfig, script, tmp_path))) as client:
        with pytest.raises(Unauthorized):
            await client.get("/version")


async def test_a_credential_that_runs_out_is_renewed_before_it_is_refused(kubeconfig, tmp_path, token, until):
    soon = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=0.2)
    late = (dt.datetime.now(dt.UTC) + dt.timedelta(hours=1)).isoformat()
    statuses = [
        {"token": token, "expirationTimestamp": soon.isoformat()},
        {"token": token, "expirationTimestamp": late},
    ]
    script = write_plugin(tmp_path, statuses)
    async with await Client.connect(Access(kubeconfig=plugin_config(kubeconfig, script, tmp_path))) as client:
        await until(lambda: dt.datetime.now(dt.UTC) > soon, "the first has run out")
        for _ in range(3):
            await client.get("/version")
    assert runs(tmp_path) == 2


async def test_a_plugin_that_fails_says_how(kubeconfig, tmp_path):
    script = tmp_path / "plugin"
    script.write_text("#!/bin/sh\necho 'log in first' >&2\nexit 3\n")
    script.chmod(0o700)
    path = plugin_config(kubeconfig, script, tmp_path)
    with pytest.raises(KubeconfigError, match=r"plugin .* failed: .*log in first"):
        await Client.connect(Access(kubeconfig=path))
    script.unlink()
    with pytest.raises(KubeconfigError, match=r"isn't installed .hint: get it"):
        await Client.connect(Access(kubeconfig=path))


async def test_a_plugin_without_an_answer_is_refused(kubeconfig, tmp_path):
    script = write_plugin(tmp_path, [{}])
    with pytest.raises(KubeconfigError, match="neither a token nor a certificate"):
        await Client.connect(Access(kubeconfig=plugin_config(kubeconfig, script, tmp_path)))


async def test_a_plugins_certificate_is_shown_to_the_server(kubeconfig, tmp_path, token, own_key_pair):
    certificate, key = (part.decode() for part in own_key_pair)
    script = write_plugin(tmp_path, [{"token": token, "clientCertificateData": certificate, "clientKeyData": key}])
    async with await Client.connect(Access(kubeconfig=plugin_config(kubeconfig, script, tmp_path))) as client:
        assert await client.get("/version")


async def test_a_rotated_token_file_is_read_again(kubeconfig, tmp_path, token):
    config = config_of(kubeconfig)
    config["users"][0]["user"] = {"tokenFile": "token"}
    (tmp_path / "token").write_text("before")
    async with await Client.connect(Access(kubeconfig=write_config(tmp_path / "config", config))) as client:
        (tmp_path / "token").write_text(token)
        assert await client.get("/version")
        (tmp_path / "token").unlink()
        assert await client.get("/version")


def oidc(expires_s: float) -> dict:
    claims = base64.urlsafe_b64encode(json.dumps({"exp": time.time() + expires_s}).encode()).decode().rstrip("=")
    return {"auth-provider": {"name": "oidc", "config": {"id-token": f"head.{claims}.signature"}}}


async def test_an_oidc_token_is_used_while_it_lasts_and_never_renewed_unsafely(tmp_path):
    cluster = {"clusters": [{"name": "c", "cluster": {"server": "https://x"}}]}
    context = {"contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}], "current-context": "c"}
    path = tmp_path / "config"
    write_config(path, cluster | context | {"users": [{"name": "u", "user": oidc(60)}]})
    assert dict((await resolve(Access(kubeconfig=str(path)))).headers)["Authorization"].startswith("Bearer head.")
    write_config(path, cluster | context | {"users": [{"name": "u", "user": oidc(-60)}]})
    with pytest.raises(KubeconfigError, match=r"no valid token .hint: use an exec credential plugin"):
        await resolve(Access(kubeconfig=str(path)))


async def test_a_pod_uses_its_own_account(client, tmp_path, monkeypatch, token, kubeconfig):
    authority = config_of(kubeconfig)["clusters"][0]["cluster"]["certificate-authority-data"]
    (tmp_path / "token").write_text(f"{token}\n")
    (tmp_path / "ca.crt").write_bytes(base64.b64decode(authority))
    (tmp_path / "namespace").write_text("pods-own")
    host, port = client.server.removeprefix("https://").split(":")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
    monkeypatch.setattr("kubectl_reconcile.cluster.access.cluster._SERVICE_ACCOUNT", tmp_path)
    library = "kubernetes.aio.config.incluster_config"
    monkeypatch.setattr(f"{library}.SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(f"{library}.SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    async with await Client.connect() as pod:
        assert pod.namespace == "pods-own"
        assert await pod.get("/version")


# -- details -----------------------------------------------------------------------------------------------------------

QUERIES = {
    "nothing": ({}, "https://x/api"),
    "booleans are the API's": ({"force": True, "watch": False}, "https://x/api?force=true&watch=false"),
    "None is left out": ({"limit": None, "a": 1}, "https://x/api?a=1"),
    "selectors are quoted": ({"labelSelector": "a in (b,c)"}, "https://x/api?labelSelector=a+in+%28b%2Cc%29"),
}


@pytest.mark.parametrize(("params", "url"), QUERIES.values(), ids=QUERIES)
def test_queries_are_spelt_as_the_api_expects(params, url):
    assert str(Request("GET", "/api", params).url("https://x")) == url


NEAR = {
    "this machine": ("https://127.0.0.1:6443", True),
    "by name": ("https://localhost:6443", True),
    "the pod network": ("https://10.96.0.1:443", True),
    "an address in the world": ("https://8.8.8.8", False),
    "a name in the world": ("https://api.example.com:6443", False),
}


@pytest.mark.parametrize(("server", "near"), NEAR.values(), ids=NEAR)
async def test_compression_is_asked_for_from_afar(server, near):
    route = await resolve(Access(server=server))
    assert Request("GET", "/api").headers(route)["Accept-Encoding"] == ("identity" if near else "gzip")


async def test_the_environments_proxy_is_used_unless_excepted(monkeypatch):
    monkeypatch.setenv("https_proxy", "http://proxy.example.com:3128")
    monkeypatch.setenv("no_proxy", "10.0.0.1")
    assert (await resolve(Access(server="https://api.example.com"))).proxy == "http://proxy.example.com:3128"
    assert (await resolve(Access(server="https://10.0.0.1"))).proxy == ""
    monkeypatch.setenv("https_proxy", "socks5://proxy.example.com")
    with pytest.raises(KubeconfigError, match="only http and https proxies"):
        await resolve(Access(server="https://api.example.com"))


async def test_a_client_that_is_closed_leaves_no_connection_open(kubeconfig, namespace):
    async with await Client.connect(Access(kubeconfig=kubeconfig)) as own:
        await asyncio.gather(*(own.get("/version") for _ in range(3)))
        with pytest.raises(NotFound):
            await own.web_socket(
                f"/api/v1/namespaces/{namespace}/pods/nobody/portforward", "v4.channel.k8s.io", ports=80
            )
        connections = own._transport._session
        await connections.watches.get(f"{connections.route.server}/api/v1/namespaces?watch=true")
        made = [*connections._sockets]
        assert [each for each in made if each.fileno() >= 0]
    assert [each for each in made if each.fileno() >= 0] == []
