"""Files of SOPS wherever a source may have them: what is made of them is what is made of their plain twins, and their values show nowhere."""

import base64
import gzip
import json
import shutil
import subprocess
import sys
from base64 import b64decode

import pytest
from msgspec.structs import replace

from kubectl_reconcile.core.rendering.charts import Release
from kubectl_reconcile.core.rendering.uses import texts_of
from kubectl_reconcile.core.resources.decryption import NO_DECRYPTION, Decryption
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.engine.sync.desired import ManifestReader
from kubectl_reconcile.engine.sync.parse_cache import ParsedFiles
from kubectl_reconcile.source.folder.worktree import WorktreeSource
from kubectl_reconcile.source.sops.decrypter import DECRYPTER
from tests.e2e.source.overlays import write
from tests.sops_fixtures import RECORDED

FOUND = json.loads(gzip.decompress(RECORDED.read_bytes()))
PLACES = FOUND["places"]
KEYS = Decryption.of({"x.agekey": FOUND["age"][0]}, "Secret shop/keys")
OTHER = Decryption.of({"x.agekey": FOUND["age"][1]}, "Secret shop/keys")
GONE = Decryption(place="Secret shop/keys", fault="there is no Secret shop/keys with keys", hint="", asked=True)


@pytest.fixture(scope="module", autouse=True)
def _closed(decrypts):
    yield
    DECRYPTER.close()


def sealed(path):
    return b64decode(PLACES[path]["sealed"])


def both(*paths, **plain):
    """Return files of a tree, once sealed and once plain."""
    return (
        {path: sealed(path) for path in paths} | plain,
        {path: PLACES[path]["plain"] for path in paths} | plain,
    )


@pytest.fixture
def read(renderer, folder):
    """read(files, path) -> what a working tree with these files asks for at *path*."""

    def run(files, path, keys=KEYS, reader=None, sync=None):
        write(folder, files)
        reader = reader or ManifestReader(renderer=renderer)
        reader.decrypt_with(keys)
        return reader.read(WorktreeSource(folder / path), sync)

    return run


def trees(desired):
    return sorted(
        (each.manifest for each in desired.manifests), key=lambda each: (each["kind"], each["metadata"]["name"])
    )


def hidden(desired):
    return {text for each in desired.manifests for text in texts_of(each.uses)}


def said(desired):
    return "\n".join(f"{each}" for each in desired.problems)


def test_manifests_are_what_their_plain_twins_are(read):
    secret, plain = both("plain/secret.yaml", "plain/config.yaml")
    found = read(secret, "plain")
    assert said(found) == ""
    assert trees(found) == trees(read(plain, "plain", NO_DECRYPTION))
    assert hidden(found) >= {
        "correct-horse-battery",
        "4711",
        "postgres://app:horse-staple-wire@db/app",
        "another-hidden-value",
    }
    assert all(use.secret for each in found.manifests for use in each.uses)


def test_lines_are_those_of_the_file_as_it_is_committed(read):
    found = read(both("plain/config.yaml")[0], "plain")
    lines = sealed("plain/config.yaml").decode().splitlines()
    assert [each.line for each in found.manifests] == [
        at for at, line in enumerate(lines, 1) if line == "apiVersion: v1"
    ]


def test_a_name_that_is_encrypted_is_refused_and_not_told(read):
    found = read(both("plain/named.yaml", "plain/secret.yaml")[0], "plain")
    assert [each.ref.name for each in found.manifests] == ["db"]
    [problem] = found.problems
    assert problem.message.startswith("metadata.name is encrypted")
    assert "hidden-by-name" not in said(found)


KUSTOMIZATION = """\
resources: [resource.yaml, base.yaml]
patches: [{path: patch.yaml}]
components: [parts]
secretGenerator:
- {name: token, files: [token.txt], envs: [app.env]}
configMapGenerator:
- {name: copy, files: [token.txt]}
"""
OVERLAY = {
    "overlay/kustomization.yaml": KUSTOMIZATION,
    "overlay/base.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: base}\ndata: {plain: shown}\n",
    "overlay/parts/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [kept.yaml]\n",
    "overlay/pod.yaml": "",
}  # fmt: skip
IN_OVERLAY = (
    "overlay/resource.yaml",
    "overlay/patch.yaml",
    "overlay/token.txt",
    "overlay/app.env",
    "overlay/parts/kept.yaml",
)


def test_overlays_are_what_their_plain_twins_are(read):
    secret, plain = both(*IN_OVERLAY, **OVERLAY)
    found = read(secret, "overlay")
    assert said(found) == ""
    assert trees(found) == trees(read(plain, "overlay", NO_DECRYPTION))
    texts = "".join(hidden(found))
    for value in ("resource", "patch", "component", "file"):
        assert f"{value}-hidden-value" in texts
    assert "shown" not in hidden(found)


def test_a_suffix_of_a_generator_may_be_of_what_is_encrypted(read):
    found = read(both(*IN_OVERLAY, **OVERLAY)[0], "overlay")
    assert {each.ref.name.rpartition("-")[0] for each in found.manifests} >= {"token", "copy"}


CHART = {
    "chart/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
    "chart/values.yaml": "password: none\n",
    "chart/templates/all.yaml": (
        "{{ if .Values.enabled }}\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata:\n  password: {{ .Values.password | quote }}\n"
        '  reversed: {{ .Values.password | upper | quote }}\n  licence: {{ .Files.Get "files/licence.txt" | quote }}\n  plain: shown\n{{ end }}\n'
    ),
}  # fmt: skip
IN_CHART = ("chart/secrets.yaml", "chart/files/licence.txt")


def chart_sync(more=()):
    source = {"git": {"url": "https://git.example.com/shop"}, "helm": {"valuesFiles": ["secrets.yaml"]}}
    return Sync.of({"metadata": {"name": "web", "namespace": "shop"}, "spec": {"source": {**source, **dict(more)}}})


def chart_reader(renderer):
    return ManifestReader(
        renderer=renderer, release_of=lambda sync: Release(sync.name, sync.namespace, sync.source.helm)
    )


def test_charts_are_what_their_plain_twins_are(read, renderer):
    secret, plain = both(*IN_CHART, **CHART)
    found = read(secret, "chart", reader=chart_reader(renderer), sync=chart_sync())
    assert said(found) == ""
    assert trees(found) == trees(read(plain, "chart", NO_DECRYPTION, chart_reader(renderer), chart_sync()))
    assert hidden(found) >= {"chart-hidden-value", "CHART-HIDDEN-VALUE", "licence-hidden-value\n"}
    assert "shown" not in hidden(found)


def test_a_template_that_fails_quotes_no_value(read, renderer):
    files = both(*IN_CHART, **CHART)[0]
    files["chart/templates/all.yaml"] = "{{ fail .Values.password }}"
    found = read(files, "chart", reader=chart_reader(renderer), sync=chart_sync())
    assert found.problems
    assert "chart-hidden-value" not in said(found)


def test_a_name_that_a_chart_makes_of_an_encrypted_value_is_refused(read, renderer):
    files = both(*IN_CHART, **CHART)[0]
    files["chart/templates/all.yaml"] += (
        "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Values.password }}}\n"
    )
    found = read(files, "chart", reader=chart_reader(renderer), sync=chart_sync())
    assert [each.ref.name for each in found.manifests] == ["web"]
    assert "depends on an encrypted value" in said(found)
    assert "chart-hidden-value" not in said(found)


WITHOUT = {
    "no key": (NO_DECRYPTION, "is encrypted with SOPS, and nobody has named a key for it"),
    "a key that does not fit": (OTHER, "is for other keys than those that are here: age age1"),
    "a Secret that is gone": (GONE, "is encrypted with SOPS, and there is no Secret shop/keys with keys"),
}


@pytest.mark.parametrize(("keys", "why"), WITHOUT.values(), ids=WITHOUT)
def test_without_a_key_that_fits_the_file_is_a_problem_and_the_rest_goes_on(read, keys, why):
    plain = {"plain/other.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n"}
    found = read(both("plain/secret.yaml", **plain)[0], "plain", keys)
    assert [each.ref.name for each in found.manifests] == ["other"]
    [problem] = found.problems
    assert problem.is_error
    assert problem.path == "secret.yaml"
    assert why in problem.message


@pytest.mark.parametrize(("keys", "why"), WITHOUT.values(), ids=WITHOUT)
def test_without_a_key_that_fits_an_overlay_is_not_rendered(read, keys, why):
    found = read(both(*IN_OVERLAY, **OVERLAY)[0], "overlay", keys)
    assert found.manifests == ()
    assert "SOPS" in said(found) or "other keys" in said(found)
    assert why


def test_what_was_decrypted_stays_when_the_key_is_gone_and_what_changes_is_not_read(read, renderer, folder):
    reader = ManifestReader(renderer=renderer)
    files = both("plain/secret.yaml")[0]
    first = read(files, "plain", KEYS, reader)
    assert read(files, "plain", GONE, reader) is first
    more = read(files | {"plain/config.yaml": sealed("plain/config.yaml")}, "plain", GONE, reader)
    assert [each.ref.name for each in more.manifests] == ["db"]
    assert "there is no Secret shop/keys" in said(more)
    assert read(files, "plain", GONE, ManifestReader(renderer=renderer)).manifests == ()


def test_a_key_that_is_exchanged_is_used_at_the_next_look(read, renderer):
    reader = ManifestReader(renderer=renderer)
    files = both("plain/secret.yaml")[0]
    assert read(files, "plain", OTHER, reader).manifests == ()
    assert [each.ref.name for each in read(files, "plain", KEYS, reader).manifests] == ["db"]
    assert read(files, "plain", NO_DECRYPTION, reader).manifests == ()


def test_nothing_that_was_decrypted_is_kept_on_disk(read, renderer, tmp_path):
    kept = tmp_path / "parsed.sqlite"
    reader = ManifestReader(ParsedFiles(kept), renderer=renderer)
    read(
        both("plain/config.yaml")[0]
        | {"plain/other.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n"},
        "plain",
        KEYS,
        reader,
    )
    assert b"other" in kept.read_bytes()
    assert b"another-hidden-value" not in kept.read_bytes()
    assert len(ManifestReader(ParsedFiles(kept)).kept.find([])) == 0


def test_digests_are_of_what_is_encrypted(read):
    """Else somebody could try values until the digest is the same."""
    found = read(both("plain/config.yaml")[0], "plain")
    plain = read({"plain/config.yaml": PLACES["plain/config.yaml"]["plain"]}, "plain", NO_DECRYPTION)
    assert trees(found) == trees(plain)
    assert found.digest != plain.digest
    over = read(both(*IN_OVERLAY, **OVERLAY)[0], "overlay")
    twin = read(both(*IN_OVERLAY, **OVERLAY)[1], "overlay", NO_DECRYPTION)
    assert over.digest != twin.digest
    assert all(each.startswith("shown-") for each in over.revision.files.values())


def test_patches_of_a_sync_over_encrypted_manifests_keep_values_hidden(read):
    source = {
        "git": {"url": "https://git.example.com/shop"},
        "kustomize": {"commonMetadata": {"labels": {"team": "shop"}}},
    }
    sync = Sync.of({"metadata": {"name": "web", "namespace": "shop"}, "spec": {"source": source}})
    found = read(both("plain/secret.yaml", "plain/config.yaml")[0], "plain", sync=sync)
    assert said(found) == ""
    assert {each.manifest["metadata"]["labels"]["team"] for each in found.manifests} == {"shop"}
    assert hidden(found) >= {"correct-horse-battery", "another-hidden-value"}
    assert all(each.startswith("shown-") for each in found.revision.files.values())


def test_an_encrypted_value_out_of_its_file_is_never_applied(read):
    value = next(
        line.split(": ", 1)[1] for line in sealed("plain/config.yaml").decode().splitlines() if "key: ENC" in line
    )
    files = {
        "plain/loose.yaml": f'apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: loose}}\ndata: {{key: "{value}"}}\n'
    }
    found = read(files, "plain")
    assert found.manifests == ()
    assert "has a value in it that is encrypted" in said(found)


def test_a_file_is_decrypted_once_whoever_reads_it(read, renderer):
    files = both(*IN_OVERLAY, **OVERLAY)[0]
    read(files, "overlay")
    before = DECRYPTER.decrypted
    for _ in range(3):
        read(files, "overlay", reader=ManifestReader(renderer=renderer))
    assert DECRYPTER.decrypted == before
    assert replace(KEYS, place="elsewhere").key == KEYS.key


@pytest.mark.skipif(not shutil.which("strace"), reason="strace isn't here")
def test_no_process_writes_a_plain_value_into_a_file(folder, tmp_path, decrypts, renders):
    write(folder, both(*IN_OVERLAY, **OVERLAY)[0])
    key, trace = tmp_path / "key.txt", tmp_path / "trace"
    key.write_text(FOUND["age"][0])
    program = [
        sys.executable,
        "-m",
        "kubectl_reconcile.cli.main",
        "render",
        "-f",
        folder / "overlay",
        f"--decrypt={key}",
    ]
    command = ["strace", "-f", "-y", "-s", "1000000", "-e", "trace=write,writev,pwrite64", "-o", trace, *program]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "hidden-value" not in done.stdout + done.stderr
    plain = ("hidden-value", base64.b64encode(b"file-hidden-value\n").decode().rstrip("="))
    told = [line for line in trace.read_text(errors="replace").splitlines() if any(each in line for each in plain)]
    assert told  # they go from process to process
    assert [line[:200] for line in told if "<pipe:" not in line] == []
