"""Commands that people give about a database: what they preview, and what they approve."""

import os
import re

from tests import forked

UNHEARD = re.compile("ready, but silent|can't be observed")


def previewed(real, *options):
    """What ``diff`` with these *options* prints. It asks pods once, who may have no time just then, and says so: then it is asked again."""

    def heard():
        answer = _run(real, "diff", *options)
        if UNHEARD.search(said := answer.stdout + answer.stderr):
            raise LookupError(said)
        assert answer.returncode in {0, 1}, answer.stderr
        return answer

    return real.eventually(heard, "all pods are heard").stdout


def approved(real, what, **more):
    """What is said to who approves what is held of a resource, with *more* variables.

    Who approves asks its pods too, which may have no time just now: then nothing is held yet.
    """

    def said():
        answer = _run(real, "approve", what, "--yes", **more)
        if answer.returncode or "approved " not in answer.stdout:
            raise LookupError(answer.stdout + answer.stderr)
        return answer.stdout

    return real.eventually(said, f"somebody approves what is held of {what}")


def _run(real, verb, *words, **more):
    environ = {**os.environ, "KUBECONFIG": real.kubectl.kubeconfig, **more}
    return forked.run([verb, "-n", real.namespace, *words], env=environ, timeout=600)
