"""Taking over what tools without server-side apply made: whose fields become ours, and what is left to whom."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import CRD, SCHEMA, entry, field_sets

from kubectl_reconcile.core.ssa.csa_upgrade import (
    CLIENT_SIDE_MANAGERS,
    TakeOver,
    handed_over,
    managers_to_take_over,
    rebased,
    renumbered_ports,
    taken_over,
)
from kubectl_reconcile.core.ssa.fieldset import FieldSet
from kubectl_reconcile.core.ssa.managed_fields import takeover_patch
from kubectl_reconcile.core.ssa.schema import schema_of_crd

US = "kubectl-reconcile"
LAST_APPLIED = ("f:metadata", "f:annotations", "f:kubectl.kubernetes.io/last-applied-configuration")
TEXT, SIZE, FLAG = ("f:spec", "f:text"), ("f:spec", "f:size"), ("f:spec", "f:flag")


def owned(manager, *paths, operation="Update", **more):
    return entry(manager, FieldSet.of(paths), operation=operation, **more)


def applied(manager, *paths, **more):
    return owned(manager, *paths, operation="Apply", **more)


def live(*entries, version="7"):
    return {"metadata": {"name": "one", "resourceVersion": version, "managedFields": list(entries)}}


def fields(entries):
    """Who owns what, as a reader of managedFields sees it."""
    return [(each["manager"], each["operation"], [*map(str, FieldSet.of_wire(each["fieldsV1"]))]) for each in entries]


WHO = {
    "nobody, where there is no owner": (live(), ()),
    "kubectl create": (live(owned("kubectl-create", TEXT)), ("kubectl-create",)),
    "Helm": (live(owned("helm", TEXT)), ("helm",)),
    "whoever was there before anybody applied": (live(owned("before-first-apply", TEXT)), ("before-first-apply",)),
    "all of them, by name": (live(owned("kubectl-edit", TEXT), owned("helm", SIZE)), ("helm", "kubectl-edit")),
    "kubectl apply under any name": (live(owned("my-script", LAST_APPLIED)), ("my-script",)),
    "no controller": (live(owned("kube-controller-manager", SIZE)), ()),
    "Helm 4, which applies server-side": (live(applied("helm", TEXT)), ("helm",)),
    "Flux and Argo CD": (
        live(applied("kustomize-controller", TEXT), applied("argocd-controller", SIZE)),
        ("argocd-controller", "kustomize-controller"),
    ),
    "nobody unknown who applies server-side": (live(applied("operator", TEXT)), ()),
    "no applier, once we have applied": (live(applied(US, TEXT), applied("helm", SIZE)), ()),
    "nobody who writes a subresource": (live(owned("kubectl-edit", TEXT, subresource="status")), ()),
    "nobody by name, once we have applied": (live(applied(US, TEXT), owned("kubectl-edit", SIZE)), ()),
    "kubectl apply, though we have applied": (
        live(applied(US, TEXT), owned("kubectl-client-side-apply", LAST_APPLIED), owned("helm", SIZE)),
        ("kubectl-client-side-apply",),
    ),
    "by name, while we have only applied a status": (
        live(applied(US, TEXT, subresource="status"), owned("helm", SIZE)),
        ("helm",),
    ),
    "nobody for an annotation of another name": (live(owned("my-script", LAST_APPLIED[:2])), ()),
    "nobody for an entry without fields": (live({**owned("my-script"), "fieldsV1": None}), ()),
}


@pytest.mark.parametrize(("obj", "managers"), WHO.values(), ids=WHO)
def test_taken_over_is(obj, managers):
    assert managers_to_take_over(obj, US) == managers


def test_an_object_without_managed_fields_has_nobody_to_take_over_from():
    assert managers_to_take_over({"metadata": {"name": "one"}}, US) == ()
    assert taken_over({"metadata": {"name": "one"}}, ["helm"], US) == []


@pytest.mark.parametrize("manager", sorted(CLIENT_SIDE_MANAGERS))
def test_tools_that_write_whole_manifests_are_known_by_name(manager):
    assert managers_to_take_over(live(owned(manager, TEXT)), US) == (manager,)


def test_others_may_be_told_as_well():
    made = live(owned("terraform", TEXT), owned("helm", SIZE))
    assert managers_to_take_over(made, US, TakeOver(also=("terraform",))) == ("helm", "terraform")
    assert managers_to_take_over(made, US, TakeOver(also=("terraform",), never=("helm",))) == ("terraform",)


def test_who_is_kept_out_keeps_even_what_client_side_apply_wrote():
    made = live(owned("my-script", LAST_APPLIED), applied("helm", TEXT))
    assert managers_to_take_over(made, US, TakeOver(never=("my-script",))) == ("helm",)
    assert managers_to_take_over(made, US, TakeOver(never=("*",))) == ()


BECOMES = {
    "their entry becomes ours": ([owned("helm", TEXT)], [(US, "Apply", [".spec.text"])]),
    "theirs joins ours": (
        [applied(US, SIZE), owned("helm", TEXT)],
        [(US, "Apply", [".spec.size", ".spec.text"])],
    ),
    "theirs joins ours, whichever comes first": (
        [owned("helm", TEXT), applied(US, SIZE)],
        [(US, "Apply", [".spec.size", ".spec.text"])],
    ),
    "theirs at another version only goes": (
        [applied(US, SIZE), owned("helm", TEXT, api_version="example.com/v2")],
        [(US, "Apply", [".spec.size"])],
    ),
    "of two, the one at our version joins": (
        [applied(US, SIZE), owned("helm", FLAG, api_version="example.com/v2"), owned("helm", TEXT)],
        [(US, "Apply", [".spec.size", ".spec.text"])],
    ),
    "of two at our version the first joins, as the server has it": (
        [applied(US, SIZE), owned("helm", TEXT), owned("helm", FLAG)],
        [(US, "Apply", [".spec.size", ".spec.text"])],
    ),
    "others stay as they are": (
        [owned("hpa", SIZE), owned("helm", TEXT), applied("other", FLAG)],
        [("hpa", "Update", [".spec.size"]), (US, "Apply", [".spec.text"]), ("other", "Apply", [".spec.flag"])],
    ),
    "what it wrote to a subresource stays its own": (
        [owned("helm", TEXT), owned("helm", FLAG, subresource="status")],
        [(US, "Apply", [".spec.text"]), ("helm", "Update", [".spec.flag"])],
    ),
    "what it applied goes with what it updated": (
        [applied("helm", FLAG), owned("helm", TEXT)],
        [(US, "Apply", [".spec.flag", ".spec.text"])],
    ),
    "what we applied to a subresource isn't joined": (
        [applied(US, FLAG, subresource="status"), owned("helm", TEXT)],
        [(US, "Apply", [".spec.flag"]), (US, "Apply", [".spec.text"])],
    ),
    "what we updated isn't joined": (
        [owned(US, FLAG), owned("helm", TEXT)],
        [(US, "Update", [".spec.flag"]), (US, "Apply", [".spec.text"])],
    ),
    "nothing changes where it owns nothing": ([applied(US, SIZE)], [(US, "Apply", [".spec.size"])]),
}


@pytest.mark.parametrize(("before", "after"), BECOMES.values(), ids=BECOMES)
def test_when_helm_is_taken_over(before, after):
    assert fields(taken_over(live(*before), ["helm"], US)) == after


def test_several_are_taken_over_at_once():
    obj = live(owned("kubectl-edit", FLAG), owned("helm", TEXT))
    assert fields(taken_over(obj, {"kubectl-edit", "helm"}, US)) == [(US, "Apply", [".spec.flag", ".spec.text"])]


def test_time_and_version_stay_those_of_the_entry_that_becomes_ours():
    (becomes,) = taken_over(
        live(owned("helm", TEXT, time="2020-01-01T00:00:00Z", api_version="example.com/v0")), ["helm"], US
    )
    assert (becomes["time"], becomes["apiVersion"], becomes["fieldsType"]) == (
        "2020-01-01T00:00:00Z",
        "example.com/v0",
        "FieldsV1",
    )


managers = st.sampled_from([US, "helm", "kubectl-edit", "hpa"])
entries = st.lists(
    st.builds(
        lambda manager, of, operation: entry(manager, of, operation=operation),
        managers,
        field_sets,
        st.sampled_from(["Apply", "Update"]),
    ),
    max_size=4,
    unique_by=lambda each: (each["manager"], each["operation"]),
)


@given(entries)
def test_after_a_takeover_there_is_nobody_left_to_take_over_from(found):
    obj = live(*found)
    after = taken_over(obj, managers_to_take_over(obj, US), US)
    assert managers_to_take_over(live(*after), US) == ()


@given(entries)
def test_no_field_loses_its_owner_by_a_takeover(found):
    obj = live(*found)
    kept = repr(obj)
    after = taken_over(obj, managers_to_take_over(obj, US), US)
    assert _all_of(after) == _all_of(found)
    assert repr(obj) == kept


def _all_of(found):
    union = FieldSet()
    for each in found:
        union |= FieldSet.of_wire(each["fieldsV1"])
    return union


# --- ports that were renumbered by hand ---

PORTS = SCHEMA.root
PORT = 'k:{"port":%d,"protocol":"%s"}'


def thing(*ports, **more):
    return {"spec": {"ports": list(ports), **more}}


def port(number, name=None, protocol=None):
    return {"port": number} | ({"name": name} if name else {}) | ({"protocol": protocol} if protocol else {})


RENUMBERED = {
    "a port under the same name": (thing(port(80, "web")), thing(port(81, "web")), [81]),
    "a port beside one that is as it was": (
        thing(port(80, "web"), port(90, "admin")),
        thing(port(80, "web"), port(91, "admin")),
        [91],
    ),
    "no port that is as it was": (thing(port(80, "web")), thing(port(80, "web")), []),
    "no port of another name": (thing(port(80, "web")), thing(port(81, "admin")), []),
    "no port without a name": (thing(port(80)), thing(port(81)), []),
    "no port that is there twice by different protocols": (
        thing(port(80, "web", "TCP")),
        thing(port(80, "web", "TCP"), port(80, "dns", "UDP")),
        [],
    ),
    "nothing where there are no ports": (thing(), thing(port(80, "web")), []),
    "nothing where nothing is asked for": ({}, thing(port(80, "web")), []),
    "nothing where no list is": ({"spec": {"ports": None}}, thing(port(80, "web")), []),
    "nothing where the live one has no list": (thing(port(80, "web")), {"spec": {"ports": None}}, []),
    "nothing in plain lists": ({"spec": {"plain": ["a"]}}, {"spec": {"plain": ["b"]}}, []),
    "nothing in fields that nobody declares": ({"what": {"ports": []}}, {"what": {"ports": [port(1, "web")]}}, []),
}


@pytest.mark.parametrize(("wanted", "found", "numbers"), RENUMBERED.values(), ids=RENUMBERED)
def test_renumbered_is(wanted, found, numbers):
    paths = list(renumbered_ports(wanted, found, PORTS))
    assert paths == [("f:spec", "f:ports", PORT % (number, "TCP")) for number in numbers]


def test_ports_of_containers_are_found_below_their_names():
    properties = CRD["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    container = {"type": "object", "properties": {"name": {"type": "string"}, "ports": properties["ports"]}}
    listed = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": container,
    }
    crd = copy.deepcopy(CRD)
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] = {"containers": listed}
    wanted, found = (
        {"spec": {"containers": [{"name": "a"}, {"name": "b", "ports": [port(number, "web")]}]}} for number in (80, 81)
    )
    paths = list(renumbered_ports(wanted, found, schema_of_crd(crd, "v1").root))
    assert paths == [("f:spec", "f:containers", 'k:{"name":"b"}', "f:ports", PORT % (81, "TCP"))]


def test_a_renumbered_port_becomes_ours_and_leaves_who_edited_it():
    number = ("f:spec", "f:ports", PORT % (81, "TCP"))
    edited = owned("kubectl-edit", TEXT, number, (*number, "f:port"), (*number, "f:name"))
    ours = applied(US, SIZE)
    moved = handed_over([ours, edited], FieldSet.of([number]), US)
    assert fields(moved) == [
        (US, "Apply", ['.spec.ports[port=81,protocol="TCP"]', ".spec.size"]),
        ("kubectl-edit", "Update", [".spec.text"]),
    ]


def test_who_owns_nothing_any_more_is_no_owner_any_more():
    number = ("f:spec", "f:ports", PORT % (81, "TCP"))
    moved = handed_over([owned("kubectl-edit", number)], FieldSet.of([number]), US)
    assert moved == []


def test_what_others_applied_stays_theirs_when_a_port_is_handed_over():
    number = ("f:spec", "f:ports", PORT % (81, "TCP"))
    theirs = applied("other", number)
    assert handed_over([theirs], FieldSet.of([number]), US) == [theirs]


# --- the patch ---


def test_the_patch_holds_only_for_the_object_that_was_looked_at():
    found = [owned("helm", TEXT)]
    assert takeover_patch(live(version="42"), found) == (
        {"op": "replace", "path": "/metadata/managedFields", "value": found},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": "42"},
    )
    assert takeover_patch({"metadata": {}}, found)[1]["value"] == ""


def test_a_patch_goes_on_when_only_a_status_was_written_meanwhile():
    helm = owned("helm", TEXT)
    old, new = (owned("kubelet", FLAG, subresource="status", time=f"2026-01-0{day}T00:00:00Z") for day in (1, 2))
    before, now = live(helm, old), live(helm, new, version="8")
    patch = takeover_patch(before, taken_over(before, ["helm"], US))
    assert rebased(patch, before, now) == takeover_patch(now, [*taken_over(live(helm), ["helm"], US), new])


def test_a_patch_is_dropped_when_somebody_else_took_a_field_meanwhile():
    before, now = live(owned("helm", TEXT)), live(owned("helm", TEXT), owned("hpa", SIZE))
    assert rebased(takeover_patch(before, []), before, now) == ()


def test_a_patch_is_rebased_on_an_object_that_nobody_tracks_any_more():
    bare = {"metadata": {"name": "one"}}
    assert rebased(takeover_patch(bare, []), bare, bare) == takeover_patch(bare, [])
