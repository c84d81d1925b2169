"""Serves S3 by moto, under the interpreter that has it: tells its port, makes the buckets that are named, and does wrong once where it is told to.

Arguments: address, port, then buckets; the environment's CERTIFICATE and KEY are files of its TLS.
"""

import os
import sys
import urllib.parse

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server
from werkzeug.test import Client


class Faulty:
    """What is told to ``/fault/KIND`` befalls the next object that is written: ``spoil`` has a byte of it kept wrong, ``refuse`` has its second part refused."""

    def __init__(self, app):
        self.app, self.fault = app, ""

    def __call__(self, environ, start):
        path, query = environ["PATH_INFO"], urllib.parse.parse_qs(environ.get("QUERY_STRING", ""))
        if path.startswith("/fault/"):
            self.fault = path.removeprefix("/fault/")
            start("200 OK", [])
            return [b""]
        is_object = environ["REQUEST_METHOD"] == "PUT" and path.count("/") > 1
        if is_object and self.fault == "refuse" and query.get("partNumber") == ["2"]:
            self.fault = ""
            start("403 Forbidden", [("Connection", "close")])
            return [b"<Error><Code>AccessDenied</Code><Message>no more</Message></Error>"]
        if is_object and self.fault == "spoil":
            self.fault = ""
            environ["wsgi.input"] = Spoilt(environ["wsgi.input"])
        return self.app(environ, start)


class Spoilt:
    """A body whose first byte is another one."""

    def __init__(self, source):
        self.source, self.begun = source, False

    def read(self, *size):
        data = self.source.read(*size)
        if data and not self.begun:
            self.begun, data = True, bytes([data[0] ^ 1]) + data[1:]
        return data

    def readline(self, *size):
        return self.read(*size)


host, port, *buckets = sys.argv[1:]
application = Faulty(DomainDispatcherApplication(create_backend_app))
for each in buckets:
    Client(application).put(f"/{each}", base_url=f"http://{host}")
tls = (os.environ["CERTIFICATE"], os.environ["KEY"]) if "KEY" in os.environ else None
server = make_server(host, int(port), application, threaded=True, ssl_context=tls)
sys.stdout.write(f"{server.server_port}\n")
sys.stdout.flush()
server.serve_forever()
