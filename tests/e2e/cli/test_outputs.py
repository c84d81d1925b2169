"""What the command line writes and where to: every format on a real cluster, screens, pagers, pipes, progress, Ctrl-C."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from pathlib import Path

import pytest
import yaml

from kubectl_reconcile.cli.output.failures import ExitStatus
from tests import forked

BIN = Path(sys.executable).parent
PATIENCE_S = 90.0
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def run(*arguments, **environ):
    return forked.run(arguments, env={**os.environ, **environ})


class Screen:
    """A program on a real terminal of so many columns and lines; *seen* is all that it wrote."""

    def __init__(self, *arguments, columns=80, lines=24, **environ):
        self.seen = ""
        self.pid, self._screen = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
            words = ["kubectl-reconcile", *arguments]
            environment = {**os.environ, "TERM": "xterm", **environ}
            environment = {key: value for key, value in environment.items() if key not in {"COLUMNS", "LINES"}}
            os.execve(BIN / words[0], words, environment)  # noqa: S606 - no shell is the point

    def read(self):
        """Take in what was written since; False once the program has ended."""
        assert select.select([self._screen], [], [], PATIENCE_S)[0], f"nothing more came:\n{self.seen}"
        try:
            chunk = os.read(self._screen, 65536)
        except OSError:  # Linux says so where the other end is closed
            return False
        self.seen += chunk.decode(errors="replace").replace("\r\n", "\n")
        return bool(chunk)

    def until(self, text):
        deadline = time.monotonic() + PATIENCE_S
        while text not in ESCAPES.sub("", self.seen):
            assert time.monotonic() < deadline, f"{text!r} didn't come:\n{self.seen}"
            assert self.read(), f"it ended without {text!r}:\n{self.seen}"
        return self

    def type(self, text):
        os.write(self._screen, text.encode())

    def interrupt(self):
        os.kill(self.pid, signal.SIGINT)

    def end(self):
        """Wait for the end; return the exit status and what stood there, without what moved the cursor."""
        while self.read():
            pass
        os.close(self._screen)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1]), ESCAPES.sub("", self.seen)


def config(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def write(folder, **manifests):
    for name, manifest in manifests.items():
        (folder / f"{name}.yaml").write_text(manifest if isinstance(manifest, str) else yaml.safe_dump(manifest))


@pytest.fixture
def shop(tmp_path, kubeconfig, namespace, crds):
    """A folder whose objects are in the cluster as the Sync shop, one changed since in the file, one in the cluster."""
    folder = tmp_path / "shop"
    folder.mkdir()
    cache = {
        "apiVersion": "cache.example.com/v1alpha1",
        "kind": "Memcached",
        "metadata": {"name": "cache"},
        "spec": {"size": 1},
    }
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "login"},
        "stringData": {"password": "s3cr3t-one"},
    }
    write(folder, web=config("web", colour="red", size="1"), cache=cache, login=secret, gone=config("gone"))
    flags = ("--kubeconfig", kubeconfig, "-n", namespace)
    assert run("sync", "-f", str(folder), "--name", "shop", *flags).returncode == 0
    write(folder, cache={**cache, "spec": {"size": 2}}, login={**secret, "stringData": {"password": "s3cr3t-two"}})
    (folder / "gone.yaml").unlink()
    return ("-f", str(folder), "--name", "shop", *flags)


@pytest.fixture
def drifted(shop, cluster):
    cluster.edit("ConfigMap", "web", {"data": {"colour": "blue"}})
    return shop


FORMS = {
    "diff": (["-o", "diff"], ["--- live/Memcached.cache.example.com", "-  size: 1", "+  size: 2", "to update"]),
    "tree": (["-o", "tree"], ["Sync ", "├─ update Memcached.cache.example.com", "│  └─ update Deployment.apps", "to delete"]),
    "summary": (["-o", "summary"], ["update  Memcached.cache.example.com", "delete  ConfigMap"]),
    "wide": (["-o", "wide"], ["OP       KIND", "cache.yaml:1", "memcached"]),
    "github": (["-o", "github"], ["<!-- kubectl-reconcile diff ", "<details><summary>update", "```diff"]),
    "name": (["-o", "name"], ["memcached.cache.example.com/cache\n", "configmap/web\n"]),
    "reasons": (["--reasons"], [".data.colour  blue → red  drift by by-hand", ".spec.size  1 → 2  "]),
    "side by side": (["--side-by-side"], ["  size: 1", " |   size: 2"]),
    "json": (["-o", "json"], ["\"root['spec']['size']\": {"]),
    "yaml": (["-o", "yaml"], ["kind: Plan\n"]),
    "a template": (["-o", "jsonpath={.changes[?(@.op=='delete')].object.name}"], ["gone\n"]),
}  # fmt: skip


@pytest.mark.parametrize(("flags", "expected"), FORMS.values(), ids=FORMS)
def test_every_form_shows_the_changes_and_no_secret(drifted, flags, expected):
    done = run("diff", *drifted, *flags)
    assert (done.returncode, done.stderr) == (1, "")
    assert [text for text in expected if text not in done.stdout] == []
    assert not [hidden for hidden in ("s3cr3t", "czNjcjN0") if hidden in done.stdout]


def test_only_one_form_at_a_time(shop):
    for flags in (["--reasons", "--side-by-side"], ["--reasons", "-o", "json"]):
        done = run("diff", *shop, *flags)
        assert (done.returncode, "exclude each other" in done.stderr) == (ExitStatus.USAGE, True)


def test_a_template_that_is_none_is_refused_before_anything_is_asked():
    done = run("diff", "--server", "https://127.0.0.1:1", "-o", "jsonpath={.a")
    assert (done.returncode, "a brace isn't closed" in done.stderr) == (ExitStatus.USAGE, True)


def test_what_a_sync_did_for_programs(shop):
    done = run("sync", *shop, "-o", "json")
    result = json.loads(done.stdout)
    assert (done.returncode, result["kind"], result["result"]) == (0, "SyncResult", "Synced")
    did = {(each["op"], each["object"]["kind"]): each["state"] for each in result["results"]}
    assert did["update", "Memcached"] == did["delete", "ConfigMap"] == "succeeded"
    assert "s3cr3t" not in done.stdout


def test_what_a_sync_did_by_name(shop):
    done = run("sync", *shop, "-o", "name")
    assert (done.returncode, "memcached.cache.example.com/cache" in done.stdout.splitlines()) == (0, True)
    refused = run("sync", *shop, "-o", "tree")
    assert (refused.returncode, "add --dry-run" in refused.stderr) == (ExitStatus.USAGE, True)
    assert run("sync", *shop, "-o", "tree", "--dry-run").stdout.startswith("Sync ")


def test_a_sync_s_status_through_a_template(shop, kubeconfig, namespace):
    where = ("--kubeconfig", kubeconfig, "-n", namespace)
    assert run("status", *where, "-o", "jsonpath={.items[*].metadata.name}").stdout == "shop\n"
    assert run("status", "shop", *where, "-o", "jsonpath={.kind}").stdout == "Sync\n"


# --- screens ----------------------------------------------------------------------------------------------------------


def test_a_screen_is_coloured_and_a_pipe_is_not(shop):
    assert "\x1b[32m+  size: 2\x1b[0m" in run("diff", *shop, "--color", "always").stdout
    assert "\x1b" not in run("diff", *shop).stdout
    screen = Screen("diff", *shop, PAGER="")
    assert screen.end()[0] == 1
    assert "\x1b[32m+  size: 2\x1b[0m" in screen.seen
    plain = Screen("diff", *shop, PAGER="", NO_COLOR="1")
    plain.end()
    assert "\x1b" not in plain.seen


@pytest.mark.parametrize("columns", [80, 200])
def test_forms_with_columns_fit_the_screen(drifted, columns):
    for form in ("--side-by-side", "--output=tree"):
        _, text = Screen("diff", *drifted, form, columns=columns, PAGER="").end()
        assert "Memcached.cache.example.com" in text
        notes = ("#", "--", "Sync", "update ")
        assert all(len(line) <= columns for line in text.splitlines() if not line.startswith(notes))


def test_long_output_on_a_screen_goes_through_the_pager(shop, tmp_path):
    shown = tmp_path / "shown"
    status, text = Screen("diff", *shop, lines=8, PAGER=f"tee {shown}").end()
    assert (status, "+  size: 2" in ESCAPES.sub("", shown.read_text())) == (1, True)
    assert text.endswith("unchanged\n")
    shown.unlink()
    for flags, lines, pager in ((("--no-pager",), 8, f"tee {shown}"), ((), 500, f"tee {shown}"), ((), 8, "cat")):
        status, text = Screen("diff", *shop, *flags, lines=lines, PAGER=pager).end()
        assert (status, "+  size: 2" in text, shown.exists()) == (1, True, False)
    assert run("diff", *shop, PAGER=f"tee {shown}").returncode == 1
    assert not shown.exists()


def test_another_program_may_compare(shop):
    done = run("diff", *shop, KUBECTL_EXTERNAL_DIFF="diff -u -N")
    assert (done.returncode, "-  size: 1\n+  size: 2\n" in done.stdout, "s3cr3t" in done.stdout) == (1, True, False)
    assert re.search(r"^\+\+\+ /\S*/MERGED-\w+/cache.example.com.Memcached.\S+.cache\s", done.stdout, re.MULTILINE)
    missing = run("diff", *shop, KUBECTL_EXTERNAL_DIFF="/nowhere/differ")
    assert (missing.returncode, "KUBECTL_EXTERNAL_DIFF: /nowhere/differ can't be run" in missing.stderr) == (
        ExitStatus.USAGE,
        True,
    )
    failed = run("diff", *shop, KUBECTL_EXTERNAL_DIFF="false")
    assert failed.returncode == 1
    assert run("diff", *shop, KUBECTL_EXTERNAL_DIFF="diff --no-such-flag").returncode == ExitStatus.FAILED


# --- progress ---------------------------------------------------------------------------------------------------------

IMAGE = "registry.k8s.io/pause:3.10"


def slow(name, **metadata):
    """A Deployment that never gets healthy: no node has such a label."""
    labels = {"app": name}
    pod = {"nodeSelector": {"nobody": "has"}, "containers": [{"name": "web", "image": IMAGE}]}
    spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, **metadata}, "spec": spec}


@pytest.fixture
def waiting(tmp_path, kubeconfig, namespace, crds):
    """The words of a sync whose second wave waits for what the first can't bring about."""
    folder = tmp_path / "waves"
    folder.mkdir()
    later = config("later")
    later["metadata"]["annotations"] = {"reconcile.dev/wave": "5"}
    write(folder, first=slow("first", annotations={"reconcile.dev/wave": "1"}), later=later)
    return ("sync", "-f", str(folder), "--name", "waves", "--kubeconfig", kubeconfig, "-n", namespace)


def test_a_screen_shows_what_is_waited_for_and_ctrl_c_ends_the_wait(waiting, cluster):
    screen = Screen(*waiting)
    screen.until("created  Deployment.apps").until("wave 2 of 2").until("Deployment.apps ").until(" of 2 done").until(
        "/first: "
    )
    assert " left" not in screen.seen
    screen.interrupt()
    status, text = screen.end()
    assert status == ExitStatus.INTERRUPTED
    assert "stopping: running requests are finished, no new ones are started" in text
    assert "interrupted; 1 object was written and stays; run it again to continue" in text
    assert cluster.get("Deployment", "first")
    assert cluster.get("ConfigMap", "later") is None


def test_a_pipe_gets_plain_lines(tmp_path, kubeconfig, namespace, crds):
    write(
        tmp_path,
        a=config("a"),
        b={**config("b"), "metadata": {"name": "b", "annotations": {"reconcile.dev/wave": "5"}}},
    )
    done = run("sync", "-f", str(tmp_path), "--name", "waves", "--kubeconfig", kubeconfig, "-n", namespace)
    assert done.returncode == 0
    assert done.stderr.splitlines()[0] == "wave 1 of 2: 1 object"
    assert re.fullmatch(r"wave 2 of 2: 1 object, 1 of 2 done(; first .*)?", done.stderr.splitlines()[1])
    assert "\x1b" not in done.stdout + done.stderr


@pytest.mark.usefixtures("daemon")
def test_ctrl_c_while_a_daemon_works_leaves_it_at_work(follow, git_server, cluster, kubeconfig, namespace):
    sha = git_server.push({"web.yaml": json.dumps(config("web"))}, "first")
    follow(git_server.url, interval="1h").until_synced(sha)
    later = {**config("later"), "metadata": {"name": "later", "annotations": {"reconcile.dev/wave": "9"}}}
    first = slow("first", annotations={"reconcile.dev/wave": "1"})
    git_server.push({"first.yaml": json.dumps(first), "later.yaml": json.dumps(later)}, "second")
    screen = Screen("sync", "shop", "--kubeconfig", kubeconfig, "-n", namespace)
    screen.until("asked the daemon to sync").until(" s  Sync.reconcile.dev")
    screen.interrupt()
    status, text = screen.end()
    assert status == ExitStatus.INTERRUPTED
    assert "stopped waiting; the daemon continues by itself" in text
    assert f"follow it with: kubectl reconcile status shop -n {namespace}" in text


@pytest.mark.usefixtures("daemon")
def test_waiting_for_a_daemon_ends_in_time(follow, git_server, plugin):
    sha = git_server.push({"web.yaml": json.dumps(config("web"))}, "first")
    follow(git_server.url, interval="1h").until_synced(sha)
    later = {**config("later"), "metadata": {"name": "later", "annotations": {"reconcile.dev/wave": "9"}}}
    git_server.push({"first.yaml": json.dumps(slow("first")), "later.yaml": json.dumps(later)}, "second")
    late = plugin("sync", "shop", "--timeout", "4s")
    assert (late.status, "didn't finish" in late.err, "it continues by itself" in late.err) == (
        ExitStatus.FAILED,
        True,
        True,
    )
    assert plugin("sync", "shop", "--no-wait").status == 0


def test_a_sync_waits_for_health_as_long_as_it_is_told(waiting, cluster):
    done = run(*waiting, "--timeout", "2s")
    assert done.returncode == ExitStatus.FAILED
    assert re.search(
        r"skipped +ConfigMap \S+/later \(later.yaml:1\): waits for Deployment.apps \S+/first: not healthy in time",
        done.stderr,
    )
    assert cluster.get("ConfigMap", "later") is None
