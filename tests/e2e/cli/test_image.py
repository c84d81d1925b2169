"""The daemon's image: the Dockerfile's own steps, carried out in an empty folder, and what it starts then."""

import os
import re
import subprocess
from itertools import takewhile
from pathlib import Path

import pytest

import kubectl_reconcile
from kubectl_reconcile.cache_folder import cache_dir
from tests import yaml_text
from tests.dockerfile import built, parsed

ROOT = Path(__file__).parents[3]
STEPS = list(parsed((ROOT / "Dockerfile").read_text()))
DEPLOYED = yaml_text.documents((ROOT / "deploy" / "install.yaml").read_text())
CACHES = {
    "/root/.cache/uv": Path(os.environ.get("UV_CACHE_DIR") or Path.home() / ".cache" / "uv"),
    "/root/.cache/kubectl-reconcile": cache_dir(),
}
"""What installers and builds keep on this machine; tests have a home of their own."""
ROOMS = {"/cache": "cache", "/tmp": "tmp"}  # noqa: S108 - what the Deployment mounts, all else is read only


@pytest.fixture(scope="module")
def image(tmp_path_factory, renders):
    """The image, of this machine's system and Python, with its caches where the Dockerfile mounts them."""
    place = tmp_path_factory.mktemp("image")
    if subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "true"], check=False).returncode:
        pytest.skip("an image is built in user namespaces, and there are none here")
    for folder in CACHES.values():
        folder.mkdir(parents=True, exist_ok=True)
    return built(ROOT / "Dockerfile", place, CACHES)


@pytest.fixture
def run(image, tmp_path):
    """What a container of the image prints: its file system is read-only but for what the Deployment mounts."""
    for folder in ROOMS.values():
        (tmp_path / folder).mkdir()

    def run(*words, binds=None, **environ):
        rooms = {target: tmp_path / folder for target, folder in ROOMS.items()}
        there = {"HOME": "/tmp", "XDG_CACHE_HOME": "/cache", **environ}  # noqa: S108
        return image.started(*words, binds={**rooms, **(binds or {})}, read_only=True, **there)

    return run


def test_every_base_is_of_one_version_and_may_be_given_by_its_digest():
    bases = dict(step.text.split("=", 1) for step in takewhile(lambda each: each.name == "ARG", STEPS))
    stages = {step.words[-1] for step in STEPS if step.name == "FROM" and len(step.words) == 3}
    named = [step.words[0] for step in STEPS if step.name == "FROM"]
    assert set(named) <= {f"${{{name}}}" for name in bases} | stages
    assert [base for base in bases.values() if not re.fullmatch(r"[\w./-]+:\d+\.\d+[\w.-]*", base)] == []


def test_what_the_image_starts_is_the_daemon_by_the_user_that_the_deployment_names(image, run):
    [deployment] = [each for each in DEPLOYED if each["kind"] == "Deployment"]
    pod = deployment["spec"]["template"]["spec"]
    assert image.user == "65532:65532"
    assert pod["securityContext"]["fsGroup"] == 65532
    assert image.command[0] == pod["containers"][0]["args"][0] == "daemon"
    done = run(*image.entrypoint, *image.command)
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, "error: no cluster is configured"), done


def test_a_container_says_its_version_and_writes_nothing_but_its_cache(image, run):
    done = run(*image.entrypoint, "--version")
    assert done.stdout.startswith(f"kubectl-reconcile {kubectl_reconcile.__version__} ("), done
    done = run("/bin/sh", "-c", "id -un; touch /cache/a /tmp/a && echo written; touch /opt/reconcile/a")
    assert done.stdout == "reconcile\nwritten\n"
    assert "Read-only file system" in done.stderr


def test_a_container_renders_overlays_and_talks_to_a_cluster_and_to_s3(image, run, tmp_path, kubectl, namespace, crds):
    (tmp_path / "web.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n")
    (tmp_path / "kustomization.yaml").write_text("namePrefix: prod-\nresources: [web.yaml]\n")
    folder = Path(kubectl.kubeconfig).parent
    binds = {"/work": tmp_path, str(folder): folder}
    done = run(*image.entrypoint, "diff", "-f", "/work", "-n", namespace, binds=binds, KUBECONFIG=kubectl.kubeconfig)
    assert (done.returncode, done.stdout.endswith("1 to create, 0 unchanged\n")) == (1, True), done
    assert "prod-web" in done.stdout
    assert run("python", "-c", "import obstore").returncode == 0


def test_the_image_has_no_installer_and_was_compiled_before(image):
    packages = next((image.root / "opt/reconcile/lib").glob("python*/site-packages"))
    assert not list(packages.glob("pip*"))
    assert list((packages / "kubectl_reconcile" / "__pycache__").glob("*.pyc"))
