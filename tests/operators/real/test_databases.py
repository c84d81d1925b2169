"""PostgreSQL and Kafka as process pods: what is installed on this machine, or can be fetched by it."""

import os

import pytest

from kubectl_reconcile.sandbox.images import catalog
from kubectl_reconcile.sandbox.images.image import ImageError
from kubectl_reconcile.sandbox.images.kafka_programs import KAFKA_VERSIONS, kafka

DATA = "/var/lib/postgresql/data/pgdata"
CREATE = f"test -d {DATA} || {{ initdb -D {DATA}.new -U postgres --auth=trust && mv {DATA}.new {DATA}; }}"
INSERT = "create table if not exists t (n int); insert into t select count(*) from t"
PROPERTIES = """
process.roles=broker,controller
node.id=1
listeners=BROKER://:9092,CONTROLLER://:9093
advertised.listeners=BROKER://$(hostname):9092
inter.broker.listener.name=BROKER
controller.listener.names=CONTROLLER
listener.security.protocol.map=BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.quorum.bootstrap.servers=$(hostname):9093
offsets.topic.replication.factor=1
log.dirs=/data/kafka
"""
START = f"""set -e
echo "{PROPERTIES}" > /tmp/broker.properties
kafka-storage.sh format --ignore-formatted --standalone --cluster-id=AAAAAAAAAAAAAAAAAAAAAA --config /tmp/broker.properties
exec kafka-server-start.sh /tmp/broker.properties
"""


@pytest.fixture
def postgres() -> str:
    """The image of a PostgreSQL that is installed here."""
    try:
        catalog.find("postgres")
    except ImageError as error:
        pytest.skip(str(error))
    return "docker.io/library/postgres"


@pytest.fixture
def broker() -> str:
    """The newest image of Kafka, fetched where this user hasn't got it yet."""
    version = KAFKA_VERSIONS[-1]
    if lacks := kafka(version).lacks(os.environ):
        pytest.skip(lacks)
    catalog.build(print, only=f"kafka:{version}")
    return f"apache/kafka:{version}"


def server(name, image, *command, mount, **more):
    """A pod of one server on a claim of its own."""
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    container = {
        "name": "main",
        "image": image,
        "command": [*command],
        "volumeMounts": [{"name": "data", "mountPath": mount}],
    }
    first = {**container, "name": "first", **more.pop("init")} if "init" in more else None
    spec = {
        "volumes": volumes, "containers": [{**container, **more}], "restartPolicy": "Never", "hostname": name,
        "securityContext": {"runAsUser": 999, "runAsGroup": 999}, **({"initContainers": [first]} if first else {}),
    }  # fmt: skip
    return {"kind": "Pod", "metadata": {"name": name}, "spec": spec}


def claim():
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": spec}


def test_postgres_runs_as_its_user_and_finds_its_data_after_a_crash(real, postgres):
    def start():
        real.apply(
            server(
                "db", postgres, "postgres", "-D", DATA, mount="/var/lib/postgresql/data",
                init={"command": ["sh", "-ec", CREATE]},
                readinessProbe={"exec": {"command": ["pg_isready"]}, "periodSeconds": 1},
            )
        )  # fmt: skip
        real.ready("db")

    def sql(text):
        return real.kubectl("exec", "db", "-n", real.namespace, "--", "psql", "-U", "postgres", "-Atc", text).split()

    real.apply(claim())
    start()
    for _ in range(3):
        sql(INSERT)
    real.sandbox.pods.signal(real.namespace, "db")
    real.phase("Failed", "db")
    real.delete("db")
    start()
    assert sql("select n from t order by n") == ["0", "1", "2"]


def test_a_major_version_that_is_not_installed_is_waited_for_and_named(real, postgres):
    real.run("postgres", image="postgres:9.6", name="old")
    real.eventually(
        lambda: "apt install postgresql-9" in real.container("old")["state"].get("waiting", {}).get("message", ""),
        "it says what to install",
    )


def test_kafka_keeps_what_was_sent_across_a_restart_of_its_pod(real, broker):
    def start():
        real.apply(
            server(
                "broker", broker, "sh", "-c", START, mount="/data",
                readinessProbe={"tcpSocket": {"port": 9092}, "periodSeconds": 1},
            )
        )  # fmt: skip
        real.ready("broker", timeout_s=240)

    def tool(*argv):
        command = ["sh", "-c", " ".join(argv)]
        return real.kubectl("exec", "broker", "-n", real.namespace, "--", *command).split()

    real.apply(claim())
    start()
    patient = "--request-timeout-ms 60000 --message-send-max-retries 100"
    tool(f"seq 100 | kafka-console-producer.sh --bootstrap-server broker:9092 --topic numbers {patient}")
    real.delete("broker")
    start()
    read = (
        "kafka-console-consumer.sh --bootstrap-server broker:9092 --topic numbers --from-beginning --max-messages 100"
    )
    assert tool(read)[:100] == [str(number) for number in range(1, 101)]
