"""Whether what members tell is the cluster's, or that of one which somebody has begun again.

An etcd that begins on an empty volume, at the address that it had, has the ids that it had: of the cluster and of itself. So ids prove nothing; the voters do. They change one at a time,
and a change is either ours, and in the journal before it is made, or leaves most of those there who voted before. A majority that knows few of these holds other data: nothing that it
says counts, and nothing is removed for it, unless somebody approves.

Pure: what was noted and what is told in, a verdict out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from typing import Any

from kubectl_reconcile.module_api import Facts, Manifest, actions_begun, actions_done, map_at, maps_in, text_at

_REMOVED = "remove-"
"""What the keys of actions begin with that remove a member."""


def is_the_cluster(cr: Manifest, facts: Facts, alone: Collection[str]) -> bool:
    """Tell whether a majority that answers is the cluster's; *alone* are the slots that were told to go on as the only member."""
    told = _voters_told(facts)
    if not facts.get("quorum") or not told:
        return True
    noted, known = text_at(cr, "status", "clusterID"), _voters_noted(cr)
    clusters = {str(each.get("cluster") or "") for each in map_at(facts, "pods").values()} - {""}
    if known and noted and clusters and noted not in clusters:
        return False
    left = {each for each in known if f"{_REMOVED}{each}" not in actions_begun(cr)}
    if not left or 2 * len(left & told.keys()) > len(left):
        return True
    goes_on = {*alone, text_at(cr, "status", "recovery", "slot")}
    return (len(told) == 1 and goes_on.issuperset(told.values())) or acceptance_key(cr, facts) in actions_done(cr)


def acceptance_key(cr: Manifest, facts: Facts) -> str:
    """Return the key of the action by which somebody says that it is the cluster after all, which is of these voters alone."""
    both = ",".join(sorted(_voters_noted(cr))), ",".join(sorted(_voters_told(facts)))
    return f"accept-{hashlib.sha256(' '.join(both).encode()).hexdigest()[:10]}"


def _voters_noted(cr: Manifest) -> set[str]:
    return {str(each.get("id")) for each in maps_in(map_at(cr, "status").get("voters"))}


def _voters_told(facts: Facts) -> dict[str, str]:
    """Return the slots of the voters, by id."""
    members: list[dict[str, Any]] = list(facts.get("members") or ())
    return {str(each["id"]): str(each.get("name") or "") for each in members if not each.get("learner")}
