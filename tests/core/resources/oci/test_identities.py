"""Who counts without a key: lists of issuers and subjects, and the root that proves who signs."""

from __future__ import annotations

import json
import time

import pytest

from kubectl_reconcile.core.resources.fields import SyncSpecError
from kubectl_reconcile.core.resources.oci.identities import Identities, OidcIdentity, identities_of
from kubectl_reconcile.core.resources.signatures import Signature
from kubectl_reconcile.core.resources.trusted_keys import KeysError
from kubectl_reconcile.core.resources.verification import VerifySpec

AT = "spec.source.oci.verify"
FORGE = "https://forge.example.com/oidc"
TEAM = {"issuer": "^https://forge\\.example\\.com/oidc$", "subject": "^https://forge\\.example\\.com/team/.*$"}
ROOT = json.dumps({"mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1"})

MATCHES = {
    "the very ones": (FORGE, "https://forge.example.com/team/shop", True),
    "another subject": (FORGE, "https://forge.example.com/teams/shop", False),
    "another issuer": ("https://evil.example.com/oidc", "https://forge.example.com/team/shop", False),
    "an issuer with more behind": (f"{FORGE}/x", "https://forge.example.com/team/shop", False),
    "a subject within another": (FORGE, "https://evil.example.com/https://forge.example.com/team/shop", False),
    "a subject on a second line": (FORGE, "https://evil.example.com/\nhttps://forge.example.com/team/shop", False),
    "a subject with a line behind": (FORGE, "https://forge.example.com/team/shop\nevil", False),
    "a subject without end": (FORGE, f"https://forge.example.com/team/{'a' * 5000}", False),
}


@pytest.mark.parametrize(("issuer", "subject", "is_one"), MATCHES.values(), ids=MATCHES)
def test_a_certificate_names_one_of_those_who_count(issuer, subject, is_one):
    trusted = Identities.of({"trusted_root.json": ROOT}, identities_of([TEAM], AT))
    assert trusted.signer_of(issuer, subject) == (Signature(subject, issuer) if is_one else None)


UNANCHORED = {
    "the whole": ("https://forge.example.com/.*", "https://forge.example.com/x", True),
    "a part": ("https://forge.example.com/team", "https://forge.example.com/team/x", False),
    "what comes behind": ("team", "evil-team", False),
    "one of two": ("a|b", "b", True),
    "one of two, and more": ("^a|b$", "ax", False),
    "on any of several lines": ("(?m)^a$", "x\na\nx", False),
}


@pytest.mark.parametrize(("pattern", "text", "is_one"), UNANCHORED.values(), ids=UNANCHORED)
def test_a_whole_text_has_to_match_whatever_the_expression_says(pattern, text, is_one):
    assert OidcIdentity(pattern, ".*").matches(text, "x") is is_one


def test_an_expression_that_goes_back_and_forth_elsewhere_takes_no_time():
    begun = time.monotonic()
    assert not OidcIdentity("(a+)+b", "(x*)*y").matches("a" * 2000, "x" * 2000)
    assert time.monotonic() - begun < 5


def verify(**more):
    return {"matchOIDCIdentity": [TEAM], "trustedRootSecretRef": {"name": "root"}, **more}


def test_who_counts_is_read_with_the_secret_that_has_the_root():
    found = VerifySpec.of(verify(), AT, certificates=True)
    assert found == VerifySpec("Secret", "root", identities=(OidcIdentity(TEAM["issuer"], TEAM["subject"]),))


WRONG = {
    "no root": ({"matchOIDCIdentity": [TEAM]}, "trustedRootSecretRef", "is required beside matchOIDCIdentity"),
    "a root alone": ({"trustedRootSecretRef": {"name": "root"}}, "matchOIDCIdentity", "isn't a list of one to 20"),
    "nobody": (verify(matchOIDCIdentity=[]), "matchOIDCIdentity", "isn't a list of one to 20"),
    "very many": (verify(matchOIDCIdentity=[TEAM] * 21), "matchOIDCIdentity", "isn't a list of one to 20"),
    "no list": (verify(matchOIDCIdentity=TEAM), "matchOIDCIdentity", "isn't a list of one to 20"),
    "no issuer": (verify(matchOIDCIdentity=[{"subject": "x"}]), "matchOIDCIdentity[0].issuer", "is a regular expression"),
    "an empty subject": (verify(matchOIDCIdentity=[TEAM, {**TEAM, "subject": ""}]), "matchOIDCIdentity[1].subject", "is a regular expression"),
    "a long subject": (verify(matchOIDCIdentity=[{**TEAM, "subject": "x" * 513}]), "matchOIDCIdentity[0].subject", "at most 512"),
    "another field": (verify(matchOIDCIdentity=[{**TEAM, "email": "x"}]), "matchOIDCIdentity[0].email", ""),
    "brackets that leave the whole": (verify(matchOIDCIdentity=[{**TEAM, "subject": "a)|(.*"}]), "matchOIDCIdentity[0].subject", "isn't a regular expression"),
    "an expression that is large": (verify(matchOIDCIdentity=[{**TEAM, "subject": "\\w{1000}{1000}"}]), "matchOIDCIdentity[0].subject", "or a very large one"),
    "keys as well": (verify(secretRef={"name": "keys"}), "", "exclude each other"),
}  # fmt: skip


@pytest.mark.parametrize(("fields", "field", "why"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_with_a_list_is_said_with_its_field(fields, field, why):
    with pytest.raises(SyncSpecError) as refused:
        VerifySpec.of(fields, AT, certificates=True)
    assert str(refused.value).startswith(f"{AT}.{field}" if field else AT)
    assert why in str(refused.value)


def test_commits_are_not_signed_so():
    with pytest.raises(SyncSpecError, match="matchOIDCIdentity"):
        VerifySpec.of(verify(), "spec.source.git.verify", modes=True)


ROOTS = {
    "none": ({"cosign.pub": "x"}, "has no entry trusted_root.json"),
    "no JSON": ({"trusted_root.json": "-----BEGIN"}, "is no trusted root of Sigstore"),
    "something else": ({"trusted_root.json": "{}"}, "is no trusted root of Sigstore"),
    "nested without end": ({"trusted_root.json": "[" * 100_000}, "is no trusted root of Sigstore"),
    "very long": ({"trusted_root.json": f'"{"x" * 300_000}"'}, "holds more than 256 KiB"),
}


@pytest.mark.parametrize(("entries", "why"), ROOTS.values(), ids=ROOTS)
def test_a_root_that_is_none_is_said(entries, why):
    with pytest.raises(KeysError, match=why):
        Identities.of(entries, identities_of([TEAM], AT))


def test_another_root_or_another_list_has_another_digest():
    other = {**TEAM, "subject": "x"}
    found = {
        Identities.of({"trusted_root.json": root}, identities_of(listed, AT)).digest
        for root in (ROOT, f"{ROOT} ")
        for listed in ([TEAM], [other], [TEAM, other])
    }
    assert len(found) == 6
