"""Make a release as far as that goes without publishing it: ``make release VERSION=x.y.z RELEASE_URL=https://…``.

Everything that can be refused is refused before anything changes. Then the version and the changelog are written, in a work tree of their
own (``build/release``), and committed there; ``dist/`` is built from that and tried. Only what works is tagged, and becomes the branch's
newest commit. So whatever fails or kills this program before leaves the files and branches as they were.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from releasing.commands import CommandError, run, take_addresses
from releasing.dist import digest
from releasing.plan import Repository, Wish, left_to_do, problems, version_in, with_release, with_version

ROOT = Path(__file__).resolve().parents[1]
SOURCES, CHANGELOG = Path("kubectl_reconcile/__init__.py"), Path("CHANGELOG.md")
GENERATED = (("kubectl_reconcile.cli.deploy_files", "deploy"), ("kubectl_reconcile.cli.reference", "docs"))
"""What writes files that name the version, and where to."""


class ReleaseError(Exception):
    """What was built isn't what it should be; the message says what is wrong."""


def main() -> None:
    """Make the release asked for, or say why not and end with status 2."""
    parser = argparse.ArgumentParser(prog="make release", description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("version", nargs="?", default="")
    take_addresses(parser)
    parser.add_argument("--platform", action="append", help="for these platforms alone (default: all)")
    asked = parser.parse_args()
    wish = Wish(asked.version, asked.release_url, asked.homepage)
    if found := problems(wish, repository(ROOT)):
        _end("".join(f"error: {problem}\n" for problem in found) + "Nothing was changed.\n")
    when = datetime.now(UTC).replace(microsecond=0)
    try:
        with apart(ROOT) as tree:
            prepare(tree, wish.version, when)
            _build(tree, wish, asked.platform or ["all"], when)
            check(ROOT / "dist", wish.version)
            record(tree, wish.version, when)
        adopt(ROOT, wish.version)
    except (ReleaseError, CommandError, KeyboardInterrupt, OSError) as failure:
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


@contextmanager
def apart(root: Path) -> Iterator[Path]:
    """Yield a work tree of the newest commit, apart from the one in *root*, which goes afterwards; so does what a killed run left."""
    tree = root / "build" / "release"
    _remove(root, tree)
    _git(root, "worktree", "add", "--quiet", "--detach", str(tree))
    try:
        yield tree
    finally:
        _remove(root, tree)


def _remove(root: Path, tree: Path) -> None:
    shutil.rmtree(tree, ignore_errors=True)
    _git(root, "worktree", "prune")


def prepare(root: Path, version: str, when: datetime) -> None:
    """Write the version and the changelog, and every file that names the version."""
    _say(f"writing version {version}")
    (root / SOURCES).write_text(with_version((root / SOURCES).read_text(), version))
    (root / CHANGELOG).write_text(with_release((root / CHANGELOG).read_text(), version, when))
    for module, folder in GENERATED:
        run(sys.executable, "-m", module, folder, folder=root, PYTHONPATH=str(root))


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
        place = Path(name)
        run("uv", "venv", "--quiet", "--python", sys.executable, "venv", folder=place)
        install = ("uv", "pip", "install", "--quiet", "--python", str(place / "venv" / "bin" / "python"))
        run(*install, "--require-hashes", "--requirement", str(ROOT / "requirements.lock"), folder=place)
        offered = ("--no-deps", "--no-index", "--find-links", str(dist))
        run(*install, *offered, f"kubectl-reconcile=={version}", folder=place)
        said = run(str(place / "venv" / "bin" / "kubectl-reconcile"), "--version", folder=place, PYTHONPATH="")
    if not said.startswith(f"kubectl-reconcile {version} "):
        raise ReleaseError(f"the installed program says it is {said.strip()!r}, and not {version}")


def record(root: Path, version: str, when: datetime) -> None:
    """Commit what was written, at the time that the built files bear, and tag it."""
    time = when.isoformat()
    dates = {"GIT_AUTHOR_DATE": time, "GIT_COMMITTER_DATE": time}
    _git(root, "commit", "--quiet", "--all", f"--message=Release {version}", **dates)
    _git(root, "tag", "--annotate", f"v{version}", f"--message=kubectl-reconcile {version}", GIT_COMMITTER_DATE=time)


def adopt(root: Path, version: str) -> None:
    """Make the tagged commit the newest one of the branch in *root*; without that, there is no tag either.

    Raises:
        CommandError: the branch or a file was changed meanwhile.
    """
    try:
        _git(root, "merge", "--quiet", "--ff-only", f"v{version}")
    except (CommandError, KeyboardInterrupt):
        _git(root, "tag", "--delete", f"v{version}")
        raise


def _build(tree: Path, wish: Wish, platforms: Sequence[str], when: datetime) -> None:
    _say("building dist/ (some minutes for each platform the first time)")
    command = [sys.executable, "-m", "releasing.dist", "--release-url", wish.release_url, "--homepage", wish.homepage]
    command += ["--out", str(ROOT / "dist"), *(f"--platform={platform}" for platform in platforms)]
    run(*command, folder=tree, PYTHONPATH=str(tree), SOURCE_DATE_EPOCH=f"{when.timestamp():.0f}")


def _git(root: Path, *words: str, **environ: str) -> str:
    return run("git", *words, folder=root, **environ).rstrip("\n")


def _say(what: str) -> None:
    sys.stdout.write(f"==> {what}\n")
    sys.stdout.flush()


def _end(why: str) -> None:
    sys.stderr.write(why)
    sys.exit(2)


if __name__ == "__main__":
    main()
