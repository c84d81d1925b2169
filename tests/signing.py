"""People who sign commits and tags, with keys that ssh-keygen and gpg made, in a repository that a Git server serves."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kubectl_reconcile.sandbox.gitserver import ServedRepository

HAS_GPG = shutil.which("gpg") is not None
needs_gpg = pytest.mark.skipif(not HAS_GPG, reason="gpg isn't installed (Debian: apt-get install gnupg)")


def run(*command: str, stdin: str = "", **environment: str) -> str:
    done = subprocess.run(
        command,
        input=stdin,
        text=True,
        capture_output=True,
        check=False,
        timeout=120,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout.strip()


@dataclass(frozen=True)
class Signer:
    """Somebody with a key. *settings* have git sign with it."""

    name: str
    settings: Mapping[str, str]
    environment: Mapping[str, str] = field(default_factory=dict)
    public: str = ""
    """The key as others are given it: a line of a .pub file, or a block in ASCII armour."""
    print: str = ""

    @property
    def line(self) -> str:
        """A line of ``allowed_signers``."""
        return f"{self.name}@example.com {' '.join(self.public.split()[:2])}"


NOBODY = Signer("nobody", {})
"""Who signs nothing."""


def ssh_signer(folder: Path, name: str, type_: str = "ed25519") -> Signer:
    key = folder / name
    run("ssh-keygen", "-q", "-t", type_, "-N", "", "-C", f"{name}@laptop", "-f", str(key))
    print_ = run("ssh-keygen", "-l", "-f", f"{key}.pub").split()[1]
    settings = {"gpg.format": "ssh", "user.signingKey": str(key)}
    return Signer(name, settings, public=Path(f"{key}.pub").read_text(), print=print_)


class Gpg:
    """gpg with a home of its own, in which people make keys."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def __call__(self, *arguments: str, stdin: str = "") -> str:
        return run(
            "gpg",
            "--batch",
            "--yes",
            "--pinentry-mode=loopback",
            "--passphrase=",
            *arguments,
            stdin=stdin,
            GNUPGHOME=str(self.home),
        )

    def signer(self, name: str) -> Signer:
        self("--quick-gen-key", f"{name} <{name}@example.com>", "ed25519", "sign", "never")
        listed = self("--list-keys", "--with-colons", f"{name}@example.com")
        print_ = next(line.split(":")[9] for line in listed.splitlines() if line.startswith("fpr"))
        return Signer(name, {"user.signingKey": print_}, {"GNUPGHOME": str(self.home)}, self.public(print_), print_)

    def public(self, print_: str) -> str:
        return self("--export", "--armor", print_) + "\n"

    def expire(self, signer: Signer) -> str:
        """The key of *signer* as it is once it has expired: a second after it was made."""
        self("--quick-set-expire", signer.print, "seconds=1")
        return self.public(signer.print)

    def revoke(self, signer: Signer) -> str:
        """The key of *signer* with its revocation."""
        text = (self.home / "openpgp-revocs.d" / f"{signer.print}.rev").read_text().replace("\n:---", "\n---")
        self("--import", stdin=text)
        return self.public(signer.print)


@contextmanager
def gpg_home() -> Iterator[Gpg]:
    home = Path(tempfile.mkdtemp(prefix="gpg-"))  # the path of its agent's socket has to be short
    try:
        yield Gpg(home)
    finally:
        run("gpgconf", "--kill", "all", GNUPGHOME=str(home))
        shutil.rmtree(home, ignore_errors=True)


@dataclass(frozen=True)
class SignedRepository:
    """A served repository into which people push what they sign."""

    served: ServedRepository

    @property
    def url(self) -> str:
        return self.served.url

    def git(self, *arguments: str, signer: Signer = NOBODY, stdin: str = "", **environment: str) -> str:
        settings = [word for key, value in signer.settings.items() for word in ("-c", f"{key}={value}")]
        name = f"{signer.name}@example.com"
        who = {
            "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_AUTHOR_NAME": signer.name, "GIT_AUTHOR_EMAIL": name,
            "GIT_COMMITTER_NAME": signer.name, "GIT_COMMITTER_EMAIL": name,
        }  # fmt: skip
        command = ["git", f"--git-dir={self.served.folder}", *settings, *arguments]
        return run(*command, stdin=stdin, **{**who, **signer.environment, **environment})

    def commit(
        self, changes: Mapping[str, str | None], signer: Signer = NOBODY, *, on: str = "main", **environment: str
    ) -> str:
        """A commit on top of branch *on*, signed by *signer*, which no branch is at yet."""
        tip = self.git("for-each-ref", "--format=%(objectname)", f"refs/heads/{on}")
        if tip:
            self.git("update-ref", "refs/heads/scratch", tip)
        else:
            self.git("update-ref", "-d", "refs/heads/scratch")
        made = self.served.push(changes, branch="scratch")
        signs = ["-S"] if signer.settings else []
        parent = ["-p", tip] if tip else []
        return self.git(
            "commit-tree", *signs, *parent, "-m", "Change", f"{made}^{{tree}}", signer=signer, **environment
        )

    def push(
        self, changes: Mapping[str, str | None], signer: Signer = NOBODY, *, branch: str = "main", **environment: str
    ) -> str:
        sha = self.commit(changes, signer, on=branch, **environment)
        self.git("update-ref", f"refs/heads/{branch}", sha)
        return sha

    def tag(self, name: str, sha: str, signer: Signer = NOBODY) -> str:
        """Make tag *name* anew, annotated and signed if it has a signer with a key; return its id."""
        how = ["-s"] if signer.settings else ["-a"]
        self.git("tag", "-f", *how, "-m", f"Release {name}", name, sha, signer=signer)
        return self.git("rev-parse", f"refs/tags/{name}")
