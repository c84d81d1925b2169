"""``kubectl reconcile ui`` as a person runs it: an address, a page, and an end."""

import http.cookiejar
import json
import signal
import subprocess
import urllib.request
from urllib.parse import urlsplit

from tests.forked import PROGRAM
from tests.talking import talking


def test_it_prints_an_address_serves_there_and_ends_by_ctrl_c(kubeconfig, namespace, crds):
    command = [PROGRAM, "ui", "--no-browser", "--kubeconfig", kubeconfig, "-n", namespace]
    with talking(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        url = process.stdout.readline().strip()
        assert urlsplit(url).hostname == "127.0.0.1"
        cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        browser = urllib.request.build_opener(urllib.request.ProxyHandler({}), cookies)
        assert "<title>" in browser.open(url, timeout=150).read().decode()
        with browser.open(url.partition("/start")[0] + "/api/v1/about", timeout=150) as answer:
            assert json.load(answer)["namespace"] == namespace
        process.send_signal(signal.SIGINT)
        assert process.wait(150) == 0
