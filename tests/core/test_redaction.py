"""Values of Secrets in sentences: hidden, and nothing else with them."""

import pytest

from kubectl_reconcile.core.redaction import redacted
from kubectl_reconcile.source.errors import scrubbed

SENTENCES = {
    "a password of one letter is in many words": ("p", "can't reach port 80", "can't reach port 80"),
    "but shows nowhere by itself": ("p", "the password 'p' is refused", "the password '***' is refused"),
    "nor as a word of a URL": ("pw", "https://me:pw@example.com", "https://me:***@example.com"),
    "a longer one is hidden within words too": ("hunter2", "xhunter2y", "x***y"),
    "none": ("", "port 80", "port 80"),
}


@pytest.mark.parametrize(("value", "said", "expected"), SENTENCES.values(), ids=SENTENCES)
def test_values_are_hidden_and_words_are_not(value, said, expected):
    assert redacted(said, {"kind": "Secret", "stringData": {"password": value}}) == expected


@pytest.mark.parametrize(("value", "said", "expected"), SENTENCES.values(), ids=SENTENCES)
def test_credentials_of_a_repository_are_hidden_by_the_same_rule(value, said, expected):
    assert scrubbed(said, [value]) == expected.replace("me:***@", "")
