"""Certificates of a MyDatabase that somebody makes, and who looks at them."""

import subprocess

from tests.kubectl import KubectlError


def certificate(folder, *kind):
    """The folder with a certificate that signs itself, and its key."""
    folder.mkdir()
    files = ["-keyout", folder / "tls.key", "-out", folder / "tls.crt"]
    key = ["-newkey", *(kind or ("ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")), "-nodes"]
    command = ["openssl", "req", "-x509", *key, *files, "-subj", f"/CN={folder.name}", "-days", "2"]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    return folder


def put_certificate(real, folder):
    """Make it the Secret called mine."""
    data = {name: (folder / name).read_text() for name in ("tls.crt", "tls.key")}
    secret = {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": {"name": "mine"}}
    real.apply({**secret, "stringData": data})


def over_tls(db, folder, sql):
    """What the user is answered by a server that shows this certificate; why nothing, where none does."""
    put = 'printf %s "$1" > /tmp/root.crt; shift; exec "$@"'
    to = "host=db user=shop dbname=orders sslmode=verify-ca sslrootcert=/tmp/root.crt"
    asked = ["env", f"PGPASSWORD={db.password()}", "psql", to, "-Atc", sql]
    try:
        return db.outside("sh", "-c", put, "sh", (folder / "tls.crt").read_text(), *asked).strip()
    except KubectlError as error:
        return str(error)
