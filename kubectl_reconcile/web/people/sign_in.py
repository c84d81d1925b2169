"""The page where people sign in and out: a form, without a script."""

from __future__ import annotations

import html
import re

from aiohttp import web

_WITHIN = re.compile(r"/(?![/\\])[\x21-\x7e]{0,2000}", re.ASCII)
"""A path of this site, and nothing that a browser could take for another site's."""

_FRAME = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Sign in: kubectl reconcile</title>
<link rel="icon" href="/assets/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/assets/page.css">
</head>
<body>
<main id="main" class="sign-in">
<h1>kubectl reconcile</h1>
{content}
</main>
</body>
</html>
"""
_FORM = """{wrong}
<form method="post" action="/start">
<input type="hidden" name="next" value="{onward}">
<label for="token">Token of the cluster</label>
<input id="token" name="token" type="password" autocomplete="off" spellcheck="false" required autofocus{described}>
<button class="button">Sign in</button>
</form>
<p class="aside">You see and do here what this token may. It stays in the daemon's memory until you sign out, for twelve hours at most.</p>
<p class="aside">A ServiceAccount's token: <code>kubectl create token NAME -n NAMESPACE</code></p>
"""
_KNOWN = """<p>You are signed in as <b>{name}</b>.</p>
<p><a class="button" href="{onward}">Go on</a></p>
<form method="post" action="/start"><button name="leave" value="yes">Sign out</button></form>
"""


def onward(text: str) -> str:
    """Return where somebody goes once they are in: *text* where it is a path of this site, else all Syncs."""
    return text if _WITHIN.fullmatch(text) and not text.startswith("/start") else "/"


def form(onward: str, name: str = "", *, wrong: str = "", status: int = 200) -> web.Response:
    """Return the form that leads *onward*, saying what was *wrong*; whoever has a *name* already may sign out."""
    said = f'<p class="note" id="wrong" role="alert">{html.escape(wrong)}</p>' if wrong else ""
    parts = {"onward": html.escape(onward), "name": html.escape(name), "wrong": said}
    described = ' aria-describedby="wrong" aria-invalid="true"' if wrong else ""
    content = (_KNOWN if name else _FORM).format(**parts, described=described)
    text = _FRAME.format(content=content)
    # Without a referrer policy of its own, browsers send the form with the Origin null.
    return web.Response(status=status, text=text, content_type="text/html", headers={"Referrer-Policy": "same-origin"})
