"""What a Secret that people make is worth."""

import pytest

from kubectl_reconcile_operators.certificates.worth import password_worth

LACKING = "lacks the key password (hint: put one in, or delete the Secret: it is recreated)"
ODD = "has a password with other characters than printable ASCII (hint: put in another)"
PASSWORDS = {
    "of printable characters": ({"password": "it's a ~ secret!"}, "ok"),
    "none": ({"user": "a"}, LACKING),
    "an empty one": ({"password": ""}, LACKING),
    "one with an accent": ({"password": "café"}, ODD),
    "one with a line break": ({"password": "a\n"}, ODD),
}


@pytest.mark.parametrize(("values", "worth"), PASSWORDS.values(), ids=PASSWORDS)
def test_what_a_password_is_worth(values, worth):
    assert password_worth(values) == worth
