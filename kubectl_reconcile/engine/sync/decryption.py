"""The keys that files of a source are decrypted with: those of the Secret that a Sync names, or those of a person's own file.

A Sync may come from a repository that somebody else writes to, with the name of any Secret of its namespace in it, and files can be copied from one repository to
another. So the Secret says which repositories its keys are for, as one with credentials does. What can't be used is a problem of each encrypted file, and no other.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from kubectl_reconcile.cluster.errors import Forbidden, NotFound
from kubectl_reconcile.core.annotations import URLS
from kubectl_reconcile.core.objects import annotations_of, decoded_text
from kubectl_reconcile.core.resources.credential_scope import CredentialScope
from kubectl_reconcile.core.resources.decryption import NO_DECRYPTION, Decryption
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.engine.sync.credentials import annotate_line, local_folder, require_meant, secret_path
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.source.errors import SourceError

_VARIABLES: Final = ("SOPS_AGE_KEY", "SOPS_AGE_KEY_FILE")
_USUAL: Final = Path("sops", "age", "keys.txt")
_MOST_BYTES: Final = 256 * 1024


async def decryption_of(session: Session, sync: Sync) -> Decryption:
    """Return the keys of the Secret that *sync* names, read as *session*; none where it names none.

    Raises:
        ApiError: the server doesn't answer.
    """
    name = sync.source.decryption.secret if sync.source else ""
    if sync.source is None or not name:
        return NO_DECRYPTION
    place = f"Secret {sync.namespace}/{name}"
    try:
        secret = await session.client.get(secret_path(sync.namespace, name))
    except NotFound:
        hint = f"kubectl create secret generic {name} -n {sync.namespace} --from-file=identity.agekey=KEYFILE"
        return _refused(place, f"there is no {place} with keys", hint)
    except Forbidden as error:
        return _refused(place, f"{place} may not be read: {error}", "")
    address = sync.source.address
    if local_folder(address) is None:
        try:
            require_meant(secret, address)
        except SourceError as error:
            known = [str(each) for each in CredentialScope.of(annotations_of(secret).get(URLS, "")).addresses]
            line = annotate_line(secret, [*known, address])
            return _refused(place, error.message, f"if its owner agrees that files from there are decrypted: {line}")
    entries: dict[str, str] = {}
    for key, text in (secret.get("data") or {}).items():
        try:
            entries[key] = decoded_text(text)
        except ValueError:
            continue  # no key that is known is anything but text
    return Decryption.of(entries, place)


def own_decryption(file: str | None, environ: Mapping[str, str]) -> Decryption | None:
    """Return the keys in a *file* of a person's own, None where that is; where it is empty, those that sops would take from variables of the environment, or from where it keeps them.

    A file that begins as OpenPGP keys in armour do is one of these, any other has age's.
    """
    if file is None:
        return None
    if not file and environ.get(_VARIABLES[0]):
        return Decryption.of({"x.agekey": environ[_VARIABLES[0]]}, _VARIABLES[0])
    home = environ.get("XDG_CONFIG_HOME") or str(Path(environ.get("HOME", "/"), ".config"))
    place = Path(file or environ.get(_VARIABLES[1]) or Path(home, _USUAL))
    try:
        with place.open(encoding="utf-8") as opened:
            text = opened.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else "it isn't text"
        return _refused(str(place), f"there is no key: {place}: {said}", "name its file, as in --decrypt=KEYFILE")
    kind = "asc" if text.lstrip().startswith("-----BEGIN PGP") else "agekey"
    return Decryption.of({f"x.{kind}": text}, str(place))


def _refused(place: str, fault: str, hint: str) -> Decryption:
    return Decryption(place=place, fault=fault, hint=hint, asked=True)
