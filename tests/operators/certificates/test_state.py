"""What facts say about the Secrets with certificates, and what they will say after a step."""

import pytest

from kubectl_reconcile.core.module.inputs import Context
from kubectl_reconcile_operators.certificates.decision import CertificateDo
from kubectl_reconcile_operators.certificates.outlook import after_issuing
from kubectl_reconcile_operators.certificates.state import (
    CertificateKind,
    OwnAuthority,
    OwnCertificate,
    OwnTls,
    SecretState,
    own_tls_of,
    secret_names,
    trust_of,
)

CTX = Context("2026-11-20T12:00:00Z", "store", {"metadata": {"name": "db", "namespace": "shop"}})
MEMBER, OPERATOR = CertificateKind("of members", is_of_members=True), CertificateKind("of the operator", can_wait=True)
KINDS = {"member": MEMBER, "operator": OPERATOR}
CA = {"state": "ok", "signer": "a", "until": "2036-11-20T12:00:00Z", "upcoming": "b", "trusted": ["b", "a"]}
OF_MEMBER = {
    "state": "ok", "issuer": "a", "since": "2026-11-20T11:55:00Z", "until": "2027-02-18T12:00:00Z", "trusted": ["a"],
}  # fmt: skip


def test_secrets_are_called_by_the_custom_resource_and_the_kind():
    assert secret_names(KINDS, CTX) == {"ca": "db-ca", "member": "db-member", "operator": "db-operator"}


def test_all_that_facts_say_is_known():
    broken = {"state": "broken", "why": "its key is damaged"}
    assert own_tls_of(KINDS, {"tls": {"ca": CA, "member": OF_MEMBER, "operator": broken}}, CTX) == OwnTls(
        OwnAuthority("db-ca", SecretState.OK, "", "a", "2036-11-20T12:00:00Z", "b", frozenset({"a", "b"})),
        (
            OwnCertificate(
                "member", "db-member", MEMBER, SecretState.OK, "", "a", "2026-11-20T11:55:00Z", "2027-02-18T12:00:00Z", frozenset({"a"}),
            ),
            OwnCertificate("operator", "db-operator", OPERATOR, SecretState.BROKEN, "its key is damaged"),
        ),
    )  # fmt: skip
    assert own_tls_of({}, {"tls": {"ca": {**CA, **broken}}}, CTX).authority.why == "its key is damaged"


def test_a_secret_that_facts_dont_mention_isnt_there():
    found = own_tls_of(KINDS, {}, CTX)
    assert found.authority == OwnAuthority("db-ca", SecretState.ABSENT, "", "", "", "", frozenset())
    assert [each.state for each in found.certificates] == [SecretState.ABSENT] * 2
    assert found == own_tls_of(KINDS, {"tls": {"ca": {}, "member": None}}, CTX)


def test_secrets_of_somebody_else_are_told_apart():
    mine = OwnCertificate("member", "db-member", MEMBER, SecretState.OK, issuer="a")
    theirs = OwnCertificate("operator", "db-operator", OPERATOR, SecretState.FOREIGN)
    tls = OwnTls(OwnAuthority("db-ca", SecretState.FOREIGN), (mine, theirs))
    assert (tls.own, tls.taken) == ((mine,), ("db-ca", "db-operator"))


def test_who_can_wait_cuts_nobody_off():
    certificates = (
        OwnCertificate("member", "db-member", MEMBER, SecretState.OK, issuer="a"),
        OwnCertificate("other", "db-other", MEMBER),
        OwnCertificate("operator", "db-operator", OPERATOR, SecretState.OK, issuer="b"),
    )
    assert OwnTls(OwnAuthority("db-ca"), certificates).signers == {"a"}


def test_what_a_pod_trusts_is_one_line_whatever_the_order():
    assert trust_of({"tls": {"member": {"trusted": ["b", "a"]}}}, "member") == "a,b"
    assert trust_of({}, "member") == ""


# --- what follows from a step ---------------------------------------------------------------------

KNOWN = {"ca": CA, "member": OF_MEMBER}
AFTER = {
    "a certificate is issued by the signer": (
        KNOWN, CertificateDo.ISSUE, "operator", {"state": "ok", "issuer": "a", "trusted": ["b", "a"]},
    ),
    "a certificate is issued again, and what was known of it is gone": (
        KNOWN, CertificateDo.ISSUE, "member", {"state": "ok", "issuer": "a", "trusted": ["b", "a"]},
    ),
    "a certificate of no authority": ({}, CertificateDo.ISSUE, "member", {"state": "ok", "issuer": "", "trusted": []}),
    "a Secret trusts what the authority does": (
        KNOWN, CertificateDo.TRUST, "member", {**OF_MEMBER, "trusted": ["b", "a"]},
    ),
    "a Secret trusts nothing without an authority": ({}, CertificateDo.TRUST, "member", {"trusted": []}),
    "the first authority signs": (
        {}, CertificateDo.MAKE_AUTHORITY, "ca", {"state": "ok", "signer": "new-1", "upcoming": "", "until": "", "trusted": ["new-1"]},
    ),
    "an authority that is made again is trusted beside those that are": (
        {"member": {"state": "broken", "trusted": ["z", "c"]}, "operator": {"state": "ok", "trusted": ["x"]}, "ca": {"trusted": ["a"]}},
        CertificateDo.MAKE_AUTHORITY, "ca",
        {"state": "ok", "signer": "", "upcoming": "new-1", "until": "", "trusted": ["a", "c", "z", "new-1"]},
    ),
    "what a Secret of somebody else trusts doesn't count": (
        {"member": {"state": "foreign", "trusted": ["c"]}}, CertificateDo.MAKE_AUTHORITY, "ca",
        {"state": "ok", "signer": "new-1", "upcoming": "", "until": "", "trusted": ["new-1"]},
    ),
    "another authority is trusted before it signs": (
        KNOWN, CertificateDo.ADD_AUTHORITY, "ca", {**CA, "upcoming": "new-1", "trusted": ["b", "a", "new-1"]},
    ),
    "each new authority is another one": (
        {"ca": {**CA, "trusted": ["new-1"]}, "member": {"trusted": ["new-2"]}}, CertificateDo.ADD_AUTHORITY, "ca",
        {**CA, "upcoming": "new-3", "trusted": ["new-1", "new-3"]},
    ),
    "the one that follows signs": (KNOWN, CertificateDo.USE_AUTHORITY, "ca", {**CA, "signer": "b", "upcoming": "", "until": ""}),
    "the one that signs is trusted alone": (KNOWN, CertificateDo.DROP_AUTHORITY, "ca", {**CA, "trusted": ["a"]}),
    "where none follows, none signs": (
        {}, CertificateDo.USE_AUTHORITY, "ca", {"signer": "", "upcoming": "", "until": ""},
    ),
    "where none signs, none is trusted": ({}, CertificateDo.DROP_AUTHORITY, "ca", {"trusted": [""]}),
}  # fmt: skip


@pytest.mark.parametrize(("known", "do", "kind", "made"), AFTER.values(), ids=AFTER)
def test_after_a_step(known, do, kind, made):
    assert after_issuing(KINDS, {"tls": known, "other": 1}, do, kind) == {"tls": {**known, kind: made}}


def test_without_facts_the_first_step_makes_some():
    assert after_issuing(KINDS, {}, CertificateDo.ADD_AUTHORITY, "ca") == {
        "tls": {"ca": {"upcoming": "new-1", "trusted": ["new-1"]}}
    }
