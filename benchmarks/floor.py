"""The floor under every sync: the same PATCHes over one client, 32 at a time, and nothing else.

    python -m benchmarks.floor FOLDER

No plan, no look at what is there, no pruning, no report: what the API server needs for the writes alone.
"""

# ruff: noqa: T201 - a script that prints

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import orjson

from kubectl_reconcile.cluster.access import Access
from kubectl_reconcile.cluster.client import Client

AT_ONCE = 32


async def apply(manifests: list[dict[str, Any]]) -> int:
    """Apply *manifests*; return how many there were."""
    slots = asyncio.Semaphore(AT_ONCE)
    async with await Client.connect(Access()) as client:

        async def one(manifest: dict[str, Any]) -> None:
            async with slots:
                await client.apply(path_of(manifest), manifest, manager="floor", force=True)

        await asyncio.gather(*map(one, manifests))
    return len(manifests)


def path_of(manifest: dict[str, Any]) -> str:
    """Return where an object lives; the kinds of the workloads have regular plurals."""
    metadata, api_version = manifest["metadata"], manifest["apiVersion"]
    root = "/apis" if "/" in api_version else "/api"
    return f"{root}/{api_version}/namespaces/{metadata['namespace']}/{manifest['kind'].lower()}s/{metadata['name']}"


if __name__ == "__main__":
    files = sorted(Path(sys.argv[1]).iterdir())
    print(f"{asyncio.run(apply([orjson.loads(file.read_bytes()) for file in files]))} applied")
