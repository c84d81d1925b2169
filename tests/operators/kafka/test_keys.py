"""Certificates of Secrets that people make, as Kafka reads them: its keys alone, and key and certificate in one file."""

import os
import subprocess

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from kubectl_reconcile_operators.kafka.access.driver import unreadable
from kubectl_reconcile_operators.kafka.children import _RUN

CURVE = ec.generate_private_key(ec.SECP256R1())
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"


def text(key, form=PrivateFormat.PKCS8):
    return key.private_bytes(Encoding.PEM, form, NoEncryption()).decode()


KEYS = {
    "as Kafka reads it": (text(CURVE), "ok"),
    "as OpenSSL writes it": (text(CURVE, PrivateFormat.TraditionalOpenSSL), "has a key that isn't PKCS#8"),
    "of another kind": (text(ed25519.Ed25519PrivateKey.generate()), "has a key that is neither RSA nor EC"),
}


@pytest.mark.parametrize(("key", "worth"), KEYS.values(), ids=KEYS)
def test_a_key_that_kafka_alone_cannot_read_is_told(key, worth):
    assert unreadable(key).startswith(worth)


@pytest.mark.parametrize("end", ["\n", ""], ids=["a last line break", "none"])
def test_a_key_and_its_certificate_stay_two_blocks_in_one_file(tmp_path, end):
    held, keys = tmp_path / "secrets" / "tls" / "..data", tmp_path / "keys"
    for folder in (held, keys):
        folder.mkdir(parents=True)
    (held / "tls.key").write_text(text(CURVE).rstrip() + end)
    (held / "tls.crt").write_text(CERTIFICATE)
    script = _RUN.partition("while sleep")[0]
    environ = {**os.environ, "SECRETS": str(tmp_path / "secrets"), "KEYS": str(keys)}
    subprocess.run(["sh", "-c", script], env=environ, check=True, timeout=60)
    key, _, certificate = (keys / "tls.pem").read_text().partition("-----END PRIVATE KEY-----")
    assert key == text(CURVE).partition("-----END")[0]
    assert (certificate[:1], certificate.strip()) == ("\n", CERTIFICATE.strip())
