"""An SSH server that serves Git repositories, for tests."""

from __future__ import annotations

import asyncio
import shlex
import threading
from typing import Self

import asyncssh


class SshHost:
    """An SSH server in a thread that lets one key run git-upload-pack, on a free loopback port."""

    def __init__(self) -> None:
        self.connections = self.served = 0
        """How often somebody came in, and how often git-upload-pack was run."""
        self.client_key = asyncssh.generate_private_key("ssh-ed25519")
        self._host_key = asyncssh.generate_private_key("ssh-ed25519")
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self.port = 0

    def __enter__(self) -> Self:
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(200)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(200)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def known_hosts(self) -> str:
        return f"[127.0.0.1]:{self.port} {self._host_key.export_public_key().decode()}"

    async def _listen(self):
        allowed = asyncssh.import_authorized_keys(self.client_key.export_public_key().decode())
        return await asyncssh.listen(
            "127.0.0.1", 0, server_host_keys=[self._host_key], authorized_client_keys=allowed,
            process_factory=self._serve, encoding=None, server_factory=lambda: _Counting(self),
        )  # fmt: skip

    async def _end(self) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, process) -> None:
        self.served += 1
        program, folder = shlex.split(process.command)
        assert program == "git-upload-pack"
        pipe = asyncio.subprocess.PIPE
        git = await asyncio.create_subprocess_exec("git", "upload-pack", folder, stdin=pipe, stdout=pipe, stderr=pipe)
        asking = asyncio.ensure_future(pump(process.stdin, git.stdin))
        await asyncio.gather(pump(git.stdout, process.stdout), pump(git.stderr, process.stderr))
        asking.cancel()
        process.exit(await git.wait())


class _Counting(asyncssh.SSHServer):
    def __init__(self, host: SshHost) -> None:
        self._host = host

    def connection_made(self, _connection) -> None:
        self._host.connections += 1

    def begin_auth(self, username: str) -> bool:
        return True


async def pump(source, sink) -> None:
    while data := await source.read(65536):
        sink.write(data)
        await sink.drain()
    if isinstance(sink, asyncio.StreamWriter):
        sink.close()


def private(key) -> str:
    """The key as a Secret holds it."""
    return key.export_private_key().decode()
