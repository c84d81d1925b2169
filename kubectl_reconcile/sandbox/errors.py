"""What can go wrong with a sandbox, told so that somebody can act on it."""

from __future__ import annotations


class SandboxError(Exception):
    """A sandbox could not be brought to the state that was asked for."""

    def __init__(self, message: str, hint: str = "", *, output: str = "") -> None:
        super().__init__(f"{message} (hint: {hint})" if hint else message)
        self.message = message
        """What went wrong, one line."""
        self.hint = hint
        """What to do about it, one line; empty if that goes without saying."""
        self.output = output
        """What the program that failed said at last, as it said it; may be empty."""

    def __str__(self) -> str:
        return "\n".join(filter(None, [super().__str__(), self.output]))


class BuildError(SandboxError):
    """The control plane's programs could not be built or found."""
