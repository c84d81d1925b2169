"""Ceilings of what custom resources may have modules do: by flags of the daemon, and by variables of their names."""

import pytest

from kubectl_reconcile.cli.verbs.operate.daemon import daemon
from kubectl_reconcile.core.module.inputs import CEILINGS
from kubectl_reconcile.engine.modules.ceilings import ceilings, set_ceilings
from kubectl_reconcile.source.errors import SourceError


def test_the_daemons_flags_say_the_same_as_commands_take_for_granted():
    flags = {option.opts[0]: option.default for option in daemon.params}
    assert {flag: flags[flag] for flag in CEILINGS} == CEILINGS == ceilings()


def test_a_variable_says_what_a_flag_does(monkeypatch):
    monkeypatch.setenv("KUBECTL_RECONCILE_LOAD_MAX_RATE", "7")
    assert ceilings() == {**CEILINGS, "--load-max-rate": 7}
    set_ceilings({"--load-max-rate": 9})
    assert ceilings()["--load-max-rate"] == 9


@pytest.mark.parametrize("text", ["0", "many", "-3", "½"])
def test_what_is_no_number_is_told_with_its_name(monkeypatch, text):
    monkeypatch.setenv("KUBECTL_RECONCILE_LOAD_MAX_RATE", text)
    with pytest.raises(SourceError, match="KUBECTL_RECONCILE_LOAD_MAX_RATE isn't a number above zero"):
        ceilings()
