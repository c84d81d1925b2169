"""One MyDatabase of process pods, looked at and hurt past the program under test. A *slot* is the name that an instance, its pod and its volume share."""

from __future__ import annotations

import asyncio
import base64
import re
import secrets
from typing import Any

from kubectl_reconcile.sandbox.runtime.channel import CallError
from kubectl_reconcile_operators.postgres.server.protocol import PostgresError, Proof, ProtocolError
from kubectl_reconcile_operators.postgres.server.session import PostgresSession
from tests.chaos.live import TROUBLE, LiveResource, MemberError, SocketStream, soon, unmet

API = "example.com/v1alpha1"
ROLE = "example.com/role"
_SLOT = re.compile(r"db-\d+")
_RECEIVING = "select 1 from pg_stat_wal_receiver where status = 'streaming'"
_SENDING = "select 1 from pg_stat_replication where application_name = '{}'"
_ANSWER_S = 4.0
_ALL_ANSWER_S = 30.0


class LiveDatabase(LiveResource):
    """The MyDatabase *name* in a namespace of a sandbox."""

    api, plural, container, selector = API, "mydatabases", "postgres", "app.kubernetes.io/instance"
    _password = ""

    def pods(self) -> dict[str, dict[str, Any]]:
        return {name: each for name, each in super().pods().items() if _SLOT.fullmatch(name)}

    def claims(self) -> dict[str, dict[str, Any]]:
        return {name: each for name, each in super().claims().items() if _SLOT.fullmatch(name)}

    @property
    def primary(self) -> str:
        """The slot of the primary, as the status has it."""
        return str(soon(lambda: self.cr["status"]["currentPrimary"], "there is a primary"))

    def annotate(self, **annotations: str) -> None:
        """Annotate it with names of our domain."""
        patch = {"metadata": {"annotations": {f"example.com/{name.replace('_', '-')}": text for name, text in annotations.items()}}}  # fmt: skip

        def is_done() -> bool:
            cr = self.cr
            cr["metadata"].setdefault("annotations", {}).update(patch["metadata"]["annotations"])
            status, _ = self.sandbox.request("PUT", self.path(self.plural, self.name, self.api), cr)
            return status == 200

        soon(is_done, f"it is annotated with {annotations}")

    # --- what servers say -----------------------------------------------------------------------------

    @property
    def password(self) -> str:
        """The superuser's."""
        if not self._password:
            secret = soon(
                lambda: self.ask("GET", self.path("secrets", f"{self.name}-superuser")), "there is a superuser"
            )
            self._password = base64.b64decode(secret["data"]["password"]).decode()
        return self._password

    def sql(self, slot: str, text: str, database: str = "postgres", *, within_s: float = _ANSWER_S) -> list[str]:
        """Return the first column of what a server answers.

        Raises:
            MemberError: it doesn't, or refuses.
        """
        found = self.containers().get(slot)
        if found is None:
            raise MemberError(f"{slot} has no container")
        try:
            return asyncio.run(self._asked(found["ip"], text, database, within_s))
        except (OSError, TimeoutError, CallError, PostgresError, ProtocolError) as error:
            raise MemberError(f"{slot}: {type(error).__name__}: {error}") from error

    async def _asked(self, ip: str, text: str, database: str, within_s: float) -> list[str]:
        async with asyncio.timeout(within_s):
            reader, writer = await asyncio.open_connection(sock=await self._runtime.dial(ip, 5432, 3.0))
            try:
                told = {"user": "postgres", "database": database, "application_name": "chaos"}
                proof = Proof(self.password, secrets.token_urlsafe(18))
                session = await PostgresSession.begin(SocketStream(reader, writer), told, proof, asyncio.to_thread)
                return [row[0] or "" if row else "" for row in await session.ask(text)]
            finally:
                writer.close()

    def writable(self) -> dict[str, str]:
        """Return who takes writes, by address."""
        found = {}
        for slot, each in self.containers().items():
            if each["runs"]:
                try:
                    (said,) = asyncio.run(self._asked(each["ip"], "select pg_is_in_recovery()::text", "postgres", 2.0))
                except (OSError, TimeoutError, CallError, PostgresError, ProtocolError):
                    continue
                if said == "false":
                    found[each["ip"]] = slot
        return found

    def answers(self, slot: str) -> bool:
        """Tell whether a server answers by itself, within a moment."""
        try:
            return self.sql(slot, "select 1", within_s=2.0) == ["1"]
        except MemberError:
            return False

    def is_alone(self, slot: str) -> bool:
        """Tell whether an instance is silent, and the others say that they hear nothing of it: standbys that receive nothing, or the primary that sends it nothing.

        Raises:
            MemberError: others say nothing.
        """
        primary = self.primary
        if slot == primary:
            heard = [self.sql(other, _RECEIVING) for other in sorted({*self.pods()} - {slot})]
        else:
            heard = [self.sql(primary, _SENDING.format(slot))]
        return bool(heard) and not any(heard) and not self.answers(slot)

    def rows(self) -> set[int]:
        """Return all that is stored."""
        numbers = self.sql(self.primary, "select n::text from rows", "orders", within_s=_ALL_ANSWER_S)
        return {int(each) for each in numbers}

    # --- at rest --------------------------------------------------------------------------------------

    def unrest(self) -> str:
        """Return what isn't as specified, nothing if all is."""
        try:
            return self._status() or self._parts() or self._following() or self._status()
        except (*TROUBLE, RuntimeError, KeyError) as error:
            return f"{type(error).__name__}: {error}"

    def _status(self) -> str:
        cr = self.cr
        if why := unmet(cr, {"Ready": "True", "Available": "True", "Degraded": "False"}):
            return why
        count = len(cr["status"]["instances"])
        return "" if count == cr["spec"]["replicas"] else f"the status has {count} instances"

    def _parts(self) -> str:
        pods, cr = self.pods(), self.cr
        slots = sorted(each["pod"] for each in cr["status"]["instances"])
        if sorted(pods) != slots:
            return f"pods are {sorted(pods)}, and the status has {slots}"
        roles = {slot: pod["metadata"]["labels"].get(ROLE, "") for slot, pod in pods.items()}
        leads = [slot for slot, role in roles.items() if role == "primary"]
        if leads != [cr["status"]["currentPrimary"]] or set(roles.values()) - {"primary", "replica"}:
            return f"clients are led by {roles}, and the primary is {cr['status']['currentPrimary']}"
        going = [slot for slot, pod in pods.items() if pod["metadata"].get("deletionTimestamp")]
        return f"{going} terminate" if going else ""

    def _following(self) -> str:
        cr = self.cr
        primary, count = cr["status"]["currentPrimary"], cr["spec"]["replicas"] - 1
        following = self.sql(primary, "select application_name from pg_stat_replication where state = 'streaming'")
        others = sorted(set(self.pods()) - {primary})
        if sorted(set(following) - {"copy"}) != others or len(others) != count:
            return f"{primary} is followed by {sorted(following)}, of {others}"
        standing = {slot: self.sql(slot, "select pg_is_in_recovery()::text") for slot in (primary, *others)}
        wrong = {slot: said for slot, said in standing.items() if said != [str(slot != primary).lower()]}
        return f"standing by, or not: {wrong}" if wrong else ""
