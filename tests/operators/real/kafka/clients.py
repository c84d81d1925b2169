"""Who tries to get in to a Kafka: over TLS or without, with a password or without."""

import base64
import datetime as dt
import json

from kubectl_reconcile_operators.certificates.keys.pairs import Subject, issue, new_authority

ENTERING = """
import json, sys
from kafka import KafkaConsumer, TopicPartition
settings, ca = json.loads(sys.argv[1]), sys.argv[2]
if "ssl_cafile" in settings:
    open(settings["ssl_cafile"], "w").write(ca)
try:
    consumer = KafkaConsumer(group_id=None, bootstrap_timeout_ms=20000, request_timeout_ms=15000, **settings)
    places = [TopicPartition("orders", number) for number in range(3)]
    print("read", sum(consumer.end_offsets(places).values()) >= 0)
except Exception as error:
    print("refused", type(error).__name__)
"""

SHOWN = """
import ssl, sys
print(ssl.get_server_certificate((sys.argv[1], 9094)).strip() == sys.argv[2].strip())
"""


class Clients:
    """Who tries to get in. *authority* is whom they trust."""

    def __init__(self, cluster):
        self.kf, self.tries = cluster, 0
        self.authority = new_authority("clients", dt.datetime.now(dt.UTC), 86_400)

    def certify(self):
        """Put a new certificate into the Secret of the listener; returns its bytes."""
        place = self.kf.real.namespace
        hosts = ("kf", f"kf.{place}.svc", f"*.kf-brokers.{place}.svc")
        pair = issue(self.authority, Subject("clients", hosts), dt.datetime.now(dt.UTC), 3600)
        self.secret("kf-tls", {"tls.crt": pair.certificate, "tls.key": pair.key})
        return pair.certificate

    def secret(self, name, values):
        self.kf.real.apply({"kind": "Secret", "metadata": {"name": name}, "stringData": values})

    def password(self, user):
        path = f"/api/v1/namespaces/{self.kf.real.namespace}/secrets/kf-user-{user}"
        return base64.b64decode(self.kf.real.get(path)["data"]["password"]).decode()

    def enter(self, port, **settings):
        """What a client gets to hear that comes in so."""
        self.tries += 1
        name, given = f"client-{self.tries}", json.dumps({"bootstrap_servers": f"kf:{port}", **settings})
        argv = ("python", "-c", ENTERING, given, self.authority.certificate)
        self.kf.real.run(*argv, name=name, image="python", pod={"restartPolicy": "Never"})
        self.kf.real.phase("Succeeded", name, timeout_s=900)
        return self.kf.real.logs(name)[-1].split()[0]

    def is_shown(self, number, certificate):
        """Whether a broker shows this certificate."""
        self.tries += 1
        name = f"client-{self.tries}"
        argv = ("python", "-c", SHOWN, f"kf-{number}.kf-brokers", certificate)
        self.kf.real.run(*argv, name=name, image="python", pod={"restartPolicy": "OnFailure"})
        self.kf.real.phase("Succeeded", name, timeout_s=900)
        return self.kf.real.logs(name)[-1] == "True"

    def log_in(self, user, password, **settings):
        given = {"sasl_mechanism": "SCRAM-SHA-512", "sasl_plain_username": user, "sasl_plain_password": password}
        return self.enter(9094, security_protocol="SASL_SSL", ssl_cafile="/tmp/ca.pem", **given, **settings)  # noqa: S108 - of a container
