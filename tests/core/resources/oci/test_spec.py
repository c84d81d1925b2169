"""What a Sync says of an artifact in a registry."""

import pytest

from kubectl_reconcile.core.resources.fields import SyncSpecError
from kubectl_reconcile.core.resources.oci.spec import OciSpec
from kubectl_reconcile.core.resources.verification import VerifySpec

URL = "oci://registry.example.com/team/shop"
DIGEST = "sha256:" + "ab" * 32

READ = {
    "a repository alone, which is followed at latest": ({}, OciSpec(URL, tag="latest")),
    "a tag": ({"tag": "1.4"}, OciSpec(URL, tag="1.4")),
    "a version that no tag can have": ({"tag": "1.4+a"}, OciSpec(URL, tag="1.4_a")),
    "a range": ({"semver": "1.x"}, OciSpec(URL, semver="1.x")),
    "a range and a digest, which decides": ({"semver": "1.x", "digest": DIGEST}, OciSpec(URL, digest=DIGEST, semver="1.x")),
    "a digest": ({"digest": DIGEST}, OciSpec(URL, digest=DIGEST)),
    "both": ({"tag": "1.4", "digest": DIGEST}, OciSpec(URL, tag="1.4", digest=DIGEST)),
    "a layer and a Secret": (
        {"layerSelector": {"mediaType": "application/x"}, "secretRef": {"name": "registry"}, "interval": "5m"},
        OciSpec(URL, tag="latest", media_type="application/x", secret="registry"),
    ),
    "keys in a Secret": ({"verify": {"secretRef": {"name": "keys"}}}, OciSpec(URL, tag="latest", verify=VerifySpec("Secret", "keys"))),
    "keys in a ConfigMap": (
        {"verify": {"configMapRef": {"name": "keys"}}}, OciSpec(URL, tag="latest", verify=VerifySpec("ConfigMap", "keys")),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("more", "found"), READ.values(), ids=READ)
def test_it_is_read(more, found):
    assert OciSpec.of({"url": URL, **more}) == found
    assert str(found.repository) == URL


REFUSED = {
    "no range": ({"semver": "newest"}, "semver", "has 'newest', which is no version or bound, such as 1.2.x or >=1.2.0"),
    "no URL": ({"url": ""}, "url", "is required"),
    "a number as URL": ({"url": 1}, "url", "isn't text"),
    "another scheme": ({"url": "https://registry.example.com/x"}, "url", "https://registry.example.com/x doesn't begin with oci://"),
    "a tag in the URL": ({"url": f"{URL}:1"}, "url", f"{URL}:1 has a tag or a digest, which are fields of their own"),
    "a digest of another kind": ({"digest": "md5:00"}, "digest", "isn't a digest: write sha256: and 64 hexadecimal digits"),
    "a tag that is none": ({"tag": "a/b"}, "tag", "'a/b' isn't a tag: letters, digits, -, _ and ., 128 at most"),
    "a misspelt field": ({"tga": "1"}, "tga", "isn't a field; did you mean tag?"),
    "signatures by nobody's key": ({"verify": {}}, "verify", "secretRef and configMapRef exclude each other; give one, which holds the keys"),
    "keys in two places": (
        {"verify": {"secretRef": {"name": "a"}, "configMapRef": {"name": "b"}}}, "verify",
        "secretRef and configMapRef exclude each other; give one, which holds the keys",
    ),
    "what of Git must be signed": ({"verify": {"mode": "Tag"}}, "verify.mode", "isn't a field; there is secretRef, configMapRef, matchOIDCIdentity, trustedRootSecretRef"),
    "a layer by something else": ({"layerSelector": {"mediatype": "x"}}, "layerSelector.mediatype", "isn't a field; did you mean mediaType?"),
}  # fmt: skip


@pytest.mark.parametrize(("more", "field", "message"), REFUSED.values(), ids=REFUSED)
def test_it_is_refused_with_what_to_write(more, field, message):
    with pytest.raises(SyncSpecError) as refused:
        OciSpec.of({"url": URL, **more})
    assert (refused.value.field, refused.value.message) == (f"spec.source.oci.{field}", message)


def test_a_tag_and_a_range_exclude_each_other():
    with pytest.raises(SyncSpecError, match=r"spec\.source\.oci: tag and semver are both set; keep one"):
        OciSpec.of({"url": URL, "tag": "1.4", "semver": "1.x"})
