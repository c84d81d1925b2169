"""Where traffic for Services goes, and which names there are, from Services and EndpointSlices. Pure.

The names are those of Kubernetes' DNS specification: A and SRV records of Services with an address, of headless ones one for each
ready endpoint, and PTR records. Endpoints that aren't ready are in a headless Service whose ``publishNotReadyAddresses`` is set: the
EndpointSlice calls them ready then.
"""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kubectl_reconcile.sandbox.runtime.names import DOMAIN, Zone
from kubectl_reconcile.sandbox.runtime.network import SERVICE_RANGE

_SERVICES = ipaddress.ip_network(SERVICE_RANGE)

Object = Mapping[str, Any]
Route = tuple[str, int, list[tuple[str, int]]]


def routes(services: Iterable[Object], slices: Iterable[Object], api_server_port: int) -> list[Route]:
    """Return address and port of each Service, and the endpoints that are ready behind it.

    The API server is one that has no EndpointSlice: it listens at *api_server_port* of the machine.
    """
    by_service = _by_service(slices)
    found: list[Route] = []
    for service in services:
        address = _address(service)
        if not address:
            continue
        for port in service["spec"].get("ports", ()):
            if port.get("protocol", "TCP") != "TCP":
                continue
            if _is_api_server(service):
                endpoints = [("", api_server_port)]
            else:
                endpoints = [
                    (ip, number)
                    for one in by_service[_key(service)]
                    for number in _numbers(one, port.get("name", ""))
                    for ip, _ in _ready(one)
                    if ipaddress.ip_address(ip) not in _SERVICES  # traffic would lead back to where it is carried
                ]
            found.append((address, port["port"], sorted(set(endpoints))))
    return found


def zone(services: Iterable[Object], slices: Iterable[Object]) -> Zone:
    """Return all names."""
    by_service = _by_service(slices)
    addresses: defaultdict[str, list[str]] = defaultdict(list)
    offers: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
    owners: dict[str, str] = {}
    for service in services:
        name = f"{service['metadata']['name']}.{service['metadata']['namespace']}.svc.{DOMAIN}"
        address = _address(service)
        if address:
            addresses[name].append(address)
            owners[address] = name
            for port in service["spec"].get("ports", ()):
                offers[_offer(port, name)].append((port["port"], name))
            continue
        if service["spec"].get("type") == "ExternalName":
            continue
        for one in by_service[_key(service)]:
            for ip, hostname in _ready(one):
                host = f"{hostname or ip.replace('.', '-')}.{name}"
                addresses[name].append(ip)
                addresses[host].append(ip)
                if hostname:
                    owners[ip] = host
                for port in filter(_is_numbered, one.get("ports") or ()):
                    offers[_offer(port, name)].append((port["port"], host))
    return Zone(
        {name: sorted(set(ips)) for name, ips in addresses.items()},
        {name: sorted(set(each)) for name, each in offers.items() if not name.startswith("_.")},
        owners,
    )


def _offer(port: Mapping[str, Any], name: str) -> str:
    return f"_{port.get('name') or ''}._{port.get('protocol', 'TCP').lower()}.{name}"


def _by_service(slices: Iterable[Object]) -> defaultdict[tuple[str, str], list[Object]]:
    found: defaultdict[tuple[str, str], list[Object]] = defaultdict(list)
    for one in slices:
        name = one["metadata"].get("labels", {}).get("kubernetes.io/service-name")
        if name and one.get("addressType") == "IPv4":
            found[one["metadata"]["namespace"], name].append(one)
    return found


def _key(service: Object) -> tuple[str, str]:
    return service["metadata"]["namespace"], service["metadata"]["name"]


def _address(service: Object) -> str:
    address = service["spec"].get("clusterIP") or "None"
    return "" if address == "None" else str(address)


def _is_api_server(service: Object) -> bool:
    return _key(service) == ("default", "kubernetes")


def _numbers(one: Object, name: str) -> list[int]:
    ports = filter(_is_numbered, one.get("ports") or ())
    return [port["port"] for port in ports if (port.get("name") or "") == name]


def _is_numbered(port: Mapping[str, Any]) -> bool:
    """Tell whether a port of an EndpointSlice is one: its number may be left out, and the API server doesn't look at it."""
    return 0 < (port.get("port") or 0) < 1 << 16


def _ready(one: Object) -> Iterator[tuple[str, str]]:
    """Yield address and host name of each endpoint that is ready."""
    for endpoint in one.get("endpoints") or ():
        if endpoint.get("conditions", {}).get("ready") is not False:
            for ip in endpoint["addresses"]:
                yield ip, endpoint.get("hostname") or ""
