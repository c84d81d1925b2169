"""A real S3 server in a pod, for backups and what begins with them."""

from tests.s3_server import PROGRAM, PYTHON

S3 = {"bucket": "backups", "endpoint": "http://s3:9000", "prefix": "a", "credentialsSecret": "s3-key"}
"""Where backups go to there, as the operators' resources name it."""


def serve_s3(real):
    """Begin it in a pod called s3, behind a Service of that name."""
    port = [{"port": 9000}]
    real.apply({"kind": "Service", "metadata": {"name": "s3"}, "spec": {"selector": {"app": "s3"}, "ports": port}})
    command = [str(PYTHON), "-c", PROGRAM.read_text(), "0.0.0.0", "9000", "backups"]  # noqa: S104 - of the pod
    ready = {"tcpSocket": {"port": 9000}, "periodSeconds": 1}
    container = {"name": "main", "image": "python", "command": command, "readinessProbe": ready}
    real.apply(
        {"kind": "Pod", "metadata": {"name": "s3", "labels": {"app": "s3"}}, "spec": {"containers": [container]}}
    )
