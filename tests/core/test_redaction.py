"""Values of Secrets in sentences: hidden, and nothing else with them."""

import pytest

from kubectl_reconcile.core.redaction import redacted, without_credentials
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


SHOWN = {
    "nothing to hide": ("https://git.example.com/shop", "https://git.example.com/shop"),
    "user and password": ("https://ann:s3cret@git.example.com/shop", "https://git.example.com/shop"),
    "a token as the user": ("https://s3cret@git.example.com/shop", "https://git.example.com/shop"),
    "an at sign in the password": ("https://ann:s3@cret@git.example.com/a@b", "https://git.example.com/a@b"),
    "no path": ("HTTP://ann:s3cret@git.example.com", "HTTP://git.example.com"),
    "a user of SSH": ("ssh://git@git.example.com/shop", "ssh://git@git.example.com/shop"),
    "a password of SSH": ("ssh://git:s3cret@git.example.com/shop", "ssh://git@git.example.com/shop"),
    "no scheme": ("git@git.example.com:shop", "git@git.example.com:shop"),
    "a password without a scheme": ("git:s3cret@git.example.com:shop", "git@git.example.com:shop"),
    "a file": ("file://ann:s3cret@host/srv/shop", "file://host/srv/shop"),
    "no URL": ("-", "-"),
}


@pytest.mark.parametrize(("url", "shown"), SHOWN.values(), ids=SHOWN)
def test_a_url_is_shown_without_what_may_be_secret(url, shown):
    assert without_credentials(url) == shown
    assert "s3cret" not in without_credentials(url)
