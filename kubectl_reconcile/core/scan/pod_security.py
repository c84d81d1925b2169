"""The Pod Security Standards, control by control: which fields of a pod break which.

As Kubernetes 1.36 has them (kubernetes.io/docs/concepts/security/pod-security-standards); controls are named as its admission plugin names them.
A pod may come from a file that no server has seen yet, so fields of any shape are read, and one that isn't as it should be breaks nothing here:
the API server refuses it anyway.

Pure: a pod in, violations out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from json.encoder import encode_basestring_ascii
from typing import Any, Final, TypeAlias

from msgspec import Struct

from kubectl_reconcile.core.objects import annotations_of, map_at, mapping_of, maps_in, text_at


class Profile(StrEnum):
    """How much a pod may do."""

    BASELINE = "baseline"
    """What no ordinary application needs is forbidden."""
    RESTRICTED = "restricted"
    """What hardening guides ask for is demanded."""


class Violation(Struct, frozen=True):
    """One field of a pod that breaks a *control*: where it is, from the pod down (``.spec.containers[name="web"].ports``), and what must be so."""

    control: str
    path: str
    demand: str


APP_ARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
"""What the annotations begin with by which containers had their AppArmor profile once."""
_PROFILES: Final = frozenset({"RuntimeDefault", "Localhost"})
_SELINUX_TYPES: Final = frozenset({"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"})
_CAPABILITIES: Final = frozenset(
    {
        "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD",
        "NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
    }
)  # fmt: skip
_SYSCTLS: Final = frozenset(
    {
        "kernel.shm_rmid_forced",
        *(
            f"net.ipv4.{name}"
            for name in (
                "ip_local_port_range", "ip_local_reserved_ports", "ip_unprivileged_port_start", "ping_group_range",
                "tcp_fin_timeout", "tcp_keepalive_intvl", "tcp_keepalive_probes", "tcp_keepalive_time",
                "tcp_rmem", "tcp_syncookies", "tcp_wmem",
            )
        ),
    }
)  # fmt: skip
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_VOLUMES: Final = frozenset(
    {
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    }
)


class _PodView:
    """A pod as the controls look at it.

    *containers* are all of them, those that only begin and those for debugging too, with where they are. *contexts* are the security
    contexts of the pod and of its containers, with where they are; the pod's first. *filled* are those that have anything in them, and
    *filled_of_containers* those of containers alone: the others are only looked at where something must be there.
    """

    __slots__ = ("containers", "contexts", "filled", "filled_of_containers", "manifest", "spec")

    def __init__(self, manifest: Mapping[str, Any]) -> None:
        self.manifest = manifest
        self.spec = map_at(manifest, "spec")
        self.containers = tuple(
            (f".spec.{kind}{named(each)}", each)
            for kind in ("initContainers", "containers", "ephemeralContainers")
            for each in maps_in(self.spec.get(kind))
        )
        self.contexts = (
            (".spec.securityContext", map_at(self.spec, "securityContext")),
            *((f"{path}.securityContext", map_at(each, "securityContext")) for path, each in self.containers),
        )
        self.filled_of_containers = [each for each in self.contexts[1:] if each[1]]
        self.filled = [*(self.contexts[:1] if self.contexts[0][1] else ()), *self.filled_of_containers]

    @property
    def is_windows(self) -> bool:
        return map_at(self.spec, "os").get("name") == "windows"

    @property
    def has_own_users(self) -> bool:
        """Whether root in the pod is nobody outside (KEP-127)."""
        return self.spec.get("hostUsers") is False


_Found: TypeAlias = Iterator[tuple[str, str]]
"""Where a control is broken, and what must be so there."""


# --- baseline -------------------------------------------------------------------------------------


def _host_process(pod: _PodView) -> _Found:
    for path, context in pod.filled:
        if map_at(context, "windowsOptions").get("hostProcess") is True:
            yield f"{path}.windowsOptions.hostProcess", "must not be true"


def _host_namespaces(pod: _PodView) -> _Found:
    for name in ("hostNetwork", "hostPID", "hostIPC"):
        if pod.spec.get(name) is True:
            yield f".spec.{name}", "must not be true"


def _privileged(pod: _PodView) -> _Found:
    for path, context in pod.filled_of_containers:
        if context.get("privileged") is True:
            yield f"{path}.privileged", "must not be true"


def _capabilities(pod: _PodView) -> _Found:
    for path, context in pod.filled_of_containers:
        if odd := texts_in(map_at(context, "capabilities").get("add"), besides=_CAPABILITIES):
            yield f"{path}.capabilities.add", f"must not have {', '.join(odd)}"


def _host_path_volumes(pod: _PodView) -> _Found:
    for path, volume in _volumes(pod):
        if volume.get("hostPath") is not None:
            yield f"{path}.hostPath", "must not be set"


def _host_ports(pod: _PodView) -> _Found:
    for path, container in pod.containers:
        for port in maps_in(container.get("ports")):
            if port.get("hostPort"):
                yield f"{path}.ports{keyed(port, 'containerPort', 'protocol')}.hostPort", "must not be set"


def _hosts_of_probes(pod: _PodView) -> _Found:
    for path, container in pod.containers:
        lifecycle = map_at(container, "lifecycle")
        handlers = {name: map_at(container, name) for name in _PROBES if name in container}
        handlers |= {f"lifecycle.{name}": map_at(lifecycle, name) for name in ("postStart", "preStop") if lifecycle}
        for name, handler in handlers.items():
            for way in ("httpGet", "tcpSocket"):
                if map_at(handler, way).get("host"):
                    yield f"{path}.{name}.{way}.host", "must not be set"


def _app_armor(pod: _PodView) -> _Found:
    for path, context in pod.filled:
        yield from _bad_profile(f"{path}.appArmorProfile", map_at(context, "appArmorProfile"))
    for name, value in annotations_of(pod.manifest).items():
        if name.startswith(APP_ARMOR) and value not in {"", "runtime/default"} and not value.startswith("localhost/"):
            yield f".metadata.annotations[{json.dumps(name)}]", "must be runtime/default or localhost/…"


def _selinux(pod: _PodView) -> _Found:
    for path, context in pod.filled:
        options = map_at(context, "seLinuxOptions")
        if str(options.get("type") or "") not in _SELINUX_TYPES:
            yield f"{path}.seLinuxOptions.type", "must be a type for containers"
        for name in ("user", "role"):
            if options.get(name):
                yield f"{path}.seLinuxOptions.{name}", "must not be set"


def _proc_mount(pod: _PodView) -> _Found:
    return iter(()) if pod.has_own_users else _proc_mount_always(pod)


def _seccomp(pod: _PodView) -> _Found:
    for path, context in pod.filled:
        yield from _bad_profile(f"{path}.seccompProfile", map_at(context, "seccompProfile"))


def _sysctls(pod: _PodView) -> _Found:
    for sysctl in maps_in(map_at(pod.spec, "securityContext").get("sysctls")):
        if text_at(sysctl, "name") not in _SYSCTLS:
            yield f".spec.securityContext.sysctls{named(sysctl)}", "must not be set"


# --- restricted -----------------------------------------------------------------------------------


def _volume_types(pod: _PodView) -> _Found:
    for path, volume in _volumes(pod):
        if volume.keys() - {"name"} and not volume.keys() & _VOLUMES:
            kind = min(volume.keys() - {"name"})
            yield f"{path}.{kind}", f"must be one of {', '.join(sorted(_VOLUMES))}"


def _privilege_escalation(pod: _PodView) -> _Found:
    for path, context in pod.contexts[1:] if not pod.is_windows else ():
        if context.get("allowPrivilegeEscalation") is not False:
            yield f"{path}.allowPrivilegeEscalation", "must be false"


def _run_as_non_root(pod: _PodView) -> _Found:
    if pod.has_own_users:
        return
    (place, whole), *contexts = pod.contexts
    if whole.get("runAsNonRoot") is False:
        yield f"{place}.runAsNonRoot", "must not be false"
    for path, context in contexts:
        of_container = context.get("runAsNonRoot")
        if of_container is False or (of_container is None and whole.get("runAsNonRoot") is not True):
            yield f"{path}.runAsNonRoot", "must be true, here or for the pod"


def _run_as_user(pod: _PodView) -> _Found:
    for path, context in pod.filled if not pod.has_own_users else ():
        if context.get("runAsUser") == 0 and context.get("runAsUser") is not False:
            yield f"{path}.runAsUser", "must not be 0"


def _seccomp_is_set(pod: _PodView) -> _Found:
    if pod.is_windows:
        return
    yield from _seccomp(pod)
    (_, whole), *contexts = pod.contexts
    if text_at(whole, "seccompProfile", "type") in _PROFILES:
        return
    for path, context in contexts:
        if context.get("seccompProfile") is None:
            yield f"{path}.seccompProfile.type", "must be RuntimeDefault or Localhost, here or for the pod"


def _capabilities_are_dropped(pod: _PodView) -> _Found:
    for path, context in pod.contexts[1:] if not pod.is_windows else ():
        of_container = map_at(context, "capabilities")
        if "ALL" not in texts_in(of_container.get("drop")):
            yield f"{path}.capabilities.drop", "must have ALL"
        if odd := texts_in(of_container.get("add"), besides=frozenset({"NET_BIND_SERVICE"})):
            yield f"{path}.capabilities.add", f"must not have {', '.join(odd)}"


def _proc_mount_always(pod: _PodView) -> _Found:
    for path, context in pod.filled_of_containers:
        if context.get("procMount") is not None and context["procMount"] != "Default":
            yield f"{path}.procMount", "must be Default"


_Controls: TypeAlias = Mapping[str, Callable[[_PodView], _Found]]
_BASELINE: Final[_Controls] = {
    "windowsHostProcess": _host_process,
    "hostNamespaces": _host_namespaces,
    "privileged": _privileged,
    "capabilities_baseline": _capabilities,
    "hostPathVolumes": _host_path_volumes,
    "hostPorts": _host_ports,
    "hostProbesAndHostLifecycle": _hosts_of_probes,
    "appArmorProfile": _app_armor,
    "seLinuxOptions": _selinux,
    "procMount": _proc_mount,
    "seccompProfile_baseline": _seccomp,
    "sysctls": _sysctls,
}
_RESTRICTED: Final[_Controls] = {
    **{
        name: control
        for name, control in _BASELINE.items()
        if name not in {"capabilities_baseline", "hostPathVolumes", "procMount", "seccompProfile_baseline"}
    },
    "restrictedVolumes": _volume_types,
    "allowPrivilegeEscalation": _privilege_escalation,
    "runAsNonRoot": _run_as_non_root,
    "runAsUser": _run_as_user,
    "seccompProfile_restricted": _seccomp_is_set,
    "capabilities_restricted": _capabilities_are_dropped,
    "procMount_restricted": _proc_mount_always,
}
CONTROLS: Final[Mapping[Profile, _Controls]] = {Profile.BASELINE: _BASELINE, Profile.RESTRICTED: _RESTRICTED}
"""What each profile looks at, by the names of the admission plugin; stricter controls stand in for those of the baseline."""
_BASELINE_ALONE: Final[Mapping[Profile, _Controls]] = {
    profile: {name: control for name, control in _BASELINE.items() if name not in controls}
    for profile, controls in CONTROLS.items()
}
"""What of the baseline each profile doesn't look at in the same way."""


def violations(pod: Mapping[str, Any], profile: Profile) -> Iterator[Violation]:
    """Yield what of *pod* (or of a pod's template) the *profile* forbids; nothing where the API server would let it in."""
    return (violation for violation, _ in weighed_violations(pod, profile))


def weighed_violations(pod: Mapping[str, Any], profile: Profile) -> Iterator[tuple[Violation, bool]]:
    """Yield what of *pod* the *profile* forbids, each with whether the baseline forbids something of the same field."""
    looked_at = _PodView(pod)
    found = list(_violations(looked_at, CONTROLS[profile]))
    if not found:
        return
    worse = {each.path for each in found if each.control in _BASELINE}
    worse |= {each.path for each in _violations(looked_at, _BASELINE_ALONE[profile])}
    yield from ((each, each.path in worse) for each in found)


def _violations(pod: _PodView, controls: _Controls) -> Iterator[Violation]:
    for name, control in controls.items():
        for path, demand in control(pod):
            yield Violation(name, path, demand)


def named(item: Mapping[str, Any]) -> str:
    """Return how a path names an item of a list by its name: ``[name="web"]``."""
    name = item.get("name")
    return f"[name={encode_basestring_ascii(name)}]" if type(name) is str else keyed(item, "name")


def keyed(item: Mapping[str, Any], *keys: str) -> str:
    """Return how a path names an item of a list by these of its fields."""
    return f"[{','.join(f'{key}={json.dumps(item[key], default=str)}' for key in keys if key in item)}]"


def _bad_profile(path: str, profile: Mapping[str, Any]) -> _Found:
    if profile and text_at(profile, "type") not in _PROFILES:
        yield f"{path}.type", "must be RuntimeDefault or Localhost"


def _volumes(pod: _PodView) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for volume in maps_in(pod.spec.get("volumes")):
        yield f".spec.volumes{named(volume)}", mapping_of(volume)


def is_plain_volume(volume: Any) -> bool:
    """Tell whether no control minds an item of ``.spec.volumes``."""
    return isinstance(volume, dict) and "hostPath" not in volume and not _VOLUMES.isdisjoint(volume)


def texts_in(value: Any, besides: frozenset[str] = frozenset()) -> list[str]:
    """Return the texts of a list, each once, sorted, without some."""
    found = value if isinstance(value, list | tuple) else ()
    return sorted({each for each in found if isinstance(each, str)} - besides)
