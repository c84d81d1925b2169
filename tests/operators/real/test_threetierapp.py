"""A ThreeTierApp on a real PostgreSQL: what its backend is told is enough to log in and to keep something."""

import pytest

from kubectl_reconcile.sandbox.images import catalog
from kubectl_reconcile.sandbox.images.image import ImageError

LOGS_IN = """
ask() { PGPASSWORD=$DATABASE_PASSWORD psql -h "$DATABASE_HOST" -p "$DATABASE_PORT" -U "$DATABASE_USER" -d "$DATABASE_NAME" -Atqc "$1"; }
until ask 'select 1' > /dev/null 2>&1; do sleep 0.2; done  # until nodes have heard of the Service
ask 'create table kept (n int); insert into kept values (41), (1); select sum(n), current_user, current_database() from kept'
"""


@pytest.fixture
def version() -> int:
    try:
        return int(catalog.find("postgres").environ["PG_MAJOR"])
    except ImageError as error:
        pytest.skip(str(error))


@pytest.mark.usefixtures("crds")
def test_the_backend_logs_in_with_what_it_is_told(real, new_daemon, version):
    new_daemon(real.kubectl.kubeconfig, real.namespace).start()
    database = {"engine": "MyDatabase", "version": version, "storage": {"size": "1Gi"}}
    spec = {"database": database, "backend": {"image": "system"}, "frontend": {"image": "system"}}
    app = {"apiVersion": "apps.example.com/v1alpha1", "kind": "ThreeTierApp", "metadata": {"name": "store"}}
    real.apply({**app, "spec": spec})

    at = f"/apis/apps/v1/namespaces/{real.namespace}/deployments/store-backend"
    real.eventually(lambda: real.get(at), "the backend comes once the database is ready", timeout_s=240)
    told = real.get(at)["spec"]["template"]["spec"]["containers"][0]["env"]
    once = {"restartPolicy": "Never"}
    real.run("sh", "-euc", LOGS_IN, name="client", image=f"postgres:{version}", env=told, pod=once)
    real.phase("Succeeded", "client")
    assert real.logs("client") == ["42|app|app"]

    real.kubectl("delete", "threetierapp", "store", "-n", real.namespace, "--timeout=300s")
    assert not real.get(f"/apis/example.com/v1alpha1/namespaces/{real.namespace}/mydatabases/store-database")
