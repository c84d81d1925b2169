"""What kubectl does with a process pod: follow its logs, run commands in it, forward its ports."""

import re
import subprocess
import urllib.request

from tests.talking import talking

SERVER = "import http.server as h; h.ThreadingHTTPServer(('', 80), h.SimpleHTTPRequestHandler).serve_forever()"


def test_ports_are_forwarded_and_logs_followed(real, kubectl):
    real.run("python", "-c", SERVER, image="python", readinessProbe={"tcpSocket": {"port": 80}, "periodSeconds": 1})
    real.ready()
    program = kubectl.folder / "kubectl"
    common = {
        "env": {"KUBECONFIG": kubectl.kubeconfig, "HOME": "/nonexistent"},
        "stdout": subprocess.PIPE,
    }
    following = talking([program, "logs", "-f", "main", "-n", real.namespace], **common)
    forwarding = talking([program, "port-forward", "pod/main", ":80", "-n", real.namespace], **common)
    with following as logs, forwarding as forward:
        port = int(re.search(r"127.0.0.1:(\d+) -> 80", forward.stdout.readline())[1])
        for _ in range(3):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=200) as answer:
                assert answer.status == 200
                assert b"Directory listing" in answer.read()
        assert any('"GET / HTTP/1.1" 200' in line for line in logs.stdout)  # a probe may have been noted before


def test_a_command_hears_its_input_and_says_how_it_ended(real, kubectl):
    real.run("sleep", "100", pod={"terminationGracePeriodSeconds": 0})
    real.ready()
    answer = kubectl(
        "exec", "-i", "-n", real.namespace, "main", "--", "sh", "-c", "cat; echo $HOSTNAME", stdin="line\n" * 50_000
    )
    assert answer == "line\n" * 50_000 + "main\n"
    command = [
        kubectl.folder / "kubectl",
        "exec",
        "-n",
        real.namespace,
        "main",
        "--",
        "sh",
        "-c",
        "echo no >&2; exit 7",
    ]
    ended = subprocess.run(
        command,
        env={"KUBECONFIG": kubectl.kubeconfig, "HOME": "/nonexistent"},
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (7, b"")
    assert ended.stderr.startswith(b"no\n")
