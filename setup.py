from setuptools import find_namespace_packages, setup

# Manifests that people read at the top of the repository travel in the wheel as packages of data.
DATA = {f"kubectl_reconcile.{name}": name for name in ("crds", "deploy", "examples")}
FOUND = find_namespace_packages(include=["kubectl_reconcile*"], exclude=["*.__pycache__*"])

setup(packages=[*FOUND, *DATA, "kubectl_reconcile.examples.shop"], package_dir=DATA)
