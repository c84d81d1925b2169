"""Has git check a signature, with trusted keys and nothing else around it.

Git asks gpg or ssh-keygen. All of them run in a home of their own, made for one check and removed after it: no
configuration, key, agent or helper of whoever runs us has a say, nothing goes over a network, and no agent is started that could
outlive them. They are commands of git (an alias that is a line of shell), so they are bounded in time, memory and
output as all of git's are (``clone``).

Blocks; may be called from any thread.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kubectl_reconcile.core.resources.signatures import (
    ObjectType,
    SignatureFault,
    SignatureFormat,
    SignatureVerdict,
    SignedObject,
    imported_all,
    verdict_of,
)
from kubectl_reconcile.core.resources.trusted_keys import TrustedKeys
from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.git.cloned.clone import Clone

PROGRAMS: Final = {SignatureFormat.OPENPGP: "gpg", SignatureFormat.SSH: "ssh-keygen"}
"""What git asks about signatures of each format."""

_KEYS = "keys.asc"
_GPG_CONF: Final = """\
batch
no-tty
no-autostart
no-auto-key-retrieve
disable-dirmngr
no-auto-check-trustdb
trust-model always
"""
"""Every key that is there is trusted, since none else is; nobody is asked, and nothing is fetched or started."""

_SCRIPT: Final = """!f() {
  if [ -e "$GNUPGHOME/keys.asc" ]; then gpg --status-fd 1 --import "$GNUPGHOME/keys.asc" 2>&1; fi
  echo "imported $?"
  git "verify-$1" --raw "$2" 2>&1
  echo "verified $?"
}; f"""
_ENDED: Final = re.compile(
    r"(?:(?P<import>.*)\n)?imported (?P<imported>\d+)\n(?:(?P<said>.*)\n)?verified (?P<status>\d+)\n", re.DOTALL
)


def read_object(clone: Clone, type_: ObjectType, object_id: str) -> SignedObject | None:
    """Return what a commit or tag of the clone says of itself; None where the clone has no such object."""
    [data] = clone.objects([object_id], kind=type_.value.encode())
    return None if data is None else SignedObject.read(type_, data)


def judge(clone: Clone, found: SignedObject, object_id: str, keys: TrustedKeys) -> SignatureVerdict:
    """Return whether one of *keys* signed *found*, which the clone has as *object_id*.

    Raises:
        SourceError: the clone can't be read.
    """
    if (clear := _without_asking(found, keys)) is not None:
        return clear
    with _home(found.format, keys) as environment:
        command = ["-c", f"alias.judge={_SCRIPT}", "judge", found.type.value, object_id]
        output = clone.run(command, environment=environment).decode(errors="replace")
    ended = _ENDED.fullmatch(output)
    if ended is None:
        return SignatureVerdict(fault=SignatureFault.UNCHECKED, detail="git stopped")
    if (
        found.format is SignatureFormat.OPENPGP
        and keys.openpgp
        and not imported_all(int(ended["imported"]), ended["import"] or "")
    ):
        return SignatureVerdict(fault=SignatureFault.UNUSABLE_KEYS, detail="holds an OpenPGP key that gpg can't read")
    return verdict_of(found, keys, int(ended["status"]), ended["said"] or "")


def _without_asking(found: SignedObject, keys: TrustedKeys) -> SignatureVerdict | None:
    """Return the verdict where git needn't or can't be asked; it is never a good one."""
    if found.format is SignatureFormat.NONE:
        return SignatureVerdict(fault=SignatureFault.NO_SIGNATURE)
    if found.format is SignatureFormat.X509:
        return SignatureVerdict(fault=SignatureFault.UNSUPPORTED, detail="it is by an X.509 certificate")
    if found.format is SignatureFormat.SSH and not keys.allowed_signers:
        return SignatureVerdict(
            fault=SignatureFault.UNKNOWN_KEY, detail=f"SSH key {found.key}" if found.key else "an SSH key"
        )
    if not shutil.which(program := PROGRAMS[found.format]):
        return SignatureVerdict(fault=SignatureFault.NO_PROGRAM, detail=program)
    return None


@contextmanager
def _home(form: SignatureFormat, keys: TrustedKeys) -> Iterator[Mapping[str, str]]:
    """Yield the environment of one check: a home that holds the keys for this format, and vanishes afterwards.

    Raises:
        SourceError: it can't be made.
    """
    try:
        with tempfile.TemporaryDirectory(prefix="kubectl-reconcile-", ignore_cleanup_errors=True) as name:
            home = Path(name)
            yield {**_basics(home), **_configuration(_furnish(home, form, keys))}
    except OSError as error:
        message = f"{tempfile.gettempdir()}: {error.strerror}"
        raise SourceError(SourceFault.UNREADABLE, message, "signatures are checked in a folder made there") from None


def _furnish(home: Path, form: SignatureFormat, keys: TrustedKeys) -> dict[str, str]:
    """Write the keys, readable by us alone, and return the settings of git that name them."""
    settings = {
        "gpg.program": PROGRAMS[SignatureFormat.OPENPGP],
        "gpg.ssh.program": PROGRAMS[SignatureFormat.SSH],
        "gpg.x509.program": "false",  # gpgsm would look for certificates, and ask the network about them
        "gpg.minTrustLevel": "undefined",
    }
    if form is SignatureFormat.OPENPGP:
        _write(home / "gpg.conf", _GPG_CONF)
        if keys.openpgp:
            _write(home / _KEYS, keys.openpgp)
        return settings
    _write(home / "allowed_signers", keys.allowed_signers)
    settings["gpg.ssh.allowedSignersFile"] = str(home / "allowed_signers")
    if keys.revoked:
        _write(home / "revoked_keys", keys.revoked)
        settings["gpg.ssh.revocationFile"] = str(home / "revoked_keys")
    return settings


def _basics(home: Path) -> dict[str, str]:
    place = str(home)
    return {
        "HOME": place, "XDG_CONFIG_HOME": place, "GNUPGHOME": place, "TMPDIR": place, "GPG_AGENT_INFO": "", "SSH_AUTH_SOCK": "",
        "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_PARAMETERS": "", "LC_ALL": "C",
    }  # fmt: skip


def _configuration(settings: Mapping[str, str]) -> dict[str, str]:
    variables = {"GIT_CONFIG_COUNT": str(len(settings))}
    for index, (key, value) in enumerate(settings.items()):
        variables |= {f"GIT_CONFIG_KEY_{index}": key, f"GIT_CONFIG_VALUE_{index}": value}
    return variables


def _write(path: Path, text: str) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
