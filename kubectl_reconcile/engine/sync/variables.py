"""The values of the variables that a Sync declares: from itself, and from ConfigMaps and Secrets of its namespace; and those that these hold for its chart.

These are read as whoever the session is: the Sync's account for a daemon, the user for the command line. Nothing of them is kept on disk.
What can't be read leaves its variables without a value, which is a problem where they are used, and nowhere else. A chart isn't rendered without.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from kubectl_reconcile.cluster.errors import Forbidden, NotFound
from kubectl_reconcile.core.manifests.parse import Located, Steps, field_lines
from kubectl_reconcile.core.manifests.revision import ReadableSource, Revision
from kubectl_reconcile.core.objects import Manifest, decoded_text, map_at
from kubectl_reconcile.core.rendering.held_values import Unread, held_by
from kubectl_reconcile.core.rendering.substitution import NO_VALUES, Value, Values
from kubectl_reconcile.core.resources.substitute import NO_SUBSTITUTION, Holder, SubstituteSpec, Variable
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.source.errors import SourceError

_PLURALS: Final = {Holder.CONFIG_MAP: "configmaps", Holder.SECRET: "secrets"}


async def values_of(session: Session, sync: Sync) -> Values:
    """Return the values of the variables that a Sync declares, and those of its chart, read as *session*.

    Raises:
        ApiError: the server doesn't answer.
    """
    source = sync.source
    if source is None or (source.substitute == NO_SUBSTITUTION and not source.holders):
        return NO_VALUES
    holders = source.holders
    found = await asyncio.gather(*(_read(session, sync, *each) for each in holders))
    there = dict(zip(holders, found, strict=True))
    values = declared(source.substitute, there, sync.namespace)
    return replace(values, held=held_by(source.helm.values_from, there, sync.namespace))


def declared(spec: SubstituteSpec, there: Mapping[tuple[Holder, str], Manifest | Unread], namespace: str) -> Values:
    """Return the values of what *spec* declares, of which *there* are the ConfigMaps and Secrets, or why they can't be read."""
    known: dict[str, Value] = {}
    unset: dict[str, str] = {}
    for variable in spec.variables:
        value = _value(variable, there, namespace)
        if isinstance(value, Value) and not (fault := value.fault()):
            known[variable.name] = value
        else:
            unset[variable.name] = value if isinstance(value, str) else f"{fault} ({value.origin or 'in the Sync'})"
    versions = {
        each: str(map_at(found, "metadata").get("resourceVersion"))
        for each, found in there.items() if not isinstance(found, Unread)
    }  # fmt: skip
    types = {each.name: each.type for each in spec.variables if each.name in unset}
    return Values(known, unset, spec.also_in, versions, spec.expressions, types)


async def _read(session: Session, sync: Sync, holder: Holder, name: str) -> Manifest | Unread:
    """Return what holds values, or why it can't be read."""
    try:
        return await session.client.get(f"/api/v1/namespaces/{sync.namespace}/{_PLURALS[holder]}/{name}")
    except NotFound:
        return Unread(f"there is no {holder} {sync.namespace}/{name}", is_absent=True)
    except Forbidden as error:
        return Unread(f"{holder} {sync.namespace}/{name} may not be read: {error}")


def _value(variable: Variable, there: Mapping[tuple[Holder, str], Manifest | Unread], namespace: str) -> Value | str:
    """Return the value of a variable, or why it has none."""
    if variable.source is None:
        return Value(variable.value or "", variable.type, stamp=variable.value or "")
    holder, name, key = variable.source.holder, variable.source.name, variable.source.key
    found = there[holder, name]
    text = None if isinstance(found, Unread) else map_at(found, "data").get(key)
    if text is None:
        if variable.default is not None:
            return Value(variable.default, variable.type, stamp=variable.default)
        return found.why if isinstance(found, Unread) else f"{holder} {namespace}/{name} has no key {key}"
    origin = f"key {key} of {holder} {namespace}/{name}"
    if holder is Holder.CONFIG_MAP:
        return Value(str(text), variable.type, stamp=str(text), origin=origin)
    try:
        value = decoded_text(text)
    except ValueError:
        return f"{origin} isn't text"
    metadata = map_at(found, "metadata") if not isinstance(found, Unread) else {}
    return Value(
        value,
        variable.type,
        secret=True,
        stamp=f"{metadata.get('uid')}/{metadata.get('resourceVersion')}",
        origin=origin,
    )


class Lines:
    """Tells where fields stand in the files of a revision, which are read when they are first asked for."""

    def __init__(self, source: ReadableSource, revision: Revision) -> None:
        self._source, self._revision = source, revision
        self._known: dict[str, bytes] = {}

    def __call__(self, located: Located, steps: Steps) -> int:
        """Return the line of a field, that of its object where it isn't known, 0 for what was rendered."""
        if located.line <= 0:
            return 0
        if located.path not in self._known:
            try:
                self._known[located.path] = self._source.read(self._revision.files[located.path])
            except (SourceError, KeyError):
                self._known[located.path] = b""
        data = self._known[located.path]
        return field_lines(data, located, [steps])[steps] if data else located.line
