"""Where each member of a set is written down, told by what has changed since the plan before."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from kubectl_reconcile.core.manifests.parse import Located
from kubectl_reconcile.core.manifests.revision import Revision
from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.core.planning.plan import Change, Op, Plan, Provenance
from kubectl_reconcile.engine.daemon.sources.followed import FollowedSync
from kubectl_reconcile.engine.sync.desired import Desired

NAMES = st.sampled_from("abcdef")


def located(name: str, file: str, text: str) -> Located:
    """Return a manifest of a ConfigMap, the only one of its file."""
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "shop"},
        "data": {"t": text},
    }
    return Located.of(body, file, 1)


@st.composite
def revisions(draw):
    """Draw what follows on each other: which file asks for which object with which text; what nobody changed stays the very same."""
    kept, found = {}, []
    files = st.dictionaries(
        st.sampled_from(["1.yaml", "2.yaml", "3.yaml", "4.yaml"]), st.tuples(NAMES, st.sampled_from("xy"))
    )
    for wanted in draw(st.lists(files, min_size=1, max_size=5)):
        kept = {
            file: kept[file] if kept.get(file, (None,))[0] == what else (what, located(what[0], file, what[1]))
            for file, what in wanted.items()
        }
        found.append(
            (
                tuple(each for _, (_, each) in sorted(kept.items())),
                draw(st.frozensets(NAMES)),
                draw(st.frozensets(NAMES)),
            )
        )
    return found


def planned(manifests, spared, deleted):
    """Return a plan of these manifests, but for those *spared* and those that ask for the same object again."""
    first = {each.ref: each for each in reversed(manifests)}
    places = [each for each in first.values() if each.ref.name not in spared]
    ops = {"x": Op.UNCHANGED, "y": Op.UPDATE}
    changes = [
        Change(each.ref, ops[each.manifest["data"]["t"]], None, provenance=Provenance(each.path, 1)) for each in places
    ]
    refs = {ObjectRef("", "ConfigMap", "shop", name) for name in deleted} - first.keys()
    gone = [Change(ref, Op.DELETE, None, provenance=Provenance("gone.yaml")) for ref in refs]
    return Plan(None, "c" * 40, tuple(sorted([*changes, *gone], key=lambda change: change.ref)))


SPARED_ONCE = (located("b", "1.yaml", "x"), located("a", "2.yaml", "y"))


@given(revisions())
@example([(SPARED_ONCE, frozenset("a"), frozenset()), (SPARED_ONCE, frozenset(), frozenset())])
def test_places_found_by_difference_are_those_found_by_looking_at_all(history):
    followed = FollowedSync()
    for manifests, spared, deleted in history:
        desired = Desired(Revision("c" * 40, "", {}), manifests, ())
        made = planned(manifests, spared, deleted)
        afresh = FollowedSync()
        followed.find_places(made, desired)
        afresh.find_places(made, desired)
        assert followed.places == afresh.places
        assert {ref: id(each) for ref, each in followed.places.items()} == {
            ref: id(each) for ref, each in afresh.places.items()
        }
