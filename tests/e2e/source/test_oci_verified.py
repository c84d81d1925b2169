"""Artifacts of real registries of which only signed ones count: what whoever may push or move a tag can't do, and what stays in force."""

from __future__ import annotations

import pytest

from kubectl_reconcile.core.resources.chart import ChartSpec
from kubectl_reconcile.core.resources.oci.manifest import CHART_CONFIG, CHART_LAYER
from kubectl_reconcile.core.resources.signatures import SignatureFault
from kubectl_reconcile.core.resources.verification import Verification, VerifySpec
from kubectl_reconcile.engine.sync.desired import ManifestReader
from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.oci.access import OciAccess
from kubectl_reconcile.source.oci.chart import RegistryChart
from kubectl_reconcile.source.oci.registry import Registry, registry_of
from kubectl_reconcile.source.oci.verified import VerifiedArtifact, VerifiedPin
from kubectl_reconcile.source.verifying import UnverifiedError
from tests.e2e.source.pulling import LIMITS, flux
from tests.oci_signing import bundle, drawn, payload, payload_layer, pem, push_bundle, push_payloads
from tests.registry_server import Layer
from tests.rendering_tools import packed

KEY, STRANGER = drawn(), drawn("ed25519")
OURS, OTHERS = {"cosign.pub": pem(KEY)}, {"other.pub": pem(STRANGER)}


@pytest.fixture(params=["registry", "with_referrers"])
def running(request, registry, with_referrers):
    """A registry without a list of referrers, and one that has it."""
    return {"registry": registry, "with_referrers": with_referrers}[request.param]


def push(running, name, color, tag="v1"):
    made = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: web}}\ndata: {{color: {color}}}\n"
    return flux(running, name, tag, {"web.yaml": made})


def sign(running, name, digest, key=KEY):
    push_payloads(running, name, digest, payload_layer(key, payload(digest, f"{running.host}/{name}")))


def source(running, name, keys=OURS, *, tag="v1", digest="", keeps=None):
    registry = registry_of(OciAccess(running.repository(name), LIMITS))
    made = VerifiedArtifact(registry, tag, digest, spec=VerifySpec("Secret", "keys"), namespace="shop", keeps=keeps)
    made.trust(keys)
    return made


def color(mine):
    [located] = ManifestReader(limits=LIMITS).read(mine).manifests
    return located.manifest["data"]["color"]


def test_what_is_signed_is_read_whichever_layout_the_signature_has(running):
    old, new = push(running, "signed", "red"), push(running, "signed", "blue", "v2")
    sign(running, "signed", old)
    push_bundle(running, "signed", new, bundle(KEY, new), fallback=not running.lists_referrers)
    for tag, digest, found in (("v1", old, "red"), ("v2", new, "blue")):
        mine = source(running, "signed", tag=tag, keeps=Verification())
        assert color(mine) == found
        assert (mine.verification.revision, mine.verification.signer) == (f"{tag}@{digest}", "cosign.pub")
        assert mine.verification.key.startswith("ECDSA SHA256:")
        mine.require_verified(f"{tag}@{digest}")


def test_who_moves_the_tag_to_what_nobody_signed_changes_nothing(running):
    good = push(running, "moved", "red")
    sign(running, "moved", good)
    mine = source(running, "moved", keeps=Verification())
    assert color(mine) == "red"
    evil = push(running, "moved", "evil")
    sign(running, "moved", evil, STRANGER)
    assert color(mine) == "red"
    assert (mine.tip, mine.verification.revision) == (f"v1@{evil}", f"v1@{good}")
    assert mine.verification.fault is SignatureFault.UNKNOWN_KEY
    assert (
        f"artifact v1@{evil[:14]} is signed by a key, which isn't among the keys of Secret shop/keys"
        in mine.verification.refusal
    )
    assert f"v1@{good[:14]} stays in force" in mine.verification.refusal
    with pytest.raises(UnverifiedError):
        mine.require_verified(f"v1@{evil}")
    again = source(running, "moved", keeps=Verification(f"v1@{good}"))
    assert (color(again), again.verification.signer) == ("red", "cosign.pub")
    better = push(running, "moved", "blue")
    sign(running, "moved", better)
    assert (color(mine), mine.verification.refusal) == ("blue", "")


def test_who_looks_is_shown_it_and_told(registry):
    evil = push(registry, "shown", "evil")
    mine = source(registry, "shown")
    assert (color(mine), mine.verification.fault) == ("evil", SignatureFault.NO_SIGNATURE)
    with pytest.raises(UnverifiedError, match="has no signature"):
        mine.require_verified(f"v1@{evil}")


NOTHING = {
    "another's": f"v1@sha256:{'0' * 64}",
    "a commit": "a" * 40,
    "what isn't signed": "",
}


@pytest.mark.parametrize("recorded", NOTHING.values(), ids=NOTHING)
def test_a_status_proves_nothing(registry, recorded):
    evil = push(registry, "recorded", "evil")
    mine = source(registry, "recorded", keeps=Verification(recorded or f"v1@{evil}"))
    with pytest.raises(UnverifiedError, match="nothing is applied, and drift isn't corrected"):
        mine.revision()


def test_a_signature_of_another_repository_or_digest_counts_for_neither(registry):
    good = push(registry, "home", "red")
    sign(registry, "home", good)
    copied = push(registry, "copied", "red")
    assert copied == good
    push_payloads(registry, "copied", good, payload_layer(KEY, payload(good, f"{registry.host}/home")))
    evil = push(registry, "copied", "evil", "v2")
    push_payloads(registry, "copied", evil, payload_layer(KEY, payload(good, f"{registry.host}/copied")))
    for tag in ("v1", "v2"):
        mine = source(registry, "copied", tag=tag, keeps=Verification())
        with pytest.raises(UnverifiedError) as caught:
            mine.revision()
        assert caught.value.verification.fault is SignatureFault.BAD_SIGNATURE


def test_what_is_pulled_is_what_was_verified(registry, monkeypatch):
    """The tag is moved while the signature is looked for."""
    good = push(registry, "swapped", "red")
    sign(registry, "swapped", good)
    mine = source(registry, "swapped", keeps=Verification())
    judged = mine._judged

    def slow(sha, tag):
        found = judged(sha, tag)
        push(registry, "swapped", "evil")
        return found

    monkeypatch.setattr(mine, "_judged", slow)
    assert color(mine) == "red"
    assert (mine.tip, mine.verification.revision) == (f"v1@{good}", f"v1@{good}")


def test_other_keys_leave_in_force_what_was_verified_by_those_of_before(registry):
    good = push(registry, "rotated", "red")
    sign(registry, "rotated", good)
    before, after = (
        source(registry, "rotated", keeps=Verification()),
        source(registry, "rotated", OTHERS, keeps=Verification()),
    )
    before.revision()
    after.go_on_from(before)
    assert (color(after), after.verification.fault) == ("red", SignatureFault.UNKNOWN_KEY)
    after.require_verified(f"v1@{good}")
    elsewhere = source(registry, "elsewhere", keeps=Verification())
    push(registry, "elsewhere", "blue")
    elsewhere.go_on_from(before)
    with pytest.raises(UnverifiedError):
        elsewhere.revision()


def test_a_registry_that_does_not_answer_verifies_nothing_and_takes_nothing_back(registry, monkeypatch):
    good = push(registry, "away", "red")
    sign(registry, "away", good)
    mine = source(registry, "away", keeps=Verification())
    mine.revision()
    evil = push(registry, "away", "evil")
    assert mine.remote_sha() == f"v1@{evil}"

    def away(*_, **__):
        raise SourceError(SourceFault.UNREACHABLE, "nobody is there")

    monkeypatch.setattr(Registry, "tagged", away)
    with pytest.raises(SourceError) as caught:
        mine.revision()
    assert caught.value.fault is SourceFault.UNREACHABLE
    assert (mine.verification.revision, mine.verification.refusal) == (f"v1@{good}", "")


def test_what_is_not_signed_is_looked_at_once_for_all_who_ask_within_their_interval(registry, monkeypatch):
    push(registry, "often", "evil")
    asked = []
    tagged = Registry.tagged
    monkeypatch.setattr(Registry, "tagged", lambda self, tag: asked.append(tag) or tagged(self, tag))
    many = [source(registry, "often") for _ in range(10)]
    for each in many:
        each.since_s = 0.0
        each.revision()
    assert len([tag for tag in asked if tag.endswith(".sig")]) == 1
    many[0].since_s = float("inf")
    many[0].revision()
    assert len([tag for tag in asked if tag.endswith(".sig")]) == 2


# -- charts ------------------------------------------------------------------------------------------------------------


def push_chart(running, version="1.2.3"):
    files = {"web/Chart.yaml": f"apiVersion: v2\nname: web\nversion: {version}\n"}
    return running.push("charts/web", version, Layer(packed(files), CHART_LAYER), config=Layer(b"{}", CHART_CONFIG))


def chart(running, digest, version="1.2.3", keys=OURS, *, keeps=True):
    registry = registry_of(OciAccess(running.repository("charts/web"), LIMITS))
    pin = ChartSpec(f"oci://{running.host}/charts", "web", version, digest, verify=VerifySpec("Secret", "keys"))
    verified = VerifiedPin(registry, "chart web", pin.revision, pin.verify, "shop", keeps=keeps)
    verified.trust(keys)
    return RegistryChart(pin, registry, verified)


def test_a_chart_counts_once_its_manifest_is_signed(running):
    digest = push_chart(running, "1.0.0")
    mine, shown = chart(running, digest, "1.0.0"), chart(running, digest, "1.0.0", keeps=False)
    with pytest.raises(UnverifiedError, match="nothing is applied, and drift isn't corrected") as caught:
        mine.verify()
    said = caught.value.verification.refusal
    assert said.startswith(
        f"chart web 1.0.0@{digest[:14]} has no signature; nothing is applied, and drift isn't corrected (hint"
    )
    shown.verify()
    assert (shown.files().files.keys(), shown.verified.verification.fault) == (
        {"Chart.yaml"},
        SignatureFault.NO_SIGNATURE,
    )
    with pytest.raises(UnverifiedError):
        shown.verified.require_verified("of the files beside it")
    sign(running, "charts/web", digest)
    for each in (mine, shown):
        each.verify()
        each.verified.require_verified("of the files beside it")
        assert each.verified.verification.signer == "cosign.pub"
        assert each.verified.verification.revision == each.pin.revision


def test_a_chart_that_was_verified_stays_in_force_by_other_keys_and_another_does_not(registry):
    old, new = push_chart(registry, "1.1.0"), push_chart(registry, "1.2.0")
    sign(registry, "charts/web", old)
    before, after = chart(registry, old, "1.1.0"), chart(registry, old, "1.1.0", OTHERS)
    before.verify()
    after.verified.go_on_from(before.verified)
    after.verify()
    assert after.verified.verification.fault is SignatureFault.UNKNOWN_KEY
    assert f"1.1.0@{old[:14]} stays in force" in after.verified.verification.refusal
    after.verified.require_verified("")
    another = chart(registry, new, "1.2.0")
    another.verified.go_on_from(before.verified)
    with pytest.raises(UnverifiedError):
        another.verify()


def test_of_a_chart_without_a_digest_nothing_is_asked(registry):
    pinned = chart(registry, "")
    pinned.verify()
    assert pinned.verified.verification == Verification()
