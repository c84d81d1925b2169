"""The nodelet as a program: ``python -m kubectl_reconcile.sandbox.pods PORT``, in the folder of a sandbox."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from pathlib import Path

from kubectl_reconcile.sandbox.components import Layout
from kubectl_reconcile.sandbox.pods.api import Api
from kubectl_reconcile.sandbox.pods.nodelet import Folders, Nodelet
from kubectl_reconcile.sandbox.pods.served.kubelet import serve


async def _run(port: int, folder: Path) -> None:
    layout = Layout(folder)
    async with Api(layout.kubeconfig) as api:
        nodelet = Nodelet(api, Folders(folder), os.environ, port)
        async with serve(nodelet, port, layout.authority):
            await nodelet.run()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("aiohttp.access").setLevel(logging.WARNING)
    asyncio.run(_run(int(sys.argv[1]), Path.cwd()))
