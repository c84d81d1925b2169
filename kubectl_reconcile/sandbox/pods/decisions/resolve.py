"""What a container runs: command, variables, user and mounts, from the pod and what it refers to.

Pure. Vocabulary: *sources* are the ConfigMaps and Secrets that a pod refers to, by kind and name; one that isn't there is None.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Pod = Mapping[str, Any]
Container = Mapping[str, Any]
Sources = Mapping[tuple[str, str], Mapping[str, Any] | None]

_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_.-][A-Za-z0-9_.-]*)\)")
_QUOTED = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")
_LONGEST = 128 * 1024
"""What Linux lets one argument or variable have (MAX_ARG_STRLEN), in bytes."""
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class ConfigError(Exception):
    """A container can't be started as it is configured; the text says why."""


@dataclass(frozen=True, slots=True)
class Command:
    """What is executed in a container."""

    argv: tuple[str, ...]
    environ: Mapping[str, str]
    folder: str
    user: tuple[int, int] | None
    """uid and gid; None for the one that the runtime runs as, which is root in there."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What fields of a pod say that aren't in its specification."""

    pod_ip: str
    host_ip: str = "10.200.0.1"


def containers(pod: Pod) -> Iterator[Container]:
    """Yield all containers of a pod, those that initialize it first."""
    yield from pod["spec"].get("initContainers", ())
    yield from pod["spec"]["containers"]


def container_of(pod: Pod, name: str) -> Container:
    """Return the container of *pod* that is called *name*."""
    return next(one for one in containers(pod) if one["name"] == name)


def source_names(pod: Pod) -> set[tuple[str, str]]:
    """Return kind and name of each ConfigMap and Secret that variables of *pod* come from."""
    found = set()
    for container in containers(pod):
        for each in container.get("env", ()):
            found |= {
                _named(each.get("valueFrom", {}), "configMapKeyRef"),
                _named(each.get("valueFrom", {}), "secretKeyRef"),
            }
        for each in container.get("envFrom", ()):
            found |= {_named(each, "configMapRef"), _named(each, "secretRef")}
    return {one for one in found if one[1]}


def _named(place: Mapping[str, Any], key: str) -> tuple[str, str]:
    return ("ConfigMap" if key.startswith("configMap") else "Secret", place.get(key, {}).get("name", ""))


def command(
    pod: Pod,
    container: Container,
    sources: Sources,
    facts: Facts,
    *,
    default: Sequence[str],
    environ: Mapping[str, str],
    path: Sequence[str],
) -> Command:
    """Return what *container* of *pod* runs; *default*, *environ* and *path* are those of its image.

    Raises:
        ConfigError: something that it refers to isn't there.
    """
    variables = _environ(pod, container, sources, facts, {"PATH": ":".join([*path, _SYSTEM_PATH]), **environ})
    entry, arguments = container.get("command", ()), container.get("args", ())
    argv = [*entry, *arguments] if entry else [*default, *arguments] if default else list(arguments)
    if not argv:
        raise ConfigError(f"container {container['name']} has no command, and neither does its image")
    return Command(
        tuple(expanded(word, variables, "an argument") for word in argv),
        variables,
        container.get("workingDir") or "/",
        _user(pod, container),
    )


def expanded(text: str, variables: Mapping[str, str], what: str) -> str:
    """Return *text* with each ``$(NAME)`` replaced by the variable, if there is one; ``$$`` stands for one dollar.

    Raises:
        ConfigError: no program could be given the result; *what* says whose text it is.
    """
    room = _LONGEST

    def value(match: re.Match[str]) -> str:
        nonlocal room
        found = "$" if match[0] == "$$" else variables.get(match[1], match[0])
        room -= len(found)
        if room < 0:  # before it is put together: variables can double one another
            raise ConfigError(f"{what} has more than {_LONGEST // 1024} KiB")
        return found

    return _REFERENCE.sub(value, text)


def _environ(
    pod: Pod, container: Container, sources: Sources, facts: Facts, image: Mapping[str, str]
) -> dict[str, str]:
    variables = {
        **image,
        "HOME": "/root",
        "HOSTNAME": hostname(pod),
        "KUBERNETES_SERVICE_HOST": "10.0.0.1",
        "KUBERNETES_SERVICE_PORT": "443",
        "KUBERNETES_SERVICE_PORT_HTTPS": "443",
    }
    for each in container.get("envFrom", ()):
        key = "configMapRef" if "configMapRef" in each else "secretRef"
        content = data_of(sources, *_named(each, key), optional=each[key].get("optional", False))
        prefix = each.get("prefix", "")
        variables |= {f"{prefix}{name}": value.decode(errors="replace") for name, value in content.items()}
    for each in container.get("env", ()):
        value = (
            _from(each["valueFrom"], pod, container, sources, facts)
            if "valueFrom" in each
            else expanded(each.get("value", ""), variables, f"variable {each['name']}")
        )
        if value is not None:
            variables[each["name"]] = value
    return variables


def _from(place: Mapping[str, Any], pod: Pod, container: Container, sources: Sources, facts: Facts) -> str | None:
    if "fieldRef" in place:
        return field(pod, place["fieldRef"]["fieldPath"], facts)
    if "resourceFieldRef" in place:
        return resource(pod, place["resourceFieldRef"], container)
    key = "configMapKeyRef" if "configMapKeyRef" in place else "secretKeyRef"
    reference = place.get(key, {})
    optional = reference.get("optional", False)
    kind, name = _named(place, key)
    content = data_of(sources, kind, name, optional=optional)
    if reference["key"] not in content:
        if optional:
            return None
        raise ConfigError(f"{kind} {name} has no key {reference['key']}")
    return content[reference["key"]].decode(errors="replace")


def data_of(sources: Sources, kind: str, name: str, *, optional: bool) -> dict[str, bytes]:
    """Return what is in a ConfigMap or Secret; nothing for one that isn't there and is *optional*.

    Raises:
        ConfigError: it isn't there.
    """
    found = sources.get((kind, name))
    if found is None:
        if optional:
            return {}
        raise ConfigError(f"there is no {kind} {name}")
    encoded = found.get("data" if kind == "Secret" else "binaryData") or {}
    plain = {} if kind == "Secret" else found.get("data") or {}
    return {
        **{key: base64.b64decode(value) for key, value in encoded.items()},
        **{key: value.encode() for key, value in plain.items()},
    }


def field(pod: Pod, path: str, facts: Facts) -> str:
    """Return what the downward API calls *path* of *pod*.

    Raises:
        ConfigError: there is no such field.
    """
    meta, spec = pod["metadata"], pod["spec"]
    match = _QUOTED.fullmatch(path)
    if match:
        return str(meta.get(match[1], {}).get(match[2], ""))
    if path in {"metadata.labels", "metadata.annotations"}:
        values = meta.get(path.partition(".")[2], {})
        return "\n".join(f'{key}="{value}"' for key, value in sorted(values.items()))
    known = {
        "metadata.name": meta["name"],
        "metadata.namespace": meta["namespace"],
        "metadata.uid": meta["uid"],
        "spec.nodeName": spec.get("nodeName", ""),
        "spec.serviceAccountName": spec.get("serviceAccountName", ""),
        "status.podIP": facts.pod_ip,
        "status.podIPs": facts.pod_ip,
        "status.hostIP": facts.host_ip,
        "status.hostIPs": facts.host_ip,
    }
    if path not in known:
        raise ConfigError(f"the downward API has no field {path}")
    return str(known[path])


_UNITS = {
    unit: 1000.0**power
    for power, unit in zip(range(-3, 7), ("n", "u", "m", "", "k", "M", "G", "T", "P", "E"), strict=True)
}
_UNITS |= {f"{unit}i": 1024.0**power for power, unit in enumerate("KMGTPE", 1)}
_QUANTITY = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(?:([A-Za-z]{0,2})|[eE]([+-]?[0-9]{1,2}))")


def resource(pod: Pod, reference: Mapping[str, Any], container: Container | None) -> str:
    """Return what the downward API says of resources: requests and limits, rounded up to whole divisors.

    Raises:
        ConfigError: it names no container of the pod.
    """
    name = reference.get("containerName")
    if name:
        container = next((one for one in containers(pod) if one["name"] == name), None)
    if container is None:
        raise ConfigError(f"the downward API finds no container {name}")
    kind, _, what = reference["resource"].partition(".")
    resources = container.get("resources", {})
    amount = resources.get(kind, {}).get(what) or resources.get("limits", {}).get(what) or "0"
    divisor = quantity(str(reference.get("divisor") or "1")) or 1
    return str(-int(-quantity(str(amount)) // divisor))


def quantity(text: str) -> float:
    """Return what a quantity such as ``1500m``, ``64Mi`` or ``1e3`` means; 0 for what is none."""
    match = _QUANTITY.fullmatch(text)
    if match is None:
        return 0.0
    unit = 10.0 ** int(match[3]) if match[3] else _UNITS.get(match[2], 0.0)
    return float(match[1]) * unit


def hostname(pod: Pod) -> str:
    """Return what the pod's processes see as their host name."""
    return str(pod["spec"].get("hostname") or pod["metadata"]["name"])[:63].rstrip("-.")


def hosts(pod: Pod, ip: str) -> str:
    """Return the pod's /etc/hosts."""
    own, subdomain = hostname(pod), pod["spec"].get("subdomain")
    names = [f"{own}.{subdomain}.{pod['metadata']['namespace']}.svc.cluster.local", own] if subdomain else [own]
    lines = ["127.0.0.1\tlocalhost", "::1\tlocalhost ip6-localhost ip6-loopback", f"{ip}\t{' '.join(names)}"]
    lines += [f"{each['ip']}\t{' '.join(each.get('hostnames', ()))}" for each in pod["spec"].get("hostAliases", ())]
    return "\n".join(lines) + "\n"


def resolv_conf(pod: Pod, server: str) -> str:
    """Return the pod's /etc/resolv.conf."""
    search = [f"{pod['metadata']['namespace']}.svc.cluster.local", "svc.cluster.local", "cluster.local"]
    return f"nameserver {server}\nsearch {' '.join(search)}\noptions ndots:5 timeout:2\n"


def _user(pod: Pod, container: Container) -> tuple[int, int] | None:
    settings = {**pod["spec"].get("securityContext", {}), **container.get("securityContext", {})}
    uid, gid = settings.get("runAsUser"), settings.get("runAsGroup")
    if settings.get("runAsNonRoot") and not uid:
        raise ConfigError(
            "container has runAsNonRoot and would run as root (hint: set runAsUser, images here name no user)"
        )
    if not uid and not gid:
        return None
    return int(uid or 0), int(gid if gid is not None else uid or 0)


def port_number(container: Container, port: int | str) -> int:
    """Return the number of a *port* of *container* that is given by number or name.

    Raises:
        ConfigError: it has no port of that name.
    """
    if isinstance(port, int) or port.isdigit():
        return int(port)
    for each in container.get("ports", ()):
        if each.get("name") == port:
            return int(each["containerPort"])
    raise ConfigError(f"container {container['name']} has no port {port}")
