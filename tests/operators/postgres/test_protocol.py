"""PostgreSQL's protocol, held against the examples of the RFC and of the manual, and against bytes that come as they like."""

import asyncio
import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile_operators.postgres.server.protocol import (
    PostgresError,
    Proof,
    ProtocolError,
    ServerMessage,
    identifier,
    is_verifier_of,
    literal,
    taken,
    verifier,
)
from kubectl_reconcile_operators.postgres.server.session import PostgresSession, answer_of

NONCE, SALT = "rOprNGfwEbeRWgbNEkqO", "W22ZaJ0SNY7soEsUEjb6gQ=="
CHALLENGE = f"r={NONCE}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s={SALT},i=4096".encode()


class Pencil(Proof):
    """The example of RFC 7677, which names its user; PostgreSQL has it by another message, and wants none here."""

    @property
    def _bare(self):
        return f"n=user,r={self.nonce}"


def test_a_password_is_proved_as_the_rfc_does_it():
    proof = Pencil("pencil", NONCE)
    assert proof.first() == f"n,,n=user,r={NONCE}".encode()
    proved = proof.proved(CHALLENGE)
    assert proved.final.endswith(b",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    proved.check(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


BAD_CHALLENGES = {
    "another nonce": b"r=other,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
    "no salt": f"r={NONCE}x,i=4096".encode(),
    "no rounds": f"r={NONCE}x,s={SALT},i=0".encode(),
    "words": b"hello",
    "no text": f"r={NONCE}".encode() + b"\xff" + f",s={SALT},i=4096".encode(),
}


@pytest.mark.parametrize("challenge", BAD_CHALLENGES.values(), ids=BAD_CHALLENGES)
def test_a_challenge_that_is_none_gets_no_proof(challenge):
    with pytest.raises(ProtocolError, match="its challenge isn't valid"):
        Proof("pencil", NONCE).proved(challenge)


def test_a_challenge_that_takes_work_without_end_gets_no_proof_and_is_told():
    with pytest.raises(ProtocolError, match=r"takes 100001 rounds of hashing, more than 100000 \(hint: "):
        Proof("pencil", NONCE).proved(f"r={NONCE}x,s={SALT},i=100001".encode())


def test_a_server_that_does_not_know_the_password_is_found_out():
    with pytest.raises(ProtocolError, match="doesn't know the password"):
        Pencil("pencil", NONCE).proved(CHALLENGE).check(b"v=AAAA")


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1), st.binary(min_size=1, max_size=20))
def test_a_verifier_is_that_of_its_password_alone(password, salt):
    stored = verifier(password, salt)
    assert stored.startswith("SCRAM-SHA-256$4096:")
    assert is_verifier_of(stored, password)
    assert not is_verifier_of(stored, password + "x")
    assert not is_verifier_of(stored.replace("SCRAM", "CRAM"), password)


NO_VERIFIERS = ["", "md5abc", "SCRAM-SHA-256$x:y$z:w", "SCRAM-SHA-256$4096:###$a:b", "SCRAM-SHA-256$0:YQ==$a:b"]
NO_VERIFIERS += [
    f"SCRAM-SHA-256${rounds}:YQ==$a:b" for rounds in ("2147483647", "9" * 5000)
]  # years, if they were counted


@pytest.mark.parametrize("stored", NO_VERIFIERS, ids=range(len(NO_VERIFIERS)))
def test_what_is_no_verifier_is_nobodys(stored):
    assert not is_verifier_of(stored, "x")


def test_text_in_sql_stays_text():
    assert literal("it's; drop") == "'it''s; drop'"
    assert identifier('a"b') == '"a""b"'
    assert literal("a\0b") == "'ab'"


# --- sessions -------------------------------------------------------------------------------------


def said(kind, payload):
    return kind.encode() + (len(payload) + 4).to_bytes(4) + payload


def row(*values):
    cells = b"".join(b"\xff\xff\xff\xff" if each is None else len(each).to_bytes(4) + each for each in values)
    return said("D", len(values).to_bytes(2) + cells)


READY = said("Z", b"I")


class Talk:
    """A server that says what it was given, in pieces of *size*, and notes what it is told."""

    def __init__(self, *messages, size=7):
        whole = b"".join(messages)
        self.left, self.told = [whole[at : at + size] for at in range(0, len(whole), size)], []

    async def read(self, _most):
        return self.left.pop(0)

    async def write(self, content):
        self.told.append(content)


def begin(talk):
    return PostgresSession.begin(talk, {"user": "postgres"}, Pencil("pencil", NONCE), asyncio.to_thread)


def begun(*messages, size=7):
    return asyncio.run(begin(Talk(*messages, size=size)))


AUTHENTICATED = (
    said("R", (10).to_bytes(4) + b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0"),
    said("R", (11).to_bytes(4) + CHALLENGE),
    said("R", (12).to_bytes(4) + b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="),
    said("R", (0).to_bytes(4)),
)


@pytest.mark.parametrize("size", [1, 5, 1000])
def test_a_session_begins_and_answers_however_its_bytes_come(size):
    talk = Talk(
        *AUTHENTICATED, said("S", b"a\0b\0"), said("K", b"12345678"), READY,
        said("N", b"SNOTICE\0\0"), said("T", b"\0\0"), row(b"1", None), row("ä".encode(), b""), said("C", b"SELECT 2\0"), READY, size=size,
    )  # fmt: skip

    async def ask():
        session = await begin(talk)
        return await session.ask("select 1")

    assert asyncio.run(ask()) == [("1", None), ("ä", "")]
    assert talk.told[0] == b"\0\0\0\x17\0\x03\0\0user\0postgres\0\0"
    assert talk.told[-1] == b"Q\0\0\0\x0dselect 1\0"
    assert not any(b"pencil" in each for each in talk.told)


def test_what_a_server_refuses_is_told_in_its_words():
    refusal = said("E", b'SFATAL\0C28P01\0Mpassword authentication failed for user "postgres"\0\0')
    with pytest.raises(PostgresError, match='password authentication failed for user "postgres"') as told:
        begun(AUTHENTICATED[0], AUTHENTICATED[1], refusal)
    assert told.value.code == "28P01"


def test_a_refusal_in_bytes_that_are_no_text_is_told_all_the_same():
    with pytest.raises(PostgresError, match="no\ufffd way"):
        begun(said("E", b"\xffodd\0Mno\xff way\0\0"))


SHORT_ROWS = {
    "more values than there are": b"\xff\xff",
    "a value that is longer than the row": b"\0\1" + (99).to_bytes(4) + b"short",
    "no number of values but one": b"\0\1\0",
}


@pytest.mark.parametrize("payload", SHORT_ROWS.values(), ids=SHORT_ROWS)
def test_a_row_that_is_shorter_than_it_says_is_refused(payload):
    with pytest.raises(ProtocolError, match="cut off"):
        ServerMessage("D", payload).row()


IMPOSTORS = {
    "proves something before it asks": said("R", (12).to_bytes(4) + b"v=AAAA"),
    "wants the password in clear": said("R", (3).to_bytes(4)),
    "wants it as MD5": said("R", (5).to_bytes(4) + b"salt"),
    "lets in whoever comes": said("R", (0).to_bytes(4)),
    "knows another mechanism alone": said("R", (10).to_bytes(4) + b"OTHER\0\0"),
    "speaks HTTP": b"HTTP/1.1 400 Bad Request\r\n\r\n",
}


@pytest.mark.parametrize("message", IMPOSTORS.values(), ids=IMPOSTORS)
def test_nobody_is_told_a_password_who_does_not_ask_for_it_by_scram(message):
    with pytest.raises(ProtocolError):
        begun(message, size=1000)


def test_an_error_after_a_question_leaves_the_session_of_use():
    talk = Talk(*AUTHENTICATED, READY, said("E", b"C42601\0Msyntax error\0Dno such thing\0\0"), READY, row(b"1"), READY)

    async def ask():
        session = await begin(talk)
        with pytest.raises(PostgresError, match=r"syntax error \(no such thing\)"):
            await session.ask("selct")
        return await session.ask("select 1")

    assert asyncio.run(ask()) == [("1",)]


@given(st.binary(max_size=60))
def test_whatever_comes_is_a_message_or_not_yet_or_refused(content):
    buffer = bytearray(content)
    try:
        found = taken(buffer)
    except ProtocolError:
        return
    assert found is None or len(found.payload) + 5 + len(buffer) == len(content)


def test_a_salt_is_kept_as_the_server_says():
    assert base64.b64decode(SALT)
    assert SALT in verifier("x", base64.b64decode(SALT))


ODD_ANSWERS = {
    "nothing": [],
    "a row of nothing": [()],
    "null": [(None,)],
    "no JSON": [("much",)],
    "brackets without end": [("[" * 100_000,)],
    "a list": [("[1]",)],
    "another type": [('{"recovery": "yes"}',)],
}


@pytest.mark.parametrize("rows", ODD_ANSWERS.values(), ids=ODD_ANSWERS)
def test_an_answer_of_another_shape_is_refused(rows):
    with pytest.raises(ProtocolError, match="isn't what was asked for"):
        answer_of(rows, {"recovery": bool})


def test_an_answer_of_the_shape_that_was_asked_for_is_read():
    assert answer_of([('{"recovery": true, "more": 1}',)], {"recovery": bool}) == {"recovery": True, "more": 1}
