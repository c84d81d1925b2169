"""What a Git server says when somebody pushed: is it genuine, and what is it about.

Genuine is what carries proof of a secret that only that server and the Sync share:

- GitHub: ``X-Hub-Signature-256: sha256=…``, the HMAC of the body; others send the same, without the prefix,
  as ``X-Gitea-Signature``, ``X-Forgejo-Signature``, or ``X-Signature-256`` for anything of your own;
- GitLab: ``X-Gitlab-Token``, the secret itself.

Nothing of a body is looked at before that is certain, and secrets are compared in constant time.

Pure.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping

from kubectl_reconcile.core.resources.sync import GitSpec

_SIGNATURES = ("x-hub-signature-256", "x-gitea-signature", "x-forgejo-signature", "x-signature-256")
_TOKEN = "x-gitlab-token"  # noqa: S105 - the name of a header


def is_genuine(headers: Mapping[str, str], body: bytes, secret: str) -> bool:
    """Tell whether who sent *body* knows *secret*; an empty secret is nobody's."""
    if not secret:
        return False
    sent = {name.lower(): value for name, value in headers.items()}
    proof = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    signed = (sent.get(name, "").removeprefix("sha256=") for name in _SIGNATURES)
    proofs = [hmac.compare_digest(given.encode(), proof.encode()) for given in signed]
    return any([*proofs, hmac.compare_digest(sent.get(_TOKEN, "").encode(), secret.encode())])


def concerns(body: bytes, git: GitSpec) -> bool:
    """Tell whether a push may be news for who follows *git*; what names no ref may always be."""
    try:
        ref = json.loads(body).get("ref")
    except (ValueError, AttributeError, RecursionError):
        return True
    if not isinstance(ref, str) or not ref.startswith(("refs/heads/", "refs/tags/")):
        return True
    if git.tag or git.commit:
        return bool(git.tag) and ref == f"refs/tags/{git.tag}"
    return ref == f"refs/heads/{git.branch}" if git.branch else ref.startswith("refs/heads/")
