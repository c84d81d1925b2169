"""Tokens that a registry wants, each asked for at the *realm* that its challenge names.

Who is told who we are there: a realm at the registry's own scheme, host and port; and one that the Secret with the credentials names. Any other is asked as
nobody in particular, as it may still give a token for what everybody may read. A realm is never asked over http where the registry is over https, and is as little
a way into private networks as anything else that a server names.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

from msgspec.structs import replace

from kubectl_reconcile.core.resources.credential_scope import Address, NoAddressError
from kubectl_reconcile.core.resources.oci.challenge import BearerChallenge, bearer_of, token_of
from kubectl_reconcile.core.resources.url_policy import UrlPolicy
from kubectl_reconcile.source.http.client import HttpClient, Redirects
from kubectl_reconcile.source.http.connection import HttpAnswer
from kubectl_reconcile.source.http.errors import shown
from kubectl_reconcile.source.oci.access import OciAccess
from kubectl_reconcile.source.remote import Credentials

_MOST_ANSWER_BYTES: Final = 256 * 1024
_EARLY_S: Final = 5.0
"""How long before its end a token isn't used any more, in seconds."""


class Tokens:
    """The token for one repository, as one set of credentials gets it. From any thread."""

    def __init__(self, access: OciAccess) -> None:
        self._access = access
        self._guard = threading.Lock()
        self._text, self._ends_s = "", 0.0
        self.why_not = ""
        """Why there is none, though one was wanted; a sentence that shows no secret."""
        self.hint = ""
        """What to do about it."""

    def headers(self) -> Mapping[str, str]:
        """Return what is sent with a request: the token, as long as one is good."""
        with self._guard:
            is_good = self._text and time.monotonic() < self._ends_s - _EARLY_S
            return {"Authorization": f"Bearer {self._text}"} if is_good else {}

    def answered(self, answer: HttpAnswer, deadline_s: float) -> Mapping[str, str]:
        """Return the headers with which a request is made again after *answer*, a challenge; none where nothing helps.

        Raises:
            HttpError, SourceError: the realm can't be asked.
        """
        self.why_not = self.hint = ""
        challenge = bearer_of(answer.headers.get("www-authenticate", ""))
        if challenge is None:
            return {}
        begun_s = time.monotonic()
        said = self._asked(challenge, deadline_s)
        if said.status != 200:
            self.why_not = f"{shown(challenge.realm)}, which gives its tokens, answers {said.status}"
            return {}
        token = token_of(said.body)
        if token is None:
            self.why_not = f"{shown(challenge.realm)} gives no token that can be used"
            return {}
        with self._guard:
            self._text, self._ends_s = token.text, begun_s + token.lasts_s
        return {"Authorization": f"Bearer {token.text}"}

    def _asked(self, challenge: BearerChallenge, deadline_s: float) -> HttpAnswer:
        repository, credentials = self._access.repository, self._access.credentials
        realm = challenge.realm.partition("#")[0]
        may = _with_own(self._access.may, repository.origin, repository.base)
        HttpClient(repository.base, may=may).check(realm)
        is_named = self._access.named.covers(realm.partition("?")[0])
        if _is_same_origin(realm, repository.origin):
            stated = repository.base
        elif is_named:
            stated = realm
        else:
            stated = repository.base
            if credentials.header():
                self.hint = f"the Secret's credentials aren't sent there: if its owner agrees, add {shown(realm)} to its annotation reconcile.dev/urls"
            credentials = Credentials(ca_bundle=credentials.ca_bundle)
        client = HttpClient(stated, credentials, may, Redirects.NOWHERE, self._access.ca_file)
        asked = {"service": challenge.service} if challenge.service else {}
        asked["scope"] = challenge.scope_for(repository.name)
        return client.ask(f"{realm}{'&' if '?' in realm else '?'}{urlencode(asked)}", _MOST_ANSWER_BYTES, deadline_s)


def _is_same_origin(url: str, origin: str) -> bool:
    try:
        one, other = Address.of(url.partition("?")[0]), Address.of(origin)
    except NoAddressError:
        return False
    return (one.scheme, one.host, one.port) == (other.scheme, other.host, other.port)


def _with_own(may: UrlPolicy | None, origin: str, base: str) -> UrlPolicy | None:
    """Return a policy under which a registry that may be asked may be asked for tokens, too, which aren't below the repository."""
    if may is None or not may.addresses or not may.allows(base):
        return may
    return replace(may, addresses=(*may.addresses, Address.of(origin)))
