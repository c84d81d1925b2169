"""The model of a database as a planner sees it: live objects, foreign ones among them, and what servers say."""

from pathlib import Path

from kubectl_reconcile.core.manifests.parse import parse
from kubectl_reconcile.core.manifests.revision import Revision
from kubectl_reconcile.core.module.api import Observation
from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.core.planning.kinds import Kind, kinds_of_crd
from kubectl_reconcile.core.planning.planner import build_children
from kubectl_reconcile.core.planning.snapshot import Objects
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.core.ssa.schema import UNKNOWN
from kubectl_reconcile_operators.postgres import MyDatabase
from tests.core.planning.changes import known

(CRD,) = parse((Path(__file__).parents[3] / "crds/mydatabases.example.com.yaml").read_bytes(), "").manifests
KINDS = {gvk: Kind(gvk, f"{gvk.kind.lower()}s", namespaced=True, schema=UNKNOWN) for gvk in MyDatabase.owns}
KINDS |= {gvk: kind for gvk, kind in kinds_of_crd(CRD.manifest).items() if gvk == MyDatabase.gvk}
REF = ObjectRef("example.com", "MyDatabase", "shop", "db")


def inputs_of(world):
    """What is planned on."""
    return known(
        sync=Sync(name="", namespace="shop"),
        revision=Revision("", "", {}),
        desired=(),
        live=Objects([world.cr, *world.objects.values(), *world.others]),
        kinds=KINDS,
        modules={MyDatabase.gvk: MyDatabase},
        now=world.now,
        grouped=False,
        observed={REF: Observation(world.facts())},
    )


def planned(inputs):
    """The plan of one pass."""
    return build_children(inputs, inputs.live.stored(REF).manifest())
