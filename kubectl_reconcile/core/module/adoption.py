"""Children as they are applied: in their CR's namespace, controlled by it, labelled with its module.

Pure: manifests in, manifests out.
"""

from __future__ import annotations

from kubectl_reconcile.core.annotations import MODULE_LABEL
from kubectl_reconcile.core.module.api import Module
from kubectl_reconcile.core.objects import Manifest

UNKNOWN_UID = ""
"""Stands for the uid of an owner that a plan is about to create; the writer replaces it."""


def adopt_child(child: Manifest, cr: Manifest, module: Module, *, released: bool = False) -> Manifest:
    """Return *child* as it is applied: in the CR's namespace, labelled with the module, and controlled by the CR unless *released*.

    A CR that doesn't exist yet has no uid. Its children then carry `UNKNOWN_UID`, so a plan
    shows them whole, and `with_owner_uid` completes them when the CR has been created.
    """
    metadata = dict(child["metadata"])
    owner = cr["metadata"]
    if owner.get("namespace"):
        metadata["namespace"] = owner["namespace"]
    metadata["labels"] = {**(metadata.get("labels") or {}), MODULE_LABEL: module.name}
    if released:
        return {**child, "metadata": metadata}
    metadata["ownerReferences"] = [
        {
            "apiVersion": cr["apiVersion"],
            "kind": cr["kind"],
            "name": owner["name"],
            "uid": owner.get("uid") or UNKNOWN_UID,
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    return {**child, "metadata": metadata}


def with_owner_uid(child: Manifest, uid: str) -> Manifest:
    """Return *child* with *uid* where its owner's was unknown; any other child comes back as it is."""
    owners = (child.get("metadata") or {}).get("ownerReferences") or ()
    if all(owner.get("uid") != UNKNOWN_UID for owner in owners):
        return child
    filled = [{**owner, "uid": uid} if owner.get("uid") == UNKNOWN_UID else owner for owner in owners]
    return {**child, "metadata": {**child["metadata"], "ownerReferences": filled}}
