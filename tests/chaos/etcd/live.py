"""One EtcdCluster of process pods, looked at and hurt past the program under test.

A *slot* is the name that a member, its pod and its volume share, as in ``db-0``.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from kubectl_reconcile.sandbox.runtime.channel import CallError
from kubectl_reconcile_operators.etcd.children import CLIENT_PORT, METRICS_PORT
from kubectl_reconcile_operators.etcd.situation import ASIDE, MEMBER
from tests.chaos.live import TROUBLE, LiveResource, MemberError, soon, unmet

API = "etcd.database.coreos.com/v1beta2"
_ANSWER_S = 4.0
_SILENCE_S = 1.0
_HEARD = "etcd_network_peer_received_bytes_total"
"""What a member counts of each other one."""
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


@dataclass(frozen=True)
class Rest:
    """Who is a member at a moment of rest, and on which volume: ids and uids by slot."""

    cluster: str
    members: Mapping[str, str]
    volumes: Mapping[str, str]


class LiveCluster(LiveResource):
    """The EtcdCluster *name* in a namespace of a sandbox."""

    api, plural, container, selector = API, "etcdclusters", "etcd", "etcd_cluster"

    def claims(self) -> dict[str, dict[str, Any]]:
        """Return the volumes that members are on, without those that are kept of members that aren't wanted any more."""
        found = super().claims().items()
        return {slot: each for slot, each in found if ASIDE not in each["metadata"].get("annotations", {})}

    def data(self, slot: str) -> Path:
        """Return where the data of a slot lies on this machine."""
        return self.volume(slot) / "data" / "member"

    # --- what members say -----------------------------------------------------------------------------

    def answers(self, slot: str) -> bool:
        """Tell whether a member answers by itself, within a moment."""
        try:
            return bool(self.tell(slot, "/v3/maintenance/status", within_s=1.5))
        except MemberError:
            return False

    def knows_no_leader(self, slot: str) -> bool:
        """Tell whether a member says that nobody leads.

        Raises:
            MemberError: it says nothing.
        """
        return not int(self.tell(slot, "/v3/maintenance/status").get("leader") or 0)

    def is_alone(self, slot: str) -> bool:
        """Tell whether a member is silent, and none of the others has received anything from it for as long as that was asked.

        One that leads is heard by all, any other by who leads, many times a second.

        Raises:
            MemberError: others say nothing.
        """
        id_, others = self.members()[slot]["id"], sorted({*self.containers()} - {slot})
        before, began_s = [self._heard(other, id_) for other in others], time.monotonic()
        is_silent = not self.answers(slot) and time.monotonic() - began_s >= _SILENCE_S
        return is_silent and bool(others) and [self._heard(other, id_) for other in others] == before

    def _heard(self, slot: str, id_: str) -> float:
        """Return how many bytes a member has received from another one."""
        start = f'{_HEARD}{{From="{id_}"}} '
        return sum(
            float(line.removeprefix(start)) for line in self._metrics(slot).splitlines() if line.startswith(start)
        )

    def _metrics(self, slot: str) -> str:
        return self._asked(slot, METRICS_PORT, "GET", "/metrics", "", _ANSWER_S).decode()

    def tell(
        self, slot: str, path: str, body: Mapping[str, Any] | None = None, *, within_s: float = _ANSWER_S
    ) -> dict[str, Any]:
        """Return what a member answers.

        Raises:
            MemberError: it doesn't, or refuses.
        """
        return json.loads(self._asked(slot, CLIENT_PORT, "POST", path, json.dumps(body or {}), within_s))

    def _asked(self, slot: str, port: int, method: str, path: str, body: str, within_s: float) -> bytes:
        found = self.containers().get(slot)
        if found is None:
            raise MemberError(f"{slot} has no container")
        connection = http.client.HTTPConnection("member", timeout=within_s)
        try:
            connection.sock = asyncio.run(self._runtime.dial(found["ip"], port, 3.0))
            connection.sock.settimeout(within_s)
            connection.request(method, path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            content = answer.read()
        except (OSError, CallError, http.client.HTTPException) as error:
            raise MemberError(f"{slot}: {error}") from error
        finally:
            connection.close()
        if answer.status >= 400:
            raise MemberError(f"{slot}: {answer.status} {content[:300]!r}")
        return content

    def told(self, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return what whichever member can answers.

        Raises:
            MemberError: none can.
        """
        said = ["there is none"]
        for slot, each in sorted(self.containers().items()):
            if each["runs"]:
                try:
                    return self.tell(slot, path, body)
                except MemberError as error:
                    said.append(str(error))
        raise MemberError("; ".join(said))

    def members(self) -> dict[str, dict[str, Any]]:
        """Return the members by slot, as a majority says; by their address those that are none of ours."""
        found = self.told("/v3/cluster/member/list", {"linearizable": True})["members"]
        by_slot = {}
        for each in found:
            host = each["peerURLs"][0].partition("://")[2].partition(":")[0]
            ours = host.endswith(f".{self.name}.{self.namespace}.svc")
            by_slot[host.partition(".")[0] if ours else host] = {
                "id": format(int(each["ID"]), "x"),
                "name": each.get("name", ""),
                "learner": bool(each.get("isLearner")),
            }
        return by_slot

    def leader(self) -> str:
        """Return the slot of who leads."""

        def found() -> str:
            leader = format(int(self.told("/v3/maintenance/status").get("leader") or 0), "x")
            return next((slot for slot, each in self.members().items() if each["id"] == leader), "")

        return str(soon(found, "somebody leads"))

    # --- at rest --------------------------------------------------------------------------------------

    def rest(self) -> Rest:
        """Return who is who, once members and API server say."""
        return soon(self._rest, "members and API server say who is who")  # type: ignore[no-any-return]

    def _rest(self) -> Rest:
        header = self.told("/v3/cluster/member/list", {"linearizable": True})["header"]
        return Rest(
            header["cluster_id"],
            {slot: each["id"] for slot, each in self.members().items()},
            {slot: each["metadata"]["uid"] for slot, each in self.claims().items()},
        )

    def unrest(self) -> str:
        """Return what isn't as specified, nothing if all is: CR, pods, volumes and members agree, and hold the same data."""
        try:
            return next(
                (why for look in (self._status, self._parts, self._hashes, self._status) if (why := look())), ""
            )
        except (*TROUBLE, RuntimeError, KeyError) as error:
            return f"{type(error).__name__}: {error}"

    def _status(self) -> str:
        cr = self.cr
        right = {"Ready": "True", "Available": "True", "Degraded": "False", "Recovering": "False", "Scaling": "False"}
        if why := unmet(cr, right):
            return why
        ready = cr["status"]["members"]["ready"]
        return "" if len(ready) == cr["spec"]["size"] else f"the status has {ready} ready"

    def _parts(self) -> str:
        members, pods, claims = self.members(), self.pods(), self.claims()
        cr = self.cr
        ready = cr["status"]["members"]["ready"]
        if len(members) != cr["spec"]["size"]:
            return f"members are {sorted(members)}"
        if not sorted(members) == sorted(pods) == sorted(claims) == ready:
            return f"members {sorted(members)}, pods {sorted(pods)}, volumes {sorted(claims)}, ready {ready}"
        for slot, member in members.items():
            if member["name"] != slot or member["learner"]:
                return f"{slot} is {member}"
            is_up = any(
                each["type"] == "Ready" and each["status"] == "True" for each in pods[slot]["status"]["conditions"]
            )
            going = [one for one in (pods[slot], claims[slot]) if one["metadata"].get("deletionTimestamp")]
            if not is_up or going:
                return f"pod {slot} ready={is_up}, {len(going)} of pod and volume terminate"
            if claims[slot]["metadata"]["annotations"].get(MEMBER) != member["id"]:
                return f"the volume of {slot} isn't noted as that of {member['id']}"
        return ""

    def _hashes(self) -> str:
        slots = sorted(self.members())
        at = self.tell(slots[0], "/v3/kv/range", {"key": "AA==", "count_only": True})["header"]["revision"]
        found = {slot: self.tell(slot, "/v3/maintenance/hashkv", {"revision": at}).get("hash") for slot in slots}
        return "" if len(set(found.values())) == 1 else f"members hold different data at revision {at}: {found}"

    # --- what is done to it ---------------------------------------------------------------------------

    def spoil_log(self, slot: str) -> None:
        """Change a byte of what a member has in its write-ahead log: in the middle of it, so that nothing was torn at its end."""
        newest = max((self.data(slot) / "wal").glob("*.wal"))
        with newest.open("r+b") as file:
            end = max(islice(_records(file), 20), key=lambda each: each[1] - each[0])[1]
            file.seek(end - 1)
            (byte,) = file.read(1)
            file.seek(end - 1)
            file.write(bytes([byte ^ 0xFF]))

    def remove_member(self, slot: str) -> None:
        """Remove a member as somebody does with etcdctl, again until etcd holds the others for healthy."""
        found = soon(self.members, "a majority says who is a member")
        other, id_ = next(each for each in found if each != slot), found[slot]["id"]

        def is_removed() -> bool:
            with contextlib.suppress(MemberError):  # it may be done though the answer was lost
                self.tell(other, "/v3/cluster/member/remove", {"ID": str(int(id_, 16))})
            return id_ not in {each["id"] for each in self.members().values()}

        soon(is_removed, f"{slot} is removed", pause_s=0.5)

    def add_stranger(self, host: str, *, is_learner: bool = False) -> None:
        """Add a member that nobody here knows, likewise."""
        body = {"peerURLs": [f"http://{host}:2380"], "isLearner": is_learner}
        any_of_ours = next(iter(soon(self.members, "a majority says who is a member")))

        def is_added() -> bool:
            with contextlib.suppress(MemberError):  # it may be done though the answer was lost
                self.tell(any_of_ours, "/v3/cluster/member/add", body)
            return host in self.members()

        soon(is_added, f"{host} is added", pause_s=0.5)


def _records(file: BinaryIO) -> Iterator[tuple[int, int]]:
    """Yield where the records of a write-ahead log begin and end: each follows its size, and fills up eight bytes."""
    at = 0
    while size := int.from_bytes(_read_at(file, at, 7), "little"):
        yield at + 8, at + 8 + size
        at += 8 + -(-size // 8) * 8


def _read_at(file: BinaryIO, at: int, count: int) -> bytes:
    file.seek(at)
    return file.read(count)
