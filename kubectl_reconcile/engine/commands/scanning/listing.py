"""What there is of a kind in a namespace, as far as whoever asks may see it. Writes nothing."""

from __future__ import annotations

from kubectl_reconcile.cluster.errors import Forbidden, NotFound, ServerError
from kubectl_reconcile.core.objects import Manifest
from kubectl_reconcile.engine.sync.session import Session


async def listed(session: Session, api: str, kind: str, namespace: str) -> list[Manifest] | None:
    """Return what there is of a kind in *namespace*, None where that may not be asked, or is answered by somebody who is down.

    Raises:
        ApiError: the server doesn't answer.
    """
    resource = session.discovery.find(api, kind)
    if resource is None:
        return []
    try:
        items, _ = await session.client.list(resource.collection(namespace))
    except NotFound:
        return []
    except (Forbidden, ServerError):
        return None
    return list(items)
