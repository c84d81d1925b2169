"""Pictures of the page, for people to look at: ``python -m tests.web.screenshots FOLDER [NAMESPACE/SYNC]``.

Shows the cluster of ``KUBECONFIG`` as it is: all Syncs, and one of them with what comes next; light, dark, and on a phone.
"""

# ruff: noqa: T201 - a script that prints

from __future__ import annotations

import asyncio
import base64
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.talking import talking
from tests.web.browser import Tab, debugging_port, program, started, tab_of

SIZES = {"light": (1280, 900), "dark": (1280, 900), "phone": (390, 844)}
QUIET_S = 1.5
"""How long a page is left alone before its picture is taken: it is drawn again when fonts and sizes have changed."""


async def picture(tab: Tab, file: Path, look: str) -> None:
    """Take a picture of what *tab* shows."""
    width, height = SIZES[look]
    await tab.tell(
        "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=look == "phone"
    )
    scheme = {"name": "prefers-color-scheme", "value": "dark" if look == "dark" else "light"}
    await tab.tell("Emulation.setEmulatedMedia", features=[scheme])
    await asyncio.sleep(QUIET_S)
    taken = await tab.tell("Page.captureScreenshot", format="png")
    await asyncio.to_thread(file.write_bytes, base64.b64decode(taken["data"]))
    print(file)


async def pictures(folder: Path, address: str, port: int, sync: str) -> None:
    """Take all pictures of the page at *address* with the browser that listens at *port*."""
    origin = address.partition("/start")[0]
    async with tab_of(port) as tab:
        await tab.open(address)
        await tab.until("document.querySelector('main .row a') !== null")
        for look in SIZES:
            await picture(tab, folder / f"syncs-{look}.png", look)
        sync = sync or await tab.value(
            "new URL(document.querySelector('main .row a[href^=\"/syncs/\"]').href).pathname.slice(7)"
        )
        pages = {"sync": ("", ".node"), "plan": ("/plan", ".said")}
        for name, (below, shown) in pages.items():
            await tab.open(f"{origin}/syncs/{sync}{below}")
            await tab.until(
                f"location.pathname.endsWith('{sync}{below}') && document.querySelector('main {shown}') !== null"
            )
            for look in SIZES:
                await picture(tab, folder / f"{name}-{look}.png", look)


def main(folder: str, sync: str = "") -> int:
    """Take the pictures; return the exit status."""
    if not program():
        print("no browser is installed (hint: apt-get install chromium)", file=sys.stderr)
        return 2
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    command = [str(Path(sys.executable).with_name("kubectl-reconcile")), "ui", "--no-browser"]
    with (
        talking(command, stdout=subprocess.PIPE) as page,
        tempfile.TemporaryDirectory() as things,
        started(things),
    ):
        address = page.stdout.readline().strip()
        if not address:
            return 1
        asyncio.run(pictures(place, address, debugging_port(things), sync))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
