"""Let N faults befall a real PostgreSQL while somebody writes to it all the time: ``python -m tests.chaos.postgres 50``.

A daemon looks after a MyDatabase of three instances, on process pods of a sandbox of its own; rows are acknowledged once one replica has them
(``synchronous: {min: 1, mode: Required}``). A client writes numbered rows through the primary's Service, each once. Faults come one at a time: servers that are killed, stopped or
cut off; pods and volumes that people take away; failovers in the midst of backups, switchovers and scaling; a daemon that is killed at a step of its work; an API server that is away.

After each the database must end as specified: status, pods and servers agree, all replicas follow, and it is the database that it was. No row that was acknowledged may be lost, ever;
nobody approves anything. All the while servers are asked past the daemon whether they take writes: if two of them do at one moment, that is a split brain.

Prints a line for each fault, and the seed that repeats the run as far as time lets it; exits 1 if a row was lost, two took writes, or a state was wrong. For how long nobody could write is
the longest time between two rows that were acknowledged, from a fault to the rest after it.
"""

# ruff: noqa: T201, S311 - a program that prints; what is random here needs no secrecy

from __future__ import annotations

import contextlib
import functools
import random
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from kubectl_reconcile.sandbox.images import catalog
from kubectl_reconcile.sandbox.images.image import ImageError
from kubectl_reconcile.sandbox.runtime.client import unavailable
from tests.chaos.client import write
from tests.chaos.daemon import until
from tests.chaos.experiment import Experiment, Fault, looked_after, options
from tests.chaos.live import TROUBLE, soon
from tests.chaos.postgres.faults import FAULTS, Scene
from tests.chaos.postgres.live import API, LiveDatabase

DELAY_S = 3
_WATCH_S = 0.5
WRITER = """
import asyncio, itertools, os, secrets, time
from kubectl_reconcile_operators.postgres.server.protocol import Proof
from kubectl_reconcile_operators.postgres.server.session import PostgresSession
class Stream:
    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer
    async def read(self, most):
        if not (found := await self.reader.read(most)):
            raise OSError("it has ended")
        return found
    async def write(self, content):
        self.writer.write(content)
        await self.writer.drain()
async def begun():
    stream = Stream(*await asyncio.open_connection("db", 5432))
    told = {"user": "shop", "database": "orders"}
    proof = Proof(os.environ["PGPASSWORD"], secrets.token_urlsafe(18))
    return await PostgresSession.begin(stream, told, proof, asyncio.to_thread)
async def main():
    session = None
    with open("/acks/acked", "a", buffering=1) as acks:
        for number in itertools.count():
            try:
                async with asyncio.timeout(2):
                    session = session or await begun()
                    await session.ask(f"insert into rows values ({number})")
                print(number, time.monotonic(), file=acks)
            except Exception:
                if session:
                    session.stream.writer.close()
                session = None
            await asyncio.sleep(0.05)
asyncio.run(main())
"""


@dataclass
class Watch:
    """Looks all the time for two servers that take writes."""

    live: LiveDatabase
    seen: list[str] = field(default_factory=list)
    looks: int = 0
    _ends: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        if self._thread:
            self._thread.join(60)

    def _run(self) -> None:
        while not self._ends.wait(_WATCH_S):
            with contextlib.suppress(*TROUBLE, RuntimeError, KeyError):
                self._look()

    def _look(self) -> None:
        """Look; two that are asked one after the other aren't two at one moment unless the first one still says so."""
        self.looks += 1
        found = self.live.writable()
        if len(found) > 1 and len(both := found.keys() & self.live.writable().keys()) > 1:
            self.seen.append(" and ".join(sorted(found[ip] for ip in both)))
            print(f"SPLIT BRAIN {self.seen[-1]} take writes", flush=True)


@dataclass(kw_only=True)
class PostgresExperiment(Experiment):
    """One run on a PostgreSQL, which is the *system* that it was all the time."""

    live: LiveDatabase
    watch: Watch
    system: str

    def befall(self, fault: Fault, what: str) -> None:
        fault(Scene(live=self.live, daemon=self.daemon, dice=self.dice))
        self.live.settled()
        self.compare(what)

    def compare(self, what: str) -> None:
        """Wait until a row is acknowledged again; compare what is stored with all that were."""
        seen = len(self.acked.all())
        until(lambda: len(self.acked.all()) > seen, "rows are acknowledged again")
        told = {number for number, _ in self.acked.all()}  # before what is there: none of these may be missing
        self.miss(told - soon(self.live.rows, "the primary says what is stored"))
        if self.live.cr["status"]["systemID"] != self.system:
            self.fault(f"{what}: it is another database")
        self.look_for_tracebacks(what)


def make(version: int, live: LiveDatabase) -> None:
    """Make the MyDatabase."""
    target = {"volumeClaimSpec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    spec = {
        "version": version, "replicas": 3, "storage": {"size": "1Gi"}, "users": [{"name": "shop"}, {"name": "other"}],
        "databases": [{"name": "orders", "owner": "shop"}], "synchronous": {"min": 1, "mode": "Required"},
        "failover": {"delaySeconds": DELAY_S, "keepOldVolumesHours": 0}, "backup": {"target": target, "image": "python", "schedule": "0 0 1 1 *", "suspend": True},
    }  # fmt: skip
    body = {"apiVersion": API, "kind": "MyDatabase", "metadata": {"name": live.name}, "spec": spec}
    live.ask("POST", live.path("mydatabases", api=API), body)


def main() -> int:
    wanted = options(__doc__, FAULTS, 50)
    if reason := unavailable():
        print(reason)
        return 2
    try:
        version = int(catalog.find("postgres").environ["PG_MAJOR"])
    except ImageError as error:
        print(error)
        return 2
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory() as root, contextlib.ExitStack() as stack:
        folder = Path(root)
        made = looked_after(LiveDatabase, "postgres-chaos", folder, functools.partial(make, version))
        live, daemon = stack.enter_context(made)
        stack.callback(lambda: wanted.log and wanted.log.write_bytes(daemon.log.read_bytes()))
        live.settled()
        for text in ("create table rows (n int)", "grant insert on rows to shop"):
            live.sql(live.primary, text, "orders", within_s=60.0)
        acks = folder / "acks"
        acks.mkdir(mode=0o777)
        password = {"PGPASSWORD": {"valueFrom": {"secretKeyRef": {"name": "db-user-shop", "key": "password"}}}}
        acked, watch = write(live, acks, WRITER, password), stack.enter_context(Watch(live))
        parts = {"live": live, "daemon": daemon, "dice": random.Random(wanted.seed), "acked": acked, "watch": watch}
        chaos = PostgresExperiment(**parts, system=live.cr["status"]["systemID"])
        chaos.run(FAULTS, wanted.faults)
        besides = f"{len(watch.seen)} split brains in {watch.looks} looks, "
        chaos.sum_up(wanted.seed, time.monotonic() - began_s, besides)
        return 1 if chaos.lost or chaos.wrong or watch.seen else 0


if __name__ == "__main__":
    sys.exit(main())
