"""Files that the real sops has encrypted, and what it decrypts them to: recorded by ``make fixtures``, compared anew by ``make sops-conformance``."""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from kubectl_reconcile.core.manifests.encrypted import format_of
from kubectl_reconcile.core.resources.decryption import Decryption
from kubectl_reconcile.source.sops.decrypter import DECRYPTER

RECORDED = Path(__file__).parent / "e2e" / "source" / "sops.json.gz"
FILES, FEW = 750, 170
"""How many are compared, and how many of them are recorded."""

_WORDS = (
    "user",
    "password",
    "token",
    "Ünïcode ✓",
    "line one\nline two\n",
    "",
    " padded ",
    "#no comment",
    "yes",
    "1e3",
    "0o17",
    "~",
)
_OPTIONS: dict[str, tuple[str, ...]] = {
    "all values": (),
    "a regex": ("--encrypted-regex", "^(data|stringData)$"),
    "a suffix": ("--encrypted-suffix", "_secret"),
    "all but a suffix": ("--unencrypted-suffix", "_plain"),
    "all but a regex": ("--unencrypted-regex", "^(apiVersion|kind|metadata)$"),
    "comments that say so": ("--encrypted-comment-regex", "seal"),
    "a MAC of what is encrypted": ("--encrypted-regex", "^(data|stringData)$", "--mac-only-encrypted"),
}


_DATA = "^(data|stringData)$"
PLACES: dict[str, tuple[str, str]] = {
    "plain/secret.yaml": (
        _DATA,
        'apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\n  namespace: default\nstringData:\n  password: correct-horse-battery\n  pin: "4711"\n',
    ),
    "plain/config.yaml": (
        _DATA,
        ('# first\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web\n  namespace: default\ndata:\n  url: postgres://app:horse-staple-wire@db/app\n  "on": "yes"\n'
        "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: second\n  namespace: default\ndata:\n  key: another-hidden-value\n"),
    ),
    "plain/named.yaml": ("^name$", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: hidden-by-name\ndata: {}\n"),
    "overlay/resource.yaml": (
        _DATA, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: res\ndata:\n  value: resource-hidden-value\n"
    ),
    "overlay/patch.yaml": (
        _DATA, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: base\ndata:\n  patched: patch-hidden-value\n"
    ),
    "overlay/token.txt": ("", "file-hidden-value\n"),
    "overlay/app.env": ("", "USER=app\nTOKEN=env-hidden-value\n"),
    "overlay/parts/kept.yaml": (
        _DATA, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: part\ndata:\n  value: component-hidden-value\n"
    ),
    "chart/secrets.yaml": ("", "password: chart-hidden-value\nenabled: true\nport: 5432\n"),
    "chart/files/licence.txt": ("", "licence-hidden-value\n"),
}  # fmt: skip
"""Files for each place in which one may be encrypted: the regex of what is, and what each says."""


class Keys:
    """Keys of age and OpenPGP, made for this."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.age = [self._age() for _ in range(3)]
        home = folder / "gnupg"
        home.mkdir(mode=0o700)
        self.environ = {**os.environ, "GNUPGHOME": str(home), "HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
        for kind in ("rsa2048", "ed25519"):
            made = (
                "--quick-gen-key",
                f"{kind} <{kind}@example.com>",
                kind,
                "default" if kind == "rsa2048" else "sign",
                "never",
            )
            self._gpg("--passphrase", "", *made)
            if kind == "ed25519":
                self._gpg("--passphrase", "", "--quick-add-key", self._fingerprints()[-1], "cv25519", "encr", "never")
        self.openpgp = {each: self._gpg("--armor", "--export-secret-keys", each) for each in self._fingerprints()}

    def _age(self) -> tuple[str, str]:
        text = subprocess.run(["age-keygen"], capture_output=True, text=True, check=True).stdout
        return text.split("public key: ")[1].split()[0], text

    def _gpg(self, *command: str) -> str:
        done = subprocess.run(
            ["gpg", "--batch", "--pinentry-mode", "loopback", *command],
            env=self.environ,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    def _fingerprints(self) -> list[str]:
        lines = self._gpg("--list-secret-keys", "--with-colons").splitlines()
        return [lines[at + 1].split(":")[9] for at, line in enumerate(lines) if line.startswith("sec:")]

    def close(self) -> None:
        subprocess.run(["gpgconf", "--kill", "all"], env=self.environ, check=False)


def _value(draw: random.Random) -> Any:
    return draw.choice((
        draw.choice(_WORDS), draw.choice(_WORDS), "".join(draw.choices("abcdefgh0123456789+/=", k=draw.randint(1, 40))),
        draw.randint(-9999, 10**12), draw.random() * 1000, True, False, None,
    ))  # fmt: skip


def _tree(draw: random.Random, depth: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for at in range(draw.randint(1, 4)):
        name = draw.choice(("data", "a", "b_secret", "c_plain", "key.with.dots", "ümlaut")) + str(at)
        kind = draw.randint(0, 5) if depth < 3 else 5
        found[name] = (
            _tree(draw, depth + 1) if kind == 0 else [_value(draw) for _ in range(3)] if kind == 1 else _value(draw)
        )
    return found


def _manifest(draw: random.Random, at: int) -> dict[str, Any]:
    data = {name: str(value) for name, value in _tree(draw, 3).items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"s{at}"}, "stringData": data}


def _yaml(draw: random.Random) -> str:
    documents = [_manifest(draw, at) if draw.random() < 0.7 else _tree(draw) for at in range(draw.choice((1, 1, 2, 3)))]
    texts = [yaml.safe_dump(each, allow_unicode=True, sort_keys=False) for each in documents]
    if draw.random() < 0.4:
        texts = [f"# seal what follows\n{text}# behind\n" for text in texts]
    return "---\n".join(texts)


def _json(draw: random.Random) -> str:
    return json.dumps(_tree(draw), indent=draw.choice((None, 2)))


def _dotenv(draw: random.Random) -> str:
    lines = [
        f"{name}{at}={draw.choice(('x', 'a b', '1', 'a=b', ''))}"
        for at, name in enumerate(draw.choices(("USER", "PASS_secret", "C_plain"), k=4))
    ]
    return "\n".join(["# a comment", *lines]) + "\n"


def _ini(draw: random.Random) -> str:
    return "".join(
        f"[section{at}]\nuser = {draw.choice(('x', 'a b', '1'))}\npass_secret = {draw.randint(0, 99)}\n\n"
        for at in range(2)
    )


def _binary(draw: random.Random) -> str:
    return draw.choice(("plain text\n", "no end of line", "-----BEGIN KEY-----\nabc\n-----END KEY-----\n")) + str(
        draw.random()
    )


_FORMATS: dict[str, Callable[[random.Random], str]] = {
    "x.yaml": _yaml, "y.yml": _yaml, "x.json": _json, "x.env": _dotenv, "x.ini": _ini, "x.bin": _binary,
}  # fmt: skip


def made(keys: Keys, sops: str, count: int) -> Iterator[dict[str, Any]]:
    """Yield files: how each is called, what it is encrypted as, what it holds, and what sops decrypts it to."""
    draw, folder = random.Random(7), keys.folder  # noqa: S311 - the same files each time
    rsa, curve = keys.openpgp
    both = folder / "all.agekey"
    both.write_text("".join(text for _, text in keys.age))
    environ = {**keys.environ, "SOPS_AGE_KEY_FILE": str(both)}
    for at in range(count):
        name = draw.choices(list(_FORMATS), (5, 1, 2, 2, 1, 2))[0]
        said, options = draw.choice(list(_OPTIONS.items()))
        if name == "x.bin":
            said, options = "all values", ()
        whom = draw.choice((
            ("--age", keys.age[0][0]), ("--age", keys.age[0][0]), ("--age", f"{keys.age[1][0]},{keys.age[0][0]}"),
            ("--pgp", rsa), ("--pgp", curve), ("--pgp", rsa, "--age", keys.age[1][0]),
        ))  # fmt: skip
        plain = folder / name
        plain.write_text(_FORMATS[name](draw))
        sealed = _run([sops, "--config", "/dev/null", "-e", *whom, *options, str(plain)], environ)
        if sealed is None:
            continue  # what sops itself refuses, as an empty document
        plain.write_bytes(sealed)
        opened = _run([sops, "-d", str(plain)], environ)
        if opened is None:
            raise SystemExit(f"sops doesn't decrypt what it encrypted: {at} {name} {said}")
        yield {"name": name, "options": said, "sealed": b64encode(sealed).decode(), "plain": b64encode(opened).decode()}


def shared(keys: Keys, sops: str) -> dict[str, str]:
    """Return a file for which two keys of three are needed."""
    config, plain = keys.folder / ".sops.yaml", keys.folder / "groups.yaml"
    groups = [{"age": [public]} for public, _ in keys.age]
    config.write_text(json.dumps({"creation_rules": [{"shamir_threshold": 2, "key_groups": groups}]}))
    plain.write_text("a: of three\n")
    sealed = _run([sops, "--config", str(config), "-e", str(plain)], keys.environ)
    return {"sealed": b64encode(sealed or b"").decode(), "plain": b64encode(b"a: of three\n").decode()}


def placed(keys: Keys, sops: str) -> dict[str, dict[str, str]]:
    """Return a file for each place."""
    found = {}
    for path, (regex, text) in PLACES.items():
        file = keys.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        options = ("--encrypted-regex", regex) if regex else ()
        sealed = _run([sops, "--config", "/dev/null", "-e", "--age", keys.age[0][0], *options, str(file)], keys.environ)
        found[path] = {"sealed": b64encode(sealed or b"").decode(), "plain": text}
    return found


def edited(keys: Keys, sops: str) -> dict[str, str]:
    """Return a file, and what sops makes of it as somebody edits it, and as its data key is rotated."""
    file, environ = keys.folder / "edited.yaml", {**keys.environ, "SOPS_AGE_KEY": keys.age[0][1]}
    text = (
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\nstringData:\n  password: one\n  user: app\n  old: gone\n"
    )
    file.write_text(text)
    command = [sops, "--config", "/dev/null"]
    file.write_bytes(
        _run([*command, "-e", "--age", keys.age[0][0], "--encrypted-regex", _DATA, str(file)], environ) or b""
    )
    found = {"first": file.read_text()}
    for at, value in (('["stringData"]["password"]', '"two"'), ('["stringData"]["pin"]', '"1234"')):
        _run([sops, "set", str(file), at, value], environ)
    _run([sops, "unset", str(file), '["stringData"]["old"]'], environ)
    found["edited"] = file.read_text()
    _run([*command, "rotate", "-i", str(file)], environ)
    return found | {"rotated": file.read_text()}


def _run(command: list[str], environ: dict[str, str]) -> bytes | None:
    done = subprocess.run(command, env=environ, capture_output=True, check=False)
    return done.stdout if done.returncode == 0 else None


def record(sops: str, count: int) -> dict[str, Any]:
    """Return keys and files."""
    with tempfile.TemporaryDirectory() as folder:
        keys = Keys(Path(folder))
        try:
            files = list(made(keys, sops, count))
            groups, places, edits = shared(keys, sops), placed(keys, sops), edited(keys, sops)
        finally:
            keys.close()
        return {
            "age": [text for _, text in keys.age],
            "openpgp": list(keys.openpgp.values()),
            "files": files,
            "groups": groups,
            "places": places,
            "edits": edits,
        }


def say(*words: object) -> None:
    """Tell whoever waits."""
    sys.stderr.write(f"{' '.join(map(str, words))}\n")


def main() -> None:
    """Record a few, or compare many."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sops", default="sops")
    parser.add_argument("--compare", action="store_true")
    wanted = parser.parse_args()
    if not all(map(shutil.which, (wanted.sops, "age-keygen", "gpg"))):
        sys.exit("error: sops, age-keygen or gpg isn't on PATH")
    if not wanted.compare:
        RECORDED.write_bytes(gzip.compress(json.dumps(record(wanted.sops, FEW)).encode(), mtime=0))
        return
    found = record(wanted.sops, FILES)
    entries = {f"{at}.agekey": text for at, text in enumerate(found["age"])} | {
        f"{at}.asc": text for at, text in enumerate(found["openpgp"])
    }
    keys, wrong = Decryption.of(entries, "these"), 0
    DECRYPTER.build_log = say
    for each in found["files"]:
        sealed, plain = b64decode(each["sealed"]), b64decode(each["plain"])
        form = format_of(each["name"], sealed)
        if form is None or (said := DECRYPTER.of(sealed, form, keys)).data != plain:
            wrong += 1
            say(each["name"], each["options"], form, said.fault if form else "isn't recognized")
    say(f"{len(found['files'])} files, {wrong} differ from sops")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
