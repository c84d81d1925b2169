"""Who may take how much memory: what runs for one repository or one rendering is *light* at first, and *heavy* if that isn't enough.

Light ones are few at a time and take little. A heavy one takes as much as may be, alone: one of this process, whoever asks, in turns of
tenants. So what one tenant's repositories and charts take together is known beforehand, however many there are, and whatever they
unpack to.
"""

from __future__ import annotations

from typing import Final

from kubectl_reconcile.core.fair.shares import Limits
from kubectl_reconcile.source.limits import MEBIBYTE
from kubectl_reconcile.source.running.places import TenantPlaces

LIGHT_GIT_BYTES: Final = 48 * MEBIBYTE
"""What a git may take that fetches, unless it turns out to need more."""
FETCHES: Final = TenantPlaces(4, Limits(late=1, late_in_all=4), 5.0)
"""Places for what fetches from a server."""
HEAVY: Final = TenantPlaces(1, Limits(late=0, late_in_all=0, part=1, of=1), 3600.0)
"""The place for what needs more."""
