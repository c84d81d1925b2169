"""Pods that are alike are looked at once, and what is found in each is what a look at it alone finds."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile.core.scan import alike
from kubectl_reconcile.core.scan.findings import controls_broken, findings_of
from kubectl_reconcile.core.scan.pod_security import Profile

PROFILES = st.sampled_from(Profile)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text("ab*$(/", max_size=3),
    lambda below: st.lists(below, max_size=2) | st.dictionaries(st.text("ab", max_size=3), below, max_size=2),
    max_leaves=5,
)


def pod(name="web", **of_container):
    """A pod with something in it for every check of pods."""
    container = {
        "name": "web",
        "image": "nginx",
        "args": ["-v"],
        "env": [{"name": "TOKEN", "value": "x"}],
        "ports": [{"containerPort": 1, "hostPort": 1}],
        "lifecycle": {"preStop": {"httpGet": {"host": "a"}}},
        "securityContext": {"privileged": True, "runAsUser": 0, "capabilities": {"add": ["SYS_ADMIN"]}},
        "volumeMounts": [{"name": "token-1", "mountPath": "/token"}],
        **of_container,
    }
    spec = {
        "containers": [container],
        "initContainers": [{"name": "first", "image": "nginx:latest"}],
        "hostPID": True,
        "nodeName": "node-1",
        "securityContext": {"sysctls": [{"name": "kernel.msgmax"}]},
        "volumes": [{"name": "token-1", "projected": {}}, {"name": "host", "hostPath": {}}, {"name": "far", "nfs": {}}],
    }
    annotations = {"container.apparmor.security.beta.kubernetes.io/web": "unconfined", "note": "a"}
    metadata = {"name": name, "namespace": "shop", "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def told(findings):
    return [(each.ref, each.check, each.path, each.demand, each.severity) for each in findings]


def assert_found_as_alone(manifests, profile):
    together = alike.AlikePods(profile)
    for each in manifests:
        assert told(together.findings_of(each)) == told(dict.fromkeys(findings_of(each, profile)))


def places(tree):
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield tree, key
        yield from places(value)


def changed(manifest, at, odd):
    """The same with one field, or one item of a list, that is something else."""
    other = copy.deepcopy(manifest)
    found = [*places(other["metadata"]["annotations"]), *places(other["spec"])]
    parent, key = found[at % len(found)]
    parent[key] = odd
    return other


@given(st.lists(st.tuples(st.integers(0, 10_000), JSON), max_size=4), PROFILES)
def test_what_is_found_beside_other_pods_is_what_is_found_alone(changes, profile):
    pods = [pod()]
    for at, odd in changes:
        pods += [changed(pod("other"), at, odd), changed(pods[-1], at, odd)]
    assert_found_as_alone([*pods, *reversed(pods)], profile)


NAMES = st.sampled_from(["web", "a", "b", 'a"]', "", 7, None])
OWN = st.fixed_dictionaries(
    {
        "name": NAMES,
        "image": st.sampled_from(["nginx", "nginx:1", "nginx@sha256:ab", 7]),
        "env": st.sampled_from([None, [{"name": "TOKEN", "value": "x"}], [{"name": "A", "value": "x"}]]),
    }
)


@given(st.lists(st.tuples(st.lists(OWN, min_size=1, max_size=3), st.lists(OWN, max_size=2)), max_size=5), PROFILES)
def test_of_pods_that_differ_in_names_images_and_variables_each_is_told_its_own(pods, profile):
    made = []
    for containers, first in pods:
        made.append(pod(f"web-{len(made)}"))
        made[-1]["spec"] |= {"containers": containers, "initContainers": first}
    assert_found_as_alone(made, profile)


@given(JSON, JSON, PROFILES)
def test_what_tells_a_pod_from_those_like_it_counts_in_no_check(one, other, profile):
    pods = [pod(args=each, command=each, volumeMounts=each) for each in (one, other)]
    for each, odd in zip(pods, (one, other), strict=True):
        each["spec"] |= {"nodeName": odd, "hostname": odd}
        each["spec"]["volumes"][0] = {"name": str(odd), "projected": odd}
    assert_found_as_alone(pods, profile)


def test_the_same_pod_is_judged_by_what_makes_it():
    template = {"metadata": {}, "spec": {"containers": [{"name": "web", "image": "nginx"}]}}
    kinds = {"Deployment": "apps/v1", "Job": "batch/v1", "DaemonSet": "example.com/v1"}
    made = [
        {"apiVersion": api, "kind": kind, "metadata": {"name": "web"}, "spec": {"template": template}}
        for kind, api in kinds.items()
    ]
    odd = [{"spec": []}, {"metadata": pod()["metadata"], "spec": []}, {}]
    made += [{**made[0], "spec": {"template": each}} for each in odd]
    assert_found_as_alone(made, Profile.BASELINE)


@pytest.mark.parametrize("profile", Profile)
def test_pods_that_are_alike_are_looked_at_once(profile, monkeypatch):
    looked = []

    def look(manifest, ref, by):
        looked.append(ref.name)
        return controls_broken(manifest, ref, by)

    monkeypatch.setattr(alike, "controls_broken", look)
    together = alike.AlikePods(profile)
    for number in range(20):
        mounts = [{"name": f"token-{number}", "mountPath": "/token"}]
        env = [{"name": f"KEY_{number}", "value": "x"}]
        one = pod(f"web-{number}", args=[str(number)], volumeMounts=mounts, image=f"app:{number}", env=env)
        one["spec"]["containers"][0]["name"] = f"app-{number}"
        one["metadata"]["labels"] = {"app": f"app-{number}"}
        one["spec"] |= {"nodeName": f"node-{number}"}
        one["spec"]["volumes"][0]["name"] = f"token-{number}"
        assert told(together.findings_of(one)) == told(dict.fromkeys(findings_of(one, profile)))
    together.findings_of(pod("other", securityContext={}))
    assert looked == ["web-0", "other"]
