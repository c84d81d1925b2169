"""What ``diff --until-stable`` shows of an EtcdCluster is what the daemon does, step by step, on real members."""

import contextlib
import http.client
import json
import os
import re
import subprocess

from kubectl_reconcile.sandbox.runtime.channel import CallError
from tests.chaos.daemon import until
from tests.chaos.etcd.live import LiveCluster
from tests.chaos.live import MemberError
from tests.e2e.conftest import PROGRAM, crds, new_daemon  # noqa: F401 - fixtures
from tests.operands.test_etcdcluster import NEW, OLD, _programs, db  # noqa: F401 - fixtures

SHOWN = re.compile(r"^(act|create|delete) +(Action\S*|Pod) +[^/ ]+/(\S+)", re.MULTILINE)
DONE = re.compile(r'INFO applied object="(Action\S*|Pod) [^/ ]+/(\S+)" op=(act|create|delete)')
MEMBER = re.compile(r"^db/(promote|remove)-.*")
"""An action on a member, by an id that no preview of a member to come can know."""


def steps(found):
    names = ((op, MEMBER.sub(r"db/\1", name)) for op, _, name in found)
    return [f"{op} {name}" for op, name in names]


def moves(steps):
    return [each for each in steps if "move-leader" in each]


def without_moves(steps):
    return [each for each in steps if each not in moves(steps)]


class Promises:
    """Previews of one cluster, and what came of them. The daemon is away while somebody does something to it, and while it is previewed."""

    def __init__(self, db, folder):  # noqa: F811 - a fixture
        self.db, self.live, self.file = db, LiveCluster(db.real.sandbox, db.real.namespace), folder / "db.json"

    def shown(self, **spec):
        """The steps of each pass that a preview has."""
        self.file.write_text(json.dumps(self.db.manifest(**spec)))
        command = [PROGRAM, "diff", "-f", self.file, "-n", self.db.real.namespace, "--until-stable", "-o", "summary"]
        environ = {**os.environ, "KUBECONFIG": self.db.real.kubectl.kubeconfig}
        answer = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=300, check=False)
        assert answer.returncode in {0, 1}, answer.stderr
        return [found for each in answer.stdout.split("\npass ") if (found := steps(SHOWN.findall(each)))]

    @contextlib.contextmanager
    def kept(self, what, members, **spec):
        """Preview what is to be done once *what* has happened, within the block, and see that just that is done."""
        self.db.daemon.kill()
        yield
        term = self.term()
        promised, begun = self.shown(**spec), len(self.db.daemon.log)
        assert promised, what
        self.db.apply(**spec)
        self.db.daemon.start()
        self.db.settled(members, timeout_s=240)
        self.live.settled()
        done = steps([(op, kind, name) for kind, name, op in DONE.findall(self.db.daemon.log[begun:])])
        flat = [step for each in promised for step in each]
        calm = not term or self.term() == term + len(moves(done))
        if (
            not calm
        ):  # they chose a leader of their own accord meanwhile: which one has to go first is another, and who leads
            done, flat = without_moves(done), without_moves(flat)
        assert sorted(done) == sorted(flat), f"{what}: {flat} was shown, and {done} done"
        if calm:
            for each in promised:
                assert sorted(done[: len(each)]) == sorted(each), f"{what}: {flat} was shown, and {done} done"
                del done[: len(each)]

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


def test_ten_changes_of_a_real_cluster_take_the_steps_that_were_shown(db, tmp_path):  # noqa: F811 - a fixture
    promises = Promises(db, tmp_path)
    kubectl, space = db.real.kubectl, db.real.namespace

    def change(what, members, **spec):
        with promises.kept(what, members, **spec):
            pass

    change("a cluster begins", 1, size=1)
    change("it grows to three", 3, size=3)
    quiet = {**db.manifest()["spec"]["pod"], "env": [{"name": "ETCD_LOG_LEVEL", "value": "warn"}]}
    change("its pods change", 3, size=3, pod=quiet)
    change("it is upgraded", 3, size=3, pod=quiet, version=NEW)
    now = {"pod": quiet, "version": NEW}
    with promises.kept("a pod is deleted", 3, size=3, **now):
        kubectl("delete", "pod", "db-1", "-n", space)
    with promises.kept("the leader's pod is deleted", 3, size=3, **now):
        kubectl("delete", "pod", db.leader(), "-n", space)
    with promises.kept("a pod and its volume are deleted", 3, size=3, **now):
        kubectl("delete", "pod/db-2", "pvc/db-2-data", "-n", space)
    change("it grows to five", 5, size=5, **now)
    change("it shrinks to three", 3, size=3, **now)
    change("it shrinks to one", 1, size=1, **now)
