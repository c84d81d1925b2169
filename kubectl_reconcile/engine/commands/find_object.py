"""One live object, as a person names it: ``deploy/web``, ``Deployment.apps/web``."""

from __future__ import annotations

import difflib

from kubectl_reconcile.cluster.discovery import Resource
from kubectl_reconcile.cluster.errors import ApiError
from kubectl_reconcile.core.objects import Manifest
from kubectl_reconcile.engine.sync.session import Session


class NoSuchKind(Exception):  # noqa: N818 - says what isn't there
    """The cluster serves no kind of that name; *hint* says which are meant by names like it."""

    def __init__(self, kind: str, close: list[str]) -> None:
        self.hint = f"did you mean {' or '.join(close)}?" if close else "kubectl api-resources lists all kinds"
        super().__init__(f"the cluster serves no kind {kind}")


def resource_of(session: Session, kind: str) -> Resource:
    """Return what kubectl would take *kind* for.

    Raises:
        NoSuchKind: the cluster serves none.
    """
    found = session.discovery.resolve(kind)
    if found is None:
        names = {name for each in session.discovery.resources for name in (each.plural, each.singular)}
        raise NoSuchKind(kind, difflib.get_close_matches(kind.lower(), sorted(names), n=2))
    return found


async def live(session: Session, text: str, namespace: str = "") -> Manifest:
    """Return the live object that *text* (``KIND/NAME``) means, in *namespace* or else that of the connection.

    Raises:
        NoSuchKind: the cluster serves no such kind.
        ApiError: there is no such object, or the server refuses.
    """
    kind, _, name = text.partition("/")
    resource = resource_of(session, kind)
    if not name:
        raise ApiError(f"{text} isn't an object: write KIND/NAME, such as deploy/web")
    path = resource.path((namespace or session.client.namespace) if resource.namespaced else "", name)
    return await session.client.get(path)
