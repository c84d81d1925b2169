"""Who says what of a source and of the chart beside it, where either has to be signed, on plain verdicts."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from kubectl_reconcile.core.rendering.charts import Release
from kubectl_reconcile.core.resources.chart import ChartSpec
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.core.resources.verification import Verification
from kubectl_reconcile.engine.sync.desired import ManifestReader
from kubectl_reconcile.engine.sync.signed_sources import require_verified, verification_of, warnings_of
from kubectl_reconcile.engine.sync.target import Target
from kubectl_reconcile.source.charts.source import ChartSource
from kubectl_reconcile.source.verifying import UnverifiedError
from tests.verifying import ALICE, NEW, OLD, Plain


def target(source=None, chart=None):
    found = Target(Sync(name="shop", namespace="shop"), SimpleNamespace(verified=source))
    found.reader.chart = chart and SimpleNamespace(verified=chart)
    return found


def read(*signed, sha, keeps=None):
    found = Plain(*signed, keeps=keeps)
    found.read(sha)
    return found


GOOD = Verification(NEW, signer="alice.pub", key=ALICE.key)


async def test_where_nobody_asks_for_signatures_nothing_is_told():
    found = target()
    await require_verified(found, NEW)
    assert (verification_of(found), warnings_of(found)) == (None, ())


@pytest.mark.parametrize("place", ["source", "chart"])
async def test_what_is_signed_may_be_applied_wherever_it_comes_from(place):
    found = target(**{place: read(NEW, sha=NEW)})
    await require_verified(found, NEW)
    assert (verification_of(found), warnings_of(found)) == (GOOD, ())


@pytest.mark.parametrize("place", ["source", "chart"])
async def test_what_is_not_signed_is_told_and_refused_wherever_it_comes_from(place):
    found = target(**{place: read(sha=NEW)})
    assert verification_of(found).is_refused
    [told] = warnings_of(found)
    assert (told.path, told.is_error) == ("spec.source.oci.verify", False)
    assert told.message.startswith("unverified, so no sync applies it: artifact 1.2 has no signature")
    with pytest.raises(UnverifiedError):
        await require_verified(found, NEW)


async def test_where_both_have_to_be_signed_both_count_and_the_signer_is_that_of_the_source():
    good, bad = read(NEW, sha=NEW), read(sha=NEW)
    both = target(good, read(NEW, sha=NEW))
    await require_verified(both, NEW)
    assert verification_of(both) == GOOD
    for mixed in (target(good, bad), target(bad, good)):
        with pytest.raises(UnverifiedError):
            await require_verified(mixed, NEW)
        assert verification_of(mixed).refusal == bad.verification.refusal
        assert len(warnings_of(mixed)) == 1
    assert verification_of(target(good, bad)) == replace(
        GOOD, fault=bad.verification.fault, refusal=bad.verification.refusal
    )
    assert len(warnings_of(target(bad, bad))) == 2


def test_a_chart_that_is_not_verified_is_not_even_fetched():
    def verify():
        raise UnverifiedError("nobody signed it", "", Verification())

    pin = ChartSpec("oci://registry.example.com/charts", "web", "1.2.3", f"sha256:{'ab' * 32}")
    reader = ManifestReader(release_of=lambda _: Release("web", "shop", chart=pin))
    reader.chart = SimpleNamespace(pin=pin, verify=verify, files=lambda: pytest.fail("it was fetched"))
    with pytest.raises(UnverifiedError, match="nobody signed it"):
        reader.read(ChartSource(pin))


def test_who_keeps_it_up_is_told_by_its_status_and_not_warned():
    kept = read(OLD, sha=NEW, keeps=Verification(OLD))
    assert verification_of(target(kept)).is_refused
    assert warnings_of(target(kept)) == ()
