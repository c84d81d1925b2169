"""Plan files: looked at, kept, and carried out exactly, or not at all."""

import base64
import json

import pytest

from tests.e2e.cli.plan_schema import SCHEMA


@pytest.fixture
def folder(tmp_path, config_map):
    """A folder with a ConfigMap, another one and a Secret."""
    folder = tmp_path / "shop"
    folder.mkdir()
    for name in ("a", "b"):
        (folder / f"{name}.yaml").write_text(config_map(name, color="red"))
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "key"},
        "stringData": {"password": "hunter2-hunter2"},
    }
    (folder / "s.yaml").write_text(json.dumps(secret))
    return folder


@pytest.fixture
def plan_file(plugin, folder, tmp_path):
    """plan_file() -> the path of a plan made now."""

    def make():
        answer = plugin("diff", "-f", str(folder), "--name", "shop", "-o", "json")
        assert answer.status == 1, answer.err
        path = tmp_path / "plan.json"
        path.write_text(answer.out)
        return path

    return make


@pytest.fixture
def carry_out(plugin, folder):
    return lambda path: plugin("sync", "-f", str(folder), "--name", "shop", "--plan", str(path), "-y")


def test_a_plan_file_follows_its_schema_and_shows_no_secret(plan_file):
    text = plan_file().read_text()
    SCHEMA(json.loads(text))
    assert "hunter2" not in text
    assert base64.b64encode(b"hunter2-hunter2").decode() not in text


def test_a_plan_is_carried_out_exactly_and_then_never_again(plan_file, carry_out, cluster):
    path = plan_file()
    done = carry_out(path)
    assert (done.status, "3 created" in done.out) == (0, True), done
    assert cluster.get("ConfigMap", "a")["data"] == {"color": "red"}
    again = carry_out(path)
    assert again.status == 6
    assert "the plan is no longer valid, nothing was written" in again.err
    assert "ConfigMap" in again.err
    assert "needs no change any more" in again.err


def test_what_moved_since_is_named_and_nothing_is_written(plan_file, carry_out, cluster, config_map, folder):
    assert carry_out(plan_file()).status == 0
    for name in ("a", "b"):
        (folder / f"{name}.yaml").write_text(config_map(name, color="blue"))
    path = plan_file()
    cluster.edit("ConfigMap", "a", {"data": {"color": "green"}})
    moved = carry_out(path)
    assert moved.status == 6
    assert f"ConfigMap {cluster.namespace}/a has changed since" in moved.err
    assert cluster.get("ConfigMap", "b")["data"] == {"color": "red"}

    path = plan_file()
    secret = json.loads((folder / "s.yaml").read_text())
    (folder / "s.yaml").write_text(json.dumps({**secret, "stringData": {"password": "hunter3-hunter3"}}))
    moved = carry_out(path)  # the value isn't in the file, but counts
    assert "the source is at worktree-" in moved.err
    assert f"Secret {cluster.namespace}/key would be updated too" in moved.err
    assert "hunter" not in moved.err


def test_a_file_that_is_no_plan_or_was_edited_is_refused(plan_file, carry_out, tmp_path):
    path = plan_file()
    tree = json.loads(path.read_text())
    path.write_text(json.dumps({**tree, "hash": "0" * 64}))
    edited = carry_out(path)
    assert (edited.status, "the file was edited" in edited.err) == (6, True), edited
    other = tmp_path / "other.json"
    other.write_text("{}")
    assert carry_out(other).status == 2
    assert "isn't a Plan" in carry_out(other).err
