"""What a preview of a chart looks up: no more than the Sync's account may, and nothing of a Secret shows in any spelling."""

import subprocess

import pytest

CHART = {
    "Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
    "templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {x: fine}\n",
}
SPELT = """\
{{ $it := (lookup "v1" "Secret" .Release.Namespace "crown").data.password | b64dec }}
apiVersion: v1
kind: ConfigMap
metadata: {name: web}
data:
  x: fine
  plain: {{ $it | quote }}
  upper: {{ $it | upper | quote }}
  dots: {{ $it | splitList "" | join "." | quote }}
  digest: {{ $it | sha256sum | quote }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ $it | lower }}-named}
"""


@pytest.fixture
def proposed(cluster, follow, git_server, tmp_path):
    """A working tree whose chart looks up a Secret; the Sync follows the one before that."""
    git_server.push(CHART)
    follow(git_server.url, suspend=True)
    cluster.edit("Sync", "shop", {"spec": {"source": {"helm": {"lookup": "Cluster"}}}})
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "crown"},
        "stringData": {"password": "hunter2-horse"},
    }
    cluster.apply(secret)
    tree = tmp_path / "tree"
    subprocess.run(["git", "clone", "-q", git_server.url, tree], check=True, timeout=300)
    (tree / "templates" / "a.yaml").write_text(SPELT)
    return tree


def test_a_preview_looks_up_no_more_than_the_syncs_account_may(plugin, cluster, proposed, eventually):
    cluster.distrust()
    told = eventually(
        lambda: (said := plugin("diff", "shop", "--local", str(proposed), "-o", "github")).status and said,
        "it is refused",
    )
    assert f"not looked up: the Sync's account may not get secrets crown in namespace {cluster.namespace}" in told.out
    assert "sha256" not in told.out


@pytest.mark.parametrize("form", ["github", "json", "yaml", ""])
def test_nothing_of_a_secret_shows_in_a_preview_whatever_a_chart_makes_of_it(plugin, cluster, proposed, form):
    cluster.trust()
    told = plugin("diff", "shop", "--local", str(proposed), *(["-o", form] if form else []))
    shown = (told.out + told.err).lower()
    assert "fine" in shown
    assert not [each for each in ("hunter2-horse", "h.u.n", "156458b4") if each in shown]
    assert "so a preview doesn't show these objects" in shown
