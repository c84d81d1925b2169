"""Manifests of registries: what is read of them, and which layers have the files."""

import json

import pytest

from kubectl_reconcile.core.resources.oci.manifest import (
    CHART_CONFIG,
    CHART_LAYER,
    DOCKER_LIST,
    DOCKER_MANIFEST,
    OCI_INDEX,
    OCI_MANIFEST,
    Kind,
    ManifestError,
    chart_layer,
    layers_of,
    manifest_of,
    only_manifest,
    refuse_image,
)

DIGEST = "sha256:" + "0a" * 32
TAR = "application/vnd.oci.image.layer.v1.tar+gzip"
FLUX = "application/vnd.cncf.flux.content.v1.tar+gzip"
IMAGE = "application/vnd.oci.image.config.v1+json"
EMPTY = "application/vnd.oci.empty.v1+json"


def described(media_type, title="", **more):
    annotations = {"annotations": {"org.opencontainers.image.title": title}} if title else {}
    return {"mediaType": media_type, "digest": DIGEST, "size": 2, **annotations, **more}


def said(*layers, config=EMPTY, **more):
    return {"schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": described(config), "layers": list(layers), **more}


def read(value, content_type=""):
    return manifest_of(json.dumps(value).encode(), DIGEST, content_type)


def index(*entries, **more):
    return read({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": list(entries), **more})


def test_what_an_artifact_was_made_of_is_in_its_annotations():
    made = {f"org.opencontainers.image.{name}": name for name in ("revision", "source", "created")}
    found = read(said(described(FLUX), annotations=made))
    assert (found.revision, found.source, found.created) == ("revision", "source", "created")
    assert (found.kind, found.digest) == (Kind.ARTIFACT, DIGEST)


def test_helm_writes_no_media_type_and_the_registry_says_it():
    without = said(described(CHART_LAYER), config=CHART_CONFIG)
    del without["mediaType"]
    found = read(without, f"{OCI_MANIFEST}; charset=utf-8")
    assert (found.kind, found.media_type, chart_layer(found).media_type) == (Kind.CHART, OCI_MANIFEST, CHART_LAYER)


LAYERS = {
    "one archive": (said(described(FLUX)), "", [FLUX]),
    "an archive without a config of its own": (said(described(TAR), config=IMAGE), "", [TAR]),
    "one file": (said(described("text/yaml", "a.yaml")), "", ["text/yaml"]),
    "several files": (said(described("text/yaml", "a.yaml"), described(TAR, "b.yaml")), "", ["text/yaml", TAR]),
    "the chosen one": (said(described(TAR), described(FLUX)), FLUX, [FLUX]),
    "the first of those chosen": (said(described(TAR), described(FLUX), described(FLUX)), FLUX, [FLUX]),
    "the chart, and not what signs it": (
        said(
            described("application/vnd.cncf.helm.chart.provenance.v1.prov"), described(CHART_LAYER), config=CHART_CONFIG
        ),
        "",
        [CHART_LAYER],
    ),
}


@pytest.mark.parametrize(("manifest", "media_type", "chosen"), LAYERS.values(), ids=LAYERS)
def test_the_layers_with_files_are_found(manifest, media_type, chosen):
    assert [each.media_type for each in layers_of(read(manifest), media_type)] == chosen


NO_LAYERS = {
    "several archives": (said(described(TAR), described(FLUX)), "", "has 2 layers, of which one is to be chosen"),
    "files and an archive": (
        said(described("text/yaml", "a.yaml"), described(TAR)),
        "",
        "of which one is to be chosen",
    ),
    "an image": (said(described(TAR), described(TAR), config=IMAGE), "", "is a container image of 2 layers"),
    "none": (said(), "", "has no layers"),
    "none of the type": (said(described(TAR)), FLUX, f"has no layer of media type {FLUX}; there are {TAR}"),
    "a chart without one": (said(described(TAR), config=CHART_CONFIG), "", "isn't a chart"),
}


@pytest.mark.parametrize(("manifest", "media_type", "why"), NO_LAYERS.values(), ids=NO_LAYERS)
def test_where_nothing_can_be_chosen_it_says_why(manifest, media_type, why):
    with pytest.raises(ManifestError) as caught:
        layers_of(read(manifest), media_type)
    assert why in str(caught.value)


def test_an_image_of_one_layer_is_known_by_what_it_runs():
    refuse_image(b'{"config": {}, "rootfs": {}}')
    refuse_image(b"{}")
    for config in (b'{"config": {"Entrypoint": ["/run"]}}', b'{"config": {"Cmd": ["sh"]}}'):
        with pytest.raises(ManifestError, match="is a container image"):
            refuse_image(config)
    with pytest.raises(ManifestError, match="isn't JSON"):
        refuse_image(b"{")


def test_of_an_index_the_only_manifest_is_meant():
    attested = described(OCI_MANIFEST, platform={"os": "unknown", "architecture": "unknown"})
    arm = described(OCI_MANIFEST, platform={"os": "linux", "architecture": "arm64"})
    amd = described(OCI_MANIFEST, platform={"os": "linux", "architecture": "amd64"})
    assert only_manifest(index(arm, attested)).platform == "linux/arm64"
    with pytest.raises(ManifestError, match="is an index of 2 manifests: linux/arm64, linux/amd64"):
        only_manifest(index(arm, amd, attested))
    with pytest.raises(ManifestError, match="is an index of 0 manifests"):
        only_manifest(index())


UNCLEAR = {
    "another type than the registry says": (said(), OCI_INDEX, "and the registry says"),
    "a manifest that is an index, too": ({**said(), "manifests": []}, "", "at the same time"),
    "an index that lists nothing": ({"schemaVersion": 2, "mediaType": OCI_INDEX}, "", "isn't what its media type"),
    "a manifest that lists manifests": (
        {"schemaVersion": 2, "mediaType": DOCKER_MANIFEST, "manifests": []},
        DOCKER_MANIFEST,
        "isn't what its media type",
    ),
    "a format of before": ({"schemaVersion": 1, "fsLayers": []}, "", "of a format before version 2"),
    "a list": ([], "", "isn't an object"),
    "a digest that is none": (said({**described(TAR), "digest": "sha256:../../x"}), "", "isn't one of sha256"),
    "a digest of another kind": (said({**described(TAR), "digest": "md5:" + "0" * 32}), "", "isn't one of sha256"),
    "a size below zero": (said({**described(TAR), "size": -1}), "", "without a proper size"),
    "a size that is text": (said({**described(TAR), "size": "2"}), "", "without a proper size"),
    "a size that is true": (said({**described(TAR), "size": True}), "", "without a proper size"),
    "a layer that is text": (said("x"), "", "isn't one"),
    "layers that are none": (said(layers={}), "", "has no list of layers"),
    "very many layers": (said(*[described(TAR)] * 1001), "", "more than 1,000"),
}


@pytest.mark.parametrize(("value", "content_type", "why"), UNCLEAR.values(), ids=UNCLEAR)
def test_what_can_be_read_in_more_than_one_way_is_refused(value, content_type, why):
    with pytest.raises(ManifestError) as caught:
        read(value, content_type)
    assert why in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"{", b"[" * 100_000, b'{"a":' * 100_000])
def test_what_is_no_json_is_refused(data):
    with pytest.raises(ManifestError):
        manifest_of(data, DIGEST)


def test_what_docker_pushes_is_read():
    image = "application/vnd.docker.container.image.v1+json"
    assert read({**said(described(TAR), config=image), "mediaType": DOCKER_MANIFEST}).kind is Kind.IMAGE
    assert read({"schemaVersion": 2, "mediaType": DOCKER_LIST, "manifests": []}).kind is Kind.INDEX
