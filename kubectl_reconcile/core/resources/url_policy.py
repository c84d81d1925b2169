"""Which repositories may be followed at all: below URLs that whoever runs the daemon allows; and which addresses may be connected to for them.

Vocabulary: a Sync *states* the URL of its repository. Other URLs are *named*: by an index, a redirect, a chart that depends on another, or whatever else a file or a server says.

Rules of addresses, each judged as it is connected to, whatever name led there:

- Link-local ones, where clouds keep the credentials of their machines, are never connected to.
- What is named leads to public addresses, or to the very host and port that the Sync states. Else whoever writes an index could have the daemon
  ask others in its network.
- In a cluster, what is stated leads neither to the daemon's own pod nor to the networks of pods and Services.
- Below a prefix that is allowed, the last two don't count.

URLs are compared as those of credentials are (``credential_scope``): scheme, host, port and whole segments of the path. A URL that can be
read in more than one way is below none.

Pure: text in, verdict out.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from typing import Final, Self, TypeAlias

from msgspec import Struct

from kubectl_reconcile.core.phrases import first_few
from kubectl_reconcile.core.resources.credential_scope import Address, CredentialScope, NoAddressError, Place

FLAG: Final = "--allow-url-prefix"
"""The flag of the daemon that allows one."""

_LISTED: Final = 3
"""How many an error lists."""


_Ip: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

_METADATA: Final = ipaddress.ip_address("fd00:ec2::254")
"""Where a cloud keeps the credentials of its machines besides link-local addresses."""
_EMBEDDED: Final = ipaddress.ip_network("64:ff9b::/96")
_NEAR: Final = {4: 16, 6: 64}
"""How long the prefix is of what is taken for the network of pods, or of Services, around an address in it."""


def networks_around(addresses: Iterable[str]) -> tuple[str, ...]:
    """Return what is taken for the networks of pods and Services of a cluster by *addresses* in them; what is none is left out."""
    found = (_ip(each) for each in addresses)
    return tuple(str(ipaddress.ip_network((ip, _NEAR[ip.version]), strict=False)) for ip in found if ip is not None)


def _ip(text: str) -> _Ip | None:
    """Return an IP address; of one that only wraps an IPv4 address, that."""
    try:
        ip = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    if isinstance(ip, ipaddress.IPv6Address):
        if ip in _EMBEDDED:
            return ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        return ip.ipv4_mapped or ip.sixtofour or ip
    return ip


class UrlPolicy(Struct, frozen=True):
    """The addresses that are allowed; without any all are. *inside* are the networks of the cluster that the daemon runs in; empty elsewhere.

    Where *states* is a URL, that is the one that a Sync states, whatever is asked: what files of its source name is named.
    """

    addresses: tuple[Address, ...] = ()
    inside: tuple[str, ...] = ()
    states: str = ""

    @classmethod
    def of(cls, prefixes: Iterable[str], inside: Sequence[str] = ()) -> Self:
        """Return the policy that allows what is below these.

        Raises:
            ValueError: one isn't the URL of a repository, or is ambiguous; the text is that one.
        """
        addresses = []
        for prefix in prefixes:
            try:
                addresses.append(Address.of(prefix))
            except NoAddressError:
                raise ValueError(prefix) from None
        return cls(tuple(addresses), tuple(inside))

    def allows(self, url: str) -> bool:
        """Tell whether the repository at *url* may be followed."""
        return not self.addresses or CredentialScope(self.addresses).covers(url)

    def why_not(self, address: str, url: str, stated: str) -> str:
        """Return why the IP *address* isn't connected to for *url*, where a Sync states the URL *stated*; empty where it is."""
        ip = _ip(address)
        if ip is None or ip.is_link_local or ip.is_multicast or ip.is_unspecified or ip == _METADATA:
            return "is a link-local address, which is never connected to"
        if self.addresses and self.allows(url):
            return ""
        if not _is_same_place(url, self.states or stated):
            return "" if ip.is_global else "is a private address, and the Sync states another host"
        if self.inside and (ip.is_loopback or any(ip in ipaddress.ip_network(each) for each in self.inside)):
            return "is an address within the cluster"
        return ""

    def __str__(self) -> str:
        return first_few(self.addresses, _LISTED)


_WEB: Final = frozenset({80, 443})


def _is_same_place(url: str, stated: str) -> bool:
    """Tell whether two URLs lead to one host, and one port of it: that of the web counts as one, with and without TLS."""
    try:
        one, other = Place.of(url), Place.of(stated)
    except NoAddressError:
        return False
    return one.host == other.host and (one.port == other.port or {one.port, other.port} == _WEB)
