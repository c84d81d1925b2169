"""What git complains of, turned into one of ``SourceFault``, in a sentence that says what to do.

Git knows no codes, so its words are matched, in the C locale and one line at a time; the first row that fits counts.
"""

from __future__ import annotations

import re
import signal

from kubectl_reconcile.source.errors import SourceError, SourceFault, scrubbed
from kubectl_reconcile.source.limits import SAID_KEPT_BYTES, GitLimits, raising
from kubectl_reconcile.source.remote import Repository, Scheme
from kubectl_reconcile.source.running.process import GitProcess, said_too_much

_UNREACHABLE = (
    r"Could not resolve|resolve host|Connection refused|Failed to connect|timed out|Connection reset|Network is unreachable"
    r"|No route to host|returned error: (?:429|5\d\d)|Empty reply|early EOF|unexpected disconnect|hung up|Connection closed"
    r"|unable to access"
)
_CHECK = "check the URL and the network"
_DAMAGED = (
    r"not a git repository|loose object|object file .* is empty|bad object|[Cc]ould not parse|packfile|inflate|corrupt"
    r"|missing blob|missing tree|invalid sha1 pointer|unable to read (?:tree|sha1|object)|does not match index"
    r"|reference broken|not a valid object|bad config|bad tree|did not send all necessary objects|unable to parse|invalid object"
)

_COMPLAINTS: tuple[tuple[str, SourceFault, str, str], ...] = (
    (
        r"[Oo]ut of memory|malloc failed|unable to create thread|mmap failed: Cannot allocate",
        SourceFault.REFUSED,
        "git needs more memory than it is allowed",
        raising("memory_bytes"),
    ),
    (
        r"File too large",
        SourceFault.REFUSED,
        "its clone needs more disk space than it is allowed",
        raising("clone_bytes"),
    ),
    (
        r"! \[remote rejected\]|hook declined|protected branch",
        SourceFault.REFUSED,
        "the server refused the push",
        "if the branch is protected, open a pull request instead",
    ),
    (
        r"! \[rejected\]|non-fast-forward|fetch first",
        SourceFault.REFUSED,
        "somebody pushed to the branch meanwhile",
        "run it again",
    ),
    (
        r"[Pp]lease tell me who you are|empty ident name|unable to auto-detect email",
        SourceFault.REFUSED,
        "git doesn't know who you are",
        "set git config --global user.name and user.email",
    ),
    (
        r"failed to sign the data|gpg\.ssh\.defaultKeyCommand|user\.signing[Kk]ey|Couldn't load public key",
        SourceFault.REFUSED,
        "git can't sign the commit, and the Sync requires signatures",
        "git config user.signingKey, and gpg.format ssh for an SSH key, choose the key",
    ),
    (
        r"returned error: 30\d|unable to update url base from redirection",
        SourceFault.REFUSED,
        "the server redirects to another address",
        "credentials aren't sent to another address; use the address that it redirects to",
    ),
    (
        r"certificate has expired",
        SourceFault.UNTRUSTED,
        "its TLS certificate, or that of its CA, has expired",
        "renew it on the server; if the CA has a new certificate, update ca.crt in the Secret",
    ),
    (
        r"certificate is not yet valid",
        SourceFault.UNTRUSTED,
        "its TLS certificate isn't valid yet",
        "compare the clocks of both machines",
    ),
    (
        r"subject name|does not match target host|hostname mismatch|IP address mismatch",
        SourceFault.UNTRUSTED,
        "its TLS certificate is for another name",
        "use a name that the certificate has in the URL",
    ),
    (
        r"SSL certificate problem|certificate verif|server verification failed|unable to get local issuer",
        SourceFault.UNTRUSTED,
        "its TLS certificate isn't trusted",
        "put the CA that signed it into key ca.crt of the Secret that secretRef names",
    ),
    (
        r"error setting certificate (?:verify locations|file)|error adding trust anchors",
        SourceFault.UNTRUSTED,
        "the given CA can't be read",
        "ca.crt holds certificates in PEM",
    ),
    (
        r"Host key verification failed|REMOTE HOST IDENTIFICATION HAS CHANGED|No .* host key is known",
        SourceFault.UNTRUSTED,
        "its SSH host key isn't in known_hosts",
        "ssh-keyscan prints the line to add; compare it with what the host publishes",
    ),
    (
        r"Authentication failed|could not read (?:Username|Password)|returned error: 40[13]|Permission denied \(|HTTP Basic: Access denied",
        SourceFault.UNAUTHORIZED,
        "the server refused the credentials",
        "check user, token or key, and that they may read this repository",
    ),
    (
        r"error in libcrypto|invalid format|Load key .*:",
        SourceFault.UNAUTHORIZED,
        "the SSH private key can't be read",
        "give it in PEM or OpenSSH format, without a passphrase",
    ),
    (
        r"repository '.*' not found|returned error: 404|does not appear to be a git repository|[Rr]epository not found|does not exist|not a git repository: '/",
        SourceFault.NO_SUCH_REPOSITORY,
        "there is no such repository",
        "check the URL; some servers also say this when credentials are missing",
    ),
    (
        r"couldn't find remote ref|not our ref|no such remote ref|unadvertised object",
        SourceFault.NO_SUCH_REF,
        "it has no such ref",
        "",
    ),
    (
        _UNREACHABLE,
        SourceFault.UNREACHABLE,
        "",
        _CHECK,
    ),
    (
        _DAMAGED,
        SourceFault.CORRUPT,
        "the local clone is damaged",
        "remove it from the cache folder",
    ),
)


_NO_CREDENTIALS = "a Secret with username and password or bearerToken, named by spec.source.git.secretRef, gives them"
_NO_CREDENTIALS_OF_USER = "one of git's credential helpers, or user and token in the URL, give them"


def _is_nameless(repository: Repository) -> bool:
    """Return whether an HTTP server was shown nothing that says who we are."""
    return repository.scheme is Scheme.HTTP and not repository.credentials.header()


def explained(repository: Repository, complaint: str) -> SourceError:
    """Return the error that git's *complaint* amounts to."""
    lines = [line.strip() for line in complaint.splitlines() if line.strip()]
    told = [
        re.sub(r"^(?:fatal|error|ssh|remote): ", "", line)
        for line in lines
        if not line.startswith(("hint:", "warning:"))
    ]
    for pattern, fault, message, hint in _COMPLAINTS:
        match = next((line for line in told if re.search(pattern, line)), None)
        if match is not None and fault is SourceFault.UNAUTHORIZED and _is_nameless(repository):
            wanted = _NO_CREDENTIALS_OF_USER if repository.user_config else _NO_CREDENTIALS
            return SourceError(fault, f"{repository}: the server asks for credentials, and none are given", wanted)
        if match is not None:
            said = message or re.sub(r"^unable to access '[^']*': ", "", match)
            again = "; the daemon tries again" if hint is _CHECK and not repository.user_config else ""
            return SourceError(fault, f"{repository}: {said}", f"{hint}{again}")
    return SourceError(SourceFault.FAILED, f"{repository}: git failed: {told[0] if told else 'without a message'}")


def judge(repository: Repository, git: GitProcess, complaint: bytes, excess: str, timeout_s: float) -> None:
    """Return if a git that has ended did what it should; *excess* is what was too much, if anything.

    Raises:
        SourceError: it didn't.
    """
    if excess:
        hint = "the server sends far too much"
        ways = f"; {raising('said_bytes')}" if excess == said_too_much(git.limits) else ""
        raise SourceError(SourceFault.REFUSED, f"{repository}: {excess}", hint + ways)
    if git.late.is_set() or git.popen.returncode != 0:
        raise came_to_nothing(repository, git, complaint, timeout_s)


def came_to_nothing(repository: Repository, git: GitProcess, complaint: bytes, timeout_s: float) -> SourceError:
    """Return why a git that has ended came to nothing: nobody waits for it, it was too late, or what it complains of."""
    if git.ending.is_over():
        return SourceError(SourceFault.ENDED, f"{repository}: it isn't needed any more")
    if git.late.is_set():
        return said_nothing(repository, git.limits, timeout_s)
    if git.popen.poll() in {-signal.SIGXCPU, 128 + signal.SIGXCPU}:
        message = f"{repository}: git needs more than {git.limits.seconds:g} s of CPU time"
        return SourceError(SourceFault.REFUSED, message, raising("seconds"))
    return explained(repository, scrubbed(complaint.decode(errors="replace"), repository.credentials.secrets()))


def said_nothing(repository: Repository, limits: GitLimits, timeout_s: float) -> SourceError:
    """Return the error that a server didn't answer in time."""
    message = f"{repository}: no answer within {timeout_s:g} s"
    ways = f"; {raising('seconds')}" if timeout_s >= limits.seconds else ""
    return SourceError(SourceFault.UNREACHABLE, message, f"is the server overloaded, or a proxy in between?{ways}")


def unread(repository: Repository, git: GitProcess) -> SourceError:
    """Return why a git that reads from a clone ended before it was through."""
    complaint = git.popen.stderr.read(SAID_KEPT_BYTES)
    git.popen.wait()
    error = came_to_nothing(repository, git, complaint, git.limits.seconds)
    if error.fault is not SourceFault.FAILED:
        return error
    return SourceError(SourceFault.CORRUPT, f"{repository}: the local clone can't be read")
