"""Names of what is in registries: which are such, and what they mean."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile.core.resources.credential_scope import Address, CredentialScope
from kubectl_reconcile.core.resources.oci.reference import (
    NoReferenceError,
    OciReference,
    OciRepository,
    tag_of,
    version_of,
)
from kubectl_reconcile.core.resources.url_policy import UrlPolicy

DIGEST = "sha256:" + "0a" * 32

REFERENCES = {
    "a repository": ("oci://registry.example.com/shop", "registry.example.com", "shop", "", ""),
    "a tag": ("oci://registry.example.com/shop/web:1.4", "registry.example.com", "shop/web", "1.4", ""),
    "a digest": (f"oci://registry.example.com/shop@{DIGEST}", "registry.example.com", "shop", "", DIGEST),
    "both": (f"oci://registry.example.com/shop:v1@{DIGEST}", "registry.example.com", "shop", "v1", DIGEST),
    "a port": ("oci://registry.example.com:5000/shop:v1", "registry.example.com:5000", "shop", "v1", ""),
    "an IPv6 address": ("oci://[::1]:5000/shop", "[::1]:5000", "shop", "", ""),
    "a version with a plus": (
        "oci://registry.example.com/shop:1.0.0+b.5",
        "registry.example.com",
        "shop",
        "1.0.0_b.5",
        "",
    ),
    "a host in other letters": ("oci://Registry.Example.com/shop", "registry.example.com", "shop", "", ""),
    "names of all kinds": ("oci://r.example.com/a/b-c/d__e/f.g/h--i", "r.example.com", "a/b-c/d__e/f.g/h--i", "", ""),
}


@pytest.mark.parametrize(("url", "host", "name", "tag", "digest"), REFERENCES.values(), ids=REFERENCES)
def test_a_reference_is_read(url, host, name, tag, digest):
    found = OciReference.of(url)
    assert found == OciReference(OciRepository(host, name), tag, digest)
    assert OciReference.of(str(found)) == found


NONE = {
    "another scheme": "https://registry.example.com/shop",
    "no scheme": "registry.example.com/shop",
    "no name": "oci://registry.example.com",
    "an empty name": "oci://registry.example.com/",
    "no host": "oci:///shop",
    "a user": "oci://me:word@registry.example.com/shop",
    "a name in capitals": "oci://registry.example.com/Shop",
    "a step up": "oci://registry.example.com/shop/../other",
    "an empty step": "oci://registry.example.com/shop//web",
    "a question": "oci://registry.example.com/shop?x=1",
    "an encoded letter": "oci://registry.example.com/sh%6fp",
    "an empty tag": "oci://registry.example.com/shop:",
    "a tag with a slash": "oci://registry.example.com/shop:a/b",
    "two tags": "oci://registry.example.com/shop:a:b",
    "a short digest": "oci://registry.example.com/shop@sha256:0a",
    "another digest": "oci://registry.example.com/shop@sha512:" + "0a" * 64,
    "a port that is none": "oci://registry.example.com:99999/shop",
    "a line end": "oci://registry.example.com/shop\n",
    "a very long name": "oci://registry.example.com/" + "a" * 256,
    "a very long tag": "oci://registry.example.com/shop:" + "a" * 129,
}


@pytest.mark.parametrize("url", NONE.values(), ids=NONE)
def test_what_is_no_reference_is_refused(url):
    with pytest.raises(NoReferenceError):
        OciReference.of(url)


def test_a_repository_has_neither_a_tag_nor_a_digest():
    assert OciRepository.of("oci://registry.example.com/shop").base == "https://registry.example.com/v2/shop"
    assert OciRepository.of("oci://localhost:5000/shop", plain=True).base == "http://localhost:5000/v2/shop"
    with pytest.raises(NoReferenceError, match="has a tag or a digest"):
        OciRepository.of("oci://registry.example.com/shop:v1")


def test_a_chart_is_below_its_repository():
    charts = OciRepository.of("oci://registry.example.com/charts")
    assert str(charts.below("web")) == "oci://registry.example.com/charts/web"
    with pytest.raises(NoReferenceError):
        charts.below("../web")


@given(st.from_regex(r"[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}(-[a-z0-9.]{1,9})?(\+[a-z0-9.]{1,9})?", fullmatch=True))
def test_a_version_is_found_again_in_its_tag(version):
    assert version_of(tag_of(version)) == version


NAMED = {
    "the repository": ("oci://registry.example.com/shop", True),
    "one above": ("oci://registry.example.com", True),
    "the server": ("https://registry.example.com", True),
    "what the registry calls it": ("https://registry.example.com/v2/shop", True),
    "another repository": ("oci://registry.example.com/other", False),
    "a name that begins so": ("oci://registry.example.com/sho", False),
    "another port": ("oci://registry.example.com:5000/shop", False),
    "plain http": ("http://registry.example.com/v2/shop", False),
}


@pytest.mark.parametrize(("named", "covers"), NAMED.values(), ids=NAMED)
def test_a_secret_and_a_policy_name_registries_as_syncs_do(named, covers):
    asked = OciRepository.of("oci://registry.example.com/shop/web")
    assert CredentialScope.of(named).covers(str(asked)) is covers
    assert CredentialScope.of(named).covers(f"{asked.base}/manifests/v1") is covers
    assert UrlPolicy.of([named]).allows(f"{asked.base}/blobs/{DIGEST}") is covers


def test_what_a_registry_has_of_a_name_is_one_address():
    assert str(Address.of("oci://registry.example.com/shop")) == "https://registry.example.com/v2/shop"
