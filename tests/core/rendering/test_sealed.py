"""What came out of encrypted files is marked, and hidden with what it replaces."""

from kubectl_reconcile.core.manifests.encrypted import SopsFormat, format_of
from kubectl_reconcile.core.manifests.parse import VariableUse, parse
from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.core.planning.plan import Change, Op, Provenance
from kubectl_reconcile.core.rendering.sealed import name_of, with_seals
from kubectl_reconcile.core.ssa.merge import FieldChange, Reason
from kubectl_reconcile.views.masking import masked

PLAIN = "kind: ConfigMap\napiVersion: v1\nmetadata: {name: web}\ndata: {a: %s, b: shown}\n"


def test_a_value_is_marked_by_its_place_however_short_it_is():
    plain, other = (PLAIN % each for each in ("'1'", "'6x'"))
    told = with_seals(parse(plain.encode(), "x.yaml"), plain.encode(), other.encode(), plain.encode(), "x.yaml")
    [use] = told.manifests[0].uses
    assert (use.steps, use.names, use.secret) == (("data", "a"), ("SOPS x.yaml",), True)


def test_what_an_encrypted_file_no_longer_has_is_hidden():
    ref = ObjectRef("", "ConfigMap", "shop", "web")
    use = VariableUse(("data", "a"), (name_of("x.yaml"),), secret=True, texts=("hidden-value",))
    before, after = {"data": {"a": "earlier-value", "gone": "gone-value"}}, {"data": {"a": "hidden-value"}}
    fields = (
        FieldChange(("f:data", "f:a"), "replace", "earlier-value", "hidden-value", Reason.GIT),
        FieldChange(("f:data", "f:gone"), "remove", "gone-value", None, Reason.GIT),
    )
    change = Change(
        ref, Op.UPDATE, before=before, after=after, fields=fields, provenance=Provenance("x.yaml", 1, uses=(use,))
    )
    said = str(masked(change))
    assert not any(each in said for each in ("earlier-value", "gone-value"))
    assert "hidden-value" not in str(masked(change).after)


def test_a_file_counts_as_encrypted_as_soon_as_it_looks_so():
    assert format_of("a.yaml", b"a: ENC[AES256_GCM,x]\nsops:\n  age: []\n") is SopsFormat.YAML
    assert format_of("a.yaml", b"# sops encrypts this with a mac\na: b\n") is None
    assert format_of("a.env", b"A=b\nsops_mac=x\n") is SopsFormat.DOTENV
    assert format_of("token", b'{"data": "ENC[AES256_GCM,x]", "sops": {"mac": "x"}}') is SopsFormat.BINARY
