"""The pods' name server: answers from a zone that it is given, by the rules of Kubernetes' DNS specification.

Pure but for the class that listens. Vocabulary: a *zone* says which records each name has; names are lower-case and without
the dot at their end. All that isn't in the zone doesn't exist: nobody outside the sandbox is asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, cast

from dnslib import PTR, QTYPE, RCODE, RR, SRV, A, DNSError, DNSRecord

DOMAIN = "cluster.local"
_TTL_S = 5
_LARGEST_UDP = 1232
_TALK_S = 10.0
_MOST_TALKING = 100
"""Connections at once; whoever is hung up on asks again."""
_SMALLEST_RECORD = 12
"""Bytes that a record takes at least in an answer, whose name may be a reference of two."""


@dataclass(frozen=True, slots=True)
class Zone:
    """All names there are."""

    addresses: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Name -> IPv4 addresses."""
    services: Mapping[str, Sequence[tuple[int, str]]] = field(default_factory=dict)
    """``_port._tcp.name`` -> port and host name of each who offers it."""
    owners: Mapping[str, str] = field(default_factory=dict)
    """IPv4 address -> the name that it has."""

    def to_json(self) -> dict[str, Any]:
        """Return the same as JSON."""
        return {"addresses": self.addresses, "services": self.services, "owners": self.owners}


def answer(query: bytes, zone: Zone, *, limit: int = 65535) -> bytes:
    """Return the answer to *query*, shortened to *limit* bytes; empty where it is no query that could be answered."""
    try:
        request = DNSRecord.parse(query)
        question = request.q
        name, kind = str(question.qname).rstrip(".").lower(), QTYPE[question.qtype]
    except (DNSError, ValueError, IndexError, UnicodeDecodeError):
        return b""
    reply = request.reply(ra=0)
    most = limit // _SMALLEST_RECORD + 1  # one more than there can be room for, so that it shows
    for rtype, rdata in islice(_records(name, kind, zone), most):
        reply.add_answer(RR(question.qname, rtype, ttl=_TTL_S, rdata=rdata))
    if kind == "SRV":
        offering = (host for _, host in zone.services.get(name, ()))
        known = ((each, address) for each in offering for address in zone.addresses.get(each, ()))
        for host, address in islice(known, most):
            reply.add_ar(RR(host, QTYPE.A, ttl=_TTL_S, rdata=A(address)))
    if not reply.rr and not _exists(name, zone):
        reply.header.rcode = RCODE.NXDOMAIN
    packed = reply.pack()
    return bytes(packed if len(packed) <= limit else reply.truncate().pack())


def _records(name: str, kind: str, zone: Zone) -> Iterator[tuple[int, Any]]:
    """Yield type and content of each record of *kind* that *name* has."""
    if kind in {"A", "ANY"}:
        yield from ((QTYPE.A, A(address)) for address in zone.addresses.get(name, ()))
    if kind in {"SRV", "ANY"}:
        yield from ((QTYPE.SRV, SRV(0, 100, port, host)) for port, host in zone.services.get(name, ()))
    owner = zone.owners.get(".".join(reversed(name.removesuffix(".in-addr.arpa").split("."))))
    if kind in {"PTR", "ANY"} and owner and name.endswith(".in-addr.arpa"):
        yield QTYPE.PTR, PTR(owner)


def _exists(name: str, zone: Zone) -> bool:
    """Tell whether there is such a name, or one below it."""
    below = f".{name}"
    return any(one == name or one.endswith(below) for names in (zone.addresses, zone.services) for one in names)


class NameServer(asyncio.DatagramProtocol):
    """Answers over UDP and TCP."""

    def __init__(self) -> None:
        self.zone = Zone()
        self._transport: asyncio.DatagramTransport | None = None
        self._talking = 0

    async def listen(self, address: str, port: int = 53) -> None:
        """Begin to answer.

        Raises:
            OSError: the port is taken.
        """
        loop = asyncio.get_running_loop()
        await loop.create_datagram_endpoint(lambda: self, local_addr=(address, port))
        await asyncio.start_server(self._talk, address, port)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep what answers go out by."""
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: Any) -> None:
        """Answer one query."""
        reply = answer(data, self.zone, limit=_LARGEST_UDP)
        if reply and self._transport:
            self._transport.sendto(reply, addr)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._talking += 1
        try:
            async with asyncio.timeout(_TALK_S):
                while self._talking <= _MOST_TALKING and (length := int.from_bytes(await reader.readexactly(2))):
                    reply = answer(await reader.readexactly(length), self.zone)
                    writer.write(len(reply).to_bytes(2) + reply)
                    await writer.drain()
        except (asyncio.IncompleteReadError, TimeoutError, OSError):
            pass
        finally:
            self._talking -= 1
            writer.close()
