"""What setuptools has to be told besides pyproject.toml: manifests as data, and the program that renders, where it is at hand.

RECONCILE_RENDER names that program, and RECONCILE_RENDER_TAG the platform that it is for, as wheels call it. Then the wheel is for that
platform and carries it; else for any, and the program is built from the sources that all of them carry. RECONCILE_HOMEPAGE and
RECONCILE_RELEASE_URL are addresses for the metadata, which has none without them. releasing/dist.py sets all four.
"""

import os
import shutil
from pathlib import Path

from setuptools import find_namespace_packages, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

# Manifests that people read at the top of the repository travel in the wheel as packages of data.
DATA = {f"kubectl_reconcile.{name}": name for name in ("crds", "deploy", "examples")}
FOUND = find_namespace_packages(
    include=[
        "kubectl_reconcile",
        "kubectl_reconcile.*",
        "kubectl_reconcile_operators",
        "kubectl_reconcile_operators.*",
    ],
    exclude=["*.__pycache__*"],
)
EXAMPLES = {str(file.parent) for file in Path("examples").rglob("*.yaml")} - {"examples"}
URLS = {"Homepage": os.environ.get("RECONCILE_HOMEPAGE"), "Download": os.environ.get("RECONCILE_RELEASE_URL")}
PROGRAM, TAG = os.environ.get("RECONCILE_RENDER", ""), os.environ.get("RECONCILE_RENDER_TAG", "")


class WithProgram(build_py):
    """Puts the program beside the package that calls it."""

    def run(self) -> None:
        """Copy it after all else; an installation that can be edited finds it where it was built."""
        super().run()
        if PROGRAM and not self.editable_mode:
            place = Path(self.build_lib, "kubectl_reconcile", "source", "render", "reconcile-render")
            shutil.copyfile(PROGRAM, place)
            place.chmod(0o755)


class ForPlatform(bdist_wheel):
    """Names the platform that the program is for: it needs no certain Python."""

    def finalize_options(self) -> None:
        """Have it installed among what depends on the machine."""
        super().finalize_options()
        self.root_is_pure = not TAG

    def get_tag(self) -> tuple[str, str, str]:
        """Return versions of Python, of its interface in C, and of the platform."""
        return ("py3", "none", TAG) if TAG else super().get_tag()


setup(
    packages=[*FOUND, *DATA, *sorted(f"kubectl_reconcile.{each.replace('/', '.')}" for each in EXAMPLES)],
    package_dir=DATA,
    project_urls={name: url for name, url in URLS.items() if url},
    cmdclass={"build_py": WithProgram, "bdist_wheel": ForPlatform},
)
