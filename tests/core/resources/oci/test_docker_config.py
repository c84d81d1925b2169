"""Logins of registries, as Docker and Kubernetes keep them."""

import base64
import json

import pytest

from kubectl_reconcile.core.resources.oci.docker_config import Login, LoginError, login_of
from kubectl_reconcile.core.resources.oci.reference import OciRepository

HERE = OciRepository.of("oci://registry.example.com/team/shop")
AUTH = {"auth": base64.b64encode(b"me:pa:55").decode()}
ME = Login("me", "pa:55")

FOR_HERE = {
    "the host": {"registry.example.com": AUTH},
    "the host as a URL": {"https://registry.example.com": AUTH},
    "the host as older programs wrote it": {"https://registry.example.com/v1/": AUTH},
    "a path above": {"registry.example.com/team": AUTH},
    "the repository itself": {"registry.example.com/team/shop": AUTH},
    "any host of a domain": {"*.example.com": AUTH},
    "the longest of several": {
        "registry.example.com": {"username": "x", "password": "y"},
        "registry.example.com/team": AUTH,
    },
    "a name and a password": {"registry.example.com": {"username": "me", "password": "pa:55"}},
}


@pytest.mark.parametrize("auths", FOR_HERE.values(), ids=FOR_HERE)
def test_a_login_is_found(auths):
    assert login_of(json.dumps({"auths": auths}), HERE) == ME


NOT_FOR_HERE = {
    "another host": {"other.example.com": AUTH},
    "another port": {"registry.example.com:5000": AUTH},
    "another path": {"registry.example.com/tea": AUTH},
    "a path below": {"registry.example.com/team/shop/web": AUTH},
    "a host of another depth": {"*.com": AUTH},
    "none": {},
}


@pytest.mark.parametrize("auths", NOT_FOR_HERE.values(), ids=NOT_FOR_HERE)
def test_a_login_for_something_else_is_none(auths):
    assert login_of(json.dumps({"auths": auths}), HERE) is None


BAD = {
    "no JSON": "{",
    "no logins": "{}",
    "a login that is text": json.dumps({"auths": {"registry.example.com": "s3cret"}}),
    "a login that isn't base64": json.dumps({"auths": {"registry.example.com": {"auth": "s3cret"}}}),
    "a login without a password": json.dumps({"auths": {"registry.example.com": {}}}),
    "deep JSON": "[" * 100_000,
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_what_can_not_be_read_is_an_error_that_shows_nothing(text):
    with pytest.raises(LoginError) as caught:
        login_of(text, HERE)
    assert "s3cret" not in str(caught.value)


def test_nothing_of_a_login_shows():
    assert repr(ME) == "Login()"
    token = login_of(json.dumps({"auths": {"registry.example.com": {"registrytoken": "t0ken"}}}), HERE)
    assert (token, repr(token)) == (Login(token="t0ken"), "Login()")
