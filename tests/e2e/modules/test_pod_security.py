"""Our controls of the Pod Security Standards beside the API server's own admission: the same verdict on any pod."""

import contextlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubectl_reconcile.core.scan.pod_security import CONTROLS, Profile, violations
from tests.e2e.api import RefusedError

REASONS = {
    "windowsHostProcess": "hostProcess",
    "hostNamespaces": "host namespaces",
    "privileged": "privileged",
    "capabilities_baseline": "non-default capabilities",
    "capabilities_restricted": "unrestricted capabilities",
    "hostPathVolumes": "hostPath volumes",
    "hostPorts": "hostPort",
    "hostProbesAndHostLifecycle": "probe or lifecycle host",
    "appArmorProfile": "forbidden AppArmor profile",
    "seLinuxOptions": "seLinuxOptions",
    "procMount": "procMount",
    "procMount_restricted": "procMount",
    "seccompProfile_baseline": "seccompProfile",
    "seccompProfile_restricted": "seccompProfile",
    "sysctls": "forbidden sysctls",
    "restrictedVolumes": "restricted volume types",
    "allowPrivilegeEscalation": "allowPrivilegeEscalation != false",
    "runAsNonRoot": "runAsNonRoot != true",
    "runAsUser": "runAsUser=0",
}
"""How the admission plugin says which control it was."""

MAYBE = st.sampled_from([None, True, False])
PROFILE = st.sampled_from(
    [None, {"type": "RuntimeDefault"}, {"type": "Localhost", "localhostProfile": "x"}, {"type": "Unconfined"}]
)
SELINUX = st.sampled_from(
    [
        None,
        {},
        {"type": "container_t"},
        {"type": "spc_t"},
        {"type": "container_engine_t"},
        {"user": "u"},
        {"role": "r"},
        {"level": "s0"},
    ]
)
CAPABILITIES = st.sampled_from(
    [
        None, {}, {"drop": ["ALL"]}, {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}, {"drop": ["KILL"]}, {"add": ["CHOWN"]},
        {"add": ["SYS_ADMIN", "KILL"], "drop": ["ALL"]},
    ]
)  # fmt: skip
COMMON = {
    "runAsNonRoot": MAYBE, "runAsUser": st.sampled_from([None, 0, 1000]), "seccompProfile": PROFILE, "appArmorProfile": PROFILE,
    "seLinuxOptions": SELINUX,
}  # fmt: skip
OF_POD = {
    **COMMON,
    "sysctls": st.sampled_from(
        [None, [{"name": "net.ipv4.tcp_rmem", "value": "1"}], [{"name": "kernel.msgmax", "value": "1"}, {"name": "kernel.shm_rmid_forced", "value": "1"}]]
    ),
}  # fmt: skip
OF_CONTAINER = {
    **COMMON, "allowPrivilegeEscalation": st.sampled_from([None, False, True]), "capabilities": CAPABILITIES,
    "privileged": st.sampled_from([None, None, False, True]), "procMount": st.sampled_from([None, None, "Default", "Unmasked"]),
}  # fmt: skip
HANDLER = st.sampled_from(
    [{"httpGet": {"port": 80}}, {"httpGet": {"port": 80, "host": "10.0.0.1"}}, {"tcpSocket": {"port": 80, "host": "x"}}]
)
VOLUME = st.sampled_from(
    [
        {}, {"emptyDir": {}}, {"hostPath": {"path": "/"}}, {"nfs": {"server": "s", "path": "/"}}, {"secret": {"secretName": "s"}},
        {"configMap": {"name": "c"}}, {"projected": {"sources": []}}, {"iscsi": {"targetPortal": "1.2.3.4:1", "iqn": "iqn.2001-04.com.x:y", "lun": 0}},
        {"image": {"reference": "x"}}, {"persistentVolumeClaim": {"claimName": "p"}}, {"downwardAPI": {"items": []}},
    ]
)  # fmt: skip
ANNOTATION = st.sampled_from([None, "runtime/default", "localhost/x", "unconfined"])


def present(fields):
    """A strategy of maps with those of *fields* that aren't None."""
    return st.fixed_dictionaries(fields).map(
        lambda made: {name: value for name, value in made.items() if value is not None}
    )


HARDENED = {
    "runAsNonRoot": True, "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"},
}  # fmt: skip


@st.composite
def containers(draw, name, *, is_ready_at_once=False):
    changed = draw(st.sets(st.sampled_from(sorted(OF_CONTAINER)), max_size=2))
    nearly_hardened = present({name: OF_CONTAINER[name] for name in changed}).map(lambda made: HARDENED | made)
    context = draw(st.none() | present(OF_CONTAINER) | nearly_hardened | nearly_hardened)
    made = {"name": name, "image": "x"}
    if context is not None:
        if context.get("privileged") or "SYS_ADMIN" in context.get("capabilities", {}).get("add", ()):
            context.pop("allowPrivilegeEscalation", None)  # the server refuses that for another reason
        made["securityContext"] = context
    if draw(st.integers(0, 3)) == 0:
        made["ports"] = [{"containerPort": 80}, {"containerPort": 81, "hostPort": 81}]
    if not is_ready_at_once and draw(st.integers(0, 3)) == 0:
        made["livenessProbe"] = draw(HANDLER)
        made["lifecycle"] = {"preStop": draw(HANDLER)}
    return made


@st.composite
def pods(draw):
    spec = {"containers": [draw(containers("web"))]}
    if draw(st.booleans()):
        spec["initContainers"] = [draw(containers("first", is_ready_at_once=True))]
    context = draw(st.none() | present(OF_POD))
    if context is not None:
        spec["securityContext"] = context
    for name in (
        draw(st.sets(st.sampled_from(["hostNetwork", "hostPID", "hostIPC"]), max_size=1)) if draw(st.booleans()) else ()
    ):
        spec[name] = draw(st.booleans())
    if draw(st.integers(0, 3)) == 0 and not any(spec.get(name) for name in ("hostNetwork", "hostPID", "hostIPC")):
        spec["hostUsers"] = draw(st.booleans())
    volumes = draw(st.lists(VOLUME, max_size=3))
    spec["volumes"] = [{"name": f"v{at}", **each} for at, each in enumerate(volumes)]
    told = draw(ANNOTATION)
    annotations = {"container.apparmor.security.beta.kubernetes.io/web": told} if told else {}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "annotations": annotations}, "spec": spec}


@pytest.fixture(scope="module")
def judged(api, kubectl, request):
    """judged(pod, profile) -> the controls that the API server says it breaks, None where it is no pod."""
    names = {
        profile: f"judge-{profile}-{request.config.workerinput['workerid'] if hasattr(request.config, 'workerinput') else 'main'}"
        for profile in Profile
    }
    for profile, name in names.items():
        labels = {"pod-security.kubernetes.io/enforce": profile.value}
        kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}}
        kubectl.apply(account)

    def judge(pod, profile):
        try:
            api.ask(f"/api/v1/namespaces/{names[profile]}/pods?dryRun=All", method="POST", body=pod)
        except RefusedError as error:
            if "violates PodSecurity" not in str(error):
                return None
            return {
                control
                for control in CONTROLS[profile]
                if f"{REASONS[control]} (" in str(error) or f"{REASONS[control]}s (" in str(error)
            }
        return set()

    yield judge
    for name in names.values():
        with contextlib.suppress(Exception):
            kubectl("delete", "namespace", name, "--wait=false")


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much],
    deadline=None,
    max_examples=150,
)
@given(pod=pods())
@pytest.mark.parametrize("profile", Profile)
def test_a_scan_finds_what_the_api_server_would_refuse(judged, profile, pod):
    theirs = judged(pod, profile)
    if theirs is not None:
        assert {each.control for each in violations(pod, profile)} == theirs


def test_what_runs_as_a_process_of_a_windows_node_is_found(judged):
    windows = {"windowsOptions": {"hostProcess": True, "runAsUserName": "NT AUTHORITY\\SYSTEM"}}
    spec = {
        "os": {"name": "windows"},
        "hostNetwork": True,
        "securityContext": windows,
        "containers": [{"name": "web", "image": "x"}],
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec}
    expected = {Profile.BASELINE: set(), Profile.RESTRICTED: {"runAsNonRoot"}}
    for profile, more in expected.items():
        found = {each.control for each in violations(pod, profile)}
        assert found == judged(pod, profile) == {"windowsHostProcess", "hostNamespaces"} | more
