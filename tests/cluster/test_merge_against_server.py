"""The merge where other tools hurt their users, each time checked against what the API server does itself.

Every `ask` puts one question to both: the server answers with dry-runs, and the merged object, our
fields and the conflicts must be the same (tests/oracle/judge.py).
"""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from oracle.judge import Step, Subject, ask, tell

from kubectl_reconcile.cluster.client import Conflict
from kubectl_reconcile.cluster.discovery import Discovery
from kubectl_reconcile.core.objects import FIELD_MANAGER as US
from kubectl_reconcile.core.objects import GroupVersionKind
from kubectl_reconcile.core.ssa.csa_upgrade import LAST_APPLIED
from kubectl_reconcile.core.ssa.fieldset import FieldSet
from kubectl_reconcile.core.ssa.merge import ConflictPolicy, IgnoreRule, MergeError, Reason, Verdict, three_way
from kubectl_reconcile.core.ssa.schema import schema_of_crd, schemas_of_document
from tests.waiting import until

TEXT = {"type": "string"}


def crd_of(kind, properties):
    plural = f"{kind.lower()}s"
    openapi = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": openapi}}
    names = {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.merge.example.com"},
        "spec": {"group": "merge.example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }


SHOP = {
    "cpu": TEXT,
    "size": {"type": "integer", "default": 3},
    "note": {"type": "string", "nullable": True},
    "shelves": {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": TEXT, "goods": TEXT},
        },
    },
    "tags": {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
}
BAZAAR = {
    "size": {"type": "integer", "default": 3},
    "names": {"type": "array", "items": TEXT, "default": [], "x-kubernetes-list-type": "set"},
    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}
CRDS = {"Shop": crd_of("Shop", SHOP), "Bazaar": crd_of("Bazaar", BAZAAR)}
PLACES = {
    "CustomResourceDefinition": ("apiextensions.k8s.io/v1", "customresourcedefinitions"),
    "Deployment": ("apps/v1", "deployments"),
    "Service": ("v1", "services"),
    "Secret": ("v1", "secrets"),
    "ConfigMap": ("v1", "configmaps"),
    "NetworkPolicy": ("networking.k8s.io/v1", "networkpolicies"),
    "DaemonSet": ("apps/v1", "daemonsets"),
    "HorizontalPodAutoscaler": ("autoscaling/v2", "horizontalpodautoscalers"),
}


class World:
    """One object of one kind in a namespace of its own; its name is ``one``."""

    name = "one"

    def __init__(self, client, subject):
        self.client, self.subject = client, subject

    async def do(self, manager, verb, body):
        assert await tell(self.client, self.subject, self.name, Step(verb, manager, self.manifest(**body)))

    async def applied(self, **body):
        await self.do(US, "force", body)

    def manifest(self, *, metadata=None, **body):
        return self.subject.manifest(self.name, body, metadata or {})

    async def live(self):
        return await self.client.get(f"{self.subject.path}/{self.name}")

    async def ask(self, *, base=None, policy=ConflictPolicy.OVERRIDE, ignores=(), **body):
        base = self.manifest(**base) if base is not None else None
        desired = self.manifest(**body)
        while True:
            live = await self.live()
            try:
                answer = await ask(self.client, self.subject, live, desired, base=base, policy=policy, ignores=ignores)
            except Conflict:  # the same, while a takeover was sent
                continue
            if not answer.mismatches or _version(await self.live()) == _version(live):
                break  # else a controller came in between: nobody can know which object the server saw
        assert answer.mismatches == []
        assert answer.phantoms == []
        return answer.merge

    async def unchanged(self, **body):
        return (await self.ask(**body)).verdict is Verdict.SAME


def _version(live):
    return live["metadata"]["resourceVersion"]


@pytest.fixture
async def world(client, namespace):
    async def make(kind):
        if kind in CRDS:
            return World(client, await _custom(client, namespace, CRDS[kind]))
        api_version, plural = PLACES[kind]
        root = "api" if api_version == "v1" else "apis"
        document = await client.get(f"/openapi/v3/{root}/{api_version}")
        schema = schemas_of_document(document)[GroupVersionKind.parse(api_version, kind)]
        place = plural if kind == "CustomResourceDefinition" else f"namespaces/{namespace}/{plural}"
        return World(client, Subject(api_version, kind, f"/{root}/{api_version}/{place}", schema))

    return make


async def _custom(client, namespace, crd):
    names, name = crd["spec"]["names"], crd["metadata"]["name"]
    place = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    await client.apply(f"{place}/{name}", crd, force=True)
    async for _, found in client.watch(place, fieldSelector=f"metadata.name={name}"):
        conditions = (found.get("status") or {}).get("conditions") or ()
        if any(one["type"] == "Established" and one["status"] == "True" for one in conditions):
            break
    path = f"/apis/merge.example.com/v1/namespaces/{namespace}/{names['plural']}"
    return Subject(
        "merge.example.com/v1",
        names["kind"],
        path,
        schema_of_crd(crd, "v1"),
        discovered=await _discovered(client, GroupVersionKind("merge.example.com", "v1", names["kind"])),
    )


async def _discovered(client, gvk):
    """The schema as production reads it, once the server has published it."""

    async def published():
        schema = (await (await Discovery.load(client)).schemas([gvk]))[gvk]
        return schema if schema.known else None

    return await until(published, f"the server has published {gvk}")


def deployment(*, replicas=2, strategy=None, **container):
    labels = {"app": "one"}
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "web", "image": "nginx", **container}]},
        },
    }
    if replicas is None:
        del spec["replicas"]
    return {"spec": {**spec, "strategy": strategy} if strategy else spec}


def paths(merge):
    return [str(change.path) for change in merge.changes]


FIELD_REF = {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
PROBE = {"httpGet": {"port": 80}, "initialDelaySeconds": 0}
MADE = {
    "a Deployment": ("Deployment", deployment(env=[FIELD_REF], readinessProbe=PROBE, ports=[{"containerPort": 80}])),
    "one that is recreated": ("Deployment", deployment(strategy={"type": "Recreate"}, tty=False)),
    "a Service": ("Service", {"spec": {"ports": [{"port": 80}], "selector": {"app": "one"}}}),
    "a NetworkPolicy": ("NetworkPolicy", {"spec": {"podSelector": {}, "ingress": [{"ports": [{"port": 80}]}]}}),
    "a Secret": ("Secret", {"data": {"a": "MQ=="}}),
}


@pytest.mark.parametrize(("kind", "body"), MADE.values(), ids=MADE)
@pytest.mark.parametrize("maker", ["kubectl-create", "operator"])
async def test_what_the_server_filled_in_is_no_change_when_the_object_is_adopted(world, maker, kind, body):
    one = await world(kind)
    await one.do(maker, "create", body)
    assert paths(await one.ask(**body)) == []


# --- fields that are unseen, or never go ---------------------------------------------------------------------


async def test_what_differs_is_shown_and_what_is_shown_differs(world):
    shop = await world("Shop")
    await shop.applied(spec={"cpu": "1"})
    merge = await shop.ask(spec={"cpu": "2"})
    assert (merge.verdict, paths(merge)) == (Verdict.DIFFERENT, [".spec.cpu"])
    assert await shop.unchanged(spec={"cpu": "1"})


async def test_an_extra_field_of_somebody_is_seen_when_git_states_it_otherwise(world):
    shop = await world("Shop")
    await shop.applied(spec={"cpu": "1"})
    await shop.do("kubectl-edit", "patch", {"spec": {"note": "mine"}})
    assert await shop.unchanged(spec={"cpu": "1"})
    merge = await shop.ask(spec={"cpu": "1", "note": "ours"})
    assert [(str(one.path), one.manager) for one in merge.conflicts] == [(".spec.note", "kubectl-edit")]


async def test_a_field_removed_from_git_is_removed(world):
    shop = await world("Shop")
    await shop.applied(spec={"cpu": "1", "size": 5, "tags": ["a", "b"], "shelves": [{"name": "x", "goods": "y"}]})
    merge = await shop.ask(spec={"cpu": "1", "tags": ["b"]})
    assert merge.merged["spec"] == {"cpu": "1", "size": 3, "tags": ["b"]}


async def test_the_last_label_takes_its_parent_along(world):
    config = await world("ConfigMap")
    await config.applied(metadata={"labels": {"a": "b"}}, data={"k": "v"})
    assert "labels" not in (await config.ask(data={"k": "v"})).merged["metadata"]


# --- lists ---------------------------------------------------------------------------------------------------


async def test_a_reordered_list_map_says_order_and_nothing_else(world):
    shop = await world("Shop")
    shelves = [{"name": "a", "goods": "1"}, {"name": "b", "goods": "2"}]
    await shop.applied(spec={"shelves": shelves})
    assert paths(await shop.ask(spec={"shelves": shelves[::-1]})) == [".spec.shelves"]


async def test_items_of_others_in_between_are_no_reorder(world):
    shop = await world("Shop")
    shelves = [{"name": "a", "goods": "1"}, {"name": "b", "goods": "2"}]
    await shop.applied(spec={"shelves": shelves})
    await shop.do("other", "force", {"spec": {"shelves": [{"name": "0"}, {"name": "a"}, {"name": "x"}, {"name": "b"}]}})
    assert await shop.unchanged(spec={"shelves": shelves})


async def test_an_api_that_fills_in_its_lists_never_loops(world):
    policy = await world("NetworkPolicy")
    spec = {"podSelector": {}, "ingress": [{"ports": [{"port": 80}]}]}  # the server adds protocol: TCP
    await policy.applied(spec=spec)
    assert await policy.unchanged(spec=spec, base={"spec": spec})


async def test_filled_in_lists_are_unsure_where_the_base_is_unknown(world):
    policy = await world("NetworkPolicy")
    spec = {"podSelector": {}, "ingress": [{"ports": [{"port": 80}]}]}
    await policy.applied(spec=spec)
    assert (await policy.ask(spec=spec)).verdict is Verdict.UNSURE


# --- keys of lists --------------------------------------------------------------------------------------------


async def test_one_port_with_two_protocols(world):
    service = await world("Service")
    ports = [{"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "dns-tcp", "port": 53, "protocol": "TCP"}]
    await service.applied(spec={"selector": {"a": "b"}, "ports": ports})
    assert await service.unchanged(spec={"selector": {"a": "b"}, "ports": ports})
    changed = [ports[0], {**ports[1], "targetPort": 5353}]
    assert paths(await service.ask(spec={"selector": {"a": "b"}, "ports": changed})) == [
        '.spec.ports[port=53,protocol="TCP"].targetPort'
    ]


async def test_a_protocol_left_out_is_the_default_one(world):
    web = await world("Deployment")
    await web.applied(**deployment(ports=[{"containerPort": 80}]))
    assert await web.unchanged(**deployment(ports=[{"containerPort": 80}]))
    merge = await web.ask(**deployment(ports=[{"containerPort": 80, "protocol": "TCP"}]))
    assert (merge.changes, merge.conflicts) == ((), ())


async def test_a_port_of_the_same_name_is_renumbered(world):
    service = await world("Service")
    await service.applied(spec={"ports": [{"name": "http", "port": 80}]})
    merge = await service.ask(spec={"ports": [{"name": "http", "port": 8080}]})
    assert [port["port"] for port in merge.merged["spec"]["ports"]] == [8080]


async def test_duplicate_keys_are_refused_as_the_server_refuses_them(world):
    service = await world("Service")
    await service.applied(spec={"ports": [{"name": "http", "port": 80}]})
    twice = service.manifest(spec={"ports": [{"name": "a", "port": 80}, {"name": "b", "port": 80, "protocol": "TCP"}]})
    with pytest.raises(MergeError, match="two items with the same key"):
        three_way(desired=twice, live=await service.live(), schema=service.subject.schema)
    assert not await tell(service.client, service.subject, "one", Step("force", US, twice))


async def test_duplicates_that_live_has_are_kept_until_they_are_ours_to_mend(world):
    web = await world("Deployment")
    twice = [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}, {"name": "B", "value": "3"}]
    await web.do("operator", "create", deployment(env=twice))
    kept = await web.ask(**deployment(env=[{"name": "B", "value": "4"}]))
    (container,) = kept.merged["spec"]["template"]["spec"]["containers"]
    assert [variable["value"] for variable in container["env"]] == ["1", "2", "4"]
    mended = await web.ask(**deployment(env=[{"name": "A", "value": "5"}]))
    (container,) = mended.merged["spec"]["template"]["spec"]["containers"]
    assert {"name": "A", "value": "5"} in container["env"]


# --- unions, defaults, quantities, null ---------------------------------------------------------------------------


async def test_rolling_update_becomes_recreate(world):
    web = await world("Deployment")
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}
    await web.applied(**deployment(strategy=rolling))
    merge = await web.ask(**deployment(strategy={"type": "Recreate"}))
    assert merge.verdict is Verdict.DIFFERENT
    assert "maxSurge" not in (merge.merged["spec"]["strategy"].get("rollingUpdate") or {})


async def test_a_value_becomes_a_reference_and_back(world):
    web = await world("Deployment")
    plain = [{"name": "A", "value": "1"}]
    reference = [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    await web.applied(**deployment(env=plain))
    (variable,) = (await web.ask(**deployment(env=reference))).merged["spec"]["template"]["spec"]["containers"][0][
        "env"
    ]
    assert "value" not in variable
    await web.applied(**deployment(env=reference))
    (variable,) = (await web.ask(**deployment(env=plain))).merged["spec"]["template"]["spec"]["containers"][0]["env"]
    assert variable == {"name": "A", "value": "1"}


QUANTITIES = {
    "thousandths": "1000m",
    "a number": 1,
    "a fraction": "0.5",
    "binary": "1024Mi",
    "an exponent": "1e3",
    "bytes": "1073741824",
}


@pytest.mark.parametrize("written", QUANTITIES.values(), ids=QUANTITIES)
async def test_a_quantity_is_what_it_is_worth(world, written):
    web = await world("Deployment")
    wanted = deployment(resources={"limits": {"memory": written}})
    await web.applied(**wanted)
    assert await web.unchanged(**wanted)


async def test_a_custom_resources_quantity_is_text(world):
    shop = await world("Shop")
    await shop.applied(spec={"cpu": "1000m"})
    assert await shop.unchanged(spec={"cpu": "1000m"})
    assert paths(await shop.ask(spec={"cpu": "1"})) == [".spec.cpu"]


async def test_a_custom_resources_default_is_no_difference(world):
    shop = await world("Shop")
    await shop.applied(spec={"cpu": "1"})
    assert await shop.unchanged(spec={"cpu": "1"})
    merge = await shop.ask(spec={"cpu": "1", "size": 3})
    assert (merge.verdict, merge.changes) == (Verdict.DIFFERENT, ())  # the value is there; it becomes ours


async def test_null_where_it_is_allowed(world):
    shop = await world("Shop")
    await shop.applied(spec={"note": None, "size": None})
    assert (await shop.live())["spec"] == {"note": None, "size": 3}
    assert await shop.unchanged(spec={"note": None, "size": None})


async def test_null_where_it_is_not_allowed_is_refused_and_never_called_unchanged(world):
    shop = await world("Shop")
    await shop.applied(spec={"size": 4})
    desired = shop.manifest(spec={"size": 4, "cpu": None})
    assert not await tell(shop.client, shop.subject, "one", Step("force", US, desired))
    assert (await shop.ask(spec=desired["spec"])).verdict is Verdict.DIFFERENT


@pytest.mark.parametrize("empty", [{"labels": {}, "annotations": {}}, {"finalizers": [], "ownerReferences": []}])
async def test_empty_metadata_of_a_custom_resource_is_no_change(world, empty):
    shop = await world("Shop")
    await shop.applied(metadata=empty, spec={"cpu": "1"})
    assert await shop.unchanged(metadata=empty, spec={"cpu": "1"})


async def test_null_and_empty_in_a_built_in_kind(world):
    web = await world("Deployment")
    wanted = deployment(env=[], args=None, command=[], resources={})
    wanted["spec"]["template"]["metadata"]["creationTimestamp"] = None
    await web.applied(**wanted)
    assert await web.unchanged(base=wanted, **wanted)


async def test_secrets_that_are_written_as_text(world):
    secret = await world("Secret")
    await secret.applied(stringData={"password": "one"})
    assert await secret.unchanged(stringData={"password": "one"})
    merge = await secret.ask(stringData={"password": "two"})
    assert (paths(merge), merge.merged["data"]) == ([".data.password"], {"password": "dHdv"})


# --- objects that other tools made ---------------------------------------------------------------------------------


async def test_fields_of_client_side_apply_go_with_git(world):
    config = await world("ConfigMap")
    body = {"data": {"old": "1", "kept": "2"}}
    annotation = {LAST_APPLIED[-1][2:]: json.dumps(config.manifest(**body))}
    await config.do("kubectl-client-side-apply", "create", {**body, "metadata": {"annotations": annotation}})
    merge = await config.ask(data={"kept": "2"})
    assert merge.takeover
    assert merge.merged["data"] == {"kept": "2"}
    assert "annotations" not in merge.merged["metadata"]
    assert {change.reason for change in merge.changes} == {Reason.ADOPT}


async def test_a_real_client_side_apply_is_taken_over(world, kubectl, namespace):
    config = await world("ConfigMap")
    kubectl.apply(config.manifest(data={"old": "1", "kept": "2"}), "--namespace", namespace)
    assert (await config.ask(data={"kept": "2"})).merged["data"] == {"kept": "2"}


MAKERS = ("kubectl-create", "helm", "kubectl-edit", "kubectl-replace")


@pytest.mark.parametrize("maker", MAKERS)
async def test_fields_of_objects_that_were_created_go_with_git(world, maker):
    config = await world("ConfigMap")
    await config.do(maker, "create", {"data": {"old": "1", "kept": "2"}})
    assert (await config.ask(data={"kept": "2"})).merged["data"] == {"kept": "2"}


APPLIERS = ("kustomize-controller", "helm", "argocd-controller", "kubectl", "kapp", "configsync")


@pytest.mark.parametrize("applier", APPLIERS)
async def test_fields_that_other_tools_applied_go_with_git(world, applier):
    web = await world("Deployment")
    theirs = deployment(env=[{"name": "OLD", "value": "1"}, {"name": "KEPT", "value": "2"}])
    await web.do(applier, "apply", {**theirs, "metadata": {"labels": {"old": "1", "kept": "2"}}})
    ours = deployment(env=[{"name": "KEPT", "value": "2"}])
    merge = await web.ask(metadata={"labels": {"kept": "2"}}, **ours)
    assert applier not in {entry["manager"] for entry in (await web.live())["metadata"]["managedFields"]}
    assert merge.merged["metadata"]["labels"] == {"kept": "2"}
    assert [one["name"] for one in merge.merged["spec"]["template"]["spec"]["containers"][0]["env"]] == ["KEPT"]


async def test_fields_of_another_operator_stay(world):
    config = await world("ConfigMap")
    await config.do("operator", "create", {"data": {"theirs": "1"}})
    merge = await config.ask(data={"ours": "2"})
    assert (merge.takeover, merge.merged["data"]) == ((), {"theirs": "1", "ours": "2"})


# --- conflicts -----------------------------------------------------------------------------------------------------


async def test_an_autoscalers_replicas_are_left_alone_and_the_rest_is_managed(world):
    web = await world("Deployment")
    await web.applied(**deployment(replicas=2))
    step = Step("scale", "hpa", {"spec": {"replicas": 7}})
    assert await tell(web.client, web.subject, "one", step)
    merge = await web.ask(policy=ConflictPolicy.YIELD, **deployment(replicas=2, image="nginx:2"))
    assert merge.merged["spec"]["replicas"] == 7
    assert [(str(one.path), one.manager, one.live, one.desired) for one in merge.conflicts] == [
        (".spec.replicas", "hpa", 7, 2)
    ]
    assert paths(merge) == ['.spec.template.spec.containers[name="web"].image']


async def test_an_ignored_field_stays_though_only_we_own_it(world):
    web = await world("Deployment")
    await web.applied(**deployment(replicas=5))
    merge = await web.ask(ignores=(IgnoreRule.parse("/spec/replicas"),), **deployment(replicas=1))
    assert merge.merged["spec"]["replicas"] == 5


async def test_the_same_value_is_shared_without_a_conflict(world):
    config = await world("ConfigMap")
    await config.do("other", "apply", {"data": {"k": "v"}})
    merge = await config.ask(data={"k": "v"})
    assert (merge.verdict, merge.changes, merge.conflicts) == (Verdict.DIFFERENT, (), ())


# --- what the oracle found -----------------------------------------------------------------------------------------


async def test_an_object_that_nobody_tracks_is_tracked_from_our_apply_on(world):
    config = await world("ConfigMap")
    await config.applied()
    await config.do("writer", "update", {"metadata": {"annotations": {"a": "b"}}})
    assert (await config.ask()).verdict is Verdict.DIFFERENT


async def test_two_entries_of_one_owner_make_the_server_forget_the_first(world):
    web = await world("Deployment")
    await web.do("writer", "create", deployment(replicas=1))
    assert await tell(web.client, web.subject, "one", Step("scale", "hpa", {"spec": {"replicas": 1}}))
    await web.ask(**deployment(replicas=4))


async def test_a_secrets_data_changes_behind_our_ownership_by_somebodys_string_data(world):
    secret = await world("Secret")
    await secret.applied(data={"a": "", "b": "Yg=="})
    await secret.do("other", "force", {"stringData": {"a": "a"}})
    merge = await secret.ask(data={"a": "", "b": "Yg=="}, base={"data": {"a": "", "b": "Yg=="}})
    assert merge.verdict is Verdict.DIFFERENT


async def test_a_value_that_the_server_drops_leaves_it_to_the_server(world):
    service = await world("Service")
    spec = {"ports": [{"port": 80}], "sessionAffinity": "None", "loadBalancerSourceRanges": []}
    await service.applied(spec=spec)
    assert (await service.ask(spec=spec)).verdict is not Verdict.DIFFERENT


async def test_a_struct_that_went_with_somebodys_last_field_comes_back(world):
    web = await world("Deployment")
    await web.applied(**deployment(securityContext={}))
    await web.do("other", "force", deployment(replicas=None, securityContext={"runAsUser": 1}))
    await web.do("other", "force", deployment(replicas=None))
    wanted = deployment(securityContext={})
    assert (await web.ask(base=wanted, **wanted)).verdict is not Verdict.SAME


async def test_a_struct_stated_empty_goes_where_only_an_empty_list_is_left_in_it(world):
    shop = await world("Bazaar")
    await shop.applied(spec={})
    assert (await shop.live())["spec"] == {"size": 3, "names": []}
    assert "spec" not in (await shop.ask(spec={})).merged


async def test_an_empty_default_in_a_crd_is_kept(world, namespace):
    crds = await world("CustomResourceDefinition")
    crd = crd_of(f"T{namespace.replace('-', '')}", {"names": {"type": "array", "items": TEXT, "default": []}})
    crds.name = crd["metadata"]["name"]
    await crds.applied(spec=crd["spec"])
    changed = {**crd["spec"], "names": {**crd["spec"]["names"], "shortNames": [f"s{namespace[-8:].replace('-', '')}"]}}
    (version,) = (await crds.ask(spec=changed)).merged["spec"]["versions"]
    openapi = version["schema"]["openAPIV3Schema"]
    assert openapi["properties"]["spec"]["properties"]["names"]["default"] == []


async def test_an_empty_list_that_the_server_fills_is_unsure(world):
    policy = await world("NetworkPolicy")
    spec = {"podSelector": {}, "policyTypes": []}
    await policy.applied(spec=spec)
    assert (await policy.ask(spec=spec)).verdict is Verdict.UNSURE
    assert await policy.unchanged(spec=spec, base={"spec": spec})


async def test_the_servers_own_field_sets_survive_a_round_trip(world):
    web = await world("Deployment")
    await web.applied(**deployment(ports=[{"containerPort": 80}], env=[{"name": "A<&>", "value": "ü"}]))
    await web.do("kubectl-edit", "patch", {"spec": {"paused": True}})
    for entry in (await web.live())["metadata"]["managedFields"]:
        assert json.dumps(FieldSet.of_wire(entry["fieldsV1"]).to_wire()) == json.dumps(entry["fieldsV1"])


@pytest.mark.parametrize("more", [[], [{"name": "admin", "port": 9000}]], ids=["alone", "among others"])
async def test_a_service_port_renumbered_by_hand_goes(world, more):
    web = await world("Service")
    ports = [{"name": "http", "port": 80}, *more]
    spec = {"selector": {"app": "one"}, "ports": ports}
    await web.applied(spec=spec)
    await web.do("kubectl-edit", "patch", {"spec": {"ports": [{"name": "http", "port": 8080}, *more]}})
    merge = await web.ask(spec=spec)
    assert [port["port"] for port in merge.merged["spec"]["ports"] if port["name"] == "http"] == [80]
    assert {one.manager for one in merge.changes if "8080" in str(one.path)} == {"kubectl-edit"}


async def test_what_another_manager_put_into_a_map_that_we_own_empty_is_left_alone_where_ignored(world):
    bazaar = await world("Bazaar")
    await bazaar.applied(spec={"free": {"q": {}}})
    await bazaar.do("kubectl-edit", "update", {"spec": {"free": {"q": {"t": [1]}}}})
    merge = await bazaar.ask(ignores=(IgnoreRule.parse(".spec.free"),), spec={"free": {"q": {"t": [], "r": {}}}})
    assert merge.merged["spec"]["free"] == {"q": {"t": [1]}}


async def test_the_count_of_templates_that_only_the_server_writes_is_no_change_to_show(world):
    """Who created a DaemonSet by an update owns that annotation, and so do we once we took it over."""
    one = await world("DaemonSet")
    template = {"metadata": {"labels": {"app": "w"}}, "spec": {"containers": [{"name": "w", "image": "nginx"}]}}
    spec = {"selector": {"matchLabels": {"app": "w"}}, "template": template}
    await one.do("helm", "create", {"metadata": {"annotations": {"a": "1", "b": "2"}}, "spec": spec})
    await one.ask(metadata={"annotations": {"a": "1"}}, spec=spec)
    owned = (await one.live())["metadata"]["managedFields"]
    assert [entry["manager"] for entry in owned if "deprecated.daemonset" in str(entry)] == [US]
    merge = await one.ask(metadata={"annotations": {"a": "1"}}, spec=spec)
    assert [str(each.path) for each in merge.changes if "annotations" in str(each.path)] == [".metadata.annotations.b"]
    merge = await one.ask(spec=spec)
    assert {str(each.path) for each in merge.changes if "annotations" in str(each.path)} == {
        ".metadata.annotations.a",
        ".metadata.annotations.b",
    }


@pytest.mark.parametrize("direction", ["scaleUp", "scaleDown"])
async def test_how_an_autoscaler_scales_by_default_is_no_change_to_show(world, direction):
    one = await world("HorizontalPodAutoscaler")
    target = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "w"}, "maxReplicas": 5}
    await one.applied(spec={**target, "behavior": {direction: {}}})
    merge = await one.ask(spec={**target, "behavior": {direction: {"selectPolicy": "Min"}}})
    assert [str(each.path) for each in merge.changes] == [f".spec.behavior.{direction}.selectPolicy"]
    other = {"scaleUp": "scaleDown", "scaleDown": "scaleUp"}[direction]
    default = (await one.live())["spec"]["behavior"][other]
    assert (await one.ask(spec={**target, "behavior": {other: default}})).changes == ()
    await one.applied(spec={**target, "behavior": {direction: default}})
    merge = await one.ask(spec={**target, "behavior": {direction: {}}})
    assert any(str(each.path).startswith(f".spec.behavior.{direction}") for each in merge.changes)
