#!/usr/bin/env python3
"""A chocolate factory with an HTTP API: the external system of the Candy module, for demo and tests.

    python examples/candy_factory.py --listen 127.0.0.1:8089 --state factory.json
    export KUBECTL_RECONCILE_SYSTEM_CANDY_FACTORY=http://127.0.0.1:8089

Each machine has a sugar setting, which is its standard until somebody sets it, a belt on which at most one bar lies, and a
bin. A bar tastes less sweet than the sugar that went into it, by the bitterness of its flavour, and only measuring it tells.
What was done stays done over restarts, if there is a state file. A request with an ``Idempotency-Key`` that was seen before gets the same answer again.

    GET    /machines/NAME            sugar, made, bar, bin
    PUT    /machines/NAME/sugar      {"sugar": 7}
    POST   /machines/NAME/bars       {"flavor": "dark"}     refused while a bar lies on the belt
    POST   /machines/NAME/bin        {"bar": "bar-3"}       disposes of the bar on the belt: for good
    POST   /machines/NAME/shipments  {"bar": "bar-3"}       ships it
    DELETE /machines/NAME            retires the machine
    GET    /log                      everything that was done, in order
    PUT    /faults                   {"rate": 0.3} or {"next": ["refuse", "lose", "slow", "stall"]}
    GET    /faults                   what of that is still to come

Faults: *refuse* answers 500 and does nothing; *lose* does it and answers 500; *slow* does it and answers after 30 s;
*stall*, which only what changes something meets, does nothing and says so after 30 s.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

BITTERNESS = {"milk": 1, "dark": 3, "hazelnut": 2}
"""How much less sweet a flavour tastes than its sugar; others don't."""
STANDARD_SUGAR = 10
FAULTS = ("refuse", "lose", "slow", "stall")
SLOW_S = 30.0


class Factory:
    """All machines. Every change is written to *state* before it is answered."""

    def __init__(self, state: Path | None = None, seed: int | None = None) -> None:
        self.lock = threading.Lock()
        self.state = state
        self.random = random.Random(seed)
        self.rate, self.next = 0.0, []
        kept = json.loads(state.read_text()) if state and state.exists() else {}
        self.machines = kept.get("machines", {})
        self.answers = kept.get("answers", {})
        self.log = kept.get("log", [])

    def fault(self, method: str) -> str:
        """What goes wrong with the next request; nothing, mostly."""
        for at, fault in enumerate(self.next):
            if fault != "stall" or method != "GET":
                return self.next.pop(at)
        return self.random.choice(FAULTS[:2]) if self.random.random() < self.rate else ""

    def do(self, method: str, path: list[str], body: dict, key: str):
        """Status and answer of one request on machines."""
        with self.lock:
            if key and key in self.answers:
                return self.answers[key]
            status, answer = self._do(method, path, body, key)
            if key and status < 300:
                self.answers[key] = [status, answer]
            if method != "GET" and status < 300 and self.state:
                text = json.dumps({"machines": self.machines, "answers": self.answers, "log": self.log})
                new = self.state.with_suffix(".new")
                new.write_text(text)
                new.replace(self.state)
            return status, answer

    def _do(self, method: str, path: list[str], body: dict, key: str):
        name, *rest = path
        machine = self.machines.get(name)
        verb = (method, *rest)
        if verb == ("GET",):
            return (200, machine) if machine else (404, {"error": f"no machine {name}"})
        if verb == ("DELETE",):
            self.machines.pop(name, None)
            return self._done(name, "retire", "", key)
        machine = self.machines.setdefault(name, {"sugar": STANDARD_SUGAR, "made": 0, "bar": None, "bin": []})
        bar = machine["bar"]
        if verb == ("PUT", "sugar"):
            machine["sugar"] = body["sugar"]
            return self._done(name, "sugar", body["sugar"], key)
        if verb == ("POST", "bars"):
            if bar:
                return 409, {"error": f"{bar['id']} lies on the belt"}
            machine["made"] += 1
            taste = machine["sugar"] - BITTERNESS.get(body["flavor"], 0)
            bar = {
                "id": f"bar-{machine['made']}",
                "flavor": body["flavor"],
                "sugar": machine["sugar"],
                "sweetness": taste,
            }
            machine["bar"] = bar
            return self._done(name, "make", bar["id"], key)
        if verb in {("POST", "bin"), ("POST", "shipments")}:
            if not bar or bar["id"] != body["bar"]:
                return 409, {"error": f"{body['bar']} doesn't lie on the belt"}
            machine["bar"] = None
            if rest == ["bin"]:
                machine["bin"].append(bar)
            return self._done(name, "dispose" if rest == ["bin"] else "ship", bar["id"], key)
        return 404, {"error": "no such thing"}

    def _done(self, machine: str, what: str, which: object, key: str):
        self.log.append({"machine": machine, "did": what, "what": which, "key": key})
        return 200, {}


class Handler(BaseHTTPRequestHandler):
    """HTTP in, factory out."""

    protocol_version = "HTTP/1.1"
    factory: Factory

    def handle_any(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        path = [part for part in self.path.split("/") if part]
        if path == ["log"]:
            return self.answer(200, self.factory.log)
        if path == ["faults"] and self.command == "GET":
            return self.answer(200, {"rate": self.factory.rate, "next": self.factory.next})
        if path == ["faults"]:
            self.factory.rate, self.factory.next = body.get("rate", 0.0), list(body.get("next", ()))
            return self.answer(200, {})
        if len(path) < 2 or path[0] != "machines":
            return self.answer(404, {"error": "no such thing"})
        fault = self.factory.fault(self.command)
        if fault == "stall":
            time.sleep(SLOW_S)
        if fault in {"refuse", "stall"}:
            return self.answer(500, {"error": "out of cocoa"})
        status, answer = self.factory.do(self.command, path[1:], body, self.headers.get("Idempotency-Key", ""))
        if fault == "slow":
            time.sleep(SLOW_S)
        return self.answer(500, {"error": "the printer is on fire"}) if fault == "lose" else self.answer(status, answer)

    do_GET = do_PUT = do_POST = do_DELETE = handle_any

    def answer(self, status: int, tree: object) -> None:
        content = json.dumps(tree).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing: the factory keeps its own log."""


class Server(ThreadingHTTPServer):
    """Threads that don't keep the process alive."""

    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """A caller that went away is no news."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--listen", default="127.0.0.1:8089", metavar="HOST:PORT", help="port 0 chooses one (default: %(default)s)"
    )
    parser.add_argument("--state", type=Path, metavar="FILE", help="keep what was done in this file")
    parser.add_argument("--seed", type=int, help="make random faults repeatable")
    options = parser.parse_args()
    Handler.factory = Factory(options.state, options.seed)
    host, _, port = options.listen.rpartition(":")
    server = Server((host, int(port)), Handler)
    print(f"http://{host}:{server.server_port}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        sys.exit(0)


if __name__ == "__main__":
    main()
