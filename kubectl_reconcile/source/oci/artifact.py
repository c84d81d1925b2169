"""The files of an artifact, pulled by its digest: once for all who ask in the same way, and held within the budget of ``kept``.

So many pull at a time, in turns of tenants, and who is slow is in nobody's way (``running.memory``). Who unpacks waits until there is room for what it may come to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kubectl_reconcile.core.resources.oci.manifest import (
    Descriptor,
    Kind,
    ManifestError,
    chart_layer,
    layers_of,
    refuse_image,
)
from kubectl_reconcile.source.charts import zstd
from kubectl_reconcile.source.charts.archive import (
    MOST_UNPACKED_BYTES,
    Archive,
    checked,
    files_of,
    proper_path,
    unpacked,
)
from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.limits import MEBIBYTE, raising
from kubectl_reconcile.source.oci.registry import MOST_BLOB_BYTES, Registry
from kubectl_reconcile.source.running.budget import ByteBudget
from kubectl_reconcile.source.running.ending import taking
from kubectl_reconcile.source.running.kept import KEPT
from kubectl_reconcile.source.running.memory import FETCHES

UNPACKING: Final = ByteBudget()
_UNPACKING_BYTES: Final = 2 * MOST_UNPACKED_BYTES
_ENTRY_BYTES: Final = 300
"""What a file takes in memory besides its bytes."""
_USTAR: Final = slice(257, 262)


def artifact(registry: Registry, digest: str, media_type: str = "") -> Archive:
    """Return the files of the artifact with that manifest's *digest*, by their paths; of several layers *media_type* chooses. Blocks.

    Raises:
        SourceError: it can't be pulled, is none, or holds what we don't take.
    """
    return _pulled(registry, digest, f"files {media_type}", lambda: _files(registry, digest, media_type))


def held(registry: Registry, digest: str, media_type: str = "") -> Archive | None:
    """Return the same files if they are here; asks nobody."""
    return KEPT.find((registry.access, digest, f"files {media_type}"), Archive)


def chart(registry: Registry, digest: str, name: str) -> Archive:
    """Return the files of the chart *name*, which has that manifest's *digest*, by their paths in it. Blocks.

    Raises:
        SourceError: it can't be pulled, isn't such a chart, or holds what no chart may hold.
    """

    def read() -> dict[str, bytes]:
        manifest = registry.artifact_manifest(digest)
        try:
            layer = chart_layer(manifest)
        except ManifestError as error:
            raise registry.unusable(digest, error) from None
        packed = registry.blob(layer)
        with UNPACKING.room(MOST_UNPACKED_BYTES, _UNPACKING_BYTES):
            return unpacked(packed, name, registry.access.limits)

    return _pulled(registry, digest, f"chart {name}", read)


def _pulled(registry: Registry, digest: str, what: str, read: Callable[[], dict[str, bytes]]) -> Archive:
    key = (registry.access, digest, what)
    if (known := KEPT.find(key, Archive)) is not None:
        return known
    with taking(registry.pulling):
        if (known := KEPT.find(key, Archive)) is not None:  # pulled by somebody else while we waited
            return known
        with FETCHES.one():
            found = Archive.of(read())
        KEPT.keep(key, found, sum(len(path) + len(data) + _ENTRY_BYTES for path, data in found.files.items()))
        return found


def _files(registry: Registry, digest: str, media_type: str) -> dict[str, bytes]:
    manifest = registry.artifact_manifest(digest)
    try:
        layers = layers_of(manifest, media_type)
        if manifest.kind is Kind.IMAGE and manifest.config is not None and not media_type:
            refuse_image(registry.blob(manifest.config))
    except ManifestError as error:
        raise registry.unusable(digest, error) from None
    what = f"{registry.repository}@{digest}"
    if (total := sum(each.size for each in layers)) > MOST_BLOB_BYTES:
        said = f"{what} has layers of {total // MEBIBYTE} MiB together, and {MOST_BLOB_BYTES // MEBIBYTE} are the most"
        raise SourceError(SourceFault.REFUSED, said)
    if len(layers) == 1:
        return _one(registry, layers[0], what)
    return _titled(registry, layers, what)


def _one(registry: Registry, layer: Descriptor, what: str) -> dict[str, bytes]:
    data = registry.blob(layer)
    if layer.title and not layer.is_folder and not (layer.may_be_archive and _is_archive(data)):
        return _checked([(layer.title, data)], registry, what)
    with UNPACKING.room(MOST_UNPACKED_BYTES, _UNPACKING_BYTES):
        return files_of(data, what, registry.access.limits)


def _titled(registry: Registry, layers: tuple[Descriptor, ...], what: str) -> dict[str, bytes]:
    return _checked([(each.title, registry.blob(each)) for each in layers], registry, what)


def _checked(given: list[tuple[str, bytes]], registry: Registry, what: str) -> dict[str, bytes]:
    """Return files by their titles."""
    most, files = registry.access.limits.file_bytes, dict[str, bytes]()
    for title, data in given:
        path = proper_path(title.removeprefix("./"), what)
        if path in files:
            raise SourceError(SourceFault.REFUSED, f"{what} has {path!r} twice")
        if len(data) > most:
            said = f"{what} has {path!r} of more than {most // MEBIBYTE} MiB"
            raise SourceError(SourceFault.REFUSED, said, raising("file_bytes"))
        files[path] = data
    return checked(files, what)


def _is_archive(data: bytes) -> bool:
    """Tell whether it begins as archives do, packed or not."""
    return data.startswith((b"\x1f\x8b", zstd.MAGIC)) or data[_USTAR] == b"ustar"
