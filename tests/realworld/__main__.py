"""Follow public repositories of manifests, overlays and charts: ``python -m tests.realworld FOLDER [NAME ...]``.

FOLDER holds checkouts, each under the name of its repository; those that aren't there are left out. The files of one
at a time are pushed to a Git server of this machine, and a Sync follows them with a daemon on a control plane of its own.
What an overlay or a chart asks for is what kubectl or helm makes of it; kinds that the cluster doesn't have get CRDs that take anything.

1. ``diff`` announces creates and nothing that can't be used;
2. ``sync`` waits until all of it is applied;
3. ``diff`` and ``kubectl diff --server-side`` agree that nothing is left to do;
4. a field changed by hand is put back;
5. an object removed from Git is pruned, and ``rollback`` brings it back;
6. deleting the Sync, with ``deletionPolicy: Prune``, leaves nothing behind.

Prints a row per repository, and exits 1 where one of these did not hold. Images are never run: pods are simulated.
"""

# ruff: noqa: T201 - a program that prints

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import yaml

from kubectl_reconcile.cache_folder import cache_dir
from kubectl_reconcile.core.health.workload_rules import removes_itself
from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.core.resources.applyset import PART_OF, applyset_id
from kubectl_reconcile.sandbox.controlplane import Sandbox, trust_accounts
from kubectl_reconcile.sandbox.gitserver import GitServer, ServedRepository
from kubectl_reconcile.source.render.program import RENDER
from tests.realworld.documents import documents, loaded
from tests.rendering_tools import build_helm

PROGRAM = Path(sys.executable).parent / "kubectl-reconcile"
CRDS = Path(__file__).parents[2] / "crds"
PATIENCE_S = 120.0
_GENERATED = re.compile(r"-[bcdfghkmt2456789]{10}$")
"""End of a name that kustomize's generators give: no patch can name it."""
AROUND = "around-it"
"""Folder of an overlay around the one that is followed."""


class Case(NamedTuple):
    """Where the manifests of one repository lie: files or folders below it, and the namespace that they are meant for.

    Of what is *rendered*, an overlay or a chart, that is the folder, and the paths are those of all files that belong to it.
    A chart gets *values*, by name, where it asks for some.
    """

    paths: tuple[str, ...]
    namespace: str
    rendered: str = ""
    checkout: str = ""
    values: Mapping[str, str] = MappingProxyType({})


CASES = {
    "metrics-server overlay": Case(("manifests",), "metrics-overlay", "manifests/overlays/release", "metrics-server"),
    "metrics-server chart": Case(("charts",), "metrics-chart", "charts/metrics-server", "metrics-server"),
    "guestbook overlay": Case(
        ("kustomize-guestbook",), "guestbook-overlay", "kustomize-guestbook", "argocd-example-apps"
    ),
    "guestbook chart": Case(("helm-guestbook",), "guestbook-chart", "helm-guestbook", "argocd-example-apps"),
    "flux2 apps": Case(("apps",), "podinfo", "apps/production", "flux2-kustomize-helm-example"),
    "flux2 controllers": Case(
        ("infrastructure",), "flux-controllers", "infrastructure/controllers", "flux2-kustomize-helm-example"
    ),
    "kserve overlay": Case(("config",), "kserve", "config/default", "kserve"),
    "ingress-nginx overlay": Case(
        ("deploy/static/provider/kind",), "ingress-nginx", "deploy/static/provider/kind", "ingress-nginx"
    ),
    "ingress-nginx chart": Case(("charts",), "ingress-chart", "charts/ingress-nginx", "ingress-nginx"),
    "cert-manager chart": Case(("deploy/charts",), "cert-manager", "deploy/charts/cert-manager", "cert-manager"),
    "argocd-example-apps": Case(("guestbook",), "guestbook"),
    "kube-prometheus": Case(("manifests",), "monitoring"),
    "microservices-demo": Case(("release/kubernetes-manifests.yaml",), "boutique"),
    "examples": Case(
        ("databases/cassandra/cassandra-service.yaml", "databases/cassandra/cassandra-statefulset.yaml"), "cassandra"
    ),
    "metallb": Case(("config/manifests/metallb-native.yaml",), "metallb-system"),
    "strimzi-kafka-operator": Case(("install/cluster-operator",), "myproject"),
    "argo-cd": Case(("manifests/install.yaml",), "argocd"),
    "ingress-nginx": Case(("deploy/static/provider/baremetal/deploy.yaml",), "ingress-nginx"),
    "longhorn": Case(("deploy/longhorn.yaml",), "longhorn-system"),
    "example-voting-app": Case(("k8s-specifications",), "vote"),
    "istio": Case(("samples/bookinfo/platform/kube/bookinfo.yaml",), "bookinfo"),
    "sock-shop": Case(("deploy/kubernetes/manifests",), "sock-shop"),
    "calico": Case(("manifests/calico.yaml",), "calico"),
    "podinfo overlay": Case(("deploy",), "podinfo-overlay", "deploy/overlays/dev", "podinfo"),
    "podinfo chart": Case(("charts",), "podinfo-chart", "charts/podinfo", "podinfo"),
    "flux2-multi-tenancy tenants": Case(("tenants",), "tenants", "tenants/staging", "flux2-multi-tenancy"),
    "descheduler overlay": Case(("kubernetes",), "descheduler", "kubernetes/deployment", "descheduler"),
    "external-dns chart": Case(
        ("charts",), "external-dns", "charts/external-dns", "external-dns", values={"policy": "sync"}
    ),
    "argo-rollouts": Case(("manifests/install.yaml",), "argo-rollouts"),
    "bank-of-anthos": Case(("kubernetes-manifests",), "bank"),
    "contour": Case(("examples/render/contour.yaml",), "projectcontour"),
    "csi-driver-nfs chart": Case(("charts/latest",), "csi-nfs", "charts/latest/csi-driver-nfs", "csi-driver-nfs"),
    "gatekeeper chart": Case(("charts",), "gatekeeper-chart", "charts/gatekeeper", "gatekeeper"),
    "node-feature-discovery overlay": Case(
        ("deployment",), "node-feature-discovery", "deployment/overlays/default", "node-feature-discovery"
    ),
    "keda overlay": Case(("config",), "keda", "config/default", "keda"),
}


def files_of(checkout: Path, case: Case) -> dict[str, bytes]:
    """Return the files of a case by the path that they get in the repository that is followed."""
    found: dict[str, bytes] = {}
    for place in (checkout / path for path in case.paths):
        patterns = ("*",) if case.rendered else ("*.yaml", "*.yml")
        files = [place] if place.is_file() else sorted(each for pattern in patterns for each in place.rglob(pattern))
        found |= {
            str(file.relative_to(checkout)): file.read_bytes()
            for file in files
            if file.is_file() and not file.is_symlink()
        }
    return found


def without_removed(content: bytes) -> bytes:
    """Return a file without the Jobs that the cluster removes once they have ended, which kubectl would create again."""
    whole = loaded(content)
    kept = [each for each in whole if not (isinstance(each, dict) and removes_itself(each))]
    return content if len(kept) == len(whole) else yaml.safe_dump_all(kept).encode()


@dataclass
class Bench:
    """A control plane, a daemon and a Git server, for one repository after the other."""

    sandbox: Sandbox
    server: GitServer
    home: Path
    log: Path
    helm: Path
    daemon: subprocess.Popen[bytes] | None = None

    def environ(self) -> dict[str, str]:
        return {**os.environ, "KUBECONFIG": str(self.sandbox.kubeconfig), "XDG_CACHE_HOME": str(self.home)}

    def run(self, *command: object, given: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(word) for word in command],
            env=self.environ(), capture_output=True, text=True, check=False, input=given, timeout=600,
        )  # fmt: skip

    def plugin(self, *words: object) -> subprocess.CompletedProcess[str]:
        return self.run(PROGRAM, *words)

    def kubectl(self, *words: object, given: str | None = None) -> subprocess.CompletedProcess[str]:
        return self.run(self.sandbox.programs / "kubectl", *words, given=given)

    @property
    def version(self) -> str:
        """The version of Kubernetes."""
        found: str = json.loads(self.kubectl("version", "-o", "json").stdout)["serverVersion"]["gitVersion"]
        return found

    def prepare(self) -> None:
        """Bring in our CRDs, and start the daemon."""
        for words in (("apply", "--server-side", "-f", CRDS), ("wait", "--for=condition=Established", "-f", CRDS)):
            done = self.kubectl(*words)
            if done.returncode:
                raise RuntimeError(done.stderr)
        with self.log.open("ab") as log:
            self.daemon = subprocess.Popen(
                [PROGRAM, "daemon", "--listen=127.0.0.1:0"], stdout=log, stderr=log, env=self.environ()
            )

    def stop(self) -> None:
        if self.daemon:
            self.daemon.send_signal(signal.SIGTERM)
            self.daemon.wait(60)


class NotSoError(Exception):
    """Something that must hold for every repository doesn't; the text says what was seen."""


@dataclass
class Follow:
    """One repository being followed."""

    bench: Bench
    name: str
    case: Case
    files: dict[str, bytes]
    repository: ServedRepository
    row: dict[str, str] = field(default_factory=dict)
    asked: dict[str, bytes] = field(default_factory=dict)
    """The manifests that are asked for, by a path: the files themselves, or what their own tool renders them to."""

    @property
    def objects(self) -> list[dict[str, Any]]:
        return [each for content in self.asked.values() for each in documents(content)]

    @property
    def path(self) -> str:
        """The folder that the Sync follows: of an overlay one around it, from which something can be left out."""
        return AROUND if self.is_overlay else self.case.rendered or "."

    @property
    def is_overlay(self) -> bool:
        return bool(self.case.rendered) and f"{self.case.rendered}/Chart.yaml" not in self.files

    def rendered(self) -> dict[str, bytes]:
        """Return what kubectl or helm makes of the files as they are."""
        if not self.case.rendered:
            return dict(self.files)
        with tempfile.TemporaryDirectory() as name:
            for path, content in self.files.items():
                file = Path(name, path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
            if self.is_overlay:
                done = self.bench.kubectl("kustomize", Path(name, self.path))
            else:
                where = ("release-name", Path(name, self.path), "--namespace", self.case.namespace)
                version = f"--kube-version={self.bench.version}"
                values = (f"--set={name}={value}" for name, value in self.case.values.items())
                options = (version, *values, "--include-crds", "--no-hooks")
                done = self.bench.run(self.bench.helm, "template", *where, *options)
        return {"rendered.yaml": self.expect(done, 0).encode()}

    def expect(self, done: subprocess.CompletedProcess[str], *statuses: int) -> str:
        """Return what a command printed, which must have ended with one of *statuses*."""
        if done.returncode not in statuses:
            words = " ".join(Path(done.args[0]).name.split() + done.args[1:])
            said = (done.stderr.strip() or done.stdout.strip())[-1500:]
            raise NotSoError(f"`{words}` exits with {done.returncode}: {said}")
        return done.stdout

    def ours(self, *words: object, status: int = 0) -> str:
        return self.expect(self.bench.plugin(*words, "-n", self.case.namespace), status)

    def eventually(self, what: str, holds: Callable[[], bool]) -> None:
        end_s = time.monotonic() + PATIENCE_S
        while not holds():
            if time.monotonic() > end_s:
                raise NotSoError(f"not within {PATIENCE_S:.0f} s: {what}")
            time.sleep(0.2)

    # The steps ----------------------------------------------------------------------------------

    def begin(self) -> None:
        """Push the manifests, and have a suspended Sync follow them."""
        space = self.case.namespace
        if self.is_overlay:
            self.files[f"{AROUND}/kustomization.yaml"] = f"resources: [../{self.case.rendered}]\n".encode()
        self.asked = self.rendered()
        self.make_kinds()
        if not any(each["kind"] == "Namespace" and each["metadata"]["name"] == space for each in self.objects):
            self.expect(self.bench.kubectl("create", "namespace", space), 0)
        else:
            self.bench.kubectl("create", "namespace", space)
        self.repository.push(self.files)
        spec = {
            "source": {"git": {"url": self.repository.url, "interval": "1h"}, "path": self.path, **self.release()},
            "targetNamespace": space,
            "deletionPolicy": "Prune", "suspend": True, "timeout": "5m",
            "health": {"wait": False},  # the controllers of what it holds aren't here
        }  # fmt: skip
        sync = {
            "apiVersion": "reconcile.dev/v1alpha1", "kind": "Sync",
            "metadata": {"name": self.sync, "namespace": space}, "spec": spec,
        }  # fmt: skip
        self.expect(self.bench.kubectl("apply", "-f", "-", given=json.dumps(sync)), 0)

    @property
    def sync(self) -> str:
        return self.name.replace(" ", "-")

    def release(self) -> dict[str, Any]:
        """Return what the Sync says of a chart."""
        if not self.case.rendered or self.is_overlay:
            return {}
        values = {"values": dict(self.case.values)} if self.case.values else {}
        return {"helm": {"releaseName": "release-name", **values}}

    def make_kinds(self) -> None:
        """Have the cluster know the kinds of other projects, whose objects may hold anything."""
        served = self.expect(self.bench.kubectl("api-resources", "--no-headers"), 0)
        known = {(words[-3], words[-1]) for line in served.splitlines() if len(words := line.split()) >= 4}
        own = {each["spec"]["names"]["kind"] for each in self.objects if each["kind"] == "CustomResourceDefinition"}
        wanted = {(each["apiVersion"], each["kind"]) for each in self.objects if each["kind"] not in own} - known
        for api, kind in sorted(wanted):
            made = self.bench.kubectl(
                "apply", "--server-side", "-f", "-", given=json.dumps(_taking_anything(api, kind))
            )
            self.expect(made, 0)
            self.expect(
                self.bench.kubectl(
                    "wait", "--for=condition=Established", "crd", f"{kind.lower()}s.{api.partition('/')[0]}"
                ),
                0,
            )

    def preview(self) -> None:
        printed = json.loads(self.ours("diff", self.sync, "-o", "json", status=1))
        problems = [str(each) for each in printed.get("problems", ()) if each.get("severity") != "warning"]
        if problems:
            raise NotSoError(f"the preview has problems: {'; '.join(problems)[:1500]}")
        self.row["objects"] = str(len(self.objects))

    def first_sync(self) -> None:
        began_s = time.monotonic()
        self.ours("resume", self.sync)
        self.ours("sync", self.sync, "--wait", "--timeout", "5m")
        self.row["sync"] = f"{time.monotonic() - began_s:.1f} s"

    def agreed(self) -> None:
        """Have ``diff`` and kubectl's own judge say that nothing is left to do."""
        self.ours("diff", self.sync)
        with tempfile.TemporaryDirectory() as name:
            for path, content in self.asked.items():
                file = Path(name, path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(without_removed(content))
            # Not by -n: that refuses objects of other namespaces.
            config = Path(name, "kubeconfig")
            config.write_bytes(self.bench.sandbox.kubeconfig.read_bytes())
            place = ("--kubeconfig", config)
            self.expect(
                self.bench.kubectl("config", "set-context", "--current", "--namespace", self.case.namespace, *place), 0
            )
            config.rename(config.with_suffix(".conf"))
            done = self.bench.kubectl(
                "diff", "--server-side", "--force-conflicts", "--field-manager=judge", "-R", "-f", name,
                "--kubeconfig", config.with_suffix(".conf"),
            )  # fmt: skip
        self.expect(done, 0)
        self.row["diff"] = self.row["kubectl diff"] = "0"

    def drift(self) -> None:
        """Change one field that Git asks for by hand, and wait until it is put back."""
        ref, path, value = self.editable()
        patch: Any = value
        for name in reversed(path):
            patch = {name: patch}
        began_s = time.monotonic()
        self.expect(
            self.bench.kubectl("patch", *ref, "--type=merge", "-p", json.dumps(patch), "-n", self.space_of(ref)), 0
        )
        self.eventually(f"drift of {ref[0]} {ref[1]} is put back", lambda: self.value(ref, path) != value)
        self.row["drift"] = f"{time.monotonic() - began_s:.1f} s"

    def editable(self) -> tuple[tuple[str, str], tuple[str, ...], Any]:
        """Return an object, a field of it and another value for that."""
        for each in self.objects:
            ref = (f"{each['kind']}.{_group(each)}".rstrip("."), each["metadata"]["name"])
            if each["kind"] in {"Deployment", "StatefulSet"} and each["spec"].get("replicas"):
                return ref, ("spec", "replicas"), each["spec"]["replicas"] + 1
        for each in self.objects:
            labels = each["metadata"].get("labels")
            if labels and each["kind"] != "Namespace":  # whose labels the server may have an opinion of
                ref = (f"{each['kind']}.{_group(each)}".rstrip("."), each["metadata"]["name"])
                return ref, ("metadata", "labels", next(iter(labels))), "changed-by-hand"
        for each in self.objects:
            for name, value in (each.get("spec") or {}).items():
                if isinstance(value, str):
                    ref = (f"{each['kind']}.{_group(each)}".rstrip("."), each["metadata"]["name"])
                    return ref, ("spec", name), f"{value}0"
        raise NotSoError("no object has a field that could be changed by hand")

    def space_of(self, ref: tuple[str, str]) -> str:
        for each in self.objects:
            if each["metadata"]["name"] == ref[1] and each["kind"] == ref[0].split(".")[0]:
                return str(each["metadata"].get("namespace") or self.case.namespace)
        return self.case.namespace

    def value(self, ref: tuple[str, str], path: tuple[str, ...]) -> Any:
        live: Any = json.loads(self.expect(self.bench.kubectl("get", *ref, "-n", self.space_of(ref), "-o", "json"), 0))
        for name in path:
            live = live.get(name) if isinstance(live, Mapping) else None
        return live

    def exists(self, ref: tuple[str, str]) -> bool:
        return self.bench.kubectl("get", *ref, "-n", self.space_of(ref)).returncode == 0

    def prune_and_roll_back(self) -> None:
        """Remove one object from Git, see it go, and bring it back."""
        if self.case.rendered and not self.is_overlay:
            return  # which objects a chart has is its own business
        path, kept, ref = self.without_one()
        if self.is_overlay:
            kind, _, group = ref[0].partition(".")
            target = {"kind": kind, "name": ref[1], **({"group": group} if group else {})}
            removal = {"patch": f"$patch: delete\nkind: {kind}\nmetadata: {{name: {ref[1]}}}\n", "target": target}
            path = f"{AROUND}/kustomization.yaml"
            kept = yaml.safe_dump({"resources": [f"../{self.case.rendered}"], "patches": [removal]}).encode()
        self.repository.push({path: kept}, f"Remove {ref[1]}")
        self.ours("sync", self.sync, "--yes", "--wait", "--timeout", "5m")
        self.eventually(f"{ref[0]} {ref[1]} is pruned", lambda: not self.exists(ref))
        self.ours("diff", self.sync)
        self.row["prune"] = ref[0].split(".")[0]
        self.ours("rollback", self.sync, "--yes")
        self.eventually(f"rollback brings {ref[0]} {ref[1]} back", lambda: self.exists(ref))
        self.ours("diff", self.sync)
        self.row["rollback"] = "back"

    def without_one(self) -> tuple[str, bytes | None, tuple[str, str]]:
        """Return a file, what is left of it without one object, and which object that is: one that nothing hangs on."""
        for wanted in ("Service", "ConfigMap", "PodDisruptionBudget", "ServiceAccount", "Deployment", "HelmRelease"):
            for path, content in reversed(self.asked.items()):
                found = [each for each in loaded(content) if isinstance(each, dict) and each.get("kind")]
                for each in reversed(found):
                    if each["kind"] == wanted and not (self.is_overlay and _GENERATED.search(each["metadata"]["name"])):
                        rest = [other for other in found if other is not each]
                        kept = yaml.safe_dump_all(rest).encode() if rest else None
                        return path, kept, (f"{each['kind']}.{_group(each)}".rstrip("."), each["metadata"]["name"])
        raise NotSoError("no object could be removed on trial")

    def end(self) -> None:
        """Delete the Sync, and look for what is left behind."""
        space = self.case.namespace
        done = self.bench.kubectl("delete", "syncs.reconcile.dev", self.sync, "-n", space, "--timeout=60s")
        if done.returncode:
            live = self.bench.kubectl("get", "syncs.reconcile.dev", self.sync, "-n", space, "-o", "jsonpath={.status}")
            said = self.bench.log.read_text(errors="replace").splitlines()[-8:]
            raise NotSoError("\n".join([f"the Sync does not go: {done.stderr.strip()}", live.stdout, *said]))
        kinds = sorted({f"{each['kind']}.{_group(each)}".rstrip(".") for each in self.objects})
        set_id = applyset_id(ObjectRef("reconcile.dev", "Sync", space, self.sync))
        left: list[str] = []

        def gone() -> bool:
            left.clear()
            for kind in kinds:
                words = ("get", kind, "-A", "-l", f"{PART_OF}={set_id}", "-o", "name")
                left.extend(self.bench.kubectl(*words).stdout.split())
            return not left

        try:
            self.eventually("the members are gone", gone)
        except NotSoError:
            raise NotSoError(f"left behind: {', '.join(left[:10])}") from None
        self.bench.kubectl("delete", "namespace", space, "--wait=false")
        self.row["delete"] = "clean"


def _taking_anything(api: str, kind: str) -> dict[str, Any]:
    """Return the CRD of a kind whose objects may hold anything."""
    group, _, version = api.partition("/")
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    served = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}}
    plural = f"{kind.lower()}s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group, "scope": "Cluster" if kind.startswith("Cluster") else "Namespaced",
            "names": {"kind": kind, "plural": plural, "listKind": f"{kind}List"}, "versions": [served],
        },
    }  # fmt: skip


def _group(manifest: Mapping[str, Any]) -> str:
    group, slash, _ = str(manifest["apiVersion"]).partition("/")
    return group if slash else ""


COLUMNS = ("repository", "objects", "sync", "diff", "kubectl diff", "drift", "prune", "rollback", "delete")


def follow(bench: Bench, name: str, checkout: Path) -> tuple[dict[str, str], str]:
    """Take one repository through all steps; return its row, and what did not hold."""
    case = CASES[name]
    run = Follow(bench, name, case, files_of(checkout, case), bench.server.create(name.replace(" ", "-")))
    run.row["repository"] = name
    try:
        for step in (run.begin, run.preview, run.first_sync, run.agreed, run.drift, run.prune_and_roll_back, run.end):
            step()
    except (NotSoError, subprocess.TimeoutExpired) as fault:
        return run.row, str(fault)
    return run.row, ""


def shown(bench: Bench, name: str, checkout: Path) -> str:
    """Print the row of one repository; return what did not hold."""
    row, fault = follow(bench, name, checkout)
    print("| " + " | ".join(row.get(column, "-") for column in COLUMNS) + " |", flush=True)
    if fault:
        print(f"{name}: {fault}", file=sys.stderr, flush=True)
    return fault


def main(folder: Path, names: list[str]) -> int:
    """Follow all repositories that are there."""
    places = {name: folder / (CASES[name].checkout or name) for name in names or CASES}
    chosen = {name: place.resolve() for name, place in places.items() if place.is_dir()}
    if not chosen:
        print(f"{folder} holds none of {', '.join(CASES)}: clone some of them into it")
        return 2
    RENDER.build(lambda line: print(line, file=sys.stderr, flush=True))
    print("| " + " | ".join(COLUMNS) + " |\n" + "|---" * len(COLUMNS) + "|", flush=True)
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        sandbox = Sandbox("realworld", root=root / "sandbox")
        try:
            sandbox.up()
            trust_accounts(sandbox)
            with GitServer(root / "git") as server:
                helm = build_helm(lambda line: print(line, file=sys.stderr, flush=True))
                renders = root / "cache" / "kubectl-reconcile" / "render"
                renders.parent.mkdir(parents=True)
                renders.symlink_to(cache_dir() / "render")
                bench = Bench(sandbox, server, root / "cache", root / "daemon.log", helm)
                try:
                    bench.prepare()
                    faults = {
                        name: fault for name, checkout in chosen.items() if (fault := shown(bench, name, checkout))
                    }
                finally:
                    bench.stop()
        finally:
            sandbox.down()
    print(f"\n{len(chosen) - len(faults)} of {len(chosen)} repositories went all the way")
    return 1 if faults else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python -m tests.realworld FOLDER [NAME ...]")
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
