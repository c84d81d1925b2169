"""The page for everybody: axe finds nothing on any of its pages, light and dark."""

import hashlib
import json
from pathlib import Path

import pytest

from tests.web import browser

AXE = Path(__file__).parent / "vendor" / "axe.min.js"
pytestmark = pytest.mark.skipif(
    not AXE.exists(), reason="axe is in the repository alone, and not in what is packed of it"
)
LOOKS = {"light": "{}", "dark": "{runOnly: {type: 'rule', values: ['color-contrast', 'link-in-text-block']}}"}
"""What axe is told for each look: all but the colours is the same in both."""
LONGEST = "a" * 253
FOUND = """axe.run(document, {resultTypes: ['violations'], ...OF_LOOK}).then(({violations}) => violations.flatMap(
  ({id, help, nodes}) => nodes.map(({html, failureSummary}) => `${id}: ${help}: ${html.slice(0, 200)} ${failureSummary}`)))"""

DRAWN = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


def test_axe_is_what_was_published():
    known = json.loads((AXE.parent / "vendored.json").read_text())[AXE.name]
    assert hashlib.sha256(AXE.read_bytes()).hexdigest() == known["sha256"]
    assert "MPL-2.0" in known["license"]


async def faults(tab):
    """What axe finds on the page that is shown, in each look."""
    await tab.value(AXE.read_text() + ";0")
    found = []
    for look, rules in LOOKS.items():
        features = {
            "prefers-color-scheme": look,
            "prefers-reduced-motion": "reduce",
        }  # no colour is on its way to another
        await tab.tell(
            "Emulation.setEmulatedMedia", features=[{"name": each, "value": value} for each, value in features.items()]
        )
        await tab.value(DRAWN)
        found += [f"{look}: {each}" for each in await tab.value(FOUND.replace("OF_LOOK", rules))]
    return found


async def click(tab, text, where="main"):
    await tab.until(
        f"[...document.querySelectorAll('{where} button')].some(each => each.innerText.trim() === '{text}')"
    )
    await tab.value(
        f"[...document.querySelectorAll('{where} button')].find(each => each.innerText.trim() === '{text}').click()"
    )


@pytest.fixture
async def told(followed, manifests):
    """A Sync with a bit of everything: a member, drift, a problem, something unhealthy, a commit that isn't applied, and a held deletion."""
    config_map = manifests("config_map")
    await followed.make(maxDeletes=0)
    followed.push({"a.yaml": config_map("a"), "b.yaml": config_map("b", color="red")})
    await followed.sync()
    followed.push({"a.yaml": None, "b.yaml": config_map("b", color="blue")}, "Paint it", author="Ada <ada@localhost>")
    await followed.status(
        problems=["apps/web.yaml:41: wrong"], warnings=[f"apps/x.yaml: {LONGEST}"],
        health={"counts": {"Failed": 1}, "unhealthy": [{"object": "Pod web", "health": "Failed", "since": "2026-01-01T00:00:00Z", "message": "it ends"}]},
        conditions=[{"type": "Ready", "status": "False", "reason": "Failed", "message": "x", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
    )  # fmt: skip
    return followed


async def test_axe_finds_nothing_on_any_page(tab, told):
    home, namespace = f"{tab.origin}/syncs/{told.namespace}/shop", told.namespace
    await tab.tell("Page.setBypassCSP", enabled=True)
    found = {}
    await tab.open(f"{tab.origin}/?namespace={namespace}&group=namespace")
    await tab.sees("shop", "[role=table]")
    found["all Syncs"] = await faults(tab)
    await tab.press("?")
    await tab.sees("Keys", "dialog")
    found["keys"] = await faults(tab)
    await tab.open(home)
    await tab.sees("ConfigMap/", "[role=tree]")
    found["a Sync"] = await faults(tab)
    for name in ("History", "Events", "Conditions"):
        await click(tab, name, ".tabs")
        await tab.until("!document.querySelector('.waiting')")
        found[name] = await faults(tab)
    await click(tab, "Suspend", "header.title")
    await tab.sees("left as it is", "dialog")
    found["a question"] = await faults(tab)
    for view in ("", "?view=beside"):
        await tab.open(f"{home}/plan{view}")
        await tab.sees("color: blue", ".change")
        found[f"what comes next {view}"] = await faults(tab)
    await tab.open(f"{tab.origin}/objects/ConfigMap/{namespace}/b")
    await tab.sees("color: red", "pre")
    await tab.until("!document.querySelector('.waiting')")
    found["an object"] = await faults(tab)
    await tab.open(f"{tab.origin}/syncs/{namespace}/nothing")
    await tab.sees("no Sync nothing", ".trouble")
    found["what isn't there"] = await faults(tab)
    tab.complaints.clear()  # it was asked for what isn't there
    assert {name: each for name, each in found.items() if each} == {}


async def test_axe_finds_nothing_on_the_form_where_people_sign_in(port, site):
    async with browser.tab_of(port) as tab:
        await tab.tell("Page.setBypassCSP", enabled=True)
        await tab.open(f"{site.origin}/start")
        await tab.sees("Token of the cluster", "form")
        assert await faults(tab) == []
        await tab.value(
            "document.querySelector('#token').value = 'nobody-s-token', document.querySelector('form').requestSubmit()"
        )
        await tab.sees("accept this token", "#wrong")
        assert await faults(tab) == []
