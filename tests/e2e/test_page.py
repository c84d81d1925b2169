"""The page of a daemon that runs by itself: served where it is asked for, to whoever has a token of the cluster."""

import json
import re
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests import yaml_text


def test_a_daemon_serves_the_page_where_it_is_asked_to_and_logs_no_token(new_daemon, cluster, crds):
    config = yaml_text.document(Path(cluster.kubectl.kubeconfig).read_text())
    token = config["users"][0]["user"].get("token", "")
    if not token:
        pytest.skip("the cluster's administrator has no token")
    daemon = new_daemon(cluster.kubectl.kubeconfig, cluster.namespace, ["--ui=127.0.0.1:0"]).start(ready=False)
    address = re.search(r" started .* ui=([\w.:]+)", daemon.log)[1]
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    asked = urllib.request.Request(f"http://{address}/api/v1/about")
    with pytest.raises(urllib.error.HTTPError) as refused:
        opener.open(asked, timeout=150)
    with refused.value as answer:
        assert answer.code == 401
    asked.add_header("Authorization", f"Bearer {token}")
    with opener.open(asked, timeout=150) as answer:
        assert json.load(answer)["name"] == "sandbox-admin"
    assert daemon.stop() == 0
    assert token not in daemon.log


@pytest.mark.parametrize("flags", [["--ui-url=https://a.example.com"], ["--ui=:0", "--ui-url=http://a.example.com"]])
def test_an_address_that_cant_be_meant_is_refused_at_once(plugin, flags):
    done = plugin("daemon", *flags)
    assert done.status == 2
    assert "--ui-url" in done.err
