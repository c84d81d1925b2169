"""Manifests of registries, and which of their layers hold the files that are asked for.

Vocabulary: a *manifest* lists a *config* and *layers*, each by a *descriptor*: media type, digest, size. An *index* lists manifests. What is in a registry and isn't an
image is called an *artifact*.

What is read, and who makes it:

- one layer that is a tar archive, plain or packed by gzip or zstd: ``flux push artifact``, a folder pushed by ORAS;
- layers that are files, each with its title: files pushed by ORAS;
- the layer of a chart: ``helm push``.

Of several layers a media type chooses. An index is read through if there is one manifest to choose.

Pure: bytes in, value out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from kubectl_reconcile.core.phrases import first_few
from kubectl_reconcile.core.resources.oci.reference import DIGEST

OCI_MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
OCI_INDEX: Final = "application/vnd.oci.image.index.v1+json"
DOCKER_MANIFEST: Final = "application/vnd.docker.distribution.manifest.v2+json"
DOCKER_LIST: Final = "application/vnd.docker.distribution.manifest.list.v2+json"
ACCEPTED: Final = (OCI_MANIFEST, OCI_INDEX, DOCKER_MANIFEST, DOCKER_LIST)
"""The media types that are asked for."""

MOST_BYTES: Final = 4 * 1024 * 1024
"""How long a manifest may be, by the distribution specification."""
MOST_DESCRIPTORS: Final = 1_000

CHART_CONFIG: Final = "application/vnd.cncf.helm.config.v1+json"
CHART_LAYER: Final = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
_IMAGE_CONFIGS: Final = frozenset(
    {"application/vnd.oci.image.config.v1+json", "application/vnd.docker.container.image.v1+json"}
)
_TITLE: Final = "org.opencontainers.image.title"
_UNPACK: Final = "io.deis.oras.content.unpack"
_TAR: Final = re.compile(r"[.+]tar(?:[.+](?:gzip|zstd))?\Z|/x-tar\Z|/(?:x-)?gzip\Z")
_LISTED: Final = 4
_MOST_SIZE: Final = 1 << 53


class ManifestError(ValueError):
    """A manifest that can't be used: the message is a sentence about it, *hint* says what to do."""

    def __init__(self, why: str, hint: str = "") -> None:
        self.why, self.hint = why, hint
        super().__init__(why)


class Descriptor(Struct, frozen=True):
    """What a manifest says of some bytes in the registry."""

    media_type: str
    digest: str
    size: int
    annotations: Mapping[str, str] = field(default_factory=dict)
    artifact_type: str = ""
    platform: str = ""

    @property
    def title(self) -> str:
        """The path of the file that it is; empty where it isn't one."""
        return self.annotations.get(_TITLE, "")

    @property
    def is_folder(self) -> bool:
        """Whether it is an archive whatever its title is: ORAS packs folders so."""
        return self.annotations.get(_UNPACK) == "true"

    @property
    def may_be_archive(self) -> bool:
        """Whether its media type is one of archives. ORAS gives that of a tar archive to files of any kind, too."""
        return bool(_TAR.search(self.media_type)) or self.is_folder


class Kind(StrEnum):
    """What a manifest is of."""

    INDEX = "index"
    """It lists other manifests."""
    IMAGE = "image"
    """Its config is that of a container image; an archive without a config of its own has such a one, too."""
    CHART = "chart"
    """Helm has pushed it."""
    ARTIFACT = "artifact"
    """Anything else."""


class OciManifest(Struct, frozen=True, weakref=True):
    """One manifest, or an index of them."""

    digest: str
    media_type: str
    kind: Kind
    config: Descriptor | None = None
    layers: tuple[Descriptor, ...] = ()
    manifests: tuple[Descriptor, ...] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)
    artifact_type: str = ""
    subject: Descriptor | None = None

    @property
    def revision(self) -> str:
        """What the artifact was made of, as whoever pushed it says; Flux writes ``main@sha1:…``."""
        return self.annotations.get("org.opencontainers.image.revision", "")

    @property
    def source(self) -> str:
        """Where that is, as whoever pushed it says."""
        return self.annotations.get("org.opencontainers.image.source", "")

    @property
    def created(self) -> str:
        """When it was pushed, as whoever pushed it says."""
        return self.annotations.get("org.opencontainers.image.created", "")


def manifest_of(data: bytes, digest: str, content_type: str = "") -> OciManifest:
    """Return the manifest that *data* is, which has the *digest*; *content_type* is what the registry calls it.

    Raises:
        ManifestError: it isn't one, or can be read in more than one way.
    """
    try:
        said: Any = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        raise ManifestError("isn't JSON") from None
    if not isinstance(said, dict):
        raise ManifestError("isn't an object of JSON")
    given = content_type.partition(";")[0].strip().lower()
    own = _text(said, "mediaType")
    if own and given in ACCEPTED and own != given:
        raise ManifestError(f"is {own[:80]}, and the registry says that it is {given}")
    if "manifests" in said and ("layers" in said or "config" in said):
        raise ManifestError("is a manifest and an index at the same time")
    media_type = own or given
    if media_type not in ACCEPTED:
        media_type = OCI_INDEX if "manifests" in said else OCI_MANIFEST
    if said.get("schemaVersion") != 2:
        raise ManifestError("is of a format before version 2, which isn't read", "push it again with a newer program")
    if (media_type in {OCI_INDEX, DOCKER_LIST}) != ("manifests" in said):
        raise ManifestError(f"isn't what its media type {media_type} says")
    config = _descriptor(said["config"]) if isinstance(said.get("config"), dict) else None
    return OciManifest(
        digest,
        media_type,
        _kind("manifests" in said, config),
        config,
        _descriptors(said.get("layers")),
        _descriptors(said.get("manifests")),
        _annotations(said.get("annotations")),
        _text(said, "artifactType"),
        _descriptor(said["subject"]) if isinstance(said.get("subject"), dict) else None,
    )


def _kind(is_index: bool, config: Descriptor | None) -> Kind:  # noqa: FBT001 - of two values
    if is_index:
        return Kind.INDEX
    if config is not None and config.media_type == CHART_CONFIG:
        return Kind.CHART
    return Kind.IMAGE if config is not None and config.media_type in _IMAGE_CONFIGS else Kind.ARTIFACT


def only_manifest(index: OciManifest) -> Descriptor:
    """Return the manifest of an index that is meant: the only one, besides what is attested of it.

    Raises:
        ManifestError: there are several, or none.
    """
    chosen = [each for each in index.manifests if not _is_attestation(each)]
    if len(chosen) != 1:
        platforms = [each.platform or each.media_type for each in chosen]
        of = f": {first_few(platforms, _LISTED)}" if platforms else ""
        hint = "such as an image for several platforms; name the digest of one of them"
        raise ManifestError(f"is an index of {len(chosen)} manifests{of}", hint)
    return chosen[0]


def layers_of(manifest: OciManifest, media_type: str = "") -> tuple[Descriptor, ...]:
    """Return the layers that hold the files of an artifact: one, or several that are files with titles. A *media_type* chooses.

    Raises:
        ManifestError: it has no such layer; or several, and nothing chooses.
    """
    layers = manifest.layers
    if media_type:
        layers = tuple(each for each in layers if each.media_type == media_type)
        if not layers:
            there = sorted({each.media_type for each in manifest.layers})
            said = f"; there are {first_few(there, _LISTED)}" if there else ""
            raise ManifestError(f"has no layer of media type {media_type}{said}", "correct layerSelector.mediaType")
    elif manifest.kind is Kind.CHART:
        layers = (chart_layer(manifest),)
    if not layers:
        raise ManifestError("has no layers")
    if all(each.title and not each.is_folder for each in layers):
        return layers
    if media_type:
        return layers[:1]
    if len(layers) > 1:
        if manifest.kind is Kind.IMAGE:
            raise _image(f" of {len(layers)} layers")
        kinds = first_few(sorted({each.media_type for each in layers}), _LISTED)
        hint = "choose one with layerSelector.mediaType"
        raise ManifestError(f"has {len(layers)} layers, of which one is to be chosen: {kinds}", hint)
    return layers


def refuse_image(config: bytes) -> None:
    """Return if an image's *config* runs no program, so that its one layer may be files.

    Raises:
        ManifestError: it is a container image.
    """
    try:
        said: Any = msgspec.json.decode(config)
    except (msgspec.DecodeError, RecursionError):
        raise ManifestError("has a config that isn't JSON") from None
    runs = said.get("config") if isinstance(said, dict) else None
    if isinstance(runs, dict) and (runs.get("Entrypoint") or runs.get("Cmd")):
        raise _image("")


def chart_layer(manifest: OciManifest) -> Descriptor:
    """Return the layer with the packaged chart.

    Raises:
        ManifestError: there is none, or several.
    """
    found = [each for each in manifest.layers if each.media_type == CHART_LAYER]
    if len(found) != 1:
        there = first_few(sorted({each.media_type for each in manifest.layers}), _LISTED) or "none"
        hint = "push it with helm push"
        raise ManifestError(f"isn't a chart: it has {len(found)} layers of media type {CHART_LAYER}, and {there}", hint)
    return found[0]


def _image(more: str) -> ManifestError:
    hint = "push the manifests by themselves, as flux push artifact and oras push do"
    return ManifestError(f"is a container image{more}, and no artifact with manifests", hint)


def _is_attestation(descriptor: Descriptor) -> bool:
    return "vnd.docker.reference.type" in descriptor.annotations or descriptor.platform == "unknown/unknown"


def _descriptors(said: Any) -> tuple[Descriptor, ...]:
    if said is None:
        return ()
    if not isinstance(said, list) or len(said) > MOST_DESCRIPTORS:
        raise ManifestError(f"has no list of layers, or one with more than {MOST_DESCRIPTORS:,}")
    return tuple(_descriptor(each) for each in said)


def _descriptor(said: Any) -> Descriptor:
    if not isinstance(said, dict):
        raise ManifestError("has a descriptor that isn't one")
    digest, size = _text(said, "digest"), said.get("size")
    if not DIGEST.fullmatch(digest):
        raise ManifestError(f"has a descriptor with the digest {digest[:80]!r}, which isn't one of sha256")
    if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size < _MOST_SIZE:
        raise ManifestError("has a descriptor without a proper size")
    return Descriptor(
        _text(said, "mediaType"),
        digest,
        size,
        _annotations(said.get("annotations")),
        _text(said, "artifactType"),
        _platform(said.get("platform")),
    )


def _platform(said: Any) -> str:
    return f"{_text(said, 'os')}/{_text(said, 'architecture')}" if isinstance(said, dict) else ""


def _annotations(said: Any) -> dict[str, str]:
    if not isinstance(said, dict):
        return {}
    return {name: value for name, value in said.items() if isinstance(value, str)}


def _text(said: Mapping[str, Any], name: str) -> str:
    value = said.get(name)
    return value if isinstance(value, str) else ""
