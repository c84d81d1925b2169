"""By which versions of a chart an object moves."""

import pytest

from kubectl_reconcile.core.annotations import SOURCE
from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.core.planning.outlook.origins import moved_chart
from kubectl_reconcile.core.planning.plan import Op
from tests.core.planning.changes import a_change

REF = ObjectRef("", "ConfigMap", "shop", "web")


def moved(before, after):
    live = {"metadata": {"annotations": {SOURCE: before}}} if before is not None else None
    return list(moved_chart(a_change(REF, Op.UPDATE, before=live, file=after)))


MOVES = {
    "another version": (
        "web-1.2.3.tgz/templates/a.yaml",
        "web-1.3.0.tgz/templates/a.yaml",
        ["chart web 1.2.3 → 1.3.0"],
    ),
    "another file of another version": (
        "web-1.2.3.tgz/a.yaml",
        "web-v2.0.0-rc.1.tgz/b.yaml",
        ["chart web 1.2.3 → v2.0.0-rc.1"],
    ),
    "another chart": ("web-1.2.3.tgz/a.yaml", "site-1.2.3.tgz/a.yaml", ["chart web → site 1.2.3 → 1.2.3"]),
    "below a folder": ("apps/my-web-1.2.3.tgz/a.yaml", "apps/my-web-1.2.4.tgz/a.yaml", ["chart my-web 1.2.3 → 1.2.4"]),
    "the same archive": ("web-1.2.3.tgz/a.yaml", "web-1.2.3.tgz/b.yaml", []),
    "from a file": ("a.yaml", "web-1.2.3.tgz/a.yaml", []),
    "to a file": ("web-1.2.3.tgz/a.yaml", "a.yaml", []),
    "what is new": (None, "web-1.2.3.tgz/a.yaml", []),
    "an archive without a version": ("web.tgz/a.yaml", "web-1.2.3.tgz/a.yaml", []),
}


@pytest.mark.parametrize(("before", "after", "told"), MOVES.values(), ids=MOVES)
def test_an_object_that_comes_from_another_archive_says_so(before, after, told):
    assert moved(before, after) == told
