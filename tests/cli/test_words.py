"""What somebody types who doesn't know the verbs yet."""

import pytest

from kubectl_reconcile.cli.main import run
from kubectl_reconcile.cli.output.failures import ExitStatus
from kubectl_reconcile.cli.root import OTHER_WORDS, VERBS

TYPED = {
    "apply": "sync",
    "aply": "sync",
    "list": "get",
    "describe": "status",
    "LIST": "get",
    "snyc": "sync",
    "undo": "rollback",
}


@pytest.mark.parametrize(("word", "verb"), TYPED.items())
def test_a_word_of_other_tools_is_answered_with_the_verb(word, verb, capsys):
    assert run([word]) == ExitStatus.USAGE
    assert f"unknown verb {word!r}; did you mean {verb}?" in capsys.readouterr().err


def test_words_of_other_tools_are_no_verbs_and_lead_to_one():
    assert OTHER_WORDS.keys().isdisjoint(VERBS)
    assert set(OTHER_WORDS.values()) <= VERBS.keys()


HELP = {
    "nothing": ([], "Usage: kubectl reconcile [FLAGS] VERB"),
    "a verb": (["diff"], "Usage: kubectl reconcile diff "),
    "a verb of a group": (["modules", "new"], "Usage: kubectl reconcile modules new "),
}


@pytest.mark.parametrize(("words", "expected"), HELP.values(), ids=HELP)
def test_help_is_a_verb_too(words, expected, capsys):
    assert run(["help", *words]) == ExitStatus.OK
    assert capsys.readouterr().out.startswith(expected)


def test_help_of_no_verb_says_which_may_be_meant(capsys):
    assert run(["help", "aply"]) == ExitStatus.USAGE
    assert "did you mean sync?" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["sandbox", "modules"])
def test_examples_keep_their_lines(verb, capsys):
    run([verb, "--help"])
    assert "\\b" not in capsys.readouterr().out
