"""What a process pod has printed, on the page."""

from kubectl_reconcile.cluster.access import Access
from kubectl_reconcile.engine.api.pod_logs import logs_of
from kubectl_reconcile.engine.sync.session import Session
from tests.waiting import until


async def test_the_page_shows_the_end_of_what_a_container_has_printed(real, kubectl, tmp_path):
    real.run(
        "sh", "-c", "seq 2000; printf '\\033[31mred\\033[0m\\n'; sleep 1000", pod={"terminationGracePeriodSeconds": 0}
    )
    real.ready()
    access = Access(kubeconfig=str(kubectl.kubeconfig), namespace=real.namespace)
    async with Session.open(access, tmp_path) as session:

        async def all_that_is_printed():
            found = await logs_of(session.client, real.pod())
            return found if "red" in found.lines else None

        found = await until(all_that_is_printed, "all that was printed is there")
    assert found.containers == ["main"]
    assert (found.lines[0], found.lines[-2:], len(found.lines)) == ("1502", ["2000", "red"], 500)
