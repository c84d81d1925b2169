"""How a server is made to offer TLS, and which certificate it shows then. It does I/O, by what the driver of the module lends.

A server that refuses a certificate when it reads it again goes on with the one before, and says so in its log alone. So what it shows is compared with what its pod holds.
"""

from __future__ import annotations

import asyncio
import ssl

from kubectl_reconcile.module_api import Io, SilentPodError
from kubectl_reconcile_operators.postgres.children import PORT, TLS_FOLDER
from kubectl_reconcile_operators.postgres.server.protocol import PostgresError, literal, tls_request
from kubectl_reconcile_operators.postgres.server.session import PostgresSession

CERTIFICATE, KEY = f"{TLS_FOLDER}/tls.crt", f"{TLS_FOLDER}/tls.key"
_TRIES, _PAUSE_S = 25, 0.2


async def offer_tls(session: PostgresSession, io: Io, name: str) -> None:
    """Have a server read its certificate and offer TLS.

    Raises:
        PostgresError: it doesn't. One that offers none is told not to then, so that it is tried again.
    """
    for setting, value in (("ssl_cert_file", CERTIFICATE), ("ssl_key_file", KEY), ("ssl", "on")):
        await session.ask(f"alter system set {setting} to {literal(value)}")
    await session.ask("select pg_reload_conf()")
    held, shown = await _held(session), b""  # what is asked is asked first, see `shows`
    for _ in range(_TRIES):
        if (shown := await _shown(io, name)) and (not held or shown == held):
            return
        await asyncio.sleep(_PAUSE_S)
    if shown:
        raise PostgresError(
            ".spec.tls.secretName: the server doesn't accept the certificate, and goes on with the one before (hint: its log says why)"
        )
    await session.ask("alter system reset ssl")
    await session.ask("select pg_reload_conf()")
    raise PostgresError(".spec.tls.secretName: the server doesn't accept the certificate (hint: its log says why)")


async def shows(session: PostgresSession, io: Io, name: str) -> bool:
    """Tell whether a server that offers TLS shows the certificate that its pod holds; so it is taken to be where that isn't known.

    *session* may be lost afterwards: where connections to a pod are carried by one other, its end after a handshake may end them all.
    """
    try:
        held = await _held(session)
        shown = await _shown(io, name)
    except (SilentPodError, PostgresError, ssl.SSLError):
        return True
    return not shown or not held or shown == held


async def _held(session: PostgresSession) -> bytes:
    """Return the certificate that a server's pod holds, empty where it is none."""
    from kubectl_reconcile_operators.certificates.keys.given import PEM_MAX, binary  # noqa: PLC0415 - cryptography is loaded where it is needed

    found = await session.ask(f"select pg_read_file({literal(CERTIFICATE)}, 0, {PEM_MAX}, true)")
    return binary(found[0][0] or "")


async def _shown(io: Io, name: str) -> bytes:
    """Return the certificate that a server shows, empty where it offers no TLS. It isn't verified, only compared: nothing is said to who shows it."""
    from kubectl_reconcile_operators.certificates.keys.given import shown_on  # noqa: PLC0415 - as above

    async with io.pod(name, PORT).connect() as stream:
        await stream.write(tls_request())
        return await shown_on(stream) if await stream.read(1) == b"S" else b""
