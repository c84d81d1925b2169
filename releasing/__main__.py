"""Make a release as far as that goes without publishing it: ``make release VERSION=x.y.z RELEASE_URL=https://…``.

Everything that can be refused is refused before anything changes. Then the version and the changelog are written, ``dist/`` is built
from them and tried, and only what works is committed and tagged. If a step fails, the files are put back as they were.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from releasing.dist import digest
from releasing.plan import Repository, Wish, left_to_do, problems, version_in, with_release, with_version

ROOT = Path(__file__).resolve().parents[1]
SOURCES, CHANGELOG = Path("kubectl_reconcile/__init__.py"), Path("CHANGELOG.md")
GENERATED = (("kubectl_reconcile.cli.deploy_files", "deploy"), ("kubectl_reconcile.cli.reference", "docs"))
"""What writes files that name the version, and where to."""


class ReleaseError(Exception):
    """A step failed; the message says which and why."""


def main() -> None:
    """Make the release asked for, or say why not and end with status 2."""
    parser = argparse.ArgumentParser(prog="make release", description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("version", nargs="?", default="")
    parser.add_argument("--release-url", default="", help="where the files of this release will be downloaded from")
    parser.add_argument(
        "--homepage",
        default="",
        help="page of the project, for the metadata and krew, which has the release URL otherwise",
    )
    parser.add_argument("--platform", action="append", help="for these platforms alone (default: all)")
    asked = parser.parse_args()
    wish = Wish(asked.version, asked.release_url, asked.homepage)
    if found := problems(wish, repository(ROOT)):
        _end("".join(f"error: {problem}\n" for problem in found) + "Nothing was changed.\n")
    when = datetime.now(UTC).replace(microsecond=0)
    try:
        prepare(ROOT, wish.version, when)
        _build(wish, asked.platform or ["all"], when)
        check(ROOT / "dist", wish.version)
        record(ROOT, wish.version, when)
    except (ReleaseError, KeyboardInterrupt, OSError) as failure:
        _git(ROOT, "restore", "--staged", "--worktree", ".")
        why = str(failure) or "interrupted"
        _end(f"error: {why}\nNo release was made; all files are as they were before.\n")
    branch = _git(ROOT, "branch", "--show-current") or "HEAD:BRANCH"
    files = sorted(file.name for file in (ROOT / "dist").iterdir())
    sys.stdout.write(f"{left_to_do(wish.version, branch, files)}\n")


def repository(root: Path) -> Repository:
    """Return what decides whether a release may be made of the repository in *root*."""
    return Repository(
        version=version_in((root / SOURCES).read_text()),
        tags=tuple(_git(root, "tag", "--list", "v*").split()),
        changelog=(root / CHANGELOG).read_text(),
        changed=tuple(line[3:] for line in _git(root, "status", "--porcelain").splitlines()),
    )


def prepare(root: Path, version: str, when: datetime) -> None:
    """Write the version and the changelog, and every file that names the version."""
    _say(f"writing version {version}")
    (root / SOURCES).write_text(with_version((root / SOURCES).read_text(), version))
    (root / CHANGELOG).write_text(with_release((root / CHANGELOG).read_text(), version, when))
    for module, folder in GENERATED:
        _run(sys.executable, "-m", module, folder, folder=root, PYTHONPATH=str(root))


def check(dist: Path, version: str) -> None:
    """Check the sums in a folder of a release, install its wheel where nothing else is, and start it.

    Raises:
        ReleaseError: a file isn't what its sum says, or the program says another version.
    """
    _say("checking what was built")
    for line in (dist / "SHA256SUMS").read_text().splitlines():
        wanted, _, name = line.partition("  ")
        if digest(dist / name) != wanted:
            raise ReleaseError(f"{name} isn't the file that dist/SHA256SUMS was written for")
    with tempfile.TemporaryDirectory() as name:
        place, uv = Path(name), str(Path(sys.executable).parent / "uv")
        _run(uv, "venv", "--quiet", "--python", sys.executable, "venv", folder=place)
        install = (uv, "pip", "install", "--quiet", "--python", str(place / "venv" / "bin" / "python"))
        _run(*install, "--require-hashes", "--requirement", str(ROOT / "requirements.lock"), folder=place)
        _run(
            *install,
            "--no-deps",
            "--no-index",
            "--find-links",
            str(dist),
            f"kubectl-reconcile=={version}",
            folder=place,
        )
        said = _run(str(place / "venv" / "bin" / "kubectl-reconcile"), "--version", folder=place)
    if not said.startswith(f"kubectl-reconcile {version} "):
        raise ReleaseError(f"the installed program says it is {said.strip()!r}, and not {version}")


def record(root: Path, version: str, when: datetime) -> None:
    """Commit what was written, at the time that the built files bear, and tag it."""
    time = when.isoformat()
    _git(
        root,
        "commit",
        "--quiet",
        "--all",
        f"--message=Release {version}",
        GIT_AUTHOR_DATE=time,
        GIT_COMMITTER_DATE=time,
    )
    try:
        _git(
            root, "tag", "--annotate", f"v{version}", f"--message=kubectl-reconcile {version}", GIT_COMMITTER_DATE=time
        )
    except (ReleaseError, KeyboardInterrupt):
        _git(root, "reset", "--quiet", "--soft", "HEAD~1")
        raise


def _build(wish: Wish, platforms: Sequence[str], when: datetime) -> None:
    _say("building dist/ (some minutes for each platform the first time)")
    command = [sys.executable, "-m", "releasing.dist", "--release-url", wish.release_url, "--homepage", wish.homepage]
    command += [f"--platform={platform}" for platform in platforms]
    _run(*command, folder=ROOT, PYTHONPATH=str(ROOT), SOURCE_DATE_EPOCH=f"{when.timestamp():.0f}")


def _run(*command: str, folder: Path, **environ: str) -> str:
    """Return what a command prints.

    Raises:
        ReleaseError: it failed; with what it said.
    """
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **environ}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        words = " ".join(command).replace(f"{Path(sys.executable).parent}/", "")
        raise ReleaseError(f"{words} ended with status {done.returncode}:\n{(done.stderr or done.stdout).strip()}")
    return done.stdout


def _git(root: Path, *words: str, **environ: str) -> str:
    return _run("git", *words, folder=root, **environ).rstrip("\n")


def _say(what: str) -> None:
    sys.stdout.write(f"==> {what}\n")
    sys.stdout.flush()


def _end(why: str) -> None:
    sys.stderr.write(why)
    sys.exit(2)


if __name__ == "__main__":
    main()
