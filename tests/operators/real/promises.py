"""What ``diff --until-stable`` shows of a custom resource is what the daemon does, step by step: previews of one, and what came of them."""

import contextlib
import json
import re

from kubectl_reconcile.core.module.workloads import is_ready
from kubectl_reconcile.core.objects import controller_of
from tests.operators.real.commands import previewed

SHOWN = re.compile(r"^(act|create|delete) +(Action\S*|Pod) +[^/ ]+/(\S+)", re.MULTILINE)
DONE = re.compile(r'INFO applied object="(Action\S*|Pod) ([^/ ]+)/(\S+)" op=(act|create|delete)')


class Promises:
    """Previews of what *subject* is called, as a test of its operand has it. The daemon is away while somebody does something to it, and while it is previewed."""

    def __init__(self, subject, folder):
        self.subject, self.file, self.said = subject, folder / "previewed.json", ""

    def named(self, name):
        """How a step is called in a comparison: what no preview can know of it is left out."""
        return name

    def manifest(self, **spec):
        """The custom resource with this spec."""
        raise NotImplementedError

    def settle(self, **spec):
        """Wait until all is as in *spec*."""
        raise NotImplementedError

    def shown(self, **spec):
        """The steps of each pass that a preview has."""
        self.file.write_text(json.dumps(self.manifest(**spec)))
        self.said = previewed(self.subject.real, "-f", self.file, "--until-stable", "-o", "summary")
        return [found for each in self.said.split("\npass ") if (found := self.steps(SHOWN.findall(each)))]

    def rest(self):
        """Wait a while until all pods that are there are ready: what others would say is guessed in a preview."""
        real = self.subject.real

        def is_ready_all():
            pods = real.get(f"/api/v1/namespaces/{real.namespace}/pods")["items"]
            return all(is_ready(pod) for pod in pods if controller_of(pod))

        with contextlib.suppress(AssertionError):
            real.eventually(is_ready_all, "all pods are ready", timeout_s=60)

    def steps(self, found):
        return [f"{op} {self.named(name)}" for op, _, name in found]

    def done(self, begun):
        """The steps that the daemon has taken since its log was so long; on a busy machine it looks after other namespaces, too."""
        found = DONE.findall(self.subject.daemon.log[begun:])
        return self.steps((op, kind, name) for kind, place, name, op in found if place == self.subject.real.namespace)

    @contextlib.contextmanager
    def kept(self, what, **spec):
        """Preview what is to be done once *what* has happened, within the block, and see that just that is done."""
        self.subject.daemon.kill()
        yield
        self.rest()
        promised, begun = self.shown(**spec), len(self.subject.daemon.log)
        assert promised, f"{what}: {self.said}"
        self.subject.apply(**spec)
        self.subject.daemon.start()
        self.settle(**spec)
        self.compare(what, promised, self.done(begun))

    def compare(self, what, promised, done):
        """See that all steps were taken that were shown, pass by pass."""
        flat = [step for each in promised for step in each]
        assert sorted(done) == sorted(flat), f"{what}: {flat} was shown, and {done} done; the preview: {self.said}"
        left = list(done)
        for each in promised:
            assert sorted(left[: len(each)]) == sorted(each), f"{what}: {flat} was shown, and {done} done"
            del left[: len(each)]

    def change(self, what, **spec):
        """As `kept`, where nothing happens but a change of the spec."""
        with self.kept(what, **spec):
            pass
