"""One repository of a registry, asked by plain requests: tags, manifests, blobs. Each is what its digest says, or isn't used.

The rules are those of our client (``source.http.client``) and of ``tokens``. Credentials never go along a redirect; blobs are often stored elsewhere, and are checked by
their digests, so those redirects are followed. Whoever wants to know where a tag is says how old an answer may be: one question is asked for all who follow it with the
same credentials, and a failure is everybody's. Where the tag was known, the question is for headers alone (HEAD).
"""

from __future__ import annotations

import hashlib
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

import msgspec
from msgspec import Struct

from kubectl_reconcile.core.resources.oci import manifest as manifests
from kubectl_reconcile.core.resources.oci.manifest import Descriptor, ManifestError, OciManifest, manifest_of
from kubectl_reconcile.source.errors import SourceError, SourceFault, one_line
from kubectl_reconcile.source.http.client import HttpClient, Redirects
from kubectl_reconcile.source.http.connection import HttpAnswer
from kubectl_reconcile.source.http.errors import shown
from kubectl_reconcile.source.limits import MEBIBYTE
from kubectl_reconcile.source.oci.access import OciAccess
from kubectl_reconcile.source.oci.tokens import Tokens
from kubectl_reconcile.source.running.ending import taking
from kubectl_reconcile.source.running.kept import KEPT
from kubectl_reconcile.source.running.shared import Shared

MOST_BLOB_BYTES: Final = 16 * MEBIBYTE
"""How long a layer may be, packed as it is."""
MOST_TAGS: Final = 50_000
_MOST_PAGES: Final = 100
_MOST_PAGE_BYTES: Final = 4 * MEBIBYTE
_PAGE: Final = 1_000
_MOST_TOLD: Final = 1_000
"""How many tags of one repository an answer is remembered of."""
_NEXT: Final = re.compile(r'<([^<>]{1,2000})>\s*;[^,]{0,200}rel="?next"?')
_ACCEPT: Final = ", ".join(manifests.ACCEPTED)
_ALL_TAGS: Final = ""


class _Told(Struct, frozen=True):
    """What the registry said, as of *begun_s* (monotonic): the digest of a tag, or all *tags*; or the *failure*."""

    begun_s: float
    digest: str = ""
    tags: tuple[str, ...] = ()
    failure: SourceError | None = None


class Registry:
    """One repository, as one set of credentials sees it; see ``registry_of``. From any thread; all that asks the server blocks.

    Whatever asks raises a `SourceError`: the registry can't be asked, refuses, or has no such thing; what it gives isn't what its digest says (``UNTRUSTED``)
    or can't be used (``REFUSED``); or nobody waits any more (``ENDED``).
    """

    def __init__(self, access: OciAccess) -> None:
        self.access = access
        self.repository = access.repository
        self._tokens = Tokens(access)
        self._turn = threading.Lock()
        self.pulling = threading.Lock()
        """Held by whoever brings something here, so that it is brought once."""
        self.verifying = threading.Lock()
        """Held by whoever looks for signatures, so that they are looked for once."""
        self._told: OrderedDict[str, _Told] = OrderedDict()

    # --- tags ---------------------------------------------------------------------------------------------------

    def resolve(self, tag: str, since_s: float) -> str:
        """Return the digest that *tag* has, as of *since_s* (monotonic) or later: one request for all who follow it, and none where somebody was told since then."""
        return self._asked(tag, since_s).digest

    def heard(self, tag: str) -> str:
        """Return the digest that the tag was last heard to have, whatever failed since; empty before that. Asks nobody."""
        told = self._told.get(tag)
        return told.digest if told is not None else ""

    def heard_s(self, tag: str) -> float:
        """Return when (monotonic) it was asked for last where the tag is; minus infinity before that."""
        told = self._told.get(tag)
        return told.begun_s if told is not None else float("-inf")

    def is_at(self, tag: str, digest: str, since_s: float) -> bool:
        """Tell whether somebody was told since then (monotonic) that the tag has that *digest*. Asks nobody."""
        told = self._told.get(tag)
        return told is not None and told.failure is None and (told.digest, told.begun_s >= since_s) == (digest, True)

    def tags(self, since_s: float) -> tuple[str, ...]:
        """Return all tags, as of *since_s* (monotonic) or later, in the registry's order."""
        return self._asked(_ALL_TAGS, since_s).tags

    def _asked(self, tag: str, since_s: float) -> _Told:
        with taking(self._turn):
            told = self._told.get(tag)
            if told is None or told.begun_s < since_s:
                told = self._told[tag] = self._ask(tag, told)
                self._told.move_to_end(tag)
                while len(self._told) > _MOST_TOLD:
                    self._told.popitem(last=False)
            if (failure := told.failure) is not None:
                raise SourceError(failure.fault, failure.message, failure.hint)
            return told

    def _ask(self, tag: str, before: _Told | None) -> _Told:
        begun_s = time.monotonic()
        try:
            if tag == _ALL_TAGS:
                return _Told(begun_s, tags=self._all_tags())
            return _Told(begun_s, self._digest_of(tag, before.digest if before is not None else ""))
        except SourceError as error:
            if error.fault is SourceFault.ENDED:
                raise
            return _Told(begun_s, before.digest if before is not None else "", failure=error)

    def _digest_of(self, tag: str, before: str) -> str:
        """Return the digest of *tag*: what the registry says of it counts only where it says that nothing has changed."""
        url = f"{self.repository.base}/manifests/{tag}"
        if before:
            answer = self._get(url, 0, head=True)
            if answer.status == 200 and answer.headers.get("docker-content-digest") == before:
                return before
            if answer.status in {401, 403, 429} or answer.status >= 500:
                self._good(answer)
        answer = self._get(url, manifests.MOST_BYTES)
        if answer.status == 404:
            said = f"{self.repository}: there is no tag {tag}, or no such repository for these credentials"
            raise SourceError(SourceFault.NO_SUCH_REF, said)
        return self._taken(self._good(answer), "").digest

    def _all_tags(self) -> tuple[str, ...]:
        found: list[str] = []
        url = f"{self.repository.base}/tags/list?{urlencode({'n': _PAGE})}"
        for _ in range(_MOST_PAGES):
            answer = self._get(url, _MOST_PAGE_BYTES)
            if answer.status == 404:
                raise SourceError(SourceFault.NO_SUCH_REPOSITORY, f"{self.repository}: there is no such repository")
            said = _json(self._good(answer).body)
            tags = said.get("tags") if isinstance(said, dict) else None
            found += [each for each in tags if isinstance(each, str)] if isinstance(tags, list) else []
            link = _NEXT.match(answer.headers.get("link", "").lstrip())
            if len(found) > MOST_TAGS:
                raise SourceError(SourceFault.REFUSED, f"{self.repository} has more than {MOST_TAGS:,} tags")
            if link is None:
                return tuple(found)
            url = self._client(Redirects.OWN, 0.0).named(answer.url, link[1])
            if not url.startswith(f"{self.repository.origin}/"):
                said = f"{self.repository}: its next page of tags is to be {shown(url)}, which isn't followed"
                raise SourceError(SourceFault.REFUSED, said)
        raise SourceError(SourceFault.REFUSED, f"{self.repository} has more than {_MOST_PAGES} pages of tags")

    # --- by digest ----------------------------------------------------------------------------------------------

    def manifest(self, digest: str) -> OciManifest:
        """Return the manifest with that *digest*: as it is known, else the registry's."""
        key = (self.access, digest, "manifest")
        if (known := KEPT.find(key, OciManifest)) is not None:
            return known
        answer = self._get(f"{self.repository.base}/manifests/{digest}", manifests.MOST_BYTES, Redirects.BARE)
        if answer.status == 404:
            raise SourceError(SourceFault.NO_SUCH_REF, f"{self.repository} has no manifest {digest}")
        return self._taken(self._good(answer), digest)

    def artifact_manifest(self, digest: str) -> OciManifest:
        """Return the manifest with that *digest*; of an index, the only one that it lists."""
        found = self.manifest(digest)
        if not found.manifests:
            return found
        try:
            return self.manifest(manifests.only_manifest(found).digest)
        except ManifestError as error:
            raise self.unusable(digest, error) from None

    def tagged(self, tag: str) -> OciManifest | None:
        """Return the manifest that *tag* has now, by another question; None where there is no such tag. For tags that nobody follows."""
        answer = self._get(f"{self.repository.base}/manifests/{tag}", manifests.MOST_BYTES)
        return None if answer.status == 404 else self._taken(self._good(answer), "")

    def referrers(self, digest: str) -> tuple[Descriptor, ...] | None:
        """Return what refers to the manifest with that *digest*, at most a page of it; None where the registry has no list of that."""
        answer = self._get(f"{self.repository.base}/referrers/{digest}", manifests.MOST_BYTES)
        if answer.status in {400, 404, 405}:
            return None
        try:
            return manifest_of(self._good(answer).body, digest_of(answer.body), manifests.OCI_INDEX).manifests
        except ManifestError as error:
            raise self.unusable(digest, error) from None

    def blob(self, descriptor: Descriptor) -> bytes:
        """Return the bytes that a manifest describes so."""
        if descriptor.size > MOST_BLOB_BYTES:
            most = f"{MOST_BLOB_BYTES // MEBIBYTE} MiB"
            raise SourceError(
                SourceFault.REFUSED, f"{self.repository}: {descriptor.digest} is to have more than {most}"
            )
        url = f"{self.repository.base}/blobs/{descriptor.digest}"
        answer = self._get(url, descriptor.size, Redirects.BARE)
        if answer.status == 404:
            raise SourceError(SourceFault.NO_SUCH_PATH, f"{self.repository} has no blob {descriptor.digest}")
        body = self._good(answer).body
        if len(body) != descriptor.size:
            said = (
                f"{self.repository}: {descriptor.digest} has {len(body)} bytes, and its manifest says {descriptor.size}"
            )
            raise SourceError(SourceFault.UNTRUSTED, said)
        self._check(descriptor.digest, body)
        return body

    def unusable(self, digest: str, error: ManifestError) -> SourceError:
        """Return the refusal of what has that *digest*."""
        return SourceError(SourceFault.REFUSED, f"{self.repository}@{digest} {error.why}", error.hint)

    def _taken(self, answer: HttpAnswer, digest: str) -> OciManifest:
        """Return the manifest that was answered, and keep it; *digest* is what it has to have, empty for any."""
        if digest:
            self._check(digest, answer.body)
        found = digest or digest_of(answer.body)
        key = (self.access, found, "manifest")
        if (known := KEPT.find(key, OciManifest)) is not None:
            return known
        try:
            manifest = manifest_of(answer.body, found, answer.headers.get("content-type", ""))
        except ManifestError as error:
            raise self.unusable(found, error) from None
        KEPT.keep(key, manifest, 2 * len(answer.body))
        return manifest

    def _check(self, digest: str, body: bytes) -> None:
        if (found := digest_of(body)) != digest:
            said = f"{self.repository}: expected {digest}, found {found}"
            raise SourceError(
                SourceFault.UNTRUSTED, said, "the registry, or somebody on the way, gives something else; it isn't used"
            )

    # --- requests -----------------------------------------------------------------------------------------------

    def _client(self, redirects: Redirects, deadline_s: float) -> HttpClient:
        access = self.access
        challenged = partial(self._challenged, deadline_s)
        return HttpClient(self.repository.base, access.credentials, access.may, redirects, access.ca_file, challenged)

    def _challenged(self, deadline_s: float, answer: HttpAnswer) -> Mapping[str, str]:
        return self._tokens.answered(answer, deadline_s)

    def _get(self, url: str, most: int, redirects: Redirects = Redirects.OWN, *, head: bool = False) -> HttpAnswer:
        deadline_s = time.monotonic() + min(self.access.most_seconds, self.access.limits.seconds)
        headers = {"Accept": _ACCEPT if "/manifests/" in url else "*/*", **self._tokens.headers()}
        return self._client(redirects, deadline_s).ask(url, most, deadline_s, headers, head=head)

    def _good(self, answer: HttpAnswer) -> HttpAnswer:
        """Return an answer that has what was asked for."""
        if answer.status == 200:
            return answer
        said = f"{shown(answer.url)}: the registry answers {answer.status}{_complaint(answer.body)}"
        if answer.status in {401, 403}:
            why = f"; {self._tokens.why_not}" if self._tokens.why_not else ""
            hint = self._tokens.hint or "name a Secret with credentials that are for it in secretRef"
            raise SourceError(SourceFault.UNAUTHORIZED, f"{said}{why}", hint)
        if answer.status == 429:
            raise SourceError(
                SourceFault.UNREACHABLE, said, "it wants fewer requests: use credentials, or a longer interval"
            )
        fault = SourceFault.UNREACHABLE if answer.status >= 500 else SourceFault.NO_SUCH_REPOSITORY
        raise SourceError(fault, said)


_KNOWN: Final = Shared[OciAccess, Registry]()


def registry_of(access: OciAccess) -> Registry:
    """Return the repository that *access* is to, the same for all of this process who ask it in the same way."""
    return _KNOWN.of(access, lambda: Registry(access))


def digest_of(data: bytes) -> str:
    """Return the digest of bytes."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _json(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return None


def _complaint(body: bytes) -> str:
    """Return what a registry says of a failure, by the distribution specification; empty where it says nothing."""
    said = _json(body[:_MOST_COMPLAINT])
    errors = said.get("errors") if isinstance(said, dict) else None
    first = errors[0] if isinstance(errors, list) and errors else None
    code = first.get("code") if isinstance(first, dict) else None
    return f" {one_line(code, 60)}" if isinstance(code, str) else ""


_MOST_COMPLAINT: Final = 64 * 1024
