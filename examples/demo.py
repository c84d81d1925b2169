"""See it work: from git push to running pods, on a real control plane, in about a minute.

Run it by ``make demo``. It starts a sandbox and a Git server on this machine, lets a daemon follow a
repository made of ``examples/shop``, two overlays over one base, and then does what people do: push, promote, edit by hand,
remove, weaken, break.
Every line below a ``$`` is the real output of that command. ``--keep`` leaves all of it running.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path

from kubectl_reconcile.cache_folder import cache_dir
from kubectl_reconcile.sandbox.build import build
from kubectl_reconcile.sandbox.controlplane import Sandbox
from kubectl_reconcile.sandbox.gitserver import GitServer
from kubectl_reconcile.source.render.program import RENDER

EXAMPLES = Path(__file__).parent
COLOUR = sys.stdout.isatty() and "NO_COLOR" not in os.environ
PATIENCE_S = 300.0
TRY = """
Three things to try:

  kubectl reconcile ui                a page about your own cluster
  kubectl reconcile diff -f FOLDER    what your own manifests would change in your own cluster; writes nothing
  docs/quick-start.md                 follow your own repository, in ten minutes"""


def styled(text: str, code: str) -> str:
    return f"\033[{code}m{text}\033[0m" if COLOUR else text


def say(text: str, pause_s: float = 0.0) -> None:
    print(f"\n{styled(text, '1')}", flush=True)
    time.sleep(pause_s)


@dataclass
class Stage:
    """Where it all plays: a cluster, a working copy, and a shell that shows what it runs."""

    cluster: str
    kubeconfig: Path
    programs: Path
    folder: Path
    name: str
    url: str
    pace_s: float
    namespace: str = "shop"

    @property
    def repository(self) -> Path:
        return self.folder / self.name

    @property
    def environ(self) -> dict[str, str]:
        person = {"NAME": "Sam Shopkeeper", "EMAIL": "sam@example.com"}
        identity = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in person.items()}
        path = os.pathsep.join([str(self.programs), str(Path(sys.executable).parent), os.environ["PATH"]])
        return {**os.environ, **identity, "PATH": path, "KUBECONFIG": str(self.kubeconfig)}

    def run(self, command: str, *, cwd: Path | None = None, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run a command out of sight; Ctrl-C doesn't reach it."""
        return subprocess.run(
            shlex.split(command), cwd=cwd, env={**self.environ, **environ}, text=True, capture_output=True, check=False,
            start_new_session=True,
        )  # fmt: skip

    def show(self, command: str, *, cwd: Path | None = None) -> int:
        """Run a command as a user would, with its output in view; return its exit status."""
        print(styled(f"$ {command}", "36"), flush=True)
        done = subprocess.run(shlex.split(command), cwd=cwd, env=self.environ, check=False)
        time.sleep(self.pace_s)
        return done.returncode

    def write(self, name: str, change: Callable[[str], str]) -> None:
        path = self.repository / name
        path.write_text(change(path.read_text()))

    def push(self, message: str) -> None:
        self.show("git add --all", cwd=self.repository)
        self.show(f"git commit --quiet -m {shlex.quote(message)}", cwd=self.repository)
        self.show("git push --quiet origin main", cwd=self.repository)

    def json(self, command: str) -> dict[str, object]:
        done = self.run(f"{command} -o json")
        return json.loads(done.stdout) if done.returncode == 0 else {}

    def wait(self, what: str, holds: Callable[[], bool]) -> None:
        """Wait until *holds*, and say how long that took."""
        started = time.monotonic()
        while not holds():
            if time.monotonic() - started > PATIENCE_S:
                self.show(f"kubectl reconcile status {self.name}")
                self.show(f"tail -n 20 {self.folder}/daemon.log")
                sys.exit(f"gave up after {PATIENCE_S:.0f} s waiting until: {what} (make demo KEEP=1 leaves it running)")
            time.sleep(0.05)
        print(styled(f"  … {what} after {time.monotonic() - started:.1f} s", "32"), flush=True)


def main(
    described: str, staged: Callable[[float], AbstractContextManager[Stage]], play: Callable[[Stage], None]
) -> None:
    """Play what is *described* on the stage that *staged* sets up, with so many seconds of pause after each command."""
    arguments = argparse.ArgumentParser(description=described, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--keep", action="store_true", help="leave all of it running until Ctrl-C")
    arguments.add_argument(
        "--pace", type=float, default=1.0, metavar="SECONDS", help="pause after each command (default: 1)"
    )
    chosen = arguments.parse_args()
    for told_to_end in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(told_to_end, signal.default_int_handler)  # and cleans up as after Ctrl-C
    with suppress(KeyboardInterrupt), staged(chosen.pace) as stage:
        started = time.monotonic()
        try:
            play(stage)
        except SystemExit as ended:
            if chosen.keep:
                print(ended.code, file=sys.stderr)
                keep_on(stage)
            raise
        say(f"That was all real, in {time.monotonic() - started:.0f} s.")
        (keep_on if chosen.keep else look_around)(stage)


def look_around(stage: Stage) -> None:
    """Say what to try next. At a terminal, show the page until somebody presses Enter."""
    if not sys.stdin.isatty():
        print(f"make demo KEEP=1 keeps all of it running, with a page about it.\n{TRY}")
        return
    with page(stage) as address, suppress(EOFError):
        print(f"The page about it: {address}\n{TRY}")
        input("\nPress Enter to end the demo and remove all of it. ")


@contextmanager
def page(stage: Stage) -> Iterator[str]:
    """Serve the page to the one who watches; yield its address, which works once."""
    command = [str(Path(sys.executable).parent / "kubectl-reconcile"), "ui", "--no-browser"]
    log = (stage.folder / "page.log").open("wb")
    process = subprocess.Popen(
        command, env=stage.environ, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
    )
    with ended_after(process), log:
        yield process.stdout.readline().strip()


@contextmanager
def ended_after(process: subprocess.Popen[str] | subprocess.Popen[bytes]) -> Iterator[None]:
    """Have *process* run as long as this, and then end cleanly."""
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=30)
        process.kill()


@contextmanager
def name_of_its_own(folder: Path) -> Iterator[str]:
    """Take the first name that no running demo holds (by a lock in *folder*): demo, demo-2, and so on.

    The system releases the lock of a demo that was killed. The next one gets its name, and removes its sandbox.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for number in count(1):
        name = "demo" if number == 1 else f"demo-{number}"
        with (folder / f"{name}.lock").open("w") as held:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield name
            return


@contextmanager
def in_sandbox(name: str, fill: Callable[[Path], None], pace_s: float) -> Iterator[Stage]:
    """Set everything up in a sandbox, and clean it all up again."""
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="reconcile-demo-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        RENDER.build(print)
        say("Starting a real Kubernetes control plane on this machine (no containers) …")
        sandbox = Sandbox(stack.enter_context(name_of_its_own(cache_dir())))
        sandbox.down()
        stack.callback(sandbox.down)
        sandbox.up(binaries=build(print))
        server = stack.enter_context(GitServer(folder / "served"))
        place = (sandbox.name, sandbox.kubeconfig, sandbox.programs)
        stage = Stage(*place, folder, name, server.create(name).url, pace_s)
        crds = stage.run(f"kubectl apply --server-side -f {EXAMPLES.parent / 'crds'}")
        if crds.returncode:
            sys.exit(crds.stderr)
        clone(stage, fill)
        stack.enter_context(daemon(stage))
        yield stage


def clone(stage: Stage, fill: Callable[[Path], None]) -> None:
    """Make the first commit of the served repository."""
    stage.repository.mkdir()
    for command in ("git init --quiet --initial-branch=main", f"git remote add origin {stage.url}"):
        stage.run(command, cwd=stage.repository)
    fill(stage.repository)
    for command in ("git add --all", "git commit --quiet -m 'How it begins'", "git push --quiet origin main"):
        done = stage.run(command, cwd=stage.repository)
        if done.returncode:
            sys.exit(f"{command} failed: {done.stderr}")


@contextmanager
def daemon(stage: Stage, *options: str) -> Iterator[None]:
    """Run the daemon in the background, its log in a file; Ctrl-C doesn't reach it."""
    command = [str(Path(sys.executable).parent / "kubectl-reconcile"), "daemon", "--listen=127.0.0.1:0", *options]
    with (stage.folder / "daemon.log").open("wb") as log:
        process = subprocess.Popen(command, env=stage.environ, stdout=log, stderr=log, start_new_session=True)
        with ended_after(process):
            yield


def fill(repository: Path) -> None:
    shutil.copytree(EXAMPLES / "shop", repository / "shop")


def play(stage: Stage) -> None:
    sync = re.sub(r"url: .*", f"url: {stage.url}", (EXAMPLES / "sync.yaml").read_text())
    (stage.folder / "sync.yaml").write_text(sync.replace("interval: 30s", "interval: 1s"))
    first_sync(stage)
    push_a_change(stage)
    promote(stage)
    drift(stage)
    remove(stage)
    weaken(stage)
    break_something(stage)


def synced(stage: Stage, name: str = "shop") -> bool:
    head = stage.run("git rev-parse HEAD", cwd=stage.repository).stdout.strip()
    status = stage.json(f"kubectl get sync {name}").get("status")
    return isinstance(status, dict) and status.get("lastAppliedRevision") == head


def image_is(stage: Stage, tag: str, namespace: str) -> bool:
    return f":{tag}" in stage.run(f"kubectl -n {namespace} get deployment web -o wide").stdout


def ready_pods(stage: Stage, name: str) -> int:
    status = stage.json(f"kubectl -n {stage.namespace} get deployment {name}").get("status")
    return int(status.get("readyReplicas", 0)) if isinstance(status, dict) else 0


def first_sync(stage: Stage) -> None:
    say("1. A Sync follows an overlay in a Git repository. What would it do to this empty cluster?", stage.pace_s)
    stage.show(f"cat {stage.folder}/sync.yaml")
    stage.show("kubectl reconcile diff -f shop/prod -o summary", cwd=stage.repository)
    stage.show(f"kubectl apply -f {stage.folder}/sync.yaml")
    say(
        "It is done as a ServiceAccount of the Sync's namespace, which gets just the rights that this repository needs."
    )
    stage.show("kubectl reconcile grant shop --apply --yes")
    stage.wait("the cluster is what Git asks for", lambda: synced(stage))
    stage.wait("all pods of Memcached sessions are Ready", lambda: ready_pods(stage, "sessions") == 3)
    say("Another one follows the overlay for staging, which is smaller and has a namespace of its own.")
    stage.show(f"kubectl reconcile create staging --url {stage.url} --path shop/staging --interval 1s --grant")
    stage.wait("staging is what Git asks for", lambda: synced(stage, "staging"))
    stage.show("kubectl reconcile get")
    stage.show("kubectl -n shop get memcached,deployments,pods")


def push_a_change(stage: Stage) -> None:
    say("2. Somebody wants more cache. What would that change, down to the Deployment?", stage.pace_s)
    stage.write("shop/base/caches.yaml", lambda text: text.replace("size: 3", "size: 5"))
    stage.show("kubectl reconcile diff shop --local .", cwd=stage.repository)
    say("And in staging, which says itself how large its caches are?")
    stage.show("kubectl reconcile diff staging --local .", cwd=stage.repository)
    stage.push("More room for sessions")
    stage.wait("five pods are Ready", lambda: ready_pods(stage, "sessions") == 5)


def promote(stage: Stage) -> None:
    say("3. A new version is tried in staging …", stage.pace_s)
    stage.write("shop/staging/kustomization.yaml", lambda text: text.replace("1.29-alpine", "1.30-alpine"))
    stage.show("kubectl reconcile diff staging --local .", cwd=stage.repository)
    stage.push("Try 1.30 in staging")
    stage.wait("staging runs 1.30", lambda: image_is(stage, "1.30-alpine", "shop-staging"))
    stage.show("kubectl reconcile diff shop")
    say("… and promoted to production.")
    stage.write("shop/prod/kustomization.yaml", lambda text: text.replace("1.29-alpine", "1.30-alpine"))
    stage.show("kubectl reconcile diff shop --local . --reasons", cwd=stage.repository)
    stage.push("Promote 1.30 to production")
    stage.wait("production runs 1.30", lambda: image_is(stage, "1.30-alpine", "shop"))
    stage.show("kubectl reconcile history shop")


def drift(stage: Stage) -> None:
    say("4. Somebody edits the cluster by hand, while nothing may correct it …", stage.pace_s)
    stage.show('kubectl patch sync shop --type=merge -p \'{"spec":{"suspend":true}}\'')
    stage.show("kubectl -n shop set image deployment/web web=nginx:latest")
    stage.show("kubectl reconcile diff shop")
    say("… and now it may.")
    stage.show('kubectl patch sync shop --type=merge -p \'{"spec":{"suspend":false}}\'')
    stage.wait(
        "the image is what Git says",
        lambda: "unprivileged" in stage.run("kubectl -n shop get deployment web -o wide").stdout,
    )
    stage.show("kubectl -n shop scale deployment sessions --replicas=1")
    stage.wait(
        "five pods are wanted again",
        lambda: '"replicas": 5' in json.dumps(stage.json("kubectl -n shop get deployment sessions").get("spec")),
    )


def remove(stage: Stage) -> None:
    say("5. A cache goes from the base, and from both overlays.", stage.pace_s)
    for name in ("base", "staging"):
        stage.write(f"shop/{name}/caches.yaml", lambda text: text.partition("---")[0])
    stage.push("The page cache is gone")
    stage.wait(
        "Memcached pages is gone, and all it owned", lambda: not stage.json("kubectl -n shop get deployment pages")
    )
    stage.show("kubectl -n shop get memcached,deployments")


CHECKUP = """apiVersion: checks.reconcile.dev/v1alpha1
kind: Checkup
metadata:
  name: security
  namespace: shop
spec:
  scan:
    profile: baseline
  passes: result.high == 0
"""


def weaken(stage: Stage) -> None:
    say("6. A Checkup looks at production for weaknesses. Somebody wants a privileged container …", stage.pace_s)
    (stage.folder / "checkup.yaml").write_text(CHECKUP)
    stage.show(f"kubectl apply -f {stage.folder}/checkup.yaml")
    stage.wait("it was looked at", lambda: verdict(stage) == "True")
    privileged = "        - name: web\n          securityContext:\n            privileged: true\n"
    stage.write("shop/base/web.yaml", lambda text: text.replace("        - name: web\n", privileged, 1))
    stage.show("kubectl reconcile diff shop --local . -o summary --fail-on new-findings", cwd=stage.repository)
    say("… which that would have told CI by its exit status. Pushed anyway, it is what the Checkup finds.")
    stage.push("It needs more rights")
    stage.wait("the Checkup has found it", lambda: verdict(stage) == "False")
    stage.show("kubectl -n shop get checkup security")
    take_back(stage)
    stage.wait("it passes again", lambda: verdict(stage) == "True")


def verdict(stage: Stage) -> str:
    path = "{.status.conditions[?(@.type=='Passed')].status}"
    return stage.run(f'kubectl -n shop get checkup security -o "jsonpath={path}"').stdout.strip()


def break_something(stage: Stage) -> None:
    say("7. A mistake in production's own patch: wrong indentation.", stage.pace_s)
    push_mistake(stage, "shop/prod/greeting.yaml")
    stage.show("kubectl -n shop get configmap/web memcached/sessions deployment/sessions")
    say("Nothing was lost: what was applied stays, staging goes on. Take the mistake back …")
    take_back(stage)
    stage.wait("all is well again", lambda: synced(stage))


def push_mistake(stage: Stage, name: str) -> None:
    stage.write(name, lambda text: text.replace("  GREETING", " GREETING:\n  -"))
    stage.show("kubectl reconcile diff shop --local .", cwd=stage.repository)
    stage.push("Oops")
    head = stage.run("git rev-parse HEAD", cwd=stage.repository).stdout.strip()
    stage.wait(
        "the daemon says so",
        lambda: head in json.dumps(stage.json("kubectl get sync shop").get("status", {}).get("lastAttemptedRevision")),
    )  # type: ignore[attr-defined]
    stage.show("kubectl reconcile status shop")
    stage.show("kubectl reconcile get")


def take_back(stage: Stage) -> None:
    stage.run("git revert --no-edit HEAD", cwd=stage.repository)
    print(styled("$ git revert --no-edit HEAD", "36"))
    stage.show("git push --quiet origin main", cwd=stage.repository)


def keep_on(stage: Stage) -> None:
    with page(stage) as address:
        say(f"The page about it: {address}")
        print(TRY)
        say("Everything keeps running until you press Ctrl-C. In another terminal:")
        print(f"  export KUBECONFIG={stage.kubeconfig} PATH={stage.programs}:{Path(sys.executable).parent}:$PATH")
        print(f"  cd {stage.repository}      # edit, commit, push; then: kubectl reconcile status")
        print("  kubectl reconcile ui      # the page again: each address works once")
        print(f"  tail -f {stage.folder}/daemon.log", flush=True)
        signal.pause()


if __name__ == "__main__":
    main(__doc__ or "", partial(in_sandbox, "shop", fill), play)
