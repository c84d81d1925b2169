"""The kustomization that a Sync itself is: its text, and which field of the Sync a line of it is."""

import pytest
import yaml

from kubectl_reconcile.core.objects import Problem
from kubectl_reconcile.core.rendering.over import (
    FIELD,
    FILE,
    Over,
    changed_entries,
    changed_lists,
    field_at,
    is_for_secrets,
    placed,
    stated_by,
)
from kubectl_reconcile.core.resources.kustomize import NO_KUSTOMIZE, KustomizeSpec, KustomizeSpecError

SAID = {
    "components": ["../part", "own"],
    "patches": [{"patch": "- op: remove\n  path: /spec\n"}, {"patch": '{"a": "- b"}', "target": {"kind": "Job"}}],
    "images": [{"name": "web", "newTag": "2"}],
    "commonMetadata": {"labels": {"a": "no"}, "annotations": {"c": "- d\n- e"}},
    "namePrefix": "p-",
    "nameSuffix": "-s",
}
OVER = Over(KustomizeSpec.of(SAID), "apps/web")
TEXT = OVER.text(2)


def test_the_text_says_what_the_sync_does():
    found = yaml.safe_load(TEXT)
    assert found["resources"] == ["0.yaml", "1.yaml"]
    assert yaml.safe_load(OVER.text(None))["resources"] == ["../reconcile-source/apps/web"]
    assert found["components"] == ["../reconcile-source/apps/part", "../reconcile-source/apps/web/own"]
    assert (found["patches"], found["images"]) == (SAID["patches"], SAID["images"])
    assert (found["namePrefix"], found["nameSuffix"], found["labels"]) == ("p-", "-s", [{"pairs": {"a": "no"}}])
    [transformer] = map(yaml.safe_load, found["transformers"])
    assert transformer["annotations"] == SAID["commonMetadata"]["annotations"]


FIELDS = {
    "resources:": FIELD,
    '- "../reconcile-source/apps/part"': f"{FIELD}.components[0]",
    '- "../reconcile-source/apps/web/own"': f"{FIELD}.components[1]",
    '- {"patch":"- op': f"{FIELD}.patches[0]",
    '- {"patch":"{\\"a': f"{FIELD}.patches[1]",
    '- {"name":"web"': f"{FIELD}.images[0]",
    "namePrefix": f"{FIELD}.namePrefix",
    "nameSuffix": f"{FIELD}.nameSuffix",
    '- {"pairs"': f"{FIELD}.commonMetadata.labels",
    '- "{\\"apiVersion': f"{FIELD}.commonMetadata.annotations",
}


@pytest.mark.parametrize(("beginning", "field"), FIELDS.items(), ids=FIELDS.values())
def test_each_line_is_one_field(beginning, field):
    [line] = [number for number, each in enumerate(TEXT.splitlines(), start=1) if each.startswith(beginning)]
    assert field_at(TEXT, line) == field
    assert placed(Problem(FILE, line, "why"), TEXT) == Problem(field, 0, "why")


def test_a_problem_of_a_file_stays_where_it_is():
    problem = Problem("apps/web/kustomization.yaml", 3, "why", "hint")
    assert placed(problem, TEXT) is problem
    assert field_at(TEXT, 0) == FIELD


def test_the_key_is_another_for_another_folder_or_other_patches():
    others = [Over(OVER.spec, "apps"), Over(KustomizeSpec.of({**SAID, "namePrefix": "q-"}), "apps/web")]
    assert len({OVER.key, *(each.key for each in others)}) == 3
    assert Over(KustomizeSpec.of(SAID), "apps/web").key == OVER.key


# -- what it says when drift is accepted -------------------------------------------------------------------------------

MORE = {"patch": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"}


def test_what_became_of_the_text_is_what_the_sync_says():
    assert stated_by(TEXT.encode(), OVER.spec) == OVER.spec
    changed = TEXT.replace('"newTag":"2"', '"newTag":"3"').encode()
    assert stated_by(changed, OVER.spec) == KustomizeSpec.of({**SAID, "images": [{"name": "web", "newTag": "3"}]})
    assert stated_by(b"patches:\n- patch: |\n    - op: remove\n", NO_KUSTOMIZE).told() == {
        "patches": [{"patch": "- op: remove\n"}]
    }
    with pytest.raises(KustomizeSpecError):
        stated_by(b"patches:\n- path: a.yaml\n", NO_KUSTOMIZE)


CHANGED = {
    "one more": ([*SAID["patches"], MORE], {"patches[2]": MORE}),
    "another": ([MORE, SAID["patches"][1]], {"patches[0]": MORE}),
    "the same": (SAID["patches"], {}),
}


@pytest.mark.parametrize(("patches", "entries"), CHANGED.values(), ids=CHANGED)
def test_what_changed_is_told_by_its_field(patches, entries):
    after = KustomizeSpec.of({**SAID, "patches": patches})
    assert changed_entries(OVER.spec, after) == {f"{FIELD}.{name}": entry for name, entry in entries.items()}
    assert changed_lists(OVER.spec, after) == ({"patches": patches} if entries else {})


FOR_SECRETS = {
    "an object": {"patch": "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {a: b}\n"},
    "one of several": {"patch": f"{MORE['patch']}---\n{{apiVersion: v1, kind: Secret, metadata: {{name: a}}}}\n"},
    "a target": {"patch": "- {op: add, path: /data/a, value: b}\n", "target": {"kind": "Secret"}},
}


@pytest.mark.parametrize("patch", FOR_SECRETS.values(), ids=FOR_SECRETS)
def test_a_patch_for_secrets_is_told_from_others_where_it_is_new(patch):
    one, two = (KustomizeSpec.of({"patches": patches}) for patches in ([patch], [patch, MORE]))
    assert is_for_secrets(one, NO_KUSTOMIZE)
    assert not is_for_secrets(two, one)
