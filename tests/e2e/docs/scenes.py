"""What has to be there before the commands of a page are typed: scenes, each in a world of its own.

A scene is named by the heading where it begins; it goes on until the next one of its page begins. `BEFORE` has what happens within
a scene, before a command that begins so: somebody edits a file, or pushes.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests import forked, walks

URL = "https://git.example.com/team/shop.git"
SHELL = re.compile(r"[|;&<>$`]")
"""What only a shell understands."""

ASKING = {"grant": (), "rollback": ("--apply",), "delete": ("--apply",)}
"""Verbs that ask before they write; grant only if it is told to."""

WEB = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "nginxinc/nginx-unprivileged:1.29-alpine"}]},
        },
    },
}
SETTINGS = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"GREETING": "Hello"}}


@dataclass
class World:
    """Where a reader is: an empty folder, a namespace, a repository that can be pushed to.

    *namespaces* are those of a page, and what they are called here; *words* are others that are printed.
    """

    folder: Path
    cluster: Any
    kubectl: Any
    git: Any
    daemon: Any
    follow: Callable[..., Any]
    environ: dict[str, str]
    namespaces: dict[str, str] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)
    sync: Any = None

    def types(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run what a reader types, with the names of this world in it; whoever is asked on a terminal says yes."""
        command = re.sub(r"\bNAME\b", "shop", command.replace(URL, self.git.url))
        for word, here in self.namespaces.items():
            command = re.sub(rf"(-n |namespace[ =]|account[=:]){word}\b(?!-)", rf"\g<1>{here}", command)
        words = shlex.split(command, comments=True)
        if words[:2] == ["kubectl", "reconcile"] and not SHELL.search(command.partition(" #")[0]):
            yes = (
                ["--yes"]
                if words[2] in ASKING and "--dry-run" not in words and "--apply" in (*words, *ASKING[words[2]])
                else []
            )
            return forked.run(
                [*words[2:], *yes], env=self.environ, timeout=300
            )  # as kubectl runs it, without a start of Python's
        return subprocess.run(
            ["bash", "-c", command], cwd=self.folder, env=self.environ, capture_output=True, text=True, check=False, timeout=300,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def read(self, text: str) -> str:
        """Return what was printed with the words of the page in it."""
        for word, here in {URL: self.git.url, **self.words, **self.namespaces}.items():
            text = re.sub(rf"{re.escape(here)}(?![\w-])", word, text)
        return text

    def write(self, files: Mapping[str, Any]) -> None:
        for name, content in files.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(
                content if isinstance(content, str) else yaml.safe_dump(content, sort_keys=False)
            )

    def must(self, command: str) -> str:
        """Do what a page takes for granted; return what is printed."""
        done = self.types(command)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout

    def lives_in(self, name: str) -> None:
        """The page calls the test's namespace so."""
        self.namespaces[name] = self.cluster.namespace

    def copy_examples(self, into: str = "") -> dict[str, str]:
        """Copy the examples, each overlay in a namespace of its own; return what they are."""
        for name, part in {"shop": "a", "shop-staging": "b"}.items():
            self.namespaces[name] = f"{self.cluster.namespace}-{part}"
        files = {}
        for file in (walks.ROOT / "examples").rglob("*.yaml"):
            text = file.read_text(encoding="utf-8")
            if file.parent.name in {"prod", "staging"}:
                text = re.sub(r"\bshop-staging\b", self.namespaces["shop-staging"], text)
                text = re.sub(r"(?<=namespace: )shop\b|(?<=name: )shop\b", self.namespaces["shop"], text)
            files[str(file.relative_to(walks.ROOT / "examples"))] = text
        self.write({f"{into}{name}": text for name, text in files.items()})
        (self.folder / ".git").mkdir(exist_ok=True)  # what an overlay may see ends where the working tree does
        return files

    def pushed(self, files: Mapping[str, Any], message: str = "Change", author: str = "Ada <ada@localhost>") -> str:
        texts = {
            name: each if isinstance(each, str) else yaml.safe_dump(each, sort_keys=False)
            for name, each in files.items()
        }
        return self.git.push(texts, message, author=author)

    def follows(self, path: str = ".", **spec: Any) -> None:
        """A Sync *shop* that the daemon follows, once all of it is applied."""
        self.daemon.start()
        self.sync = self.follow(self.git.url, path=path, git={"branch": "main"}, **spec)
        self.sync.until_synced(self.git.sha())


def anywhere(world: World) -> None:
    """Nothing has to be there."""


def overlays(world: World) -> None:
    """Two Syncs follow the overlays of the examples, and a chart is applied by hand; then files are edited."""
    world.lives_in("default")
    files = world.copy_examples()
    world.pushed(files)
    for name, path in {"shop": "shop/prod", "staging": "shop/staging"}.items():
        world.follow(world.git.url, name, path=path, interval="1h")
        world.must(f"kubectl reconcile sync {name}")
    world.must("kubectl reconcile sync -f guestbook --name guestbook")
    world.write({"shop/base/caches.yaml": files["shop/base/caches.yaml"].replace("size: 3", "size: 5")})
    values = files["guestbook/values.yaml"]
    world.write(
        {
            "guestbook/values.yaml": values.replace("title: Guestbook", "title: Our guests").replace(
                "replicas: 1", "replicas: 2"
            )
        }
    )


def after_a_commit(files: Mapping[str, Any], edited: Mapping[str, Any] | None = None) -> Callable[[World], None]:
    """A Sync *shop* follows these files, and the folder is a clone with others edited."""

    def prepare(world: World) -> None:
        world.lives_in("shop")
        world.pushed(files)
        world.follow(world.git.url, interval="1h")
        world.must("kubectl reconcile sync shop")
        world.must(f"git clone --quiet {URL} .")
        world.write(edited or {})

    return prepare


def stuck(world: World) -> None:
    """The newest commit names an image that can't be pulled."""
    world.lives_in("shop")
    world.words["registry.example.com"] = "registry.invalid"
    three = with_spec(WEB, replicas=3)
    world.pushed({"web.yaml": three, "settings.yaml": SETTINGS})
    world.follows()
    world.must("kubectl reconcile wait shop")  # else its controller may see the second template alone
    world.pushed({"web.yaml": with_image(three, "registry.invalid/web:2")})
    world.sync.until_synced(world.git.sha())


def with_spec(manifest: Mapping[str, Any], **spec: Any) -> dict[str, Any]:
    return {**manifest, "spec": {**manifest["spec"], **spec}}


def with_image(manifest: Mapping[str, Any], image: str) -> dict[str, Any]:
    template = manifest["spec"]["template"]
    pod = {**template["spec"], "containers": [{**template["spec"]["containers"][0], "image": image}]}
    return with_spec(manifest, template={**template, "spec": pod})


def in_a_clone(world: World) -> None:
    """A clone of our repository."""
    world.lives_in("default")
    world.copy_examples("examples/")


def with_crds(world: World) -> None:
    in_a_clone(world)
    shutil.copytree(walks.ROOT / "crds", world.folder / "crds")


def followed_by_a_daemon(world: World) -> None:
    """The README's Sync was applied, and a daemon runs."""
    world.cluster.delete("Sync", "shop")
    world.pushed(world.copy_examples("examples/"))
    world.daemon.start()
    world.follow(world.git.url, path="shop/prod", interval="30s")


def broken_files(world: World) -> None:
    """Three objects were applied; then two files went wrong."""
    cache = {"apiVersion": "cache.example.com/v1alpha1", "kind": "Memcached", "metadata": {"name": "sessions"}}
    caches = f"# Each becomes a Deployment.\n{yaml.safe_dump({**cache, 'spec': {'size': 2}}, sort_keys=False)}"
    world.lives_in("shop")
    more = {**SETTINGS, "metadata": {"name": "more"}}
    world.write(
        {"shop/web.yaml": WEB, "shop/settings.yaml": SETTINGS, "shop/more.yaml": more, "shop/caches.yaml": caches}
    )
    world.must("kubectl reconcile sync -f shop --name shop")
    bad = "".join(f"# {number}\n" for number in range(9)) + "data:\n  a: b\n c: d\n"
    world.write({"shop/caches.yaml": caches.replace("size: 2", "size: -1"), "shop/config.yaml": bad})


def somebody_scaled(world: World) -> None:
    """A suspended Sync, and drift of a field that a commit set."""
    cache = {
        "apiVersion": "cache.example.com/v1alpha1",
        "kind": "Memcached",
        "metadata": {"name": "sessions"},
        "spec": {"size": 2},
    }
    three = f"# What customers see.\n{yaml.safe_dump(with_spec(WEB, replicas=3), sort_keys=False)}"
    world.lives_in("shop")
    world.pushed({"shop/settings.yaml": SETTINGS, "shop/caches.yaml": cache, "shop/web.yaml": three})
    world.follows("shop")
    world.pushed(
        {"shop/web.yaml": three.replace("replicas: 3", "replicas: 2")}, "Two are enough", "Sandbox <sandbox@localhost>"
    )
    world.sync.until_synced(world.git.sha())
    world.must("kubectl reconcile wait shop")
    world.sync.change(suspend=True)
    world.sync.until("Suspended")
    change = '{"spec":{"replicas":3}}'
    world.kubectl("patch", "deployment", "web", "--type=merge", f"--patch={change}", "--field-manager=kubectl-edit")


def rolled_out(world: World) -> None:
    """All pods run that somebody asked for: until then a preview says that they don't."""
    world.must("kubectl rollout status deployment web --timeout=300s")


def back_in_sync(world: World) -> None:
    world.sync.change(suspend=False)
    world.sync.until_synced(world.git.sha())
    world.must("kubectl reconcile wait shop")


def overlay_with_a_patch(world: World) -> None:
    """An overlay, never applied, whose patch somebody changed."""
    world.lives_in("shop")
    base = "# The web of the shop.\n#\n#\n#\n" + yaml.safe_dump(with_spec(WEB, replicas=2), sort_keys=False)
    patch = f"# More for the sale.\n{yaml.safe_dump({**WEB, 'spec': {'replicas': 5}}, sort_keys=False)}"
    world.pushed({
        "base/web.yaml": base, "base/kustomization.yaml": "resources: [web.yaml]\n",
        "overlays/prod/replicas.yaml": patch,
        "overlays/prod/kustomization.yaml": "resources: [../../base]\npatches: [{path: replicas.yaml}]\n",
    })  # fmt: skip
    world.pushed({"overlays/prod/replicas.yaml": patch.replace("5", "7")}, "Make room for the sale")
    world.follow(world.git.url, path="overlays/prod", interval="1h")
    world.must("kubectl reconcile sync shop")


def own_repository(world: World) -> None:
    """A team has a repository with an overlay."""
    world.lives_in("hello")
    world.pushed({
        "base/settings.yaml": SETTINGS, "base/kustomization.yaml": "resources: [settings.yaml]\n",
        "overlays/prod/kustomization.yaml": "resources: [../../base]\n",
    })  # fmt: skip


def daemon_runs(world: World) -> None:
    world.daemon.start()


def two_states(world: World) -> None:
    """Two commits were applied, one after the other."""
    world.lives_in("shop")
    world.pushed({"web.yaml": WEB})
    world.follows()
    world.pushed({"web.yaml": with_spec(WEB, replicas=1)}, "One is enough")
    world.sync.until_synced(world.git.sha())
    world.must("kubectl reconcile wait shop")


def resumed(world: World) -> None:
    """What was done before is over."""
    world.must("kubectl reconcile resume shop")
    world.sync.until_synced(world.git.sha())


def without_a_daemon(world: World) -> None:
    """The Sync isn't there."""
    world.must("kubectl reconcile delete shop --yes")


def cloned(world: World) -> None:
    """A clone beside, with a change that can't be pushed."""
    world.must(f"git clone --quiet {URL} clone")
    world.write({"clone/web.yaml": with_spec(WEB, replicas=3)})


def just_merged(world: World) -> None:
    two_states(world)
    world.environ["SHA"] = world.git.sha()


def applied_by_kubectl(world: World) -> None:
    """A folder that kubectl applied."""
    world.lives_in("shop")
    world.write({"manifests/web.yaml": WEB, "manifests/settings.yaml": SETTINGS})
    world.must("kubectl apply -f manifests")
    world.pushed({"manifests/web.yaml": WEB, "manifests/settings.yaml": SETTINGS})
    world.pushed({"overlays/prod/kustomization.yaml": "resources: [web.yaml]\n", "overlays/prod/web.yaml": WEB})


def applied_by_flux(world: World) -> None:
    """A folder with the Kustomization that the page shows, and what it has applied."""
    world.lives_in("team-a")
    page = (walks.ROOT / "docs/migrating.md").read_text(encoding="utf-8")
    shown = page.partition("```yaml\n")[2].partition("```")[0]
    here = shown.replace("namespace: team-a", f"namespace: {world.cluster.namespace}").replace(URL, world.git.url)
    world.write({"fleet/shop.yaml": here, "manifests/web.yaml": WEB})
    world.pushed({"manifests/web.yaml": WEB})
    world.must("kubectl apply -f manifests")


def team(world: World) -> None:
    """The team's namespace doesn't exist yet."""
    world.namespaces["team-a"] = f"{world.cluster.namespace}-a"


def team_with_a_repository(world: World) -> None:
    """The same, with a repository, and a daemon of the whole cluster's: here, of the team's namespace."""
    team(world)
    own_repository(world)
    world.namespaces["team-b"] = f"{world.cluster.namespace}-b"


def team_is_followed(world: World) -> None:
    world.daemon.namespace = world.namespaces["team-a"]
    world.daemon.start()


def team_with_a_sync(world: World) -> None:
    world.pushed({"settings.yaml": SETTINGS})
    namespace = world.namespaces["team-a"]
    world.follow(world.git.url, on=world.cluster.at(namespace), trusted=False)


def signers(world: World) -> None:
    """A namespace of a team, and files with keys."""
    world.lives_in("team-a")
    world.write({"allowed_signers": "ada@example.com ssh-ed25519 AAAA\n", "release.asc": "a key\n"})


def speed(world: World) -> None:
    """A Checkup of a schedule."""
    spec = {"schedule": "30 1 * * *", "load": {"service": "web", "port": 80, "ratePerSecond": 1, "durationSeconds": 10}}
    world.cluster.apply(
        {"apiVersion": "checks.reconcile.dev/v1alpha1", "kind": "Checkup", "metadata": {"name": "speed"}, "spec": spec}
    )


def pod_with(**fields: Any) -> dict[str, Any]:
    """The web with fields of its pods, as strict as can be besides."""
    safe = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    container = {
        "name": "web", "image": f"nginxinc/nginx-unprivileged:1.29-alpine@sha256:{'0' * 64}", "securityContext": safe,
        "resources": {"requests": {"cpu": "10m"}, "limits": {"memory": "64Mi"}}, "readinessProbe": {"tcpSocket": {"port": 8080}},
    }  # fmt: skip
    context = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    template = {**WEB["spec"]["template"], "spec": {"securityContext": context, "containers": [container], **fields}}
    return with_spec(WEB, replicas=1, template=template)


HOST_NETWORK = {"web.yaml": pod_with(hostNetwork=True), "settings.yaml": SETTINGS}
HOST_IPC = {"web.yaml": pod_with(hostIPC=True)}


def pushed_host_ipc(world: World) -> None:
    world.pushed(HOST_IPC)
    world.environ["GITHUB_SHA"] = world.git.sha()


def checked(world: World) -> None:
    """A Checkup scans the namespace."""
    spec = {"scan": {"profile": "restricted"}}
    checkup = {
        "apiVersion": "checks.reconcile.dev/v1alpha1",
        "kind": "Checkup",
        "metadata": {"name": "security"},
        "spec": spec,
    }
    world.cluster.apply(checkup)


def pushed_and_checked(world: World) -> None:
    checked(world)
    world.pushed(HOST_IPC)


def checked_and_edited(world: World) -> None:
    after_a_commit({"web.yaml": pod_with(), "settings.yaml": SETTINGS}, HOST_IPC)(world)
    checked(world)


def argo_cd(world: World) -> None:
    """Argo CD's kind, and an Application."""
    other_tool(
        world, "argocd", "argoproj.io", "v1alpha1", "Application", {"syncPolicy": {"automated": {"prune": True}}}
    )


def flux(world: World) -> None:
    """Flux's kind, and a Kustomization."""
    other_tool(world, "flux-system", "kustomize.toolkit.fluxcd.io", "v1", "Kustomization", {"prune": True})


def helm_release(world: World) -> None:
    """Flux's kind of releases, and one."""
    other_tool(world, "flux-system", "helm.toolkit.fluxcd.io", "v2", "HelmRelease", {"suspend": True})


def other_tool(world: World, namespace: str, group: str, version: str, kind: str, spec: Mapping[str, Any]) -> None:
    """Another tool's kind without the tool, in a namespace that is called otherwise here, and one object with its finalizer."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    names = {"kind": kind, "plural": f"{kind.lower()}s", "singular": kind.lower()}
    versions = [{"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]
    world.kubectl.apply({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"{names['plural']}.{group}"},
        "spec": {"group": group, "names": names, "scope": "Namespaced", "versions": versions},
    })  # fmt: skip
    world.kubectl("wait", "--for=condition=Established", "--timeout=300s", f"crd/{names['plural']}.{group}")
    world.namespaces[namespace] = world.cluster.namespace
    world.kubectl.apply({
        "apiVersion": f"{group}/{version}", "kind": kind, "spec": spec,
        "metadata": {"name": "shop", "namespace": world.cluster.namespace, "finalizers": [f"finalizers.{group}/x"] if kind == "Application" else []},
    })  # fmt: skip


SCENES: dict[str, tuple[tuple[str, Callable[[World], None]], ...]] = {
    "README.md": (
        ("kubectl reconcile diff shop --local .", overlays),
        ("kubectl reconcile sync shop --timeout", stuck),
        ("kubectl reconcile diff -f examples/shop/prod", in_a_clone),
        ("kubectl reconcile diff -f shop -o summary", broken_files),
        ("kubectl reconcile explain deploy/web", somebody_scaled),
        ("kubectl reconcile explain deploy/web", overlay_with_a_patch),
    ),
    "examples/README.md": (("kubectl reconcile diff -f examples/shop/prod", in_a_clone),),
    "docs/quick-start.md": (("pip install .", own_repository),),
    "docs/troubleshooting.md": (("kubectl reconcile status NAME", two_states),),
    "docs/pull-requests.md": (("kubectl reconcile wait shop", just_merged),),
    "docs/migrating.md": (
        ("kubectl reconcile import flux", applied_by_flux),
        ("kubectl reconcile diff -f manifests", applied_by_kubectl),
    ),
    "docs/disaster-recovery.md": (("kubectl reconcile install", two_states),),
    "docs/operating.md": (("docker build", two_states),),
    "docs/many-teams.md": (("kubectl create namespace team-a", team_with_a_repository),),
    "docs/secrets.md": (("mkdir shop", lambda world: world.lives_in("shop")),),
    "docs/databases.md": (("kubectl apply -f crds/", with_crds),),
    "docs/upgrading.md": (("kubectl reconcile version", anywhere),),
    "docs/git-sources.md": (("kubectl create secret", signers),),
    "docs/security.md": (("kubectl create namespace team-a", team),),
    "docs/scan.md": (
        ("kubectl reconcile diff shop --local .", after_a_commit(HOST_NETWORK, HOST_IPC)),
        ("kubectl reconcile diff shop --fail-on", after_a_commit({**HOST_NETWORK, "web.yaml": pod_with()})),
    ),
    "docs/checkups.md": (
        ("kubectl annotate checkup speed", speed),
        ("kubectl reconcile diff shop --local .", checked_and_edited),
    ),
    **{f"docs/{name}.md": (("kubectl apply -f crds/", with_crds),) for name in ("etcd", "mydatabase", "kafka")},
    "docs/sandbox.md": (("kubectl reconcile sandbox up", lambda world: world.lives_in("shop")),),
}
"""Page -> the commands where scenes begin, in order, and what is there then. The first scene has all that comes before the second."""

BEFORE: dict[str, dict[str, Callable[[World], None]]] = {
    "README.md": {
        "kubectl reconcile grant shop": followed_by_a_daemon,
        "kubectl reconcile tree shop": back_in_sync,
    },
    "docs/quick-start.md": {
        "kubectl reconcile diff -f hello --name hello --reasons": rolled_out,
        "kubectl reconcile create shop": daemon_runs,
    },
    "docs/many-teams.md": {"kubectl reconcile create shop": team_is_followed},
    "docs/disaster-recovery.md": {
        "kubectl reconcile suspend shop": resumed,
        "kubectl reconcile diff shop --local clone": cloned,
    },
    "docs/security.md": {"kubectl reconcile grant shop -n team-a  ": team_with_a_sync},
    "docs/migrating.md": {
        "kubectl reconcile sync -f manifests": without_a_daemon,
        "kubectl -n argocd patch": argo_cd,
        "kubectl -n argocd get": argo_cd,
        "kubectl -n flux-system patch": flux,
        "kubectl -n flux-system get kustomization": flux,
        "kubectl -n flux-system get helmrelease": helm_release,
        "kubectl delete secret -n shop": lambda world: world.lives_in("shop"),
    },
    "docs/scan.md": {
        'kubectl reconcile diff shop --revision "$GITHUB_SHA"': pushed_host_ipc,
        "kubectl reconcile diff shop --fail-on": pushed_and_checked,
    },
}
"""Page -> how a command begins -> what happens right before it."""


def parts(page: str) -> list[tuple[Callable[[World], None], list[walks.Command]]]:
    """Return the scenes of a page, each with its commands; those that aren't run are left out, and scenes without any."""
    found: list[tuple[Callable[[World], None], list[walks.Command]]] = []
    left = list(SCENES.get(page, ()))
    for command in walks.of(page):
        if left and command.text.startswith(left[0][0]):
            found.append((left.pop(0)[1], []))
        if not found:
            found.append((anywhere, []))
        if not command.reason:
            found[-1][1].append(command)
    assert not left, f"{page} has no such command after the scene before: {left[0][0]}"
    return [(prepare, part) for prepare, part in found if part]


def statuses(command: walks.Command) -> tuple[int, ...]:
    """Return how a command may end: a preview ends with 1 where there are differences, and a page may show a failure."""
    if command.text.startswith("kubectl reconcile doctor"):
        return (0, 6)  # of what other tests do, there is something to complain about
    if "--fail-on" in command.text:
        return (0, 7)
    if command.text.startswith("kubectl reconcile diff"):
        return (0, 1) if command.printed is None else (0, 1, 4, 6)
    if command.text.startswith("kubectl auth can-i"):
        return (0, 1)
    return (0,) if command.printed is None else (0, 6)
