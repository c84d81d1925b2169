"""What becomes of a Sync that is being deleted, on plain values."""

import pytest

from kubectl_reconcile.core.apply.causes import Refusal
from kubectl_reconcile.core.daemon.removal import Remains, ending_of
from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.core.resources.status import ConditionReason
from kubectl_reconcile.core.resources.sync import Sync

SHOP = Sync(name="shop", namespace="gitops")
WEB, FAR = ObjectRef("", "ConfigMap", "gitops", "web"), ObjectRef("", "Secret", "far", "key")
DENIED = "ServiceAccount gitops/deployer may not delete configmaps (hint: kubectl reconcile grant shop -n gitops)"
NOT_LISTED = "ServiceAccount gitops/deployer may not list secrets"
REFUSED = (Refusal(WEB, "", DENIED), Refusal(FAR, "", DENIED))


def ending(*, known=(), namespace_goes=False, is_overdue=False, **remains):
    return ending_of(SHOP, Remains(**remains), known=known, namespace_goes=namespace_goes, is_overdue=is_overdue)


GOING = {
    "nothing is left": ({}, ()),
    "what is left couldn't be deleted before, and nobody asked for it": (
        {"refused": REFUSED, "known": {str(WEB), str(FAR)}},
        (str(WEB), str(FAR)),
    ),
    "a right is missing, and its namespace goes": ({"refused": REFUSED, "namespace_goes": True}, (str(FAR),)),
    "members are going, and so is its namespace": ({"going": (FAR,), "namespace_goes": True}, ()),
    "what can't be listed is in a namespace that goes": (
        {"unlisted": (NOT_LISTED,), "namespace_goes": True},
        (NOT_LISTED,),
    ),
    "an hour has passed in a namespace that goes": (
        {"failing": ("a webhook said no",), "namespace_goes": True, "is_overdue": True},
        (),
    ),
}


@pytest.mark.parametrize(("found", "left"), GOING.values(), ids=GOING)
def test_it_goes_when(found, left):
    ended = ending(**found)
    assert ended.lets_go
    assert ended.left == left


STAYING = {
    "a right is missing": ({"refused": REFUSED}, ConditionReason.UNDELETABLE, DENIED),
    "a right is missing that wasn't before": (
        {"refused": REFUSED, "known": {str(FAR)}},
        ConditionReason.UNDELETABLE,
        str(WEB),
    ),
    "a right is missing, however long": ({"refused": REFUSED, "is_overdue": True}, ConditionReason.UNDELETABLE, DENIED),
    "some kind can't be listed": ({"unlisted": (NOT_LISTED,)}, ConditionReason.UNDELETABLE, NOT_LISTED),
    "members are going": ({"going": (WEB,)}, ConditionReason.DELETING, f"waits until these are gone: {WEB}"),
    "something else went wrong": ({"failing": ("a webhook said no",)}, ConditionReason.DELETING, "a webhook said no"),
    "it may pass, in a namespace that goes": (
        {"failing": ("a webhook said no",), "namespace_goes": True},
        ConditionReason.DELETING,
        "a webhook said no",
    ),
}


@pytest.mark.parametrize(("found", "reason", "said"), STAYING.values(), ids=STAYING)
def test_it_stays_and_says_why_while(found, reason, said):
    ended = ending(**found)
    assert not ended.lets_go
    assert ended.report.reason is reason
    assert said in ended.report.message
    released = "kubectl reconcile delete shop -n gitops --orphan" in ended.report.message
    assert released is (reason is ConditionReason.UNDELETABLE)
