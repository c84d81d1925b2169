"""Where a browser shows a commit, or a line of a file, of a repository: at GitHub, GitLab, Gitea and Forgejo.

Only of hosts that are known by their names, so that no link leads where nobody knows what there is. Pure.
"""

from __future__ import annotations

import re
from urllib.parse import quote

_SHAPES = {
    "github": ("/commit/{sha}", "/blob/{sha}/{path}", "#L{line}"),
    "gitlab": ("/-/commit/{sha}", "/-/blob/{sha}/{path}", "#L{line}"),
    "gitea": ("/commit/{sha}", "/src/commit/{sha}/{path}", "#L{line}"),
}
_HOSTS = {"github": "github", "gitlab": "gitlab", "gitea": "gitea", "forgejo": "gitea", "codeberg": "gitea"}
_URL = re.compile(r"https://(?:[^/@]*@)?(?P<host>[a-z0-9.-]+)/(?P<path>[\w./~-]+?)(?:\.git)?/?", re.IGNORECASE)
_SSH = re.compile(r"(?:ssh://)?(?:[\w.-]+@)(?P<host>[a-z0-9.-]+)(?::|/)(?P<path>[\w./~-]+?)(?:\.git)?/?", re.IGNORECASE)
_SHA = re.compile(r"[0-9a-f]{7,64}")


def commit_link(url: str, sha: str) -> str:
    """Return the URL of a commit; empty where it has none that is known."""
    home, shape = _home(url)
    return home + shape[0].format(sha=sha) if shape and _SHA.fullmatch(sha) else ""


def file_link(url: str, sha: str, path: str, line: int = 0) -> str:
    """Return the URL of a file at a commit, at one of its lines; empty where it has none that is known."""
    home, shape = _home(url)
    if not shape or not path or not _SHA.fullmatch(sha):
        return ""
    return home + shape[1].format(sha=sha, path=quote(path)) + (shape[2].format(line=line) if line > 0 else "")


def _home(url: str) -> tuple[str, tuple[str, str, str] | None]:
    found = _URL.fullmatch(url) or _SSH.fullmatch(url)
    if found is None:
        return "", None
    host = found["host"].lower()
    known = next((_HOSTS[label] for label in host.split(".") if label in _HOSTS), "")
    return f"https://{host}/{found['path'].strip('/')}", _SHAPES.get(known)
