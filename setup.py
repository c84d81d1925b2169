from setuptools import find_packages, setup

# Manifests that people read at the top of the repository travel in the wheel as packages of data.
DATA = {f"kubectl_reconcile.{name}": name for name in ("crds", "deploy", "examples")}

setup(packages=[*find_packages(include=["kubectl_reconcile*"]), *DATA], package_dir=DATA)
