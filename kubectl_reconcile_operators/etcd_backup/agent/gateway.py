"""How etcd is asked for a snapshot, by the JSON gateway of its client port.

An endpoint that is down doesn't count as long as another one answers. A member *will do* if it confirms with a majority that it has all that was
acknowledged; the leader is asked last. Where no majority is left, the member with the highest revision has to do, and the result says so.
"""

from __future__ import annotations

import base64
import binascii
import http.client
import json
import ssl
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

_ASK_S, _STREAM_S = 5.0, 30.0
_LINE_MAX = 16 << 20


class GatewayError(Exception):
    """A member doesn't answer, or refuses; the message names it."""


@dataclass(frozen=True, slots=True)
class AnsweringMember:
    """A member that answers. *is_sure* says that a majority has confirmed that it has all that was acknowledged."""

    endpoint: str
    id: int
    revision: int
    version: str
    size: int
    is_leader: bool
    is_learner: bool = False
    cluster: int = 0
    is_sure: bool = False


@dataclass(frozen=True, slots=True)
class Gateway:
    """The members of one etcd. *tls* is None where they talk plainly."""

    endpoints: Sequence[str]
    tls: ssl.SSLContext | None = None

    def members(self) -> tuple[list[AnsweringMember], list[str]]:
        """Return who answers, in the order in which they are to be asked for a snapshot, and why the others don't."""
        with ThreadPoolExecutor(len(self.endpoints)) as pool:
            answers = list(pool.map(self._look, self.endpoints))
        found = [each for each in answers if isinstance(each, AnsweringMember) and not each.is_learner]
        return in_order(found), [str(each) for each in answers if isinstance(each, GatewayError)]

    def _look(self, endpoint: str) -> AnsweringMember | GatewayError:
        try:
            status = self._ask(endpoint, "/v3/maintenance/status", {})
        except GatewayError as error:
            return error
        header: Mapping[str, Any] = status.get("header") or {}
        member = AnsweringMember(
            endpoint=endpoint,
            id=int(header.get("member_id") or 0),
            revision=int(header.get("revision") or 0),
            version=str(status.get("version") or ""),
            size=int(status.get("dbSize") or 0),
            is_leader=status.get("leader") == header.get("member_id"),
            is_learner=bool(status.get("isLearner")),
            cluster=int(header.get("cluster_id") or 0),
        )
        try:  # a read that a majority confirms; that there is no key of this name doesn't matter
            read = self._ask(endpoint, "/v3/kv/range", {"key": "AA==", "count_only": True})
        except GatewayError:
            return member
        return replace(member, revision=int((read.get("header") or {}).get("revision") or 0), is_sure=True)

    def snapshot(self, endpoint: str) -> Iterator[bytes]:
        """Yield the snapshot of a member, part by part.

        Raises:
            GatewayError: it breaks off.
        """
        connection = self._connect(endpoint, _STREAM_S)
        try:
            connection.request("POST", "/v3/maintenance/snapshot", "{}", {"Content-Type": "application/json"})
            answer = connection.getresponse()
            if answer.status != http.client.OK:
                raise GatewayError(f"{endpoint}: answers {answer.status}: {_said(answer.read(2000))}")
            yield from _parts(endpoint, answer)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise GatewayError(f"{endpoint}: {str(error) or type(error).__name__}") from error
        finally:
            connection.close()

    def _ask(self, endpoint: str, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        connection = self._connect(endpoint, _ASK_S)
        try:
            connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            content = answer.read(_LINE_MAX)
            if answer.status != http.client.OK:
                raise GatewayError(f"{endpoint}: answers {answer.status}: {_said(content)}")
            found = json.loads(content)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise GatewayError(f"{endpoint}: {str(error) or type(error).__name__}") from error
        finally:
            connection.close()
        if not isinstance(found, Mapping):
            raise GatewayError(f"{endpoint}: the answer isn't from etcd")
        return found

    def _connect(self, endpoint: str, timeout_s: float) -> http.client.HTTPConnection:
        at = urlsplit(endpoint)
        host, port = at.hostname or "", at.port or 2379
        if at.scheme == "https":
            return http.client.HTTPSConnection(host, port, timeout=timeout_s, context=self.tls)
        return http.client.HTTPConnection(host, port, timeout=timeout_s)


def in_order(members: Sequence[AnsweringMember]) -> list[AnsweringMember]:
    """Return *members* in the order in which they are asked for a snapshot.

    Those that are sure to have all that was acknowledged come first, the leader last of them: it has enough to do. Of those that aren't sure, the one with
    the highest revision comes first.
    """
    return sorted(
        members,
        key=lambda each: (
            not each.is_sure,
            (each.is_leader, -each.revision) if each.is_sure else (False, -each.revision),
            each.is_leader,
            each.endpoint,
        ),
    )


def _parts(endpoint: str, answer: http.client.HTTPResponse) -> Iterator[bytes]:
    left = -1
    while line := answer.readline(_LINE_MAX):
        found = json.loads(line)
        if found.get("error"):
            raise GatewayError(f"{endpoint}: stops with an error: {_said(line)}")
        part: Mapping[str, Any] = found.get("result") or {}
        left = int(part.get("remaining_bytes") or 0)
        try:
            yield base64.b64decode(part.get("blob") or "", validate=True)
        except binascii.Error as error:
            raise GatewayError(f"{endpoint}: sends invalid base64") from error
    if left != 0:
        raise GatewayError(f"{endpoint}: the snapshot is incomplete")


def _said(content: bytes) -> str:
    try:
        found = json.loads(content)
        error = found.get("error")
        said = error.get("message") if isinstance(error, Mapping) else found.get("message") or error
        return str(said)[:300]
    except (ValueError, AttributeError):
        return content[:200].decode(errors="replace")


def client_tls(folder: str) -> ssl.SSLContext:
    """Return TLS by ``ca.crt``, ``tls.crt`` and ``tls.key`` of a folder: that authority alone is trusted."""
    context = ssl.create_default_context(cafile=f"{folder}/ca.crt")
    context.load_cert_chain(f"{folder}/tls.crt", f"{folder}/tls.key")
    return context
