"""What an API server says to a manifest that isn't written: the object as it would hold it, or why it refuses it."""

import pytest

from tests import yaml_text

DEFAULT = "default"  # dry runs write nothing, so they need no namespace of their own
SERVER_DRY_RUN = ("--server-side", "--dry-run=server", "--validate=strict")


def taken(kubectl, manifest):
    """The object as the server would hold it."""
    return yaml_text.document(kubectl.apply(manifest, *SERVER_DRY_RUN, "-o", "yaml"))


def refusal(kubectl, manifest):
    """What the server says against *manifest*; fails if it takes it."""
    with pytest.raises(Exception, match=r"is invalid|typed patch") as refused:
        kubectl.apply(manifest, *SERVER_DRY_RUN)
    return str(refused.value)
