"""What ``diff --until-stable`` shows of an EtcdCluster is what the daemon does, step by step, on real members."""

import http.client
import re

import pytest

from kubectl_reconcile.sandbox.runtime.channel import CallError
from tests.chaos.daemon import until
from tests.chaos.etcd.live import LiveCluster
from tests.chaos.live import MemberError
from tests.operators.real.etcd.cluster import NEW
from tests.operators.real.promises import Promises

pytestmark = pytest.mark.scenario(minutes=3)
MEMBER = re.compile(r"^db/(promote|remove)-.*")
"""An action on a member, by an id that no preview of a member to come can know."""
FALLEN = re.compile(r"remove \S+, which doesn't serve")
"""Why a member goes before the one that was shown: it wasn't ready any more when it came to that."""


def moves(steps):
    return [each for each in steps if "move-leader" in each]


def without_moves(steps):
    return sorted(each for each in steps if each not in moves(steps))


def nameless(steps):
    return sorted(re.sub(r"db-\d+", "db", each) for each in steps)


class EtcdPromises(Promises):
    """Previews of one etcd.

    Members may choose a leader of their own accord meanwhile: then which one has to go first is another, and who leads isn't compared. Where a
    member that fell goes before others, only what is done is compared, not with whom.
    """

    def __init__(self, db, folder):
        super().__init__(db, folder)
        self.live, self.before, self.fallen = LiveCluster(db.real.sandbox, db.real.namespace), 0, []

    def named(self, name):
        return MEMBER.sub(r"db/\1", name)

    def manifest(self, **spec):
        return self.subject.manifest(**spec)

    def settle(self, size, **_):
        self.subject.settled(size)
        self.live.settled()

    def shown(self, **spec):
        self.before = self.term()
        return super().shown(**spec)

    def done(self, begun):
        self.fallen = FALLEN.findall(self.subject.daemon.log[begun:])
        return super().done(begun)

    def compare(self, what, promised, done):
        if self.fallen:
            alike = nameless
        elif self.before and self.term() != self.before + len(moves(done)):
            alike = without_moves
        else:
            super().compare(what, promised, done)
            return
        flat = [step for each in promised for step in each]
        assert alike(done) == alike(flat), f"{what}: {flat} was shown, and {done} done; fallen: {self.fallen}"

    def term(self):
        """The term of the members, once they have a leader; 0 where there are none."""
        if not self.live.containers():
            return 0
        return int(until(self.led, "the members have a leader")[0]["raftTerm"])

    def led(self):
        """What members say that they are, if all of them know of one leader."""
        try:
            found = [self.live.tell(slot, "/v3/maintenance/status") for slot in self.live.containers()]
        except (MemberError, CallError, OSError, http.client.HTTPException):
            return None
        return found if len({each.get("leader", "0") for each in found} | {"0"}) == 2 else None


def test_ten_changes_of_a_real_cluster_take_the_steps_that_were_shown(db, tmp_path):
    promises = EtcdPromises(db, tmp_path)
    kubectl, space = db.real.kubectl, db.real.namespace

    promises.change("a cluster begins", size=1)
    promises.change("it grows to three", size=3)
    quiet = {**db.manifest()["spec"]["pod"], "env": [{"name": "ETCD_LOG_LEVEL", "value": "warn"}]}
    promises.change("its pods change", size=3, pod=quiet)
    promises.change("it is upgraded", size=3, pod=quiet, version=NEW)
    now = {"pod": quiet, "version": NEW}
    with promises.kept("a pod is deleted", size=3, **now):
        kubectl("delete", "pod", "db-1", "-n", space)
    with promises.kept("the leader's pod is deleted", size=3, **now):
        kubectl("delete", "pod", db.leader(), "-n", space)
    with promises.kept("a pod and its volume are deleted", size=3, **now):
        kubectl("delete", "pod/db-2", "pvc/db-2-data", "-n", space)
    promises.change("it grows to five", size=5, **now)
    promises.change("it shrinks to three", size=3, **now)
    promises.change("it shrinks to one", size=1, **now)
