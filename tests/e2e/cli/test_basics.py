"""The command line as a program: what it imports, its exit statuses, its messages, completion, and a first tour."""

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import click
import pytest
import yaml

from kubectl_reconcile.cli.options.output import FORMATS
from kubectl_reconcile.cli.output import failures
from kubectl_reconcile.cli.output.failures import ExitStatus
from kubectl_reconcile.cli.root import VERBS, command
from tests import forked, yaml_text
from tests.e2e.cli.terminal import on_terminal
from tests.talking import talking

ROOT = Path(__file__).parents[3]
BIN = Path(sys.executable).parent
HEAVY = (
    "kubernetes",
    "aiohttp",
    "git",
    "yaml",
    "orjson",
    "asyncio",
    "psutil",
    "watchdog",
    "deepdiff",
    "prometheus_client",
    "ssl",
)
CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}, "data": {"colour": "red"}}
LOGIN = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, "stringData": {"password": "s3cr3t-one"}}


def run(*arguments, program="kubectl-reconcile", stdin="", **environ):
    if program == "kubectl-reconcile":
        return forked.run(arguments, text=stdin, env={**os.environ, **environ})
    return subprocess.run(
        [BIN / program, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environ},
    )


@pytest.fixture
def reconcile(kubeconfig, namespace, crds):
    """reconcile("diff", …) -> the finished process, on the test's cluster and namespace."""
    return lambda *arguments, **rest: run(*arguments, "--kubeconfig", kubeconfig, "-n", namespace, **rest)


@pytest.fixture
def folder(tmp_path):
    """folder(web=CONFIG, …) -> a folder that holds exactly these manifests, one a file."""

    def write(**manifests):
        place = tmp_path / "manifests"
        place.mkdir(exist_ok=True)
        for file in place.iterdir():
            file.unlink()
        for name, manifest in manifests.items():
            text = manifest if isinstance(manifest, str) else yaml.safe_dump(manifest)
            (place / f"{name}.yaml").write_text(text)
        return str(place)

    return write


# --- starting up ------------------------------------------------------------------------------------------------------

QUICK = {
    "no words at all": ("main", []),
    "help": ("main", ["--help"]),
    "a verb's help": ("main", ["diff", "--help"]),
    "version": ("main", ["version"]),
    "flags of all verbs": ("main", ["options"]),
    "completion of verbs": ("complete", [""]),
    "completion of flags": ("complete", ["sync", "--"]),
    "completion for a shell's script": ("main", ["__complete", ""]),
    "a shell's script": ("main", ["completion", "bash"]),
}


@pytest.mark.parametrize(("module", "words"), QUICK.values(), ids=QUICK)
def test_what_needs_no_cluster_imports_nothing_that_talks_to_one(module, words):
    code = (
        f"import sys; sys.argv[1:] = {words!r}; from kubectl_reconcile.cli.{module} import main\n"
        "try: main()\n"
        "finally: print('imported:', *sorted(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    imported = set(done.stderr.split("imported:")[1].split())
    assert imported.isdisjoint({*HEAVY, "kubectl_reconcile.core.planning.plan", "kubectl_reconcile.engine"})


def test_no_verb_imports_what_talks_to_a_cluster_before_it_runs():
    code = (
        "import sys; from kubectl_reconcile.cli.root import VERBS, command\n"
        "for verb in VERBS: command(verb)\n"
        "print(*sorted(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()).isdisjoint(
        {*HEAVY, "kubectl_reconcile.core.planning.plan", "kubectl_reconcile.engine"}
    )


def test_the_first_request_waits_for_nothing_that_plans_or_reads_sources():
    code = "import sys, kubectl_reconcile.cli.early; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    late = {
        f"kubectl_reconcile.{each}" for each in ("core.planning", "core.manifests", "source", "engine.sync", "modules")
    }
    assert set(done.stdout.split()).isdisjoint({*late, "git", "kubernetes", "prometheus_client"})


def test_a_server_that_was_asked_for_nothing_is_left_without_a_word():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        at = f"http://127.0.0.1:{silent.getsockname()[1]}"
        done = run("diff", "-A", "-f", ".", "--server", at)
        assert done.returncode == ExitStatus.USAGE
        assert done.stderr.startswith("error: -A means all Syncs with their own sources")
        assert "Traceback" not in done.stderr
        assert "never" not in done.stderr
        silent.settimeout(5)
        silent.accept()[0].close()  # it was asked


def test_certificates_of_the_system_are_read_when_somebody_asks_for_them():
    code = (
        "import ssl, kubectl_reconcile.cluster, aiohttp.connector\n"
        "context, expected = aiohttp.connector._SSL_CONTEXT_VERIFIED, ssl.create_default_context().cert_store_stats()\n"
        "before = context.cert_store_stats()\n"
        "context.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname='localhost')\n"
        "print(sum(before.values()), context.cert_store_stats() == expected, type(context) is ssl.SSLContext)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.split() == ["0", "True", "True"]


def test_help_calls_the_program_what_its_users_do():
    done = run("--help")
    assert done.stdout.startswith("Usage: kubectl reconcile [FLAGS] VERB ...")
    assert re.search(r"^  diff +Show what the next sync would change. Writes nothing.$", done.stdout, re.MULTILINE)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_says_how_to_use_it(verb):
    done = run(verb, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: kubectl reconcile {verb}")
    assert "Example" in done.stdout


@pytest.mark.parametrize("verb", VERBS)
def test_help_fits_a_terminal_of_80_columns(verb):
    found, narrow = command(verb), {"terminal_width": 80, "max_content_width": 100}
    commands = {verb: found, **{f"{verb} {name}": one for name, one in getattr(found, "commands", {}).items()}}
    for name, one in commands.items():
        text = one.get_help(click.Context(one, info_name=f"kubectl reconcile {name}", **narrow))
        assert [line for line in text.splitlines() if len(line) > 80] == []


def test_the_version_is_told_by_a_flag_too():
    assert run("--version").stdout == run("version").stdout != ""


def test_version_in_json():
    assert json.loads(run("version", "-o", "json").stdout)["version"]


# --- errors that need no cluster --------------------------------------------------------------------------------------

NOWHERE = ("--server", "https://127.0.0.1:1", "--token", "s3cr3t")
REFUSED = {
    "an unknown verb": (["dif"], ExitStatus.USAGE, "unknown verb 'dif'; did you mean diff?"),
    "an unknown flag": (["diff", "--bad"], ExitStatus.USAGE, "no such option '--bad'"),
    "an unknown format": (["diff", "-o", "xml"], ExitStatus.USAGE, "'xml' is not one of"),
    "a time that is none": (["diff", "--request-timeout", "soon"], ExitStatus.USAGE, "'soon' isn't a duration"),
    "two sources": (["diff", "-f", ".", "--repo", "https://example.com/x"], ExitStatus.USAGE, "exclude each other"),
    "a Sync and a folder": (["diff", "shop", "-f", "."], ExitStatus.USAGE, "write --name shop"),
    "a ref of nothing": (["diff", "--ref", "main"], ExitStatus.USAGE, "--ref and --path need --repo"),
    "a folder to sync without a name": (["sync", "-f", "."], ExitStatus.USAGE, "records the objects"),
    "a Sync in all namespaces": (["status", "shop", "-A"], ExitStatus.USAGE, "leave out -A"),
    "an approval that is no hash": (["approve", "shop", "--plan-hash", "yes"], ExitStatus.USAGE, "print the hash for --plan-hash"),
    "no kubeconfig there": (["diff", "--kubeconfig", "/nowhere/config"], ExitStatus.USAGE, "/nowhere/config can't be read"),
    "nobody to impersonate": (["diff", *NOWHERE, "--as="], ExitStatus.USAGE, "impersonate is empty"),
    "no server there": (["diff", *NOWHERE], ExitStatus.CLUSTER, "no answer from the API server https://127.0.0.1:1"),
    "the same before the verb": ([*NOWHERE, "status"], ExitStatus.CLUSTER, "no answer from the API server https://127.0.0.1:1"),
    "no folder there": (["diff", *NOWHERE, "-f", "/nowhere/at/all"], ExitStatus.SOURCE, "no file or folder /nowhere/at/all"),
}  # fmt: skip


@pytest.mark.parametrize(("words", "expected", "message"), REFUSED.values(), ids=REFUSED)
def test_one_clear_message_and_its_exit_status(words, expected, message):
    done = run(*words)
    assert (done.returncode, done.stdout) == (expected, "")
    assert done.stderr.startswith("error: ")
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert "s3cr3t" not in done.stderr
    assert len(done.stderr.splitlines()) <= 2


def test_a_traceback_is_for_those_who_ask():
    done = run("diff", *NOWHERE, "--debug")
    assert done.returncode == ExitStatus.CLUSTER
    assert done.stderr.startswith("Traceback")
    assert "error: no answer from the API server" in done.stderr


def test_a_daemon_logs_in_json_and_ends_when_told_even_without_a_server():
    command = [BIN / "kubectl-reconcile", "daemon", "--listen=127.0.0.1:0", "--log-format=json", *NOWHERE]
    with talking(command, stderr=subprocess.PIPE) as daemon:
        said = json.loads(daemon.stderr.readline())
        daemon.terminate()
        assert daemon.wait(200) == 0
    assert (said["level"], said["message"]) == ("WARNING", "waiting for the server")


def test_a_kubeconfig_that_is_no_yaml_says_where(tmp_path):
    file = tmp_path / "config"
    file.write_text("clusters: [\n")
    done = run("diff", KUBECONFIG=str(file))
    assert (done.returncode, f"{file}:2" in done.stderr) == (ExitStatus.USAGE, True)


FAULTS = {
    "a fault of ours is told in a line": (ValueError("what\x1b[31m"), ExitStatus.FAILED),
    "ctrl-c ends with the shell's status": (KeyboardInterrupt(), ExitStatus.INTERRUPTED),
    "a failure keeps its status": (failures.Failure("no", status=ExitStatus.HELD), ExitStatus.HELD),
    "several at once are told by the one that is known": (
        ExceptionGroup("", [ValueError(), failures.Failure("no", status=ExitStatus.SOURCE)]),
        ExitStatus.SOURCE,
    ),
}


@pytest.mark.parametrize(("error", "expected"), FAULTS.values(), ids=FAULTS)
def test_faults(error, expected, capsys):
    def action():
        raise error

    assert failures.exit_status(action, debug=False) == expected
    told = capsys.readouterr().err
    assert "Traceback" not in told
    assert "\x1b" not in told


def test_a_reader_that_leaves_early_is_no_error():
    reading, writing = os.pipe()
    os.close(reading)
    closed = subprocess.run(
        [BIN / "kubectl-reconcile", "options"], stdout=writing, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writing)
    assert (closed.returncode, closed.stderr) == (ExitStatus.BROKEN_PIPE, "")


# --- completion -------------------------------------------------------------------------------------------------------

WORDS = {
    "verbs": ([""], set(VERBS), 4),
    "verbs that begin so": (["s"], {"sync", "status", "suspend", "sandbox"}, 4),
    "a verb after a flag and its value": (["-n", "shop", "di"], {"diff"}, 4),
    "flags": (["diff", "--show"], {"--show-secrets", "--show-managed-fields"}, 4),
    "kubectl's rarer flags": (["diff", "--as"], {"--as", "--as-group", "--as-uid"}, 4),
    "formats": (["diff", "-o", ""], set(FORMATS), 4),
    "formats after an equals sign": (["diff", "--output=j"], {"--output=json", "--output=jsonpath="}, 4),
    "a verb of a group": (["sandbox", "u"], {"up"}, 4),
    "files": (["diff", "-f", ""], set(), 0),
    "folders": (["diff", "--cache-dir", ""], set(), 16),
    "nothing more": (["diff", "shop", ""], set(), 4),
    "no such verb": (["nope", ""], set(), 4),
}  # fmt: skip


@pytest.mark.parametrize(("words", "expected", "directive"), WORDS.values(), ids=WORDS)
def test_completion(words, expected, directive):
    *found, last = run(*words, program="kubectl_complete-reconcile").stdout.splitlines()
    assert ({line.partition("\t")[0] for line in found}, last) == (expected, f":{directive}")


def test_the_plugin_and_its_completion_work_through_kubectl(kubectl):
    path = f"{ROOT / 'plugin'}{os.pathsep}{kubectl.folder}{os.pathsep}{os.environ['PATH']}"

    def ask(*words):
        environ = {**os.environ, "PATH": path}
        return subprocess.run(["kubectl", *words], capture_output=True, text=True, check=True, env=environ).stdout

    assert ask("reconcile", "version").startswith("kubectl-reconcile ")
    assert ask("__complete", "reconcile", "app").startswith("approve\t")


def test_syncs_are_completed_from_the_cluster(reconcile, folder, kubeconfig, namespace, kubectl, eventually):
    assert reconcile("sync", "-f", folder(web=CONFIG), "--name", "storefront").returncode == 0
    words = ("diff", "--kubeconfig", kubeconfig, "-n", namespace, "st")
    path = f"{kubectl.folder}{os.pathsep}{os.environ['PATH']}"
    answer = lambda: run(*words, program="kubectl_complete-reconcile", PATH=path).stdout  # noqa: E731 - asked until it is there
    eventually(lambda: answer() == "storefront\n:4\n", "the Sync is offered")


# --- a first tour -----------------------------------------------------------------------------------------------------


def test_diff_sync_diff(reconcile, folder):
    place = folder(web=CONFIG)
    before = reconcile("diff", "-f", place, "--name", "shop")
    assert before.returncode == 1
    assert before.stdout.endswith("1 to create, 0 unchanged\n")
    done = reconcile("sync", "-f", place, "--name", "shop")
    assert (done.returncode, done.stderr) == (0, "")
    assert "1 created in " in done.stdout
    after = reconcile("diff", "-f", place, "--name", "shop")
    assert (after.returncode, after.stdout) == (0, "no changes, 1 unchanged\n")


def test_a_file_that_goes_takes_its_object_along(reconcile, folder, namespace):
    reconcile("sync", "-f", folder(web=CONFIG, login=LOGIN), "--name", "shop")
    place = folder(web=CONFIG)
    preview = reconcile("diff", "-f", place, "--name", "shop", "-o", "summary")
    assert preview.stdout == f"delete  Secret {namespace}/login\n1 to delete, 1 unchanged\n"
    done = reconcile("sync", "-f", place, "--name", "shop")
    assert (done.returncode, f"deleted  Secret {namespace}/login\n" in done.stdout) == (0, True)


def test_a_dry_run_writes_nothing(reconcile, folder):
    place = folder(web=CONFIG)
    assert reconcile("sync", "-f", place, "--name", "shop", "--dry-run").returncode == 0
    assert reconcile("diff", "-f", place, "--name", "shop").stdout.endswith("1 to create, 0 unchanged\n")


def test_an_emptied_folder_is_held_until_approved(reconcile, folder):
    reconcile("sync", "-f", folder(web=CONFIG), "--name", "shop")
    place = folder(note="# nothing is left\n")
    held = reconcile("sync", "-f", place, "--name", "shop")
    assert held.returncode == ExitStatus.HELD
    words = held.stderr.partition("kubectl reconcile approve ")[2].split()
    assert words[0] == "shop"
    approved = reconcile("approve", "shop", "--plan-hash", words[-1])
    assert approved.returncode == 0
    assert "sync again from the same files: kubectl reconcile sync -f PATH --name shop" in approved.stdout
    done = reconcile("sync", "-f", place, "--name", "shop")
    assert (done.returncode, "1 deleted" in done.stdout) == (0, True)


def test_approving_a_sync_kept_by_hand_without_its_files_says_what_to_do(reconcile, folder, namespace):
    reconcile("sync", "-f", folder(web=CONFIG), "--name", "shop")
    place = folder(note="# nothing is left\n")
    assert reconcile("sync", "-f", place, "--name", "shop").returncode == ExitStatus.HELD
    refused = reconcile("approve", "shop", "--yes")
    assert refused.returncode == ExitStatus.USAGE
    assert f"Sync {namespace}/shop is applied by hand" in refused.stderr
    assert f"sync again from the same files, sync -f PATH --name shop -n {namespace}" in refused.stderr


def test_secrets_show_nowhere(reconcile, folder):
    reconcile("sync", "-f", folder(login=LOGIN), "--name", "shop")
    place = folder(login={**LOGIN, "stringData": {"password": "s3cr3t-two"}})
    for output in ("diff", "summary", "name", "json", "yaml"):
        done = reconcile("diff", "-f", place, "--name", "shop", "-o", output)
        assert done.returncode == 1
        for hidden in ("s3cr3t", "czNjcjN0"):  # the latter is how base64 of the values begins
            assert hidden not in done.stdout + done.stderr


def test_manifests_from_standard_input(reconcile):
    done = reconcile("diff", "-f", "-", "-o", "name", stdin=json.dumps(CONFIG))
    assert (done.returncode, done.stdout) == (1, "configmap/web\n")


def test_a_broken_file_is_named_and_the_rest_is_applied(reconcile, folder):
    done = reconcile("sync", "-f", folder(web=CONFIG, bad="a: [\n"), "--name", "shop")
    assert done.returncode == ExitStatus.SOURCE
    assert done.stderr.startswith("bad.yaml:")
    assert "1 created in " in done.stdout


def test_what_the_server_would_refuse_shows_in_the_preview(reconcile, folder):
    bad = {**CONFIG, "data": {"not a key": "x"}}
    done = reconcile("diff", "-f", folder(bad=bad))
    assert done.returncode == ExitStatus.FAILED
    assert "bad.yaml:1: ConfigMap" in done.stderr
    assert "not a key" in done.stderr


def test_an_unknown_sync_comes_with_a_suggestion(reconcile, folder):
    reconcile("sync", "-f", folder(web=CONFIG), "--name", "storefront")
    done = reconcile("diff", "storefrnt")
    assert (done.returncode, "did you mean storefront?" in done.stderr) == (ExitStatus.USAGE, True)


def test_status_of_what_is_kept_by_hand(reconcile, folder, namespace):
    reconcile("sync", "-f", folder(web=CONFIG), "--name", "shop")
    assert reconcile("status").stdout.splitlines()[1].startswith("shop ")
    assert reconcile("status", "shop").stdout.startswith(f"{namespace}/shop  ")
    assert reconcile("status", "-o", "name").stdout == "sync.reconcile.dev/shop\n"
    assert json.loads(reconcile("status", "shop", "-o", "json").stdout)["metadata"]["name"] == "shop"
    assert yaml_text.document(reconcile("status", "-o", "yaml").stdout)["items"][0]["kind"] == "Sync"


def test_escape_sequences_in_a_manifest_stay_there(reconcile, folder):
    hostile = {**CONFIG, "data": {"title": "\x1b]0;owned\x07", "turned": "\u202eexe"}}
    done = reconcile("diff", "-f", folder(web=hostile), "--color", "never")
    assert done.returncode == 1
    assert not [char for char in done.stdout + done.stderr if not char.isprintable() and char != "\n"]


def test_a_person_at_a_terminal_is_asked_before_anything_goes(reconcile, folder, kubeconfig, namespace):
    reconcile("sync", "-f", folder(web=CONFIG, login=LOGIN), "--name", "shop")
    words = ("sync", "-f", folder(web=CONFIG), "--name", "shop", "--kubeconfig", kubeconfig, "-n", namespace)
    status, seen = on_terminal(*words, typed={"[y/N]": "n\n"})
    assert (status, "Delete this object? [y/N]" in seen) == (ExitStatus.HELD, True)
    status, seen = on_terminal(*words, typed={"[y/N]": "y\n"})
    assert (status, "1 deleted" in seen) == (0, True)


# --- with a daemon ----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("daemon")
def test_a_daemon_is_asked_and_its_answer_told(follow, git_server, plugin):
    sha = git_server.push({"web.yaml": json.dumps(CONFIG)}, "first")
    followed = follow(git_server.url, interval="1h")
    followed.until_synced(sha)
    sha = git_server.push({"login.yaml": json.dumps(LOGIN)}, "second")
    assert plugin("diff", "shop").status == 1
    done = plugin("sync", "shop")
    assert (done.status, "asked the daemon to sync" in done.err) == (0, True)
    assert done.out.startswith(f"Synced {sha[:7]}: 2 objects")
    assert plugin("diff").status == 0
    assert plugin("status").out.splitlines()[1].split()[:3] == ["shop", "True", sha[:7]]


@pytest.mark.usefixtures("daemon")
def test_a_held_sync_by_a_daemon_exits_with_5(follow, git_server, plugin):
    sha = git_server.push({"web.yaml": json.dumps(CONFIG)}, "first")
    follow(git_server.url, interval="1h").until_synced(sha)
    git_server.push({"web.yaml": None, "note.yaml": "# nothing is left\n"}, "second")
    held = plugin("sync", "shop")
    assert (held.status, held.out.startswith("Held ")) == (ExitStatus.HELD, True)
    assert "to approve them: kubectl reconcile approve shop -n " in held.err
    assert plugin("approve", "shop", "--yes").status == 0
    assert plugin("sync", "shop").status == 0
