"""What a release consists of, built, installed in an empty place, and used on a real cluster."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from kubectl_reconcile import __version__
from kubectl_reconcile.cli import reference
from tests import yaml_text

ROOT = Path(__file__).parents[3]
PACKAGES = ("kubectl_reconcile", "kubectl_reconcile_operators")
BIN = Path(sys.executable).parent
HOME = {name: os.environ[name] for name in ("HOME", "UV_CACHE_DIR") if name in os.environ}
"""Where packages that were fetched before are kept; tests have a home of their own."""
URL, HOMEPAGE = "https://example.com/releases/download", "https://example.com"
DIST = (sys.executable, "-m", "releasing.dist", "--release-url", URL, "--homepage", HOMEPAGE)
DATA = {
    "the CRDs": "kubectl_reconcile/crds/syncs.reconcile.dev.yaml",
    "the examples": "kubectl_reconcile/examples/shop/base/web.yaml",
    "the sandbox's sources": "kubectl_reconcile/sandbox/go.mod",
    "the schema of plan files": "kubectl_reconcile/core/planning/plan.schema.json",
    "the manifests of the daemon": "kubectl_reconcile/deploy/install.yaml",
    "the templates of modules": "kubectl_reconcile/engine/commands/scaffold/templates/module.py.txt",
    "the page": "kubectl_reconcile/web/page/index.html",
    "what the page is drawn with": "kubectl_reconcile/web/page/vendor/preact-htm.js",
    "the mark of types": "kubectl_reconcile/py.typed",
    "the operators": "kubectl_reconcile_operators/py.typed",
    "the program that renders": "kubectl_reconcile/source/render/reconcile-render",
    "its sources": "kubectl_reconcile/source/render/program/go.sum",
}
OUR_PROGRAM = f"pkg:golang/kubectl-reconcile.dev/render@v{__version__}"
OVERLAY = {
    "base/kustomization.yaml": "resources: [web.yaml]\n",
    "base/web.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n",
    "prod/kustomization.yaml": "namePrefix: prod-\nresources: [../base]\n",
}


@pytest.mark.parametrize("name", reference.PAGES)
def test_what_is_made_from_the_program_is_current(name):
    assert (ROOT / "docs" / name).read_text() == reference.page(name), "run make manifests"


@pytest.fixture(scope="module")
def dist(tmp_path_factory, renders):
    """A release for this machine and this Python."""
    out = tmp_path_factory.mktemp("release") / "dist"
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    command = [*DIST, "--out", out, "--python", python]
    subprocess.run(command, check=True, cwd=ROOT, env={**os.environ, **HOME}, timeout=300)
    return out


@pytest.fixture(scope="module")
def installed(dist, tmp_path_factory):
    """The bin folder of an empty virtual environment, outside the repository, with what it needs and the wheel that fits."""
    place = tmp_path_factory.mktemp("installed") / "venv"
    venv.create(place, symlinks=True)
    common = [BIN / "uv", "pip", "install", "--quiet", "--python", place / "bin" / "python"]
    environ = {**os.environ, **HOME}
    subprocess.run(
        [*common, "--require-hashes", "-r", ROOT / "requirements.lock"], check=True, env=environ, timeout=300
    )
    offered = ("--no-deps", "--no-index", "--find-links", dist, "kubectl-reconcile")
    subprocess.run([*common, *offered], check=True, env=environ, timeout=300)
    return place / "bin"


def write(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def outside(program, *words, folder, **environ):
    """Run a program where nothing of the repository is at hand."""
    environment = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    return subprocess.run(
        [program, *words], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        env={**environment, **environ}, timeout=300,
    )  # fmt: skip


def test_the_wheel_holds_all_data(installed):
    [site] = (installed.parent / "lib").glob("python*/site-packages")
    assert [what for what, path in DATA.items() if not (site / path).is_file()] == []


def test_the_metadata_names_the_addresses_that_were_given(dist):
    for wheel in dist.glob("*.whl"):
        [metadata] = [name for name in zipfile.ZipFile(wheel).namelist() if name.endswith(".dist-info/METADATA")]
        text = zipfile.ZipFile(wheel).read(metadata).decode()
        urls = re.findall(r"^Project-URL: (.+)$", text, re.MULTILINE)
        assert sorted(urls) == [f"Download, {URL}", f"Homepage, {HOMEPAGE}"], wheel.name


def test_the_wheel_for_any_platform_carries_both_packages_whole_and_no_program(dist):
    [wheel] = dist.glob("*-any.whl")
    packed = set(zipfile.ZipFile(wheel).namelist())
    wanted = {f"kubectl_reconcile/crds/{each.name}" for each in (ROOT / "crds").glob("*.yaml")}
    wanted |= {f"kubectl_reconcile/{each.relative_to(ROOT)}" for each in (ROOT / "examples").rglob("*.yaml")}
    files = (each for package in PACKAGES for each in (ROOT / package).rglob("*"))
    wanted |= {str(each.relative_to(ROOT)) for each in files if each.is_file() and each.suffix != ".pyc"}
    assert wanted - packed == set()
    assert [name for name in packed if name.endswith("/reconcile-render")] == []


def test_what_is_for_any_platform_takes_manifests_and_says_how_overlays_are_rendered(
    dist, installed, tmp_path, kubectl, namespace, crds
):
    [wheel] = dist.glob("*-any.whl")
    command = [BIN / "uv", "pip", "install", "--quiet", "--no-deps", "--target", tmp_path / "any", wheel]
    subprocess.run(command, check=True, env={**os.environ, **HOME}, timeout=300)
    write(tmp_path, OVERLAY)
    there = {
        "PATH": str(tmp_path), "KUBECONFIG": kubectl.kubeconfig,
        "PYTHONPATH": str(tmp_path / "any"), "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }  # fmt: skip
    words = ["-P", "-m", "kubectl_reconcile.cli.main", "diff", "-n", namespace, "-f"]
    raw = outside(installed / "python", *words, "base/web.yaml", folder=tmp_path, **there)
    assert (raw.returncode, raw.stdout.endswith("1 to create, 0 unchanged\n")) == (1, True), raw
    overlay = outside(installed / "python", *words, "prod", folder=tmp_path, **there)
    said = overlay.stdout + overlay.stderr
    assert overlay.returncode > 1, said
    assert "prod/kustomization.yaml: " in said
    assert "needs Go, and there is none on PATH" in said
    assert "wheels of Linux and macOS" in said


def test_the_sdist_holds_all_sources(dist):
    [sdist] = dist.glob("kubectl_reconcile-*.tar.gz")
    with tarfile.open(sdist) as tar:
        names = {name.partition("/")[2] for name in tar.getnames()}
    for path in (
        "deploy/install.yaml",
        "releasing/dist.py",
        "docs/cli.md",
        "docs/annotations.md",
        "requirements.lock",
        "tests/conftest.py",
        "crds/syncs.reconcile.dev.yaml",
    ):
        assert path in names


def test_the_installed_wheel_takes_the_readme_s_tour(installed, tmp_path, kubectl, namespace, crds):
    """The README's own commands, on this test's cluster; the folder examples is the one that was installed."""
    [site] = (installed.parent / "lib").glob("python*/site-packages")
    shutil.copytree(site / "kubectl_reconcile" / "examples", tmp_path / "examples")
    for file in (tmp_path / "examples" / "shop" / "prod").glob("*.yaml"):
        file.write_text(
            re.sub(r"namespace: shop\b", f"namespace: {namespace}", file.read_text()).replace(
                "name: shop\n", f"name: {namespace}\n"
            )
        )
    path = os.pathsep.join([str(installed), str(kubectl.folder), "/usr/bin", "/bin"])
    tour = re.findall(
        r"^kubectl (reconcile (?:diff|sync) -f examples/shop/prod[^;#\n]*)",
        (ROOT / "README.md").read_text(),
        re.MULTILINE,
    )
    assert len(tour) == 3
    done = [
        outside("kubectl", *line.split(), "-n", namespace, folder=tmp_path, PATH=path, KUBECONFIG=kubectl.kubeconfig)
        for line in tour
    ]
    assert [one.returncode for one in done] == [1, 0, 0], done
    assert re.search(r"\d+ created", done[1].stdout)
    assert done[2].stdout.startswith("no changes, ")


def test_the_self_contained_program_needs_nothing_but_python(dist, tmp_path, kubectl, namespace, crds):
    [archive] = dist.glob("kubectl-reconcile_v*.tar.gz")
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path, filter="data")
    write(tmp_path, OVERLAY)
    python = Path(sys.base_prefix) / "bin"
    there = {
        "PATH": f"{python}:/usr/bin:/bin",
        "SHIV_ROOT": str(tmp_path / "unpacked"),
        "KUBECONFIG": kubectl.kubeconfig,
        "XDG_CACHE_HOME": str(tmp_path / "cache"),  # where no program that renders was built
    }
    done = outside(tmp_path / "kubectl-reconcile", "diff", "-f", "prod", "-n", namespace, folder=tmp_path, **there)
    assert (done.returncode, done.stdout.endswith("1 to create, 0 unchanged\n")) == (1, True), done
    assert "prod-web" in done.stdout
    assert not (tmp_path / "cache" / "kubectl-reconcile" / "render").exists()
    words = outside(tmp_path / "kubectl_complete-reconcile", "ver", folder=tmp_path, **there).stdout
    assert words == "version\tShow the version.\n:4\n"


def test_the_same_sources_make_the_same_files_wherever_and_whenever(dist, tmp_path):
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    program = [*DIST, "--out", tmp_path / "elsewhere", "--python", python]
    subprocess.run(program, check=True, cwd=ROOT, env={**os.environ, **HOME}, timeout=300)
    assert (tmp_path / "elsewhere" / "SHA256SUMS").read_text() == (dist / "SHA256SUMS").read_text()


def test_krew_s_manifest_says_what_was_built(dist):
    manifest = yaml_text.document((dist / "reconcile.yaml").read_text())
    version = manifest["spec"]["version"]
    [platform] = manifest["spec"]["platforms"]
    file = dist / platform["uri"].rpartition("/")[2]
    assert (
        platform["uri"]
        == f"{URL}/kubectl-reconcile_{version}_{'_'.join(platform['selector']['matchLabels'].values())}.tar.gz"
    )
    assert platform["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
    with tarfile.open(file) as tar:
        assert platform["bin"] in tar.getnames()
    sums = (dist / "SHA256SUMS").read_text().splitlines()
    assert f"{platform['sha256']}  {file.name}" in sums
    assert len(sums) == 6  # two wheels


def test_the_bill_of_materials_lists_what_is_linked_into_the_program_that_renders(dist, renders):
    [file] = dist.glob("*.cdx.json")
    listed = {each["purl"] for each in json.loads(file.read_text())["components"]}
    said = subprocess.run(
        ["go", "version", "-m", renders], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    linked = {f"pkg:golang/{name.lower()}@{version}" for name, version in re.findall(r"\tdep\t(\S+)\t(\S+)", said)}
    linked.add(f"pkg:golang/stdlib@{said.splitlines()[0].rpartition('go')[2]}")
    assert len(linked) > 50
    assert {each for each in listed if each.startswith("pkg:golang/")} == linked | {OUR_PROGRAM}
