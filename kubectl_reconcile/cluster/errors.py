"""What the API server, or the way to it, can answer instead of what was asked.

Vocabulary: an *API error* is any answer that isn't success; it carries the server's ``Status``
(*reason*, *message*, *causes* per field). *Unreachable* means that no answer came at all.

Rules: the type follows the HTTP status and the server's reason, so callers catch types and never
compare texts. ``str()`` is one line, free of control characters, and fit for a terminal, a log
and a condition. An exception of the HTTP library never leaves this package.
"""

# ruff: noqa: N818 - the classes are called what the server calls its reasons

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Self

from msgspec import Struct

from kubectl_reconcile.core.objects import ACCOUNT_USERS

_OF_WEBHOOK = (
    "admission webhook ",
    "failed calling webhook ",
    "Internal error occurred: admission webhook ",
    "Internal error occurred: failed calling webhook ",
)
"""How the server begins what an admission webhook says, or that it doesn't answer."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")
_LONGEST_MESSAGE = 4096


def printable(text: str) -> str:
    """Return *text* as one line without control, escape and direction-changing characters."""
    line = _CONTROL.sub(" ", text).strip()
    return line if len(line) <= _LONGEST_MESSAGE else f"{line[:_LONGEST_MESSAGE]}…"


_VALUE = re.compile(r"(?:(?<=[ (\[,:])|^)[\w.*&\[\]]*\{")
"""Where a value begins that a server prints as Go or as JSON does: ``core.PodTemplateSpec{…``, ``{"a":…``."""
_LONGEST_VALUE = 100


def shortened(text: str) -> str:
    """Return *text* with ``…`` for what is in the braces of a printed value that nobody would read to its end."""
    parts, at = [], 0
    while match := _VALUE.search(text, at):
        end = _end_of_value(text, match.end())
        parts.append(
            text[at : match.end()] + ("…}" if end - match.start() > _LONGEST_VALUE else text[match.end() : end])
        )
        at = end
    return "".join([*parts, text[at:]])


def _end_of_value(text: str, at: int) -> int:
    """Return where the braces end that were opened before *at*, quoted text aside; the text's end if they don't."""
    depth, quoted = 1, False
    while at < len(text) and depth:
        char = text[at]
        if char == "\\" and quoted:
            at += 1
        elif char == '"':
            quoted = not quoted
        elif not quoted:
            depth += (char == "{") - (char == "}")
        at += 1
    return min(at, len(text))


class Cause(Struct, frozen=True):
    """One entry of ``status.details.causes``: *field* (may be empty), machine-readable *reason*, *message*."""

    field: str
    reason: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


class Denial(Struct, frozen=True):
    """A right that somebody lacks. Prints as the RBAC rule that would grant it.

    *resource* is empty for a mere URL, which is then in *path*; *namespace* is empty for the whole cluster.
    """

    user: str
    verb: str
    resource: str = ""
    group: str = ""
    namespace: str = ""
    path: str = ""

    @classmethod
    def told(cls, message: str) -> Self | None:
        """Return what the server's *message* says is missing, None where it says something else."""
        match = _DENIED.search(message)
        return cls(**{name: text or "" for name, text in match.groupdict().items()}) if match else None

    def __str__(self) -> str:
        where = f'{{nonResourceURLs: ["{self.path}"], verbs: ["{self.verb}"]}}'
        if self.resource:
            where = f'{{apiGroups: ["{self.group}"], resources: ["{self.resource}"], verbs: ["{self.verb}"]}}'
        role = f"a Role in namespace {self.namespace}" if self.namespace else "a ClusterRole"
        return f"the rule that allows it: {where}, in {role} bound to {self._subject()}"

    @property
    def is_of_account(self) -> bool:
        """Whether it is a ServiceAccount that lacks the right."""
        return self.user.startswith(ACCOUNT_USERS)

    @property
    def sentence(self) -> str:
        """What may not be done, and by whom, without the object's name: one sentence for all that lack the same."""
        what = f"{self.resource}.{self.group}" if self.group else self.resource or self.path
        where = f" in namespace {self.namespace}" if self.namespace and self.resource != "namespaces" else ""
        return f"{self._subject()} may not {self.verb} {what}{where}"

    def _subject(self) -> str:
        account = self.user.removeprefix(ACCOUNT_USERS)
        return f"ServiceAccount {account.replace(':', '/')}" if self.is_of_account else f"user {self.user}"


_ANONYMOUS = "system:anonymous"
_NOT_HELD = "is attempting to grant RBAC permissions not currently held"
"""How RBAC tells that somebody would give what they don't hold themselves."""
_GRANTING = re.compile(rf'user "(?P<user>[^"]*)".* {_NOT_HELD}')


_DENIED = re.compile(
    r"""User "(?P<user>[^"]*)" cannot (?P<verb>[\w-]+) (?:path "(?P<path>[^"]*)"|resource "(?P<resource>[^"]*)" """
    r"""in API group "(?P<group>[^"]*)"(?: in the namespace "(?P<namespace>[^"]*)")?)"""
)
"""How RBAC tells what is missing."""


class KubeconfigError(Exception):
    """The way to a cluster isn't described well enough to try it; *hint* says what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        self.message = printable(message)
        self.hint = printable(hint)
        super().__init__(self.message)

    def __str__(self) -> str:
        return f"{self.message} (hint: {self.hint})" if self.hint else self.message


class NoClusterConfigured(KubeconfigError):
    """Nothing says how to reach any cluster."""

    def __init__(self) -> None:
        super().__init__(
            "no cluster is configured",
            "set KUBECONFIG or --kubeconfig, choose a --context, or try one on this machine: kubectl reconcile sandbox up",
        )


class ApiError(Exception):
    """The server refused a request. Subclasses exist for the refusals that callers tell apart.

    *status* is the HTTP status (0: no answer), *reason* the server's one word for it, *causes* the
    single faults it named, *retry_after_s* how long it asked to be left alone (None: it didn't say).
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 0,
        reason: str = "",
        causes: Iterable[Cause] = (),
        retry_after_s: float | None = None,
    ) -> None:
        self.message = printable(shortened(message))
        self.status = status
        self.reason = printable(reason) or type(self).__name__
        self.causes = tuple(causes)
        self.retry_after_s = retry_after_s
        super().__init__(self.message)

    def __str__(self) -> str:
        return f"{self.message} ({self.status} {self.reason})" if self.status else self.message

    @property
    def is_of_webhook(self) -> bool:
        """Whether an admission webhook chose these words, or wasn't heard: it is about what that is asked about, not about the server."""
        return self.message.startswith(_OF_WEBHOOK)


class BadRequest(ApiError):
    """400: the request itself is wrong (unknown fields under strict validation, malformed selectors)."""


class Unauthorized(ApiError):
    """401: the credentials aren't accepted, also after they were resolved afresh. *hint* says what to do."""

    hint = "log in again or renew the token; kubectl auth whoami shows whether that helped"


class Forbidden(ApiError):
    """403: known, but not allowed. *denial* is what was asked, where it is rights that are missing.

    *advice* says how whoever acts as an account gives it rights.
    """

    advice: str = ""

    def __str__(self) -> str:
        denial = self.denial
        told = denial.sentence if denial and denial.is_of_account else super().__str__()
        return f"{told} (hint: {self.advice})" if self.advice else told

    @property
    def is_for_lack_of_rights(self) -> bool:
        """Whether it is rights that are missing, and no admission, quota or the like that refuses it."""
        return self.denial is not None or (_NOT_HELD in self.message and not self.is_of_webhook)

    @property
    def denial(self) -> Denial | None:
        """Who lacks which right, as far as the server said it: a webhook may say anything."""
        return None if self.is_of_webhook else Denial.told(self.message)

    @property
    def user(self) -> str:
        """Who lacks rights, as far as the server said it."""
        denial, granting = self.denial, _GRANTING.search(self.message)
        return denial.user if denial else granting["user"] if granting else ""

    @property
    def hint(self) -> str:
        """The RBAC rule that would allow it, and for whom; empty where rights aren't what is missing.

        Whoever the server takes for nobody needs no rights, but credentials: it ignores those that it knows no way to check.
        """
        denial = self.denial
        if denial and denial.user == _ANONYMOUS:
            return f"the server doesn't know who you are: {Unauthorized.hint}"
        return str(denial or "")


class NotFound(ApiError):
    """404: the object, its namespace or its whole kind doesn't exist."""


class AlreadyExists(ApiError):
    """409 on create: the name is taken."""


class Conflict(ApiError):
    """409: somebody else changed the object meanwhile, or owns a field (causes name field and manager)."""


class Gone(ApiError):
    """410: the resource version is too old to continue from; list again."""


class Invalid(ApiError):
    """422 (and 500 for an applied manifest that doesn't fit the schema): the object is wrong; causes name the fields."""


class TooManyRequests(ApiError):
    """429: the server protects itself, or an eviction budget does; see *retry_after_s*."""


class ServerError(ApiError):
    """5xx, an answer that can't be understood, or objects that the server can't read: its own trouble, worth another try later."""


class Fenced(ApiError):
    """A write that wasn't sent, or not waited for any longer: what it belongs to may be another replica's by now."""


class NotHeld(ApiError):
    """Nothing but the existence of an object is known here, for another replica works on what it belongs to."""


class Unreachable(ApiError):
    """No answer: refused, reset, timed out, unresolvable or untrusted. Names the server; *hint* says what to check."""

    def __init__(self, server: str, message: str, hint: str = "") -> None:
        self.server = server
        self.hint = printable(hint)
        suffix = f" (hint: {self.hint})" if self.hint else ""
        super().__init__(f"no answer from the API server {server}: {message}{suffix}", reason="Unreachable")


class SilentWatch(Unreachable):
    """A watch that the server should have ended by now, and which tells neither that nor anything else."""

    def __init__(self, server: str) -> None:
        super().__init__(server, "a watch went silent", "does a proxy in between drop idle connections?")


class GivenUp(Unreachable):
    """The connection was dead as far as anybody knew, so that nothing more was waited for. Trying again makes another."""

    def __init__(self, server: str) -> None:
        super().__init__(server, "the connection died silently")


_BY_STATUS: Mapping[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
}
_BY_REASON: Mapping[str, type[ApiError]] = {"AlreadyExists": AlreadyExists, "Expired": Gone}
_NEVER_A_WEBHOOKS = frozenset({Unauthorized, NotFound, AlreadyExists, Gone})
"""What only the server knows: whom it knows, and what is there."""
_MISFIT = "failed to create typed patch object"
"""How the server says, with status 500, that an applied manifest doesn't fit its kind's schema."""
_NEVER_READ = "storage is (re)initializing: "
"""How it says, with status 429, that it can't read objects of a kind at all, such as those that somebody else has to convert: it isn't overloaded."""


def error_of(
    status: Mapping[str, Any], *, http_status: int = 0, retry_after_s: float | None = None, request: str = ""
) -> ApiError:
    """Return the typed error of a ``Status`` object, of an answer or of a watch's ERROR event.

    *http_status* counts where the object has no code of its own; *request* (``GET /path``) is
    named where the server said nothing in words.
    """
    code = status.get("code") or http_status
    reason = str(status.get("reason") or "")
    details = status.get("details") or {}
    kind = _BY_REASON.get(reason) or _BY_STATUS.get(code) or (ServerError if code >= 500 else ApiError)
    message = str(status.get("message") or "")
    if message.startswith(_MISFIT):
        kind = Invalid
    if message.startswith(_NEVER_READ):
        kind = ServerError
    if message.startswith(_OF_WEBHOOK) and kind in _NEVER_A_WEBHOOKS:
        kind = ApiError
    if retry_after_s is None and details.get("retryAfterSeconds"):
        retry_after_s = float(details["retryAfterSeconds"])
    return kind(
        message or f"the server gave no reason for refusing {request or 'the request'}",
        status=code,
        reason=reason,
        causes=tuple(_cause(cause) for cause in details.get("causes") or ()),
        retry_after_s=retry_after_s,
    )


def _cause(cause: Mapping[str, Any]) -> Cause:
    return Cause(
        field=printable(str(cause.get("field") or "")),
        reason=printable(str(cause.get("reason") or "")),
        message=printable(shortened(str(cause.get("message") or ""))),
    )
