"""Namespaces of anything that a scan looks at."""

from hypothesis import strategies as st

from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.core.scan.outlook import (
    CHECKUP,
)
from tests.modules.checkup.world import SOUND, deployment, meta, pod_of, service
from tests.modules.checkup.world import role as a_role


def of_template(name, kind, hazard):
    """A Job, a CronJob, or a Checkup that runs a Job of somebody's own."""
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [SOUND], **hazard}}
    api, spec = {
        "Job": ("batch/v1", {"template": template}),
        "CronJob": ("batch/v1", {"jobTemplate": {"spec": {"template": template}}}),
        "Checkup": (CHECKUP.api_version, {"job": {"template": template}}),
    }[kind]
    return {"apiVersion": api, "kind": kind, "metadata": meta(name), "spec": spec}


NAMES = st.sampled_from(["a", "b", "c"])
HAZARDS = st.sampled_from([{}, {"hostPID": True}])
OBJECTS = st.one_of(
    st.builds(of_template, NAMES, st.sampled_from(["Job", "CronJob", "Checkup"]), HAZARDS),
    st.builds(lambda maker, name, hazard: pod_of("Deployment", maker, name, **hazard), NAMES, NAMES, HAZARDS),
    st.builds(a_role, st.sampled_from(["*", "get", "bind"]), name=NAMES),
    st.builds(service, NAMES, selector=st.fixed_dictionaries({"app": NAMES})),
    st.builds(
        deployment,
        NAMES,
        pod=HAZARDS,
        readinessProbe=st.sampled_from([None, {"tcpSocket": {"port": 80}}]),
    ),
)
NAMESPACES = st.lists(OBJECTS, max_size=6).map(lambda objects: {ObjectRef.of(each): each for each in objects})
