"""Who owns which fields, read by today's schema: what became atomic since, and which parents go with the last field."""

import copy

import pytest
from strategies import CRD

from kubectl_reconcile.core.ssa.fieldset import FieldSet
from kubectl_reconcile.core.ssa.ownership import reconciled, with_named_fields
from kubectl_reconcile.core.ssa.schema import UNKNOWN, schema_of_crd

TEXT = {"type": "string"}
ATOM = {"type": "object", "additionalProperties": TEXT, "x-kubernetes-map-type": "atomic"}
ITEM = {"type": "object", "properties": {"name": TEXT, "atom": ATOM}}
LISTED = {
    "type": "array",
    "items": ITEM,
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
}


def with_atoms():
    """The schema of a Thing with atoms in maps, in items and in objects."""
    crd = copy.deepcopy(CRD)
    fields = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    fields["atoms"] = {"type": "object", "additionalProperties": ATOM}
    fields["plains"] = {"type": "object", "additionalProperties": {"type": "array", "items": TEXT}}
    fields["items"] = LISTED
    fields["inner"] = {"type": "object", "properties": {"atom": ATOM, "text": TEXT}}
    return schema_of_crd(crd, "v1").root


ROOT = with_atoms()
SPEC, WEB = "f:spec", 'k:{"name":"web"}'


def texts(fields):
    return [*map(str, fields)]


MADE_ATOMIC = {
    "a map": ([(SPEC, "f:atom", "f:a"), (SPEC, "f:atom", "f:b")], [".spec.atom"]),
    "a list": ([(SPEC, "f:plain", 'v:"a"')], [".spec.plain"]),
    "a map within an object, of which the rest stays": (
        [(SPEC, "f:inner", "f:atom", "f:a"), (SPEC, "f:inner", "f:text")],
        [".spec.inner.atom", ".spec.inner.text"],
    ),
    "the maps of a map": ([(SPEC, "f:atoms", "f:x", "f:a")], [".spec.atoms.x"]),
    "the lists of a map": ([(SPEC, "f:plains", "f:x", 'v:"a"')], [".spec.plains.x"]),
    "a map in an item, of which the rest stays": (
        [(SPEC, "f:items", WEB), (SPEC, "f:items", WEB, "f:name"), (SPEC, "f:items", WEB, "f:atom", "f:a")],
        ['.spec.items[name="web"]', '.spec.items[name="web"].atom', '.spec.items[name="web"].name'],
    ),
}


@pytest.mark.parametrize(("owned", "read"), MADE_ATOMIC.values(), ids=MADE_ATOMIC)
def test_who_owned_a_part_owns_the_whole_of_what_the_schema_made_atomic_since(owned, read):
    assert texts(reconciled(FieldSet.of(owned), ROOT)) == read


AS_IT_IS = {
    "an atom that is owned whole": [(SPEC, "f:atom"), (SPEC, "f:plain")],
    "entries of a granular map": [(SPEC, "f:table", "f:a"), (SPEC, "f:table", "f:b")],
    "items of a set": [(SPEC, "f:names", 'v:"a"')],
    "items of a list, and what is in them": [(SPEC, "f:items", WEB), (SPEC, "f:items", WEB, "f:name")],
    "what nobody describes, however deep": [(SPEC, "f:free", "f:a", "f:b", "f:c"), (SPEC, "f:free", "f:a", "f:b")],
    "a field that the schema doesn't know": [("f:what", "f:a")],
    "what is below a text": [(SPEC, "f:text", "f:a")],
    "nothing": [],
}


@pytest.mark.parametrize("owned", AS_IT_IS.values(), ids=AS_IT_IS)
def test_owners_are_read_as_they_are_of(owned):
    fields = FieldSet.of(owned)
    assert reconciled(fields, ROOT) is fields


def test_where_the_schema_is_unknown_owners_are_read_as_they_are():
    fields = FieldSet.of([(SPEC, "f:atom", "f:a"), (SPEC, "f:items", WEB, "f:name")])
    assert reconciled(fields, UNKNOWN.root) is fields


PARENTS = {
    "an object above a field": ([(SPEC, "f:text")], [".spec", ".spec.text"]),
    "all objects above it": (
        [(SPEC, "f:inner", "f:atom")],
        [".spec", ".spec.inner", ".spec.inner.atom"],
    ),
    "a declared map above its entry, but no entry above what is in it": (
        [(SPEC, "f:atoms", "f:x", "f:a")],
        [".spec", ".spec.atoms", ".spec.atoms.x.a"],
    ),
    "a list above its item, but no item above its field": (
        [(SPEC, "f:items", WEB, "f:name")],
        [".spec", ".spec.items", '.spec.items[name="web"].name'],
    ),
    "an object in an item above its field": (
        [(SPEC, "f:items", WEB, "f:atom", "f:a")],
        [".spec", ".spec.items", '.spec.items[name="web"].atom', '.spec.items[name="web"].atom.a'],
    ),
    "nothing above what nobody describes": (
        [(SPEC, "f:free", "f:a", "f:b")],
        [".spec", ".spec.free", ".spec.free.a.b"],
    ),
    "no field that the schema doesn't know": ([("f:what", "f:a")], [".what.a"]),
    "no parent twice": ([(SPEC,), (SPEC, "f:text")], [".spec", ".spec.text"]),
}


@pytest.mark.parametrize(("fields", "found"), PARENTS.values(), ids=PARENTS)
def test_with_named_fields_comes(fields, found):
    assert texts(with_named_fields(FieldSet.of(fields), ROOT)) == found
