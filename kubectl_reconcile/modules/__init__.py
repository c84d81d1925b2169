"""Domain modules that come with the product: one file or package per domain, pure functions from CR to children.

*OWNED* says which kinds each of them owns, so that one is imported when there is something for it to do: most clusters use a few.
"""

from collections.abc import Mapping
from typing import Final

OWNED: Final[Mapping[str, tuple[str, ...]]] = {
    "candy": ("awesome.corp.com/v1", "Candy"),
    "checkup": ("checks.reconcile.dev/v1alpha1", "Checkup"),
    "memcached": ("cache.example.com/v1alpha1", "Memcached"),
    "threetierapp": ("apps.example.com/v1alpha1", "ThreeTierApp"),
    "webserver": ("demo.k8s.io/v1alpha1", "WebServer"),
}
"""For the module of each name in this folder, the API version and the names of its kinds."""
