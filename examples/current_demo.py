"""See it work in a cluster of your own: from git push to running pods, in a namespace that is removed at the end.

Run it by ``make demo CLUSTER=current``. It takes the cluster of KUBECONFIG, says what it will create, and creates just that: a namespace, and the two
CustomResourceDefinitions that it needs where they are missing. The Git server and the daemon run on this machine, and the daemon follows that namespace alone.
Everything that it created is removed at the end, after Ctrl-C or a failure as well. ``--keep`` waits for Ctrl-C before that.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path

from demo import EXAMPLES, Stage, clone, daemon, image_is, main, push_mistake, ready_pods, say, synced, take_back

from kubectl_reconcile.sandbox.gitserver import GitServer

DEFINITIONS = ("memcacheds.cache.example.com", "syncs.reconcile.dev")
RIGHTS = (
    "get customresourcedefinitions.apiextensions.k8s.io",
    "get namespaces",
    "create namespaces",
    "delete namespaces",
    "impersonate serviceaccounts",
    "create roles.rbac.authorization.k8s.io",
    "create rolebindings.rbac.authorization.k8s.io",
    "patch deployments.apps",
    "list leases.coordination.k8s.io --all-namespaces",
)
"""What the demo does in the cluster, as ``kubectl auth can-i`` asks for it."""
RIGHTS_TO_DEFINE = tuple(f"{verb} customresourcedefinitions.apiextensions.k8s.io" for verb in ("create", "delete"))
DAEMONS = "reconcile.dev/component=daemon,!reconcile.dev/follows"
"""The labels of the Leases of daemons that follow all namespaces."""


@contextmanager
def in_cluster(pace_s: float) -> Iterator[Stage]:
    """Set everything up in the cluster of KUBECONFIG, and remove it again."""
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="reconcile-demo-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        server = stack.enter_context(GitServer(folder / "served"))
        place = ("", folder / "kubeconfig", kubectl_folder())
        stage = Stage(*place, folder, "shop", server.create("shop").url, pace_s, "reconcile-demo")
        copy_kubeconfig(stage)
        missing = look_at_cluster(stage)
        announce(stage, missing)
        made: list[str] = []
        stack.callback(remove, stage, made)
        with undisturbed():
            create(stage, missing, made)
        clone(stage, fill)
        stack.enter_context(daemon(stage, f"--namespace={stage.namespace}"))
        stack.callback(remove, stage, made)  # while the daemon runs, which finalizers may wait for
        yield stage


def kubectl_folder() -> Path:
    found = shutil.which("kubectl")
    if not found:
        sys.exit("there is no kubectl on PATH: install it (https://kubernetes.io/docs/tasks/tools/)")
    return Path(found).absolute().parent


def copy_kubeconfig(stage: Stage) -> None:
    """Write a kubeconfig of the current context alone, which only we may read; the user's own is left as it is."""
    if not os.environ.get("KUBECONFIG"):
        sys.exit("KUBECONFIG isn't set: name the cluster for the demo, as in export KUBECONFIG=~/.kube/config")
    stage.kubeconfig.touch(mode=0o600)
    done = stage.run("kubectl config view --minify --flatten --output=yaml", KUBECONFIG=os.environ["KUBECONFIG"])
    if done.returncode:
        sys.exit(f"KUBECONFIG names no cluster: {last_line(done.stderr)}")
    stage.kubeconfig.write_text(done.stdout)


def look_at_cluster(stage: Stage) -> list[str]:
    """Find a namespace that isn't there, and return the CustomResourceDefinitions that aren't; refuse where the demo can't work or would disturb."""
    answer = stage.run("kubectl get --raw=/version --request-timeout=15s")
    if answer.returncode:
        sys.exit(f"the cluster of KUBECONFIG can't be reached: {last_line(answer.stderr)}")
    require(stage, RIGHTS)
    missing = [name for name in DEFINITIONS if not there(stage, f"customresourcedefinition/{name}")]
    require(stage, RIGHTS_TO_DEFINE if missing else ())
    if found := stage.run(f"kubectl get leases --all-namespaces --selector={DAEMONS} --output=name").stdout.split():
        sys.exit(
            f"a daemon runs in this cluster that follows all namespaces, and would disturb the demo ({found[0]}); nothing was created. "
            "If none runs any more, delete that Lease"
        )
    stage.namespace = next(name for name in names() if not there(stage, f"namespace/{name}"))
    return missing


def names() -> Iterator[str]:
    """Yield names for the namespace: reconcile-demo, reconcile-demo-2, and so on."""
    yield "reconcile-demo"
    yield from (f"reconcile-demo-{number}" for number in count(2))


def there(stage: Stage, what: str) -> bool:
    done = stage.run(f"kubectl get {what} --ignore-not-found --output=name")
    if done.returncode:
        sys.exit(f"can't look for {what}: {last_line(done.stderr)}; nothing was created")
    return bool(done.stdout.strip())


def require(stage: Stage, rights: tuple[str, ...]) -> None:
    if lacking := [right for right in rights if not may(stage, right)]:
        sys.exit(f"you may not do in this cluster what the demo needs: {', '.join(lacking)}; nothing was created")


def may(stage: Stage, right: str) -> bool:
    scope = "" if "--all-namespaces" in right else f" --namespace={stage.namespace}"
    return stage.run(f"kubectl auth can-i {right}{scope}").stdout.strip() == "yes"


def last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no reason was given"])[-1]


def announce(stage: Stage, missing: list[str]) -> None:
    """Say what will be created, and where; at a terminal, wait for agreement."""
    server = stage.run("kubectl config view --output=jsonpath={.clusters[0].cluster.server}").stdout
    context = stage.run("kubectl config current-context").stdout.strip()
    say(f"This demo uses the cluster {server} (context {context}). It will create there, and remove at the end:")
    print(f"  Namespace {stage.namespace}, and everything else in it")
    for name in missing:
        print(f"  CustomResourceDefinition {name}")
    print("Nothing else in the cluster is changed. The Git server and the daemon run on this machine.", flush=True)
    if sys.stdin.isatty():
        input("\nPress Enter to begin, or Ctrl-C to leave the cluster as it is. ")


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM take effect at the end of this, so that it is known what was created and removed."""
    told: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, lambda number, _: told.append(number)) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if told:
        raise KeyboardInterrupt


def create(stage: Stage, missing: list[str], made: list[str]) -> None:
    """Create the namespace and the CustomResourceDefinitions, and add each to *made*; what somebody else creates meanwhile isn't ours."""
    crds = shlex.quote(str(EXAMPLES.parent / "crds"))
    commands = {f"namespace/{stage.namespace}": f"kubectl create namespace {stage.namespace}"}
    commands |= {f"customresourcedefinition/{name}": f"kubectl create -f {crds}/{name}.yaml" for name in missing}
    for what, command in commands.items():
        done = stage.run(command)
        if done.returncode:
            sys.exit(f"{what} can't be created: {last_line(done.stderr)}")
        made.append(what)
    for name in missing:
        stage.run(f"kubectl wait --for=condition=Established --timeout=60s customresourcedefinition/{name}")
    stage.run(f"kubectl config set-context --current --namespace={stage.namespace}")


def remove(stage: Stage, made: list[str]) -> None:
    """Remove what the demo created, and say what couldn't be removed."""
    if not made:
        return
    with undisturbed():
        say("Removing what the demo created …")
        for what in made:
            kind, _, name = what.partition("/")
            if kind != "namespace" and others_use(stage, name):
                print(f"  left {what}: there are objects of it in other namespaces by now")
                continue
            done = stage.run(f"kubectl delete {what} --ignore-not-found --timeout=180s")
            still = f"{what} is still there: {last_line(done.stderr)}" if done.returncode else ""
            print(f"  {still or done.stdout.strip() or f'{what} was gone already'}", flush=True)
        made.clear()


def others_use(stage: Stage, definition: str) -> bool:
    """Tell whether there are objects of a definition that aren't the demo's own."""
    done = stage.run(f"kubectl get {definition} --all-namespaces --output=jsonpath={{.items[*].metadata.namespace}}")
    return bool(set(done.stdout.split()) - {stage.namespace})


def fill(repository: Path) -> None:
    """Put the shop's manifests into the repository as they are, small, and without what renders overlays."""
    folder = repository / "shop"
    folder.mkdir()
    for name in ("caches.yaml", "config.yaml", "web.yaml"):
        shutil.copy(EXAMPLES / "shop" / "base" / name, folder)
    web, caches = folder / "web.yaml", folder / "caches.yaml"
    web.write_text(web.read_text().replace("nginx-unprivileged\n", "nginx-unprivileged:1.29-alpine\n"))
    caches.write_text(re.sub("size: .", "size: 1", caches.read_text()))


def play(stage: Stage) -> None:
    first_sync(stage)
    push_a_change(stage)
    drift(stage)
    remove_a_file(stage)
    break_something(stage)


def wanted(stage: Stage) -> str:
    return stage.run("kubectl get deployment sessions --output=jsonpath={.spec.replicas}").stdout


def first_sync(stage: Stage) -> None:
    say(
        "1. A Sync follows a folder of a Git repository. What would it do to this namespace? This writes nothing.",
        stage.pace_s,
    )
    stage.show("kubectl reconcile diff -f shop -o summary", cwd=stage.repository)
    say(
        "The Sync writes as a ServiceAccount of its namespace; --grant gives that just the rights that this repository needs."
    )
    stage.show(f"kubectl reconcile create shop --url {stage.url} --path shop --interval 1s --grant")
    stage.wait("the cluster is what Git asks for", lambda: synced(stage))
    stage.wait("the pod of Memcached sessions is Ready", lambda: ready_pods(stage, "sessions") == 1)
    stage.show("kubectl get memcached,deployments,pods")


def push_a_change(stage: Stage) -> None:
    say(
        "2. Somebody wants more cache, and a newer web server. What would that change, down to the Deployment?",
        stage.pace_s,
    )
    stage.write("shop/caches.yaml", lambda text: text.replace("size: 1", "size: 2", 1))
    stage.write("shop/web.yaml", lambda text: text.replace("1.29-alpine", "1.30-alpine"))
    stage.show("kubectl reconcile diff shop --local .", cwd=stage.repository)
    stage.push("More room for sessions, and 1.30")
    stage.wait("1.30 is applied", lambda: image_is(stage, "1.30-alpine", stage.namespace))
    stage.wait("two pods of sessions are Ready", lambda: ready_pods(stage, "sessions") == 2)


def drift(stage: Stage) -> None:
    say("3. Somebody scales a Deployment by hand.", stage.pace_s)
    stage.show("kubectl scale deployment sessions --replicas=1")
    stage.wait("two pods are wanted again", lambda: wanted(stage) == "2")


def remove_a_file(stage: Stage) -> None:
    say("4. A cache goes from Git.", stage.pace_s)
    stage.write("shop/caches.yaml", lambda text: text.partition("---")[0])
    stage.show("kubectl reconcile diff shop --local . -o summary", cwd=stage.repository)
    stage.push("The page cache is gone")
    stage.wait("its Deployment is gone, too", lambda: not stage.json("kubectl get deployment pages"))


def break_something(stage: Stage) -> None:
    say("5. Somebody pushes a mistake: wrong indentation.", stage.pace_s)
    push_mistake(stage, "shop/config.yaml")
    say("What was applied stays as it is. Take the mistake back …")
    take_back(stage)
    stage.wait("the cluster is what Git asks for again", lambda: synced(stage))


if __name__ == "__main__":
    main(__doc__ or "", in_cluster, play)
