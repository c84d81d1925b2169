"""Which repositories may be followed at all: below URLs that whoever runs the daemon allows.

Addresses are compared as those of credentials are (``credential_scope``): scheme, host, port and whole segments of the path. A URL that can be
read in more than one way is below none.

Pure: text in, verdict out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Self

from msgspec import Struct

from kubectl_reconcile.core.phrases import first_few
from kubectl_reconcile.core.resources.credential_scope import Address, CredentialScope, NoAddressError

FLAG: Final = "--allow-url-prefix"
"""The flag of the daemon that allows one."""

_LISTED: Final = 3
"""How many an error lists."""


class UrlPolicy(Struct, frozen=True):
    """The addresses that are allowed; without any all are."""

    addresses: tuple[Address, ...] = ()

    @classmethod
    def of(cls, prefixes: Iterable[str]) -> Self:
        """Return the policy that allows what is below these.

        Raises:
            ValueError: one isn't the URL of a repository, or is ambiguous; the text is that one.
        """
        addresses = []
        for prefix in prefixes:
            try:
                addresses.append(Address.of(prefix))
            except NoAddressError:
                raise ValueError(prefix) from None
        return cls(tuple(addresses))

    def allows(self, url: str) -> bool:
        """Tell whether the repository at *url* may be followed."""
        return not self.addresses or CredentialScope(self.addresses).covers(url)

    def __str__(self) -> str:
        return first_few(self.addresses, _LISTED)
