"""The repository that a Sync follows, with the credentials of its Secret, which go to the URLs that the Secret names and to no other.

A Sync may come from a repository that somebody else writes to, with any URL and the name of any Secret of its
namespace in it. So the Secret says what it is for: in annotation ``reconcile.dev/urls``, or in its key ``url``.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from urllib.parse import unquote, urlsplit

from msgspec import Struct
from msgspec.structs import replace

from kubectl_reconcile.cluster.errors import NotFound
from kubectl_reconcile.core.annotations import URLS
from kubectl_reconcile.core.objects import Manifest, annotations_of, decoded_text
from kubectl_reconcile.core.phrases import first_few
from kubectl_reconcile.core.redaction import without_credentials
from kubectl_reconcile.core.resources.chart import ChartSpec
from kubectl_reconcile.core.resources.credential_scope import CredentialScope
from kubectl_reconcile.core.resources.oci import docker_config
from kubectl_reconcile.core.resources.oci.reference import OciRepository
from kubectl_reconcile.core.resources.source import GitSpec
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.core.resources.url_policy import FLAG
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.engine.sync.signed_sources import give_keys
from kubectl_reconcile.source.base import Chart
from kubectl_reconcile.source.charts import repository as chart_repository
from kubectl_reconcile.source.charts.repository import ChartAccess
from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.oci.access import OciAccess
from kubectl_reconcile.source.oci.chart import RegistryChart
from kubectl_reconcile.source.oci.registry import Registry, registry_of
from kubectl_reconcile.source.oci.verified import VerifiedPin
from kubectl_reconcile.source.policy import SourcePolicy
from kubectl_reconcile.source.remote import Credentials, Repository

_KEYS = {
    "username": "username",
    "password": "password",
    "bearerToken": "bearer_token",
    "ca.crt": "ca_bundle",
    "identity": "ssh_private_key",
    "known_hosts": "known_hosts",
}
_URL_KEY = "url"
_NOWHERE = CredentialScope()
_LISTED = 3
"""How many URLs of a Secret an error lists."""
_LONGEST_LINE = 300
"""The length up to which an error spells out the command that names a URL besides others."""


async def repository_of(session: Session, sync: Sync, git: GitSpec) -> Repository:
    """Return the repository at *git*, with what its Secret holds if that is for it. Of this machine's own none is wanted.

    Raises:
        SourceError: the URL or the Secret can't be used, or the Secret isn't for that URL.
        ApiError: the server refuses, or doesn't answer.
    """
    if local_folder(git.url) is not None:
        return Repository.of(git.url, allow_local=True)
    if not git.secret:
        return Repository.of(git.url)
    secret = await secret_of(session, sync.namespace, git.secret)
    repository = Repository.of(git.url, credentials_in(secret))
    require_meant(secret, repository.url)
    return repository


class KeptUp(Struct, frozen=True):
    """How whoever keeps a chart up goes on from the one that was read *earlier*: what isn't signed may be known as of *since_s* (monotonic)."""

    earlier: Chart | None
    since_s: float


async def chart_of(session: Session, sync: Sync, keeps: KeptUp | None = None) -> Chart | None:
    """Return where the chart of a Sync comes from, with what its Secret holds if that is for it; None where it is in Git.

    One that has to be signed is for who looks, or for who *keeps* it up.

    Raises:
        SourceError: the URL or the Secret can't be used, or the Secret isn't for that URL.
        ApiError: the server refuses, or doesn't answer.
    """
    pin = sync.source.chart if sync.source else None
    if pin is None:
        return None
    if (repository := pin.registry) is not None:
        registry = registry_of(await access_to(session, sync, repository, pin.secret))
        return RegistryChart(pin, registry, await _verified_pin(session, sync, pin, registry, keeps))
    credentials = Credentials()
    if pin.secret:
        secret = await secret_of(session, sync.namespace, pin.secret)
        require_meant(secret, pin.repository)
        credentials = credentials_in(secret)
    return fetched(pin, session.cache_dir, session.sources, credentials)


async def _verified_pin(
    session: Session, sync: Sync, pin: ChartSpec, registry: Registry, keeps: KeptUp | None
) -> VerifiedPin | None:
    """Return the chart as one that has to be signed, with the keys that the Sync trusts for that; None where it hasn't."""
    if pin.verify is None:
        return None
    found = VerifiedPin(
        registry, f"chart {pin.name}", pin.revision, pin.verify, sync.namespace, keeps=keeps is not None
    )
    if keeps is not None:
        found.since_s = keeps.since_s
        found.go_on_from(keeps.earlier.verified if keeps.earlier is not None else None)
    await give_keys(session, sync.namespace, pin.verify, found)
    return found


def fetched(
    pin: ChartSpec, cache_dir: Path, sources: SourcePolicy, credentials: Credentials, scope: CredentialScope = _NOWHERE
) -> Chart:
    """Return the chart that *pin* says, fetched when it is first needed; that of a Helm repository is kept below *cache_dir*.

    The *credentials* are for it, and of a Secret that is for the URLs of *scope*.
    """
    if (repository := pin.registry) is not None:
        access = OciAccess(repository, sources.limits, credentials, scope, sources.urls)
        return RegistryChart(pin, registry_of(access))
    return chart_repository.chart_of(ChartAccess(pin, cache_dir / "charts", sources.limits, credentials, sources.urls))


def login_for(pin: ChartSpec, secret: Manifest) -> tuple[Credentials, CredentialScope] | None:
    """Return what *secret* holds for the repository of a chart, and all that it is for; None where it doesn't name that.

    Raises:
        SourceError: the Secret can't be used.
    """
    scope, repository = scope_of(secret), pin.registry
    if repository is not None and docker_config.KEY in (secret.get("data") or {}):
        return (found, scope) if (found := _login(repository, secret)) is not None else None
    is_meant = scope.covers(pin.repository if repository is None else str(repository))
    return (credentials_in(secret), scope) if is_meant else None


async def access_to(session: Session, sync: Sync, repository: OciRepository, secret_name: str) -> OciAccess:
    """Return as whom a Sync asks a registry for a *repository*: with what the Secret of that name holds if that is for it.

    Raises:
        SourceError: the Secret can't be used, or isn't for that repository.
        ApiError: the server refuses, or doesn't answer.
    """
    credentials, scope = Credentials(), CredentialScope()
    if secret_name:
        secret = await secret_of(session, sync.namespace, secret_name)
        credentials, scope = _credentials_for(repository, secret), scope_of(secret)
    return OciAccess(repository, session.sources.limits, credentials, scope, session.sources.urls)


def _credentials_for(repository: OciRepository, secret: Manifest) -> Credentials:
    """Return what a Secret has for a repository of a registry. Where it is a file of logins, that says what they are for."""
    data = secret.get("data") or {}
    if docker_config.KEY not in data:
        require_meant(secret, str(repository))
        return credentials_in(secret)
    if (found := _login(repository, secret)) is None:
        hint = f"kubectl create secret docker-registry {secret['metadata']['name']} --docker-server={repository.host} makes one"
        raise SourceError(SourceFault.UNAUTHORIZED, f"Secret {_name(secret)} has no login for {repository}", hint)
    return found


def _login(repository: OciRepository, secret: Manifest) -> Credentials | None:
    """Return what the file of logins in a Secret has for a repository; None where it has nothing for it."""
    try:
        login = docker_config.login_of(
            _decoded(secret["data"][docker_config.KEY], secret, docker_config.KEY), repository
        )
    except docker_config.LoginError as error:
        said = f"key {docker_config.KEY} of Secret {_name(secret)} {error}"
        raise SourceError(SourceFault.UNAUTHORIZED, said) from None
    if login is None:
        return None
    return replace(credentials_in(secret), username=login.username, password=login.password, bearer_token=login.token)


def require_allowed(sources: SourcePolicy, url: str) -> None:
    """Return if the repository at *url* may be followed.

    Raises:
        SourceError: it mayn't (``REFUSED``).
    """
    if not sources.urls.allows(url):
        raise SourceError(
            SourceFault.REFUSED,
            f"repository {without_credentials(url)} isn't allowed here; allowed are only URLs below: {sources.urls}",
            f"the administrator of the daemon can allow more with {FLAG}",
        )


def local_folder(url: str) -> Path | None:
    """Return the folder that a file URL names, None for any other URL."""
    parts = urlsplit(url)
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


async def secret_of(session: Session, namespace: str, name: str) -> Manifest:
    """Return a Secret with credentials.

    Raises:
        SourceError: there is no object of that name.
        ApiError: the server refuses, or doesn't answer.
    """
    try:
        return await session.client.get(secret_path(namespace, name))
    except NotFound:
        raise SourceError(
            SourceFault.UNAUTHORIZED,
            f"there is no Secret {namespace}/{name}",
            f"create it with username and password, or identity and known_hosts, and annotation {URLS}",
        ) from None


def secret_path(namespace: str, name: str) -> str:
    """Return where the API has a Secret."""
    return f"/api/v1/namespaces/{namespace}/secrets/{name}"


def scope_of(secret: Manifest) -> CredentialScope:
    """Return the URLs that a Secret names.

    Raises:
        SourceError: its key ``url`` isn't text.
    """
    data = secret.get("data") or {}
    named = _decoded(data[_URL_KEY], secret, _URL_KEY) if _URL_KEY in data else ""
    return CredentialScope.of(annotations_of(secret).get(URLS, ""), named)


def credentials_in(secret: Manifest) -> Credentials:
    """Return the credentials that a Secret holds, whatever they are for.

    Raises:
        SourceError: one of its keys isn't text.
    """
    data = secret.get("data") or {}
    return Credentials(**{field: _decoded(data[key], secret, key) for key, field in _KEYS.items() if key in data})


def _decoded(text: str, secret: Manifest, key: str) -> str:
    try:
        return decoded_text(text)
    except ValueError:
        message = f"key {key} of Secret {_name(secret)} isn't text"
        raise SourceError(SourceFault.UNAUTHORIZED, message, "") from None


def _name(secret: Manifest) -> str:
    return f"{secret['metadata']['namespace']}/{secret['metadata']['name']}"


def require_meant(secret: Manifest, url: str) -> None:
    """Return if *secret* names *url*, or a prefix of it.

    Raises:
        SourceError: it doesn't (``UNAUTHORIZED``); the message has the line that allows it.
    """
    if not (scope := scope_of(secret)).covers(url):
        raise _not_meant(secret, scope, url)


def _not_meant(secret: Manifest, scope: CredentialScope, url: str) -> SourceError:
    """Return the refusal to send the credentials of *secret*, which names *scope*, to *url*, with the line that allows it."""
    # What the key url holds isn't shown, as no value of a Secret is; nor are entries that are no addresses.
    known = [str(address) for address in CredentialScope.of(annotations_of(secret).get(URLS, "")).addresses]
    message = f"Secret {_name(secret)} isn't for {url}"
    if known:
        message += f", but for {first_few(known, _LISTED)}"
    elif scope == CredentialScope():
        message += f": it doesn't name the repositories it is for, in annotation {URLS} or key {_URL_KEY}"
    if unusable := scope.unusable:
        are = "isn't a URL" if unusable == 1 else "aren't URLs"
        message += f"; {unusable} of its entries {are} of a repository"
    line = annotate_line(secret, [*known, url])
    if len(line) > _LONGEST_LINE:
        line = f"add the URL to its annotation {URLS}"
    shown = "plain http shows its password to everybody on the network; " if url.lower().startswith("http:") else ""
    return SourceError(SourceFault.UNAUTHORIZED, message, f"{shown}if its owner agrees to send it there: {line}")


def annotate_line(secret: Manifest, urls: list[str]) -> str:
    """Return the command that has *secret* name these URLs."""
    metadata = secret["metadata"]
    overwrite = " --overwrite" if URLS in annotations_of(secret) else ""
    value = shlex.quote(f"{URLS}={' '.join(urls)}")
    return f"kubectl annotate{overwrite} secret {metadata['name']} -n {metadata['namespace']} {value}"
