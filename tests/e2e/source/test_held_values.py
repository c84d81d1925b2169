"""Charts with values that ConfigMaps and Secrets hold, rendered by the real program: what wins, and what shows nothing of a Secret."""

from __future__ import annotations

import contextlib
import json

import pytest

from kubectl_reconcile.core.objects import Problem
from kubectl_reconcile.core.rendering.charts import Release
from kubectl_reconcile.core.rendering.held_values import HeldValues, Part
from kubectl_reconcile.core.rendering.uses import hiding, texts_of
from kubectl_reconcile.core.resources.helm import HelmSpec
from kubectl_reconcile.engine.sync.desired import ManifestReader
from kubectl_reconcile.source.folder.worktree import WorktreeSource
from kubectl_reconcile.source.render.renderer import Renderer
from tests.e2e.source.overlays import SECRET, write

CHART = {
    "web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
    "web/values.yaml": "color: red\nsize: 1\ndb: {host: db, password: none}\n",
    "web/more.yaml": "color: green\nsize: 2\n",
}
HEAD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata:\n"
SPELT = f"""\
{HEAD % "web"}  host: {{{{ .Values.db.host }}}}
  plain: db://{{{{ .Values.db.password }}}}@db
  upper: {{{{ .Values.db.password | upper }}}}
  backwards: {{{{ .Values.db.password | splitList "" | reverse | join "" }}}}
  digest: {{{{ .Values.db.password | sha256sum }}}}
  port: "{{{{ .Values.db.port }}}}"
---
{HEAD % "fine"}  color: {{{{ .Values.color }}}}
"""
SHOWN = {"host": "db", "plain": "***", "upper": "***", "backwards": "***", "digest": "***", "port": "***"}


def config(**values):
    return Part(values, "ConfigMap shop/web", stamp=json.dumps(values))


def secret(password=SECRET, *, version="1"):
    return Part({"db": {"password": password, "port": 5432}}, "Secret shop/db", secret=True, stamp=f"uid/{version}")


@pytest.fixture
def render(renderer, renders, folder):
    """render(files, part…, conceals=…, **helm) -> what the chart renders to, with these files beside what already exists."""

    def run(files, *parts, problems=(), conceals=False, using=renderer, **helm):
        write(folder, files)
        release = Release("web", "shop", HelmSpec.of(helm))
        reader = ManifestReader(renderer=using, release_of=lambda _: release, conceals=conceals)
        return reader.read(WorktreeSource(folder / "web"), None, HeldValues(parts, problems))

    return run


def shown(found):
    """Return the data of each object as it is shown."""
    return {each.ref.name: hiding(each.manifest["data"], texts_of(each.uses), "***") for each in found.manifests}


def test_held_values_are_over_those_of_files_and_below_those_of_the_sync(render):
    files = {
        **CHART,
        "web/templates/a.yaml": f"{HEAD % 'web'}  a: '{{{{ .Values.color }}}} {{{{ .Values.size }}}} {{{{ .Values.db.host }}}}'\n",
    }
    found = render(files, config(size=3, color="blue"), valuesFiles=["more.yaml"], values={"color": "pink"})
    assert shown(found) == {"web": {"a": "pink 3 db"}}
    assert found.manifests[0].uses == ()
    assert shown(render(files, config(db={"host": None}))) == {
        "web": {"a": "red 1 "}
    }  # it takes away what the chart has there


def test_whatever_a_chart_makes_of_a_secret_is_marked_and_nothing_else_is(render):
    found = render({**CHART, "web/templates/a.yaml": SPELT}, config(color="blue"), secret())
    assert found.problems == ()
    assert {each.ref.name: each.manifest["data"] for each in found.manifests}["web"]["plain"] == f"db://{SECRET}@db"
    assert shown(found) == {"web": SHOWN, "fine": {"color": "blue"}}
    [web] = [each for each in found.manifests if each.ref.name == "web"]
    assert {name for use in web.uses for name in use.names} == {"valuesFrom Secret shop/db"}
    assert SECRET in texts_of(web.uses)  # so that a server that quotes it alone isn't quoted


def test_no_digest_and_no_id_depends_on_the_value_of_a_secret_but_on_its_version(render):
    files = {**CHART, "web/templates/a.yaml": SPELT}
    one = render(files, secret())
    with contextlib.closing(Renderer()) as another:  # to one that knows the version, the value would be that of before
        other = render({}, secret("another-of-another"), using=another)
    assert one.manifests != other.manifests
    assert (one.digest, one.revision) == (other.digest, other.revision)
    later = render({}, secret("another-of-another", version="2"))
    assert (later.digest, later.revision.files) == (other.digest, other.revision.files)
    assert later.revision.stamps != other.revision.stamps


def test_what_changes_beside_a_secret_in_a_field_or_where_nothing_can_be_shown_is_a_change(render):
    files = {**CHART, "web/templates/a.yaml": SPELT}
    one = render(files, secret())
    other = render({"web/templates/a.yaml": SPELT.replace("@db", "@other")}, secret())
    assert one.revision.files == other.revision.files  # what else is in such a field isn't known
    assert one.revision.stamps.keys() == {"web/templates/a.yaml"}
    assert one.revision.stamps != other.revision.stamps
    assert one.digest != other.digest
    for more in ({"values": {"color": "pink"}}, {"releaseName": "x"}):
        assert render({}, secret(), **more).revision.stamps != other.revision.stamps
    assert render({}, config(x=1), secret()).revision.stamps != other.revision.stamps


def test_what_cant_be_read_is_the_only_problem_and_nothing_counts_as_gone(render):
    wrong = Problem("spec.source.helm.valuesFrom[1]", 0, "there is no Secret shop/db", "create it")
    found = render({**CHART, "web/templates/a.yaml": SPELT}, config(color="blue"), problems=(wrong,))
    assert (found.problems, found.manifests, found.revision.unrendered) == ((wrong,), (), ("",))
    assert shown(render({}, config(color="blue"), secret()))["fine"] == {"color": "blue"}


FAILING = {
    "that says it": "{{ fail .Values.db.password }}",
    "that spells it": "{{ fail (upper .Values.db.password) }}",
    "that can't read it": "{{ fromYaml .Values.db.password | get 1 }}",
}


@pytest.mark.parametrize("text", FAILING.values(), ids=FAILING)
def test_no_message_of_helm_tells_a_value_of_a_secret(render, text):
    [problem] = render({**CHART, "web/templates/a.yaml": text}, secret()).problems
    assert problem.is_error
    assert SECRET.lower() not in str(problem).lower()


def test_objects_whose_names_depend_on_a_secret_are_in_no_preview(render):
    named = f"{SPELT}---\n{HEAD % '{{ .Values.db.password }}-named'}  x: y\n"
    found = render({**CHART, "web/templates/a.yaml": named}, secret(), conceals=True)
    assert {each.ref.name for each in found.manifests} == {"web", "fine"}
    assert "so a preview doesn't show these objects" in str(found.problems)
    assert SECRET not in str(found.problems)


def test_a_chart_that_takes_no_other_values_is_rendered_with_all_marked_and_a_preview_says_that_it_cant_show_it(render):
    schema = {"properties": {"db": {"properties": {"password": {"enum": [SECRET]}}}}}
    files = {**CHART, "web/templates/a.yaml": SPELT, "web/values.schema.json": json.dumps(schema)}
    found = render(files, secret())
    assert found.problems == ()
    assert shown(found)["fine"] == {"color": "***"}
    preview = render({}, secret(), conceals=True)
    assert preview.manifests == ()
    assert "it can't be rendered with other values in its Secrets" in str(preview.problems)
    assert SECRET not in str(preview.problems)
