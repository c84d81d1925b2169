"""PostgreSQL's protocol, version 3.0, as far as a superuser needs it who asks in text: messages, and SCRAM-SHA-256.

Text is always quoted by `literal` and `identifier`; a session must have ``standard_conforming_strings`` on.

Pure: bytes and text in, bytes and text out. Nonces and salts are given.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_PROTOCOL = 196_608  # 3.0
_TLS = 80_877_103
_MESSAGE_MAX = 1 << 20
_MECHANISM = b"SCRAM-SHA-256"
_ITERATIONS = 4096
ROUNDS_MAX = 100_000
"""How often a server may have a password hashed: each round is work for us, and nobody but the server says how many there are."""
_SCHEME = "SCRAM-SHA-256"


class ProtocolError(Exception):
    """A server says what nobody who speaks PostgreSQL's protocol would, or isn't who it says it is."""


class PostgresError(Exception):
    """A server refuses; *code* is its SQLSTATE."""

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code


def literal(text: str) -> str:
    """Return *text* as a string in SQL."""
    return "'" + text.replace("\0", "").replace("'", "''") + "'"


def identifier(text: str) -> str:
    """Return *text* as a name in SQL."""
    return '"' + text.replace("\0", "").replace('"', '""') + '"'


# --- messages -------------------------------------------------------------------------------------


def startup(parameters: Mapping[str, str]) -> bytes:
    """Return the message that begins a session."""
    pairs = b"".join(_text(part) for pair in parameters.items() for part in pair)
    return _sized(_PROTOCOL.to_bytes(4) + pairs + b"\0")


def tls_request() -> bytes:
    """Return the message that asks whether TLS is offered; the answer is one letter, S where it is."""
    return _sized(_TLS.to_bytes(4))


def query(sql: str) -> bytes:
    """Return the message that asks."""
    return b"Q" + _sized(_text(sql))


def sasl_first(payload: bytes) -> bytes:
    """Return the first message of a SASL exchange."""
    return b"p" + _sized(_MECHANISM + b"\0" + len(payload).to_bytes(4) + payload)


def sasl_next(payload: bytes) -> bytes:
    """Return a later message of a SASL exchange."""
    return b"p" + _sized(payload)


def _sized(content: bytes) -> bytes:
    return (len(content) + 4).to_bytes(4) + content


def _text(text: str) -> bytes:
    return text.encode() + b"\0"


@dataclass(frozen=True, slots=True)
class ServerMessage:
    """What a server sent: a letter that says what it is, and the rest."""

    kind: str
    payload: bytes

    @property
    def number(self) -> int:
        """The number that the payload begins with."""
        return int.from_bytes(self.payload[:4])

    def error(self) -> PostgresError:
        """Return the error that the message tells of."""
        parts = (part.decode(errors="replace") for part in self.payload.split(b"\0") if part)
        fields = {part[0]: part[1:] for part in parts}
        detail = f" ({fields['D']})" if fields.get("D") else ""
        return PostgresError(f"{fields.get('M', 'it refuses')}{detail}", fields.get("C", ""))

    def row(self) -> tuple[str | None, ...]:
        """Return the values of a row.

        Raises:
            ProtocolError: it has fewer than it says.
        """
        return tuple(_values(self.payload))


def _values(payload: bytes) -> Iterator[str | None]:
    at = 2
    for _ in range(int.from_bytes(payload[:2])):
        length = int.from_bytes(payload[at : at + 4], signed=True)
        at += 4
        if at + max(length, 0) > len(payload):
            raise ProtocolError("a row of its answer is cut off")
        if length < 0:
            yield None
            continue
        yield payload[at : at + length].decode(errors="replace")
        at += length


def taken(buffer: bytearray) -> ServerMessage | None:
    """Take the first whole message out of *buffer*, None where there is none yet.

    Raises:
        ProtocolError: what is there is no message.
    """
    if len(buffer) < 5:
        return None
    length = int.from_bytes(buffer[1:5])
    if not 4 <= length <= _MESSAGE_MAX:
        raise ProtocolError("it doesn't speak PostgreSQL's protocol")
    if len(buffer) < length + 1:
        return None
    found = ServerMessage(chr(buffer[0]), bytes(buffer[5 : length + 1]))
    del buffer[: length + 1]
    return found


# --- SCRAM ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Proof:
    """The client's side of one SCRAM exchange, which proves that both sides know *password* without telling it."""

    password: str
    nonce: str

    def first(self) -> bytes:
        """Return what the client says first."""
        return f"n,,{self._bare}".encode()

    def proved(self, challenge: bytes) -> Proved:
        """Return what the client says to a challenge; that takes up to a tenth of a second of work.

        Raises:
            ProtocolError: the challenge is none, or takes more work than `ROUNDS_MAX`.
        """
        said, salt, rounds = self._challenged(challenge)
        salted = _salted(self.password, salt, rounds)
        unproved = f"c=biws,r={said['r']}"
        about = f"{self._bare},{challenge.decode()},{unproved}".encode()
        key = _hmac(salted, b"Client Key")
        signature = _hmac(hashlib.sha256(key).digest(), about)
        shown = bytes(one ^ other for one, other in zip(key, signature, strict=True))
        expected = _hmac(_hmac(salted, b"Server Key"), about)
        return Proved(f"{unproved},p={_base64(shown)}".encode(), _base64(expected))

    @property
    def _bare(self) -> str:
        return f"n=,r={self.nonce}"

    def _challenged(self, challenge: bytes) -> tuple[dict[str, str], bytes, int]:
        said = _fields(challenge)
        try:
            salt, rounds = base64.b64decode(said["s"], validate=True), int(said["i"])
        except (KeyError, ValueError) as error:
            raise ProtocolError("its challenge isn't valid") from error
        if not challenge.isascii() or not said.get("r", "").startswith(self.nonce) or rounds < 1:
            raise ProtocolError("its challenge isn't valid")
        if rounds > ROUNDS_MAX:
            raise ProtocolError(
                f"its challenge takes {rounds} rounds of hashing, more than {ROUNDS_MAX} (hint: set the password again, with a smaller scram_iterations)"
            )
        return said, salt, rounds


@dataclass(frozen=True, slots=True)
class Proved:
    """The client's answer to a challenge: *final* is told to the server, *expected* is what only a server can say that knows the password too."""

    final: bytes
    expected: str

    def check(self, answer: bytes) -> None:
        """Make sure that the server knows the password too.

        Raises:
            ProtocolError: it doesn't.
        """
        if not hmac.compare_digest(_fields(answer).get("v", "").encode(), self.expected.encode()):
            raise ProtocolError("it doesn't know the password that it is asked to check")


def verifier(password: str, salt: bytes) -> str:
    """Return what a server stores of a password: enough to check it, not enough to know it."""
    return _verifier(password, salt, _ITERATIONS)


def is_verifier_of(stored: str, password: str) -> bool:
    """Tell whether a server that stores *stored* lets *password* in; that takes up to a tenth of a second of work.

    One that took more rounds than `ROUNDS_MAX` counts as another password's: whether it is this one's isn't found out.
    """
    scheme, _, rest = stored.partition("$")
    rounds, _, salt = rest.partition("$")[0].partition(":")
    if scheme != _SCHEME or not rounds.isdecimal() or len(rounds) > 9 or not 1 <= int(rounds) <= ROUNDS_MAX:
        return False
    try:
        found = _verifier(password, base64.b64decode(salt, validate=True), int(rounds))
    except ValueError:
        return False
    return hmac.compare_digest(found.encode(), stored.encode())


def _verifier(password: str, salt: bytes, rounds: int) -> str:
    salted = _salted(password, salt, rounds)
    stored = hashlib.sha256(_hmac(salted, b"Client Key")).digest()
    keys = f"{_base64(stored)}:{_base64(_hmac(salted, b'Server Key'))}"
    return f"{_SCHEME}${rounds}:{_base64(salt)}${keys}"


def _salted(password: str, salt: bytes, rounds: int) -> bytes:
    return hashlib.pbkdf2_hmac("sha256", password.encode(), salt, rounds)


def _hmac(key: bytes, content: bytes) -> bytes:
    return hmac.digest(key, content, "sha256")


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _fields(said: bytes) -> dict[str, str]:
    pairs = (part.partition("=") for part in said.decode(errors="replace").split(","))
    return {key: value for key, _, value in pairs}
