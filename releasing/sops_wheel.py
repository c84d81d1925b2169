"""The wheel with the program that decrypts files of SOPS: a package of its own, since it has 44 MB, and few need it.

It holds the program for one platform, and no Python: ``kubectl_reconcile`` finds it by the folder.
"""

from __future__ import annotations

import base64
import hashlib
import zipfile
from pathlib import Path

from kubectl_reconcile.source.sops.program import PACKAGE, SOPS

_EXECUTABLE, _PLAIN = 0o100755 << 16, 0o100644 << 16
_TIME = (1980, 1, 1, 0, 0, 0)
"""The first that a zip file can tell, whenever it was made."""


def write(program: Path, version: str, tag: str, license_text: str, out: Path) -> Path:
    """Write the wheel that brings *program*, for the platform that wheels call *tag*, into the folder *out*, and return it."""
    about = f"{PACKAGE}-{version}.dist-info"
    metadata = (
        f"Metadata-Version: 2.1\nName: kubectl-reconcile-sops\nVersion: {version}\nSummary: The program by which kubectl-reconcile decrypts files of SOPS\n"
        "License: Apache-2.0 AND MPL-2.0\nRequires-Python: >=3.11\n"
    )
    tags = "".join(f"Tag: py3-none-{each}\n" for each in tag.split("."))
    wheel = f"Wheel-Version: 1.0\nGenerator: kubectl-reconcile\nRoot-Is-Purelib: false\n{tags}"
    files = {
        f"{PACKAGE}/{SOPS.name}": program.read_bytes(),
        f"{about}/LICENSE": license_text.encode(),
        f"{about}/METADATA": metadata.encode(),
        f"{about}/WHEEL": wheel.encode(),
    }
    record = [f"{name},sha256={_digest(data)},{len(data)}" for name, data in files.items()]
    files[f"{about}/RECORD"] = "\n".join([*record, f"{about}/RECORD,,", ""]).encode()
    place = out / f"{PACKAGE}-{version}-py3-none-{tag}.whl"
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in files.items():
            facts = zipfile.ZipInfo(name, _TIME)
            facts.external_attr = _EXECUTABLE if name.endswith(SOPS.name) else _PLAIN
            facts.compress_type = zipfile.ZIP_DEFLATED
            packed.writestr(facts, data)
    return place


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
