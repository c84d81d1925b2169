"""How the accounts of Syncs are doing: whether they are there, may manage their members, and may be acted as.

Asked of the members that there are, so it reads no source. Writes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from msgspec import Struct

from kubectl_reconcile.cluster.errors import ApiError, Forbidden, NotFound
from kubectl_reconcile.core.objects import Manifest, ObjectRef
from kubectl_reconcile.core.planning.rights.entrusted import rights_to_set
from kubectl_reconcile.core.planning.rights.grant import DAEMON, Account
from kubectl_reconcile.core.planning.rights.needs import RightsInputs, needs_of
from kubectl_reconcile.core.planning.rights.rules import Right
from kubectl_reconcile.core.planning.rights.writes import PlacedRight, grant_command, told
from kubectl_reconcile.core.resources.applyset import Contents
from kubectl_reconcile.core.resources.fields import SyncSpecError
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.engine.api import sync_requests
from kubectl_reconcile.engine.commands import install
from kubectl_reconcile.engine.commands.rights.needed import live_members_of, members_of, readable, where_to_look
from kubectl_reconcile.engine.commands.rights.reviews import Reviewer
from kubectl_reconcile.engine.sync.session import Session

_SYNCS_AT_ONCE = 4


class AccountState(Struct, frozen=True):
    """How the account of *sync* is doing: which rights it is *lacking*, and whether it is *absent* or *out_of_reach* of the daemon.

    *unchecked* tells that its rights may not be asked for.
    """

    sync: Sync
    lacking: frozenset[PlacedRight] = frozenset()
    unchecked: bool = False
    absent: bool = False
    out_of_reach: bool = False

    @property
    def troubles(self) -> tuple[str, ...]:
        """What is wrong, in sentences."""
        account = f"ServiceAccount {Account.of(self.sync)}"
        found = (
            f"there is no {account}" if self.absent else "",
            f"{account} may not {'; '.join(told(self.lacking))}" if self.lacking else "",
            f"the daemon may not act as {account}" if self.out_of_reach else "",
        )
        return tuple(filter(None, found))

    @property
    def advice(self) -> str:
        """The command that fixes it."""
        return f"{grant_command(self.sync)} --apply"


async def survey(session: Session, syncs: Iterable[Manifest]) -> list[AccountState]:
    """Return how the accounts of those live *syncs* are doing that follow Git: the others are applied by hand.

    Raises:
        ApiError: the server doesn't answer.
    """
    slots, daemon = asyncio.Semaphore(_SYNCS_AT_ONCE), await _is_there(session, DAEMON)

    async def look(live: Manifest, sync: Sync) -> AccountState:
        async with slots:
            return await _state(session, live, sync, installed=daemon is True)

    followed = [(live, sync) for live in syncs if (sync := _followed(live))]
    return list(await asyncio.gather(*(look(live, sync) for live, sync in followed)))


async def in_trouble(session: Session) -> list[AccountState]:
    """Return the accounts, of all Syncs that may be seen, that would keep their Sync from its work.

    Raises:
        ApiError: the server doesn't answer.
    """
    syncs, _ = await session.client.list(f"{sync_requests.SYNCS}/syncs")
    found = await survey(session, syncs)
    return sorted((one for one in found if one.lacking or one.absent), key=lambda one: one.sync.ref)


def _followed(live: Manifest) -> Sync | None:
    try:
        sync = Sync.of(live)
    except SyncSpecError:
        return None
    return sync if sync.source is not None else None


async def _state(session: Session, live: Manifest, sync: Sync, *, installed: bool) -> AccountState:
    account, recorded = Account.of(sync), Contents.recorded(live)
    members = [*await members_of(session, sync, recorded.kinds, recorded), *where_to_look(session, recorded)]
    needs = needs_of(RightsInputs(sync, (), {}, members=members))
    held = await Reviewer(session.client, account).review([*needs.placed(), *await _entrusted(session, sync, recorded)])
    acting = (sync.namespace, Right("", "serviceaccounts", "impersonate", account.name))
    acted = (await Reviewer(session.client, DAEMON).review([acting])).missing if installed else ()
    absent = await _is_there(session, account) is False
    return AccountState(sync, held.missing, bool(held.unchecked), absent, bool(acted))


async def _entrusted(session: Session, sync: Sync, recorded: Contents) -> list[PlacedRight]:
    """Return the rights that the server would ask for what members hold, if it were set now."""
    fields = install.entrusted(recorded.kinds)
    refs = [ObjectRef.of(one) for one in await live_members_of(session, sync, fields, recorded)] if fields else []
    whole = await readable(session, refs)
    return [
        (ref.namespace, right) for ref, live in whole.items() for right in rights_to_set(fields[ref.group_kind], live)
    ]


async def _is_there(session: Session, account: Account) -> bool | None:
    """Tell whether a ServiceAccount exists; None where that may not be seen."""
    ref = ObjectRef("", "ServiceAccount", account.namespace, account.name)
    resource = session.resource(ref.group_kind)
    if resource is None:
        raise ApiError("the cluster serves no ServiceAccounts")
    try:
        await session.client.get(resource.path(ref.namespace, ref.name))
    except NotFound:
        return False
    except Forbidden:
        return None
    return True
