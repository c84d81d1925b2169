"""Namespaces of objects in files that name none."""

from kubectl_reconcile.core.importing.placing import placed
from kubectl_reconcile.core.importing.units import Placed


def flux(file, path, target="", namespace=""):
    """Return a Kustomization of Flux."""
    spec = {"path": path, **({"targetNamespace": target} if target else {})}
    metadata = {"name": "ks", **({"namespace": namespace} if namespace else {})}
    return Placed(
        {"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": metadata, "spec": spec},
        file,
    )


def built(file, namespace):
    """Return a kustomization file."""
    return Placed(
        {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "metadata": {},
            "namespace": namespace,
        },
        file,
    )


def release(file, namespace=""):
    """Return a HelmRelease."""
    return Placed(
        {
            "apiVersion": "helm.toolkit.fluxcd.io/v2",
            "kind": "HelmRelease",
            "metadata": {"name": "web", **({"namespace": namespace} if namespace else {})},
        },
        file,
    )


def namespaces(*documents):
    """Return the namespaces that objects come to have, by their files."""
    return {each.file: each.manifest["metadata"]["namespace"] for each in placed(documents, "default")}


def test_an_object_is_where_the_part_puts_it_that_it_is_in():
    found = namespaces(
        built("apps/shop/kustomization.yaml", "shop"),
        flux("apps/shop/ks.yaml", "./apps/shop/web/app", target="web"),
        release("apps/shop/web/app/release.yaml"),
        release("apps/shop/beside/release.yaml"),
        release("elsewhere/release.yaml"),
        release("apps/shop/web/app/own.yaml", "own"),
    )
    assert found == {
        "apps/shop/ks.yaml": "shop",
        "apps/shop/web/app/release.yaml": "web",
        "apps/shop/beside/release.yaml": "shop",
        "elsewhere/release.yaml": "default",
        "apps/shop/web/app/own.yaml": "own",
    }


def test_a_part_without_a_namespace_is_what_its_kustomizations_say():
    found = namespaces(
        flux("flux/ks.yaml", "./apps", namespace="flux-system"),
        built("apps/kustomization.yaml", "shop"),
        built("kustomization.yaml", "not-of-the-part"),
        release("apps/web/release.yaml"),
    )
    assert found["apps/web/release.yaml"] == "shop"


def test_what_only_kustomize_reads_is_left_out():
    assert namespaces(built("kustomization.yaml", "x")) == {}
