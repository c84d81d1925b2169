"""Desired state: the manifests of a revision, each file read and parsed once.

Equal blob ids mean equal bytes, so a revision that changed one file of ten thousand costs one
file.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kubectl_reconcile.core.manifests.parse import Located, Parsed, parse
from kubectl_reconcile.core.manifests.revision import Revision, Source
from kubectl_reconcile.core.objects import Problem
from kubectl_reconcile.core.resources.history import digest_of
from kubectl_reconcile.engine.sync.parse_cache import ParsedFiles


@dataclass(frozen=True, slots=True)
class Desired:
    """What one revision asks for, and what is wrong with it. *whole* is False for a part of it.

    *digest* is the same for the same objects, whatever the commit.
    """

    revision: Revision
    manifests: tuple[Located, ...]
    problems: tuple[Problem, ...]
    whole: bool = True
    digest: str = ""


@dataclass(slots=True)
class ManifestReader:
    """Reads revisions of one source; keeps what it parsed of the newest, and with *kept* of all on disk."""

    kept: ParsedFiles | None = None
    _parsed: dict[tuple[str, str], Parsed] = field(default_factory=dict)
    _newest: Desired | None = None

    def read(self, source: Source) -> Desired:
        """Return the source's newest revision, parsed. Blocks while it fetches.

        Raises:
            SourceError: the source can't be read; the message says why.
        """
        revision = source.revision()
        if self._newest is not None and self._newest.revision == revision:
            return self._newest
        self._parse(source, revision)
        parsed = [self._parsed[blob, path] for path, blob in revision.files.items()]
        manifests = tuple(located for each in parsed for located in each.manifests)
        problems = (*revision.problems, *(problem for each in parsed for problem in each.problems))
        digest = digest_of(located.manifest for located in manifests)
        self._newest = Desired(revision, manifests, problems, digest=digest)
        return self._newest

    def _parse(self, source: Source, revision: Revision) -> None:
        wanted = {(blob, path) for path, blob in revision.files.items()}
        new = wanted - self._parsed.keys()
        known = {file: self._parsed[file] for file in wanted - new}
        if self.kept is not None and new:
            known |= self.kept.find(new)
            new -= known.keys()
        content = dict(source.read_many(sorted({blob for blob, _ in new})))
        fresh = {(blob, path): parse(content[blob], path) for blob, path in sorted(new)}
        if self.kept is not None and fresh:
            self.kept.keep(fresh)
        self._parsed = known | fresh
