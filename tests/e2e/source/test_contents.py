"""The one place between the bytes of files and whatever parses them."""

from __future__ import annotations

import pytest

from kubectl_reconcile.core.rendering.charts import Release
from kubectl_reconcile.engine.sync.desired import ManifestReader
from kubectl_reconcile.source import contents
from kubectl_reconcile.source.folder.worktree import WorktreeSource
from kubectl_reconcile.source.limits import MEBIBYTE, GitLimits

WEB = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {color: sealed-of-contents}\n"
WAYS = {
    "manifests": {"web.yaml": WEB},
    "an overlay": {"kustomization.yaml": "resources: [web.yaml]\n", "web.yaml": WEB},
    "a file that an overlay generates from": {
        "kustomization.yaml": "configMapGenerator: [{name: web, envs: [a.env], options: {disableNameSuffixHash: true}}]\n",
        "a.env": "color=sealed-of-contents\n",
    },
    "values of a chart": {
        "Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.2.3\n",
        "values.yaml": "color: sealed-of-contents\n",
        "templates/a.yaml": WEB.replace("sealed-of-contents", "{{ .Values.color }}"),
    },
}


@pytest.mark.parametrize("files", WAYS.values(), ids=WAYS)
@pytest.mark.usefixtures("renders")
def test_what_is_done_to_bytes_is_done_for_whatever_parses_them(files, tmp_path, monkeypatch):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    before = contents.of
    monkeypatch.setattr(contents, "of", lambda data, *how: before(data, *how).replace(b"sealed", b"opened"))
    desired = ManifestReader(release_of=lambda _: Release("web", "shop")).read(WorktreeSource(tmp_path))
    assert desired.problems == ()
    assert [each.manifest["data"]["color"] for each in desired.manifests] == ["opened-of-contents"]


def test_of_a_file_that_is_too_large_nothing_is_said_but_that():
    small = GitLimits(file_bytes=MEBIBYTE)
    assert contents.of(b"x" * MEBIBYTE, "a.txt", small) == b"x" * MEBIBYTE
    with pytest.raises(
        contents.UnreadableFileError, match="has more than 1 MiB; start the daemon with a larger --max-file"
    ):
        contents.of(b"x" * (MEBIBYTE + 1), "a.txt", small)
    [problem] = contents.manifests(b"#" * (MEBIBYTE + 1), "large.yaml", small).problems
    assert (problem.path, problem.message, problem.is_error) == ("large.yaml", "the file has more than 1 MiB", True)
