"""A real S3 server for tests, moto's, in an environment of its own: it takes older versions of what we use."""

import os
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

PYTHON = Path(sys.prefix) / "s3/bin/python"
PROGRAM = Path(__file__).with_name("s3_program.py")
TYPE = {"Content-Type": "application/octet-stream"}  # else a body is taken for a form
KEYS = {"AWS_ACCESS_KEY_ID": "AKIATESTS", "AWS_SECRET_ACCESS_KEY": "never-to-be-seen"}


class S3Server:
    """A server with buckets, on the loopback until it is ended."""

    def __init__(self, *buckets, certificate=(), scheme="http"):
        if not PYTHON.exists():
            pytest.fail("there is no S3 server to test with (hint: make s3-server)")
        tls = dict(zip(("CERTIFICATE", "KEY"), map(str, certificate), strict=False))
        self.process = subprocess.Popen(
            [PYTHON, PROGRAM, "127.0.0.1", "0", *buckets],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, **tls},
        )
        self.endpoint = f"{scheme}://127.0.0.1:{int(self.process.stdout.readline())}"

    def ask(self, path, method="GET", data=None):
        request = urllib.request.Request(f"{self.endpoint}/{path}", data, TYPE, method=method)  # noqa: S310 - our own
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - the same
            return answer.read()

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
