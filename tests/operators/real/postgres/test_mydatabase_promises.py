"""What ``diff --until-stable`` shows of a MyDatabase is what the daemon does, step by step, on real servers."""

import contextlib
import re

import pytest

from tests.operators.real.promises import Promises

pytestmark = pytest.mark.scenario(minutes=5)
QUORUM = re.compile(r"^db/confirm-quorum-.*")
"""An action that is named by when it was noted, which no preview knows."""


class DatabasePromises(Promises):
    """Previews of one database.

    Two things come sooner or later than others by how long a server takes, which no preview knows: who takes over is promoted before or after the old
    primary comes back, whichever is sooner known to lose nothing; and a replica's slot is dropped before or after what comes next, once its server has let go of it.
    """

    def named(self, name):
        return QUORUM.sub("db/confirm-quorum", name)

    def manifest(self, **spec):
        return self.subject.manifest(**spec)

    def shown(self, **spec):
        self.promised, self.begun = super().shown(**spec), len(self.subject.daemon.log)
        return self.promised

    def settle(self, **_):
        """Wait until as much is done as was shown, since a status may say that all is well before the daemon has looked; what is done instead is told by the comparison."""
        count = sum(map(len, self.promised))
        with contextlib.suppress(AssertionError):
            self.subject.real.eventually(lambda: len(self.done(self.begun)) >= count, "it is done")
        self.subject.settled()

    def compare(self, what, promised, done):
        if any("/promote-" in step for each in promised for step in each):
            promised = joined_from(0, promised)
        dropping = [at for at, each in enumerate(promised) if any("/drop-slot-" in step for step in each)]
        super().compare(what, joined_from(dropping[0], promised) if dropping else promised, done)


def joined_from(at, promised):
    """The passes before that one, and one of all that follow, whose order isn't known."""
    return [*promised[:at], [step for each in promised[at:] for step in each]]


def test_thirteen_changes_of_a_real_database_take_the_steps_that_were_shown(db, tmp_path):
    promises, spec = DatabasePromises(db, tmp_path), {}

    def change(what, *command, **more):
        spec.update(more)
        with promises.kept(what, **spec):
            if command:
                db.real.kubectl(*command, "-n", db.real.namespace)

    change("a database begins")
    change("it gets a replica", replicas=2)
    change("a parameter changes", parameters={"work_mem": "8MB"})
    change("another one takes a restart", parameters={"work_mem": "8MB", "max_connections": "150"})
    assert db.primary() == "db-1"
    more = [{"name": "orders", "owner": "shop"}, {"name": "more", "owner": "more"}]
    change("it gets a user and a database", users=[{"name": "shop"}, {"name": "more"}], databases=more)
    change("rules change", hba=[{"users": ["more"], "method": "reject"}])
    change("rows are to be acknowledged by replicas, too", synchronous={"min": 1})
    change("it gets another replica", replicas=3)
    change("a replica's pod is deleted", "delete", "pod", "db-0")
    change("a replica and its volume are deleted", "delete", "pod/db-2", "pvc/db-2-data")
    with promises.kept("somebody asks for another primary", **spec):
        db.hand_over("db-0")
    assert db.primary() == "db-0"
    change("pods change", resources={"requests": {"cpu": "1m"}})
    change("a replica goes", replicas=2)
