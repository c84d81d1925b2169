"""Naming a Git repository safely, and proving to its server who we are.

A *repository* is a URL and the credentials for it. URLs, refs and paths come from Syncs that
anybody with access to a namespace may write, and end as arguments of ``git``: so each is checked
against what it may look like, and everything else is refused (``ext::sh -c …``, ``--upload-pack=…``,
``ssh://-oProxyCommand=…``, ``../../etc``).

Credentials reach git through its environment or through files only we can read, for the time of
one command: never through its arguments, the clone's configuration, or an error message. They go
to the host of the URL and are not carried along a redirect. Certificates and host keys are always
checked. Unless a repository says *user_config*, the configuration, keys and helpers of whoever
runs us play no part.
"""

from __future__ import annotations

import base64
import os
import re
import shlex
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import ClassVar
from urllib.parse import unquote, urlsplit, urlunsplit

from msgspec import Struct

from kubectl_reconcile.core.records import Guarded
from kubectl_reconcile.core.redaction import without_credentials
from kubectl_reconcile.core.resources.url_policy import UrlPolicy
from kubectl_reconcile.source.destination import Destination, UnresolvedError
from kubectl_reconcile.source.errors import SourceError, SourceFault, one_line
from kubectl_reconcile.source.http.proxies import proxy_url
from kubectl_reconcile.source.running.process import BIG_FILE


class Credentials(Guarded, frozen=True):
    """How to get at a repository. Nothing of it shows in a ``repr``.

    Over HTTP: *username* and *password* (a token counts as one), or a *bearer_token*, and
    *ca_bundle*, PEM certificates to trust instead of the system's. Over SSH: *ssh_private_key*
    (without passphrase) and *known_hosts*, lines as ``ssh-keyscan`` prints them.
    """

    hidden: ClassVar = frozenset(
        {"username", "password", "bearer_token", "ca_bundle", "ssh_private_key", "known_hosts"}
    )

    username: str = ""
    password: str = ""
    bearer_token: str = ""
    ca_bundle: str = ""
    ssh_private_key: str = ""
    known_hosts: str = ""

    def secrets(self) -> tuple[str, ...]:
        """Return every text that must not be shown."""
        return tuple(filter(None, (self.password, self.bearer_token, self._basic(), self.ssh_private_key)))

    def header(self) -> str:
        """Return the HTTP header that authenticates, or nothing."""
        if self.bearer_token:
            return f"Authorization: Bearer {self.bearer_token}"
        return f"Authorization: Basic {self._basic()}" if self.username or self.password else ""

    def _basic(self) -> str:
        return base64.b64encode(f"{self.username}:{self.password}".encode()).decode()


class Scheme(StrEnum):
    """How a repository is reached."""

    HTTP = "http"
    """Over HTTP or HTTPS."""
    SSH = "ssh"
    """Over SSH, written as a URL or as ``user@host:path``."""
    LOCAL = "file"
    """A folder of this machine. Only for callers that act for the person at the keyboard."""


_SCP = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_.+-]*@)?[A-Za-z0-9][A-Za-z0-9.-]*:(?!//|:)[^-].*")
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*|[0-9A-Fa-f:.]+")


class Repository(Struct, frozen=True):
    """A repository that is safe to hand to git: *url* is checked and free of credentials.

    Make one with ``Repository.of``. Where it *stays*, a server that redirects to another address isn't followed. What *may* be connected to
    for it is judged by addresses; None for a person's own, of which all is.
    """

    url: str
    scheme: Scheme
    credentials: Credentials
    user_config: bool = False
    stays: bool = False
    may: UrlPolicy | None = None

    @classmethod
    def of(
        cls,
        url: str,
        credentials: Credentials | None = None,
        *,
        allow_local: bool = False,
        user_config: bool = False,
    ) -> Repository:
        """Return the repository at *url*.

        A user and password within an http URL are moved to the credentials, unless those have their
        own. *allow_local* admits ``file://`` and absolute paths; *user_config* lets git read the
        user's configuration, credential helpers and SSH keys. Both are for the command line only.

        Raises:
            SourceError: git isn't to be given that URL (``REFUSED``).
        """
        credentials = credentials or Credentials()
        scheme = _scheme_of(url)
        if scheme is Scheme.LOCAL and not allow_local:
            raise _refused(url, "is a local path", "use an https or ssh URL")
        if scheme is Scheme.HTTP:
            url, credentials = _without_userinfo(url, credentials)
        if scheme is Scheme.SSH and not user_config and not (credentials.ssh_private_key and credentials.known_hosts):
            raise _refused(
                url, "is SSH and needs a private key and known_hosts", "ssh-keyscan prints lines for known_hosts"
            )
        return cls(url, scheme, credentials, user_config)

    def __str__(self) -> str:
        return one_line(self.url)

    @property
    def destination(self) -> Destination:
        """Where its server was found last, and what may be connected to there."""
        return Destination(MOVED.of(self), self.url, self.may)

    @contextmanager
    def environment(self, *, partial: bool = False, shared: Path | None = None) -> Iterator[Mapping[str, str]]:
        """Yield what git's environment must hold to talk to this repository; its files vanish afterwards.

        To a *partial* clone the server gives commits and folders, and of the files those that are asked for by name.
        Over SSH the connection behind the socket *shared* is used, if that is still there.

        Raises:
            SourceError: its host has no address that may be connected to (``REFUSED``).
            UnresolvedError: it has none at all.
        """
        with tempfile.TemporaryDirectory(prefix="kubectl-reconcile-") as name:
            private = Path(name)
            yield {
                **_basics(self, private),
                **_configuration(self, private, partial=partial),
                **_ssh(self, private, shared),
            }


def check_ref(name: str) -> str:
    """Return *name* of a branch, tag or commit if git would accept it.

    Raises:
        SourceError: it isn't a name of a ref (``REFUSED``).
    """
    bad = re.search(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|\.lock(?:/|$)", name)
    if (
        not name
        or bad
        or name.startswith(("-", "/", "."))
        or name.endswith(("/", "."))
        or name == "@"
        or not _clean(name)
    ):
        raise SourceError(
            SourceFault.REFUSED, f"'{name}' isn't a name of a branch, tag or commit", "see git check-ref-format"
        )
    return name


def check_path(path: str) -> str:
    """Return *path* within a repository in its plain form: ``./apps/`` becomes ``apps``, the root ``""``.

    Raises:
        SourceError: it leads out of the repository, or isn't a path at all (``REFUSED``).
    """
    parts = [part for part in path.split("/") if part not in {"", "."}]
    if path.startswith("/") or ".." in parts or not _clean(path) or "\\" in path:
        raise SourceError(
            SourceFault.REFUSED, f'path "{path}" is not within the repository', "as in apps/shop, without .."
        )
    return "/".join(parts)


def _clean(text: str) -> bool:
    return text.isprintable()


def _refused(url: str, why: str, hint: str) -> SourceError:
    return SourceError(SourceFault.REFUSED, f"repository {without_credentials(url)} {why}", hint)


def _scheme_of(url: str) -> Scheme:
    hint = "use https://host/path, ssh://user@host/path or user@host:path"
    if not url or not _clean(url) or " " in url or url.startswith("-"):
        raise _refused(url, "isn't a URL", hint)
    if "://" in url:
        return _scheme_of_url(url, hint)
    if url.startswith("/"):
        return Scheme.LOCAL
    if _SCP.fullmatch(url):
        return Scheme.SSH
    raise _refused(url, "isn't a URL", hint)


def _scheme_of_url(url: str, hint: str) -> Scheme:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError as error:
        raise _refused(url, f"isn't a URL: {error}", hint) from None
    if parts.scheme == "file" and not parts.netloc:
        return Scheme.LOCAL
    scheme = {"https": Scheme.HTTP, "http": Scheme.HTTP, "ssh": Scheme.SSH}.get(parts.scheme)
    if scheme is None:
        raise _refused(url, "has a scheme that isn't supported", hint)
    if not _HOST.fullmatch(host) or (parts.username or "").startswith("-") or parts.path.startswith("/-"):
        raise _refused(url, "has no proper host, user or path", hint)
    if scheme is Scheme.SSH and parts.password:
        raise _refused(url, "has a password, which SSH doesn't support", "use a private key")
    return scheme


def _without_userinfo(url: str, credentials: Credentials) -> tuple[str, Credentials]:
    parts = urlsplit(url)
    if "@" not in parts.netloc:
        return url, credentials
    if not credentials.header():
        username, password = unquote(parts.username or ""), unquote(parts.password or "")
        credentials = Credentials(username=username, password=password, ca_bundle=credentials.ca_bundle)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])), credentials


# --------------------------------------------------------------------------------- environment

_SILENCE_S = 60
"""How long a server may say nothing in the middle of a transfer, in seconds; git's own says something every five."""
_PROTOCOLS = {Scheme.HTTP: "http:https", Scheme.SSH: "ssh", Scheme.LOCAL: "file"}


def refuse_unchecked() -> None:
    """Return if nothing in our environment has certificates go unchecked.

    Raises:
        SourceError: something has (``REFUSED``).
    """
    if "GIT_SSL_NO_VERIFY" in os.environ:
        raise SourceError(
            SourceFault.REFUSED, "GIT_SSL_NO_VERIFY is set, so no certificate would be checked", "unset it"
        )


def _basics(repository: Repository, private: Path) -> dict[str, str]:
    refuse_unchecked()
    names = {
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "",
        "SSH_ASKPASS_REQUIRE": "never",
        "GIT_ALLOW_PROTOCOL": _PROTOCOLS[repository.scheme],
    }
    if not repository.user_config:
        home = private / "home"
        home.mkdir()
        names |= {
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_PARAMETERS": "",
        }
    return names


def _configuration(repository: Repository, private: Path, *, partial: bool) -> dict[str, str]:
    """Return git's configuration for one command: environment variables, since arguments show in a process list."""
    credentials = repository.credentials
    settings = {
        "protocol.ext.allow": "never",
        "http.sslVerify": "true",
        "http.lowSpeedLimit": "1",
        "http.lowSpeedTime": str(_SILENCE_S),
        "fetch.unpackLimit": "1",  # what is fetched stays a pack, however small: packs are what is counted of a clone
        "core.bigFileThreshold": BIG_FILE,
        "core.deltaBaseCacheLimit": "8m",
        "pack.threads": "1",
        "gc.autoDetach": "false",  # what git tidies up it does within its limits, its time and its process group
        "maintenance.autoDetach": "false",
    }
    if not repository.user_config:
        settings["credential.helper"] = ""
    if repository.stays:
        settings["http.followRedirects"] = "false"
    if repository.scheme is Scheme.HTTP and (header := credentials.header()):
        settings |= {
            f"http.{repository.url}.extraHeader": header,
            "http.followRedirects": "false",
            "credential.helper": "",
        }
    held, direct = _held(repository)
    settings |= held
    if partial:
        remote = f"remote.{repository.url}"
        settings |= {f"{remote}.promisor": "true", f"{remote}.partialCloneFilter": "blob:none"}
    variables = {"GIT_CONFIG_COUNT": str(len(settings)), **direct, **_trust(credentials, private)}
    for index, (key, value) in enumerate(settings.items()):
        variables |= {f"GIT_CONFIG_KEY_{index}": key, f"GIT_CONFIG_VALUE_{index}": value}
    return variables


def _held(repository: Repository) -> tuple[dict[str, str], dict[str, str]]:
    """Return the settings and variables that have git connect to an address that was judged, and go where a question was redirected to but no further.

    Behind a proxy it is the proxy that connects; what we know of the host is judged anyway. Git isn't left to find out
    whether there is one: it may read the variables differently.

    Raises:
        SourceError: the host has no address that may be connected to (``REFUSED``).
        UnresolvedError: it has none at all.
    """
    if repository.may is None or repository.scheme is not Scheme.HTTP:
        return {}, {}
    there = repository.destination
    settings = {"http.followRedirects": "false"}
    if there.url != there.stated:
        settings[f"url.{there.url}.insteadOf"] = there.stated
    if proxy_url(there.url):
        with suppress(UnresolvedError):
            there.judged(there.looked_up())
        return settings, {"no_proxy": "", "NO_PROXY": ""}
    place, found = there.place, there.judged(there.looked_up())
    host = place.host.strip("[]")
    if host not in found:
        pinned = ",".join(f"[{each}]" if ":" in each else each for each in found)
        settings["http.curloptResolve"] = f"{host}:{place.port}:{pinned}"
    return settings, {"no_proxy": "*", "NO_PROXY": "*"}


def ssh_address(repository: Repository) -> dict[str, str]:
    """Return the options that have ssh connect to an address that was judged, and still know the host by its name.

    Raises:
        SourceError: the host has no address that may be connected to (``REFUSED``).
        UnresolvedError: it has none at all.
    """
    if repository.may is None or repository.scheme is not Scheme.SSH:
        return {}
    place = repository.destination.place
    host = place.host.strip("[]")
    by_name = place.port == _SSH_PORT or "@cert-authority" in repository.credentials.known_hosts
    alias = host if by_name else f"[{host}]:{place.port}"
    return {"HostName": repository.destination.one_that_answers(), "HostKeyAlias": alias}


_SSH_PORT = 22


class _Moved:
    """Where repositories were found that their servers redirect from; beyond a bound the ones go that were noted first.

    What a server says to some it says to nobody else: each is noted for those who ask with the same credentials, and may follow as far.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._known: dict[Repository, str] = {}

    def note(self, repository: Repository, there: str) -> None:
        """Take note that a repository was found *there*."""
        with self._guard:
            self._known.pop(repository, None)
            if there.rstrip("/") == repository.url.rstrip("/"):
                return
            self._known[repository] = there
            while len(self._known) > _MOST_MOVED:
                del self._known[next(iter(self._known))]

    def of(self, repository: Repository) -> str:
        """Return where a repository was found last."""
        return self._known.get(repository, repository.url)


_MOST_MOVED = 1_000
MOVED = _Moved()
"""What was found out by asking, for git, which follows no redirect by itself."""


def _trust(credentials: Credentials, private: Path) -> dict[str, str]:
    """Return what has git trust the given certificates and no others; its environment wins over any configuration."""
    if not credentials.ca_bundle:
        return {}
    nothing = private / "no-certificates"
    nothing.mkdir()
    bundle = _private_file(private / "ca.pem", credentials.ca_bundle)
    return {"GIT_SSL_CAINFO": str(bundle), "GIT_SSL_CAPATH": str(nothing)}


def _ssh(repository: Repository, private: Path, shared: Path | None) -> dict[str, str]:
    credentials = repository.credentials
    if repository.user_config and not credentials.ssh_private_key and "GIT_SSH_COMMAND" in os.environ:
        return {}
    words = ssh_words(repository, private)
    if shared is not None:
        words += ["-o", f"ControlPath={shared}", "-o", "ControlMaster=no"]
    return {"GIT_SSH_COMMAND": shlex.join(words), "GIT_SSH_VARIANT": "ssh"}


def ssh_words(repository: Repository, private: Path) -> list[str]:
    """Return how ssh is called for *repository*, with its key and known hosts in files of the folder *private*.

    Raises:
        SourceError, UnresolvedError: as ``ssh_address``.
    """
    credentials = repository.credentials
    options = {"BatchMode": "yes", "ConnectTimeout": "20", "ServerAliveInterval": "15", "ServerAliveCountMax": "4"}
    if not repository.user_config:
        options |= {"StrictHostKeyChecking": "yes", "GlobalKnownHostsFile": "none", "UserKnownHostsFile": "none"}
    if credentials.known_hosts:
        hosts = _private_file(private / "known_hosts", credentials.known_hosts)
        options |= {"StrictHostKeyChecking": "yes", "GlobalKnownHostsFile": "none", "UserKnownHostsFile": str(hosts)}
    words = ["ssh"] if repository.user_config else ["ssh", "-F", "none"]
    if credentials.ssh_private_key:
        key = _private_file(private / "key", credentials.ssh_private_key)
        words += ["-i", str(key)]
        options |= {"IdentitiesOnly": "yes", "IdentityAgent": "none", "PreferredAuthentications": "publickey"}
    for name, value in {**options, **ssh_address(repository)}.items():
        words += ["-o", f"{name}={value}"]
    return words


def _private_file(path: Path, text: str) -> Path:
    """Write *text* where only we can read it; keys and certificates end with a newline or aren't read at all."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text if text.endswith("\n") else f"{text}\n")
    return path
