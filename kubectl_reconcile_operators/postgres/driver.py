"""How servers are asked and told: the only file of the module that does I/O.

The superuser logs in with the password of its Secret, by SCRAM, in sessions that can't write while observing. Passwords reach a server as
verifiers alone, so that none is in its log. Facts hold neither: of a password they say whether it is the one of its Secret.

Facts: ``secrets`` by name (ok, absent, or what is wrong with it); ``pods`` by name (uid, recovery, system, major, version, timeline, checkpointed (the timeline of the last checkpoint), synchronous (whom it waits for), hba (the digest of the file that says who gets in), checkpoint (where the last one stands, of one that takes writes), tls (whether it is on, whether the pod has seen the Secret, whether that has changed since it was read, and otherwise whether it is the one that is shown), full (whether there is no room left on its volume), around (how far its log goes, to the 256 MiB below), settings, unloaded (whether these have changed since they were read),
restarts, pending, error);
``writable``, the instances that take writes, in one line, without those that are to end where there are others; of the first of these, ``roles`` and ``databases`` so far as the spec names them, ``followers`` (who streams
from it, and how far behind, coarsely), replication ``slots``, and ``forks``, where its log left each timeline before its own. What changes all the time, such as positions in the log, isn't
among them, except of standbys that follow nobody: how far the log of each goes (lsn), and where it was ended in order, if it was (closed); and while nobody takes writes, whether it may go further yet (receives): more comes, or
after a restart not all that is on its volume has been read again.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from kubectl_reconcile.module_api import Action, Context, Facts, Io, Manifest, SilentPodError, is_alive
from kubectl_reconcile_operators.certificates.worth import password_worth
from kubectl_reconcile_operators.postgres.access.driver import offer_tls, shows
from kubectl_reconcile_operators.postgres.children import PORT
from kubectl_reconcile_operators.postgres.server.protocol import (
    PostgresError,
    Proof,
    ProtocolError,
    identifier,
    is_verifier_of,
    literal,
    verifier,
)
from kubectl_reconcile_operators.postgres.server.questions import (
    ACCESS,
    ACTING,
    BLOCKS,
    BLOCKS_TO_TAKE_OVER,
    DISK_FULL,
    INSTANCE,
    INSTANCE_SHAPE,
    LOG_END,
    LOG_NAME,
    LOOKING,
    MOVING,
    NO_SESSION,
    REWINDING,
    ROOM,
    TLS_STALE,
    TLS_THERE,
    WITHIN,
    WITHIN_SHAPE,
)
from kubectl_reconcile_operators.postgres.server.session import PostgresSession, answer_of
from kubectl_reconcile_operators.postgres.server.wal import TAIL, closed_at
from kubectl_reconcile_operators.postgres.situation import LAG_LEAST, around, lsn_of, lsn_text
from kubectl_reconcile_operators.postgres.spec import (
    SUPERUSER,
    MyDatabaseSpec,
    copied_by,
    database_spec,
    parts_of,
    secret_of,
)
from kubectl_reconcile_operators.postgres.steps import ABSENT, DECISIONS, OK, Do

_CONFIRM_TRIES, _CONFIRM_S = 20, 0.2


# --- looking --------------------------------------------------------------------------------------


async def observe(cr: Manifest, io: Io) -> Facts:
    """Return what the servers say, each asked at the same time, and what Secrets hold."""
    spec, ctx = database_spec(cr), Context("", "mydatabase", cr)
    users = {secret_of(ctx, each): each for each in spec.roles}
    held = await _passwords(io, (secret_of(ctx, SUPERUSER), *users, *filter(None, (copied_by(cr),))))
    pods = [pod for pod in io.owned.of("Pod") if is_alive(pod) and (pod.get("status") or {}).get("podIP")]
    password = held[secret_of(ctx, SUPERUSER)]
    names = [pod["metadata"]["name"] for pod in pods]
    question = INSTANCE.format(names=", ".join(map(literal, spec.parameters)), files=TLS_THERE, changed=TLS_STALE)
    looks = (_look(io, name, password, question) for name in names)
    answers = dict(zip(names, await asyncio.gather(*looks), strict=True))
    going = {pod["metadata"]["name"] for pod in pods if pod["metadata"].get("deletionTimestamp")}
    writable = sorted(name for name, each in answers.items() if each.get("recovery") is False)
    writable = [name for name in writable if name not in going] or writable
    within = await _within(io, spec, writable[0], password) if writable else {}
    if writable:
        answers = {name: _at_rest(name, each, within["followers"]) for name, each in answers.items()}
    known = {user: held[name] for name, user in users.items()}
    return {
        "secrets": {**{name: _worth(value) for name, value in held.items()}, **await _certificate(io, spec)},
        "pods": {pod["metadata"]["name"]: {"uid": pod["metadata"]["uid"], **answers[pod["metadata"]["name"]]} for pod in pods},
        "writable": ",".join(writable),
        "roles": await asyncio.to_thread(_roles, within.get("roles") or {}, known),
        "databases": within.get("databases") or {},
        "followers": {name: _follower(each) for name, each in (within.get("followers") or {}).items()},
        "slots": within.get("slots") or {},
        "forks": within.get("forks") or {},
    }  # fmt: skip


def _at_rest(name: str, answer: Mapping[str, Any], followers: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a server says without what changes all the time: how far its log goes stays where it follows nobody."""
    moving = MOVING if name in followers or not answer.get("recovery") else MOVING[1:]
    return {key: value for key, value in answer.items() if key not in moving}


async def _passwords(io: Io, names: tuple[str, ...]) -> dict[str, str | None]:
    """Return the password of each Secret: None where there is no Secret, empty where it holds none."""
    found = await asyncio.gather(*(io.secret(name) for name in names))
    return {
        name: None if values is None else values.get("password", "") for name, values in zip(names, found, strict=True)
    }


async def _certificate(io: Io, spec: MyDatabaseSpec) -> dict[str, str]:
    """Return what the Secret with the certificate is worth, if there is to be one."""
    if spec.tls is None:
        return {}
    values = await io.secret(spec.tls.secret_name)
    if values is None:
        return {spec.tls.secret_name: ABSENT}
    from kubectl_reconcile_operators.certificates.keys.given import tls_worth  # noqa: PLC0415 - cryptography is loaded where it is needed

    return {spec.tls.secret_name: await asyncio.to_thread(tls_worth, values, datetime.now(UTC))}


def _worth(password: str | None) -> str:
    return ABSENT if password is None else password_worth({"password": password})


def _roles(roles: Mapping[str, Any], passwords: Mapping[str, str | None]) -> dict[str, Any]:
    """Return what is told of roles; a server can make that much work, so that it isn't done where others wait."""
    return {name: _role(role, passwords.get(name)) for name, role in roles.items() if name in passwords}


def _role(role: Mapping[str, Any], password: str | None) -> dict[str, Any]:
    """Return what is told of a role: whether the password of its Secret is its own, and what it may."""
    stored = str(role.get("verifier") or "")
    matches = bool(password) and is_verifier_of(stored, password or "")
    return {**{name: value for name, value in role.items() if name != "verifier"}, "password": matches}


def _follower(each: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is told of a standby: its lag as a power of two, nothing below 16 MiB."""
    lag = int(each.get("lag") or 0)
    return {"state": str(each.get("state") or ""), "lagBytes": 0 if lag < LAG_LEAST else 1 << lag.bit_length()}


async def _look(io: Io, name: str, password: str | None, question: str) -> dict[str, Any]:
    """Return what a server says of itself; ``error`` where it says nothing."""
    try:
        async with _session(io, name, password, LOOKING) as session:
            answer = answer_of(await session.ask(question), INSTANCE_SHAPE)
            answer["around"] = around(answer.pop("flushed") or answer["lsn"])
            closed = {"closed": await _closed(session, answer)} if answer["recovery"] else {}
            full, known = await _is_full(session, answer), answer["tls"]
            # Last of all: the session may be lost by this, see `shows`.
            shown = {"shown": await shows(session, io, name)} if known.get("on") and not known.get("stale") else {}
            return {**answer, **closed, "tls": {**known, **shown}, "full": full, "error": ""}
    except (SilentPodError, PostgresError, ProtocolError) as error:
        return {
            "full": _says_full(error),
            "error": f"PostgreSQL: {error}" if not isinstance(error, SilentPodError) else str(error),
        }


async def _is_full(session: PostgresSession, answer: Mapping[str, Any]) -> bool:
    """Tell whether there is no room left where a server has its data."""
    may_take_over = answer["recovery"] and not answer["receives"]
    try:
        await session.ask(ROOM.format(blocks=BLOCKS_TO_TAKE_OVER if may_take_over else BLOCKS))
    except PostgresError as error:
        return _says_full(error)
    return False


def _says_full(error: Exception) -> bool:
    return isinstance(error, PostgresError) and (error.code == DISK_FULL or NO_SESSION in str(error))


async def _closed(session: PostgresSession, answer: Mapping[str, Any]) -> str:
    """Return where the log that a standby holds was ended in order, empty where it wasn't, more comes, or it isn't known."""
    end = lsn_of(answer["lsn"])
    if answer["receives"] or not end:
        return ""
    try:
        name = LOG_NAME.format(timeline=answer["timeline"])
        found = await session.ask(LOG_END.format(name=name, end=end, most=TAIL))
    except PostgresError:
        return ""
    at = closed_at(_bytes_of(found), end)
    return "" if at is None else lsn_text(at)


def _bytes_of(rows: Sequence[Sequence[str | None]]) -> bytes:
    """Return the bytes that a server gives as digits; none where that is anything else, or too much."""
    text = rows[0][0] if len(rows) == 1 and rows[0] else None
    if text is None or len(text) > 2 * TAIL:
        return b""
    try:
        return bytes.fromhex(text)
    except ValueError:
        return b""


async def _within(io: Io, spec: MyDatabaseSpec, name: str, password: str | None) -> Mapping[str, Any]:
    users = ", ".join(map(literal, spec.roles))
    databases = ", ".join(literal(each.name) for each in spec.databases)
    async with _session(io, name, password, LOOKING) as session:
        return answer_of(await session.ask(WITHIN.format(users=users, databases=databases)), WITHIN_SHAPE)


@asynccontextmanager
async def _session(
    io: Io, name: str, password: str | None, parameters: Mapping[str, str]
) -> AsyncIterator[PostgresSession]:
    """Lend a session of the superuser with the server of a pod.

    Raises:
        PostgresError: it lets us not in.
        ProtocolError: it speaks another language.
        SilentPodError: it doesn't answer.
    """
    told = {
        "user": SUPERUSER, "database": "postgres", "application_name": "kubectl-reconcile", "client_encoding": "UTF8",
        "standard_conforming_strings": "on", **parameters,
    }  # fmt: skip
    proof = Proof(password or "", secrets.token_urlsafe(18))
    async with io.pod(name, PORT).connect() as stream:
        yield await PostgresSession.begin(stream, told, proof, asyncio.to_thread)


# --- acting ---------------------------------------------------------------------------------------


async def act(cr: Manifest, action: Action, io: Io) -> str:
    """Carry out one step: make a Secret, or have the primary change something.

    Raises:
        PostgresError: the server refuses.
        ProtocolError: what answers is no PostgreSQL.
        SilentPodError: the server doesn't answer.
    """
    ctx, given = Context("", "mydatabase", cr), action.parameters
    if action.verb == Do.MAKE_SECRET:
        values = {
            "username": given["user"],
            "password": secrets.token_urlsafe(24),
            "host": given["host"],
            "port": str(PORT),
            **({"sslmode": str(given["sslmode"])} if given["sslmode"] else {}),
        }
        await io.make_secret(str(given["secret"]), values, ctx.labels())
        return ""
    if action.verb in DECISIONS:
        return ""  # a decision, which the next pass finds in the journal
    own = secret_of(ctx, SUPERUSER)
    password = (await _passwords(io, (own,)))[own]
    async with _session(io, str(given["instance"]), password, ACTING) as session:
        match action.verb:
            case Do.SET_USER:
                await _set_user(session, io, ctx, given)
            case Do.SET_PARAMETERS:
                await _set_parameters(session, given)
            case Do.SET_ACCESS:
                await session.ask(ACCESS.format(text=literal(str(given["hba"]))))
            case Do.SET_TLS:
                await offer_tls(session, io, str(given["instance"]))
            case Do.SET_QUORUM:
                await _set_quorum(session, str(given["setting"]))
            case Do.CONFIRM_QUORUM:
                await _confirm_quorum(session, given)
            case Do.PROMOTE:
                await _promote(session, given)
            case _:
                await session.ask(_statement(action.verb, given))
    return ""


def _statement(verb: str, given: Mapping[str, Any]) -> str:
    """Return the one statement that a simple step takes."""
    match verb:
        case Do.MAKE_DATABASE:
            return f"create database {identifier(given['database'])} owner {identifier(given['owner'])}"
        case Do.SET_OWNER:
            return f"alter database {identifier(given['database'])} owner to {identifier(given['owner'])}"
        case Do.MAKE_SLOT:
            return f"select pg_create_physical_replication_slot({literal(given['slot'])}, true)"
        case Do.DROP_SLOT:
            return f"select pg_drop_replication_slot({literal(given['slot'])})"
        case _:
            return "checkpoint"


async def _set_user(session: PostgresSession, io: Io, ctx: Context, given: Mapping[str, Any]) -> None:
    user, name = str(given["user"]), secret_of(ctx, str(given["user"]))
    password = (await _passwords(io, (name,)))[name]
    if _worth(password) != OK:
        raise PostgresError(f"Secret {name} holds no password that can be used")
    found = await session.ask(f"select rolpassword from pg_authid where rolname = {literal(user)}")  # noqa: S608 - it is quoted
    stored = found[0][0] or "" if found else ""
    if not await asyncio.to_thread(is_verifier_of, stored, password or ""):
        stored = verifier(password or "", secrets.token_bytes(16))
    options = [
        "login",
        "superuser" if given["superuser"] else "nosuperuser",
        "createdb" if given["createDatabase"] else "nocreatedb",
        "replication" if given["replication"] else "noreplication",
        f"password {literal(stored)}",
    ]
    await session.ask(f"{'alter' if found else 'create'} role {identifier(user)} {' '.join(options)}")
    if given.get("rewinds"):
        await session.ask(f"grant execute on function {', '.join(REWINDING)} to {identifier(user)}")


async def _set_quorum(session: PostgresSession, setting: str) -> None:
    await session.ask(f"alter system set synchronous_standby_names to {literal(setting)}")
    await session.ask("select pg_reload_conf()")


async def _confirm_quorum(session: PostgresSession, given: Mapping[str, Any]) -> None:
    """Make sure that the setting holds, and that enough have all that was acknowledged before it did.

    A checkpoint is written by the process that lets others know of the setting, and not before it has.
    """
    if await session.ask("select current_setting('synchronous_standby_names')") != [(given["setting"],)]:
        raise PostgresError("it isn't as it was told to be any more")
    await session.ask("checkpoint")
    position = (await session.ask("select pg_current_wal_flush_lsn()"))[0][0] or ""
    names = ", ".join(map(literal, given["names"]))
    following = (
        f"application_name = any (array[{names}]::text[]) and state = 'streaming' and flush_lsn >= {literal(position)}"
    )
    for _ in range(_CONFIRM_TRIES):
        found = await session.ask(f"select count(*) from pg_stat_replication where {following}")  # noqa: S608 - it is quoted
        if int(found[0][0] or 0) >= given["least"]:
            return
        await asyncio.sleep(_CONFIRM_S)
    raise PostgresError(f"fewer than {given['least']} replicas have everything that was written until {position}")


async def _promote(session: PostgresSession, given: Mapping[str, Any]) -> None:
    await _set_quorum(session, str(given["synchronous"]))
    for slot in map(literal, given["slots"]):
        found = f"not exists (select from pg_replication_slots where slot_name = {slot})"
        await session.ask(f"select pg_create_physical_replication_slot({slot}, true) where {found}")
    if await session.ask("select pg_promote(true, 15)") != [("t",)]:
        raise PostgresError("it was told to, and takes no writes after 15 s")


async def _set_parameters(session: PostgresSession, given: Mapping[str, Any]) -> None:
    """Set parameters, in a later second than they were last read: files have their time to the second, by which it is seen whether they were read since."""
    await session.ask("select pg_sleep_until(date_trunc('second', pg_conf_load_time()) + interval '1 s')")
    for name, value in given["set"].items():
        parts = ", ".join(literal(part) for part in parts_of(name, value)) or "''"
        await _told(session, name, f"alter system set {_parameter(name)} to {parts}")
    for name in given["reset"]:
        await _told(session, name, f"alter system reset {_parameter(name)}")
    await session.ask("select pg_reload_conf()")


async def _told(session: PostgresSession, name: str, sql: str) -> None:
    try:
        await session.ask(sql)
    except PostgresError as error:
        raise PostgresError(f".spec.parameters[{name}]: {error}", error.code) from error


def _parameter(name: str) -> str:
    return ".".join(map(identifier, name.split(".")))
