"""``kubectl reconcile explain``: who owns each field of a live object, who asked for it, and whether it is drift."""

from __future__ import annotations

import functools
import json
import textwrap
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kubectl_reconcile.cli.options.connection import Connection, common
from kubectl_reconcile.cli.options.flags import colour
from kubectl_reconcile.cli.options.origin import Origin
from kubectl_reconcile.cli.options.output import output
from kubectl_reconcile.cli.output.failures import EXIT_STATUSES, ExitStatus, Failure
from kubectl_reconcile.cli.output.terminal import table, terminals
from kubectl_reconcile.views.text import EMPTY, Line, Span, Tone, clean, line

if TYPE_CHECKING:
    from kubectl_reconcile.core.health.health import Health
    from kubectl_reconcile.core.manifests.revision import Commit
    from kubectl_reconcile.core.planning.outlook.explain import ExplainedField
    from kubectl_reconcile.core.resources.verification import Verification
    from kubectl_reconcile.engine.commands.explain import Explanation, FieldOrigin, FilesAsked
    from kubectl_reconcile.engine.sync.session import Session

_FEW = 4
_CLIPPED = 60
_LABEL, _FIELD = 11, 8
_NOTES = ("f:metadata", "f:annotations")


@click.command(
    epilog=f"""{EXIT_STATUSES}
\b
Verdicts of a field:
  same      in sync           left     left to its owner by a rule,
  drift     changed in the cluster             or because it is contended
  git       changed in Git            other    Git doesn't mention it
  both      changed in both           default  nobody owns it
  adopt     never applied yet
If Git can't be read, or the files of a Sync that is applied by hand aren't
given: applied (as it was applied last), or unknown.

\b
Examples:
  kubectl reconcile explain deploy/web                  all fields
  kubectl reconcile explain deploy/web.spec.replicas    one field in full
  kubectl reconcile explain deploy/web -f shop/         by these files
  kubectl reconcile explain pod/web '.spec.containers[name=web].image'
"""
)
@click.argument("object_", metavar="KIND/NAME[.FIELD]")
@click.argument("path", required=False, metavar="[FIELD]")
@click.option(
    "-f",
    "--filename",
    "file",
    metavar="PATH",
    help="Files with the object, for a Sync that is applied by hand; - is standard input.",
)
@click.option(
    "-R/ ",
    "--recursive/--no-recursive",
    default=True,
    help="Whether to read subfolders of -f, too.  [default: yes]",
)
@output("wide", "json", "yaml")
@click.option("--show-secrets", is_flag=True, help="Show the values of Secrets.")
@colour
@common
def explain(
    connection: Connection,
    object_: str,
    path: str | None,
    *,
    file: str | None,
    recursive: bool,
    output: str | None,
    show_secrets: bool,
    color: str,
) -> int:
    """Show who owns the fields of an object, which file and commit set them, and whether they drifted. Writes nothing.

    The verdict says what the next sync would do. Fields of the status are left out, unless you name one.
    """
    from kubectl_reconcile.cli.output.data.structured import json_lines, yaml_lines
    from kubectl_reconcile.cli.session import readable, run
    from kubectl_reconcile.engine.commands.explain import FilesAsked
    from kubectl_reconcile.views.explanation import document

    if file and file != "-" and not Path(file).exists():
        raise Failure(f"no file or folder {file}", "check -f", status=ExitStatus.SOURCE)
    try:
        with readable(Origin(file=file or "", recursive=recursive)) as source:
            files = FilesAsked(Path(source.file), source.recursive) if file else None
            found = run(connection, functools.partial(_explained, text=object_, path=path or "", files=files))
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if (path or found.asks_for_field) and not found.fields:
        raise Failure(
            f"{found.ref} has no such field", "explain it without a field to see all", status=ExitStatus.USAGE
        )
    view = _View(found, show_secrets=show_secrets, wide=output == "wide")
    out, err = terminals(color)
    if output in {"json", "yaml"}:
        out.write((json_lines if output == "json" else yaml_lines)(document(found, show_secrets=show_secrets)))
        return ExitStatus.OK
    few = found.asks_for_field and len(found.fields) <= _FEW
    out.write(view.blocks(out.width) if few else view.overview(out.width))
    if found.trouble:
        err.write([line(f"warning: can't read files and commits: {found.trouble}", Tone.WARNING)])
    return ExitStatus.OK


async def _explained(session: Session, *, text: str, path: str, files: FilesAsked | None) -> Explanation:
    from kubectl_reconcile.engine.commands import explain as engine

    return await engine.explain(session, text, path, files)


class _View:
    """How one explanation is shown."""

    def __init__(self, found: Explanation, *, show_secrets: bool, wide: bool) -> None:
        from kubectl_reconcile.views.ages import current_time

        self.found, self.show_secrets, self.wide = found, show_secrets, wide
        self.now = current_time()

    # --- all fields -------------------------------------------------------------------------------

    def overview(self, width: int | None) -> Iterator[Line]:
        """Yield the object in three lines, then its fields: by state and owner, or with ``wide`` one a row."""
        yield from self._head(width)
        yield EMPTY
        if self.wide:
            titles = ["STATE", "OWNER", "SINCE", "FILE", "COMMIT", "FIELD"]
            yield from table(titles, [self._row(each) for each in self.found.fields])
            return
        for (state, tone, who), fields in groupby(self.found.fields, self._group):
            yield (Span(f"{state:<8}", tone), Span(who, Tone.TITLE))
            for each in fields:
                first, *rest = _wrapped(self._sentence(each), width, _FIELD)
                yield line(f"{' ' * _FIELD}{first}")
                yield from (line(f"{' ' * (_FIELD + 2)}{text}") for text in rest)

    def _group(self, each: ExplainedField) -> tuple[str, Tone, str]:
        from kubectl_reconcile.core.planning.outlook.explain import DIFFERS

        who = ", ".join(dict.fromkeys(owner.manager for owner in each.owners)) or "nobody"
        since = self._since(each)
        tone = Tone.WARNING if each.standing in DIFFERS else Tone.GOOD if each.standing == "same" else Tone.PLAIN
        return each.standing.value, tone, f"{who}, {since}" if since else who

    def _since(self, each: ExplainedField) -> str:
        from kubectl_reconcile.views.ages import age_of

        return age_of(each.owners[0].time, self.now) if each.owners else ""

    def _health(self) -> Health:
        from kubectl_reconcile.core.health.cel_rules import HealthRules
        from kubectl_reconcile.core.health.silence import expected_of

        facts = self.found.facts
        rules = facts.sync.health if facts.sync is not None else HealthRules()
        expected = expected_of(self.found.ref.group_kind, has_status=facts.schema.has_status)
        return rules.judge(facts.live, expected=expected, now=self.now)

    def _head(self, width: int | None) -> Iterator[Line]:
        from kubectl_reconcile.core.objects import place_of
        from kubectl_reconcile.core.planning.outlook.explain import DIFFERS

        found = self.found
        yield (Span(str(found.ref), Tone.TITLE), Span(f"  {self._health()}"))
        file = f", from {place_of(found.file, found.line)}" if found.file else ""
        commit = f", last changed by {self._commit(found.commit)}" if found.commit else ""
        made = f"; its artifact was made {self._made(found.made)}" if found.made else ""
        yield from (line(text) for text in _wrapped(f"{found.asker}{file}{commit}{made}", width))
        if found.verification is not None:
            tone = Tone.BAD if found.verification.is_refused else Tone.PLAIN
            yield from (line(text, tone) for text in _wrapped(self._signed(found.verification), width))
        if found.facts.unread:
            yield line(f"can't read the desired state: {found.facts.unread}", Tone.WARNING)
            return
        differ = sum(1 for each in found.fields if each.standing in DIFFERS)
        words = "1 field differs" if differ == 1 else f"{differ} fields differ"
        yield line(
            f"{words} from the desired state" if differ else "nothing differs from the desired state",
            self._tone(differ),
        )

    @staticmethod
    def _signed(verification: Verification) -> str:
        said = verification.condition().message
        return f"unverified, so no sync applies it: {said}" if verification.is_refused else said

    @staticmethod
    def _tone(differ: int) -> Tone:
        return Tone.WARNING if differ else Tone.GOOD

    def _row(self, each: ExplainedField) -> list[Span]:
        state, tone, _ = self._group(each)
        origin = self.found.origins.get(each.path)
        commit = origin.commit.sha[:7] if origin and origin.commit else "-"
        where = _place(self.found, origin) if origin else "-"
        return [
            Span(state, tone),
            Span(", ".join(dict.fromkeys(owner.manager for owner in each.owners)) or "-"),
            Span(self._since(each).removesuffix(" ago") or "-"),
            Span(where),
            Span(commit),
            Span(self._sentence(each)),
        ]

    def _sentence(self, each: ExplainedField) -> str:
        from kubectl_reconcile.core.planning.outlook.explain import DIFFERS

        text = f"{each.path} = {self._value(each.path, each.live)}"
        if each.standing in DIFFERS:
            return f"{text}, to be {self._value(each.path, each.wanted)}"
        return f"{text} ({each.rule})" if each.rule else text

    # --- few fields, each in full -----------------------------------------------------------------

    def blocks(self, width: int | None) -> Iterator[Line]:
        """Yield everything about each field, a line for each question."""
        for each in self.found.fields:
            if each is not self.found.fields[0]:
                yield EMPTY
            yield (Span(str(each.path), Tone.TITLE), Span(f" of {self.found.ref}"))
            for label, text in self._facts(each):
                yield from self._labelled(label, text, width)

    def _facts(self, each: ExplainedField) -> Iterator[tuple[str, str]]:
        from kubectl_reconcile.core.planning.outlook.explain import outlook
        from kubectl_reconcile.views.ages import age_of

        found, origin = self.found, self.found.origins.get(each.path)
        yield "live", self._value(each.path, each.live)
        yield "wanted", self._wanted(each)
        if found.facts.unread:
            yield "applied", self._applied(each)
        for owner in each.owners:
            age = age_of(owner.time, self.now)
            how = owner.operation.lower() + (f" of {owner.subresource}" if owner.subresource else "")
            yield "owner", f"{owner.manager}, by {how}{f', {age}' if age else ''}"
        if origin is not None and origin.commit is not None:
            yield "commit", self._commit(origin.commit)
        yield "object", found.asker
        yield "verdict", outlook(each, found.facts)

    def _wanted(self, each: ExplainedField) -> str:
        from kubectl_reconcile.core.ssa.typed import ABSENT

        found, origin = self.found, self.found.origins.get(each.path)
        if found.facts.unread:
            return f"not known: {found.facts.unread}"
        if origin is not None:
            return f"{self._value(each.path, each.wanted)}, {_place(found, origin)}"
        if found.module and each.standing.value != "other":
            wanted = each.live if each.wanted is ABSENT and each.change is None else each.wanted
            return f"{self._value(each.path, wanted)}, by module {found.module}"
        if each.wanted is not ABSENT:
            return self._value(each.path, each.wanted)
        return "marks the object as a member" if each.standing.value == "same" and found.file else "nobody sets it"

    def _applied(self, each: ExplainedField) -> str:
        """Return what was applied last, as far as the owners tell."""
        from kubectl_reconcile.core.planning.outlook.explain import FieldState

        if each.standing is FieldState.APPLIED:
            return self._value(each.path, each.live)
        return f"not known: {each.rule}" if each.standing is FieldState.UNKNOWN else "nothing"

    @staticmethod
    def _labelled(label: str, text: str, width: int | None) -> Iterator[Line]:
        for number, part in enumerate(_wrapped(text, width, _LABEL)):
            yield (Span(f"  {label if not number else '':<{_LABEL - 2}}", Tone.ASIDE), Span(part))

    # --- the parts --------------------------------------------------------------------------------

    def _made(self, made: Commit) -> str:
        from kubectl_reconcile.views.ages import age_of

        what, where = f"of {made.subject}" if made.subject else "", f"in {made.author}" if made.author else ""
        return " ".join(filter(None, (what, where, age_of(made.committed_at, self.now))))

    def _commit(self, commit: Commit) -> str:
        from kubectl_reconcile.views.ages import age_of

        age = age_of(commit.committed_at, self.now)
        by, why = f" by {commit.author}" if commit.author else "", f": {commit.subject}" if commit.subject else ""
        return f"{commit.sha[:7]}{by}{f', {age}' if age else ''}{why}"

    def _value(self, path: tuple[str, ...], value: Any) -> str:
        from kubectl_reconcile.core.ssa.typed import ABSENT
        from kubectl_reconcile.views.explanation import is_hidden
        from kubectl_reconcile.views.masking import HIDDEN, without_texts

        if value is ABSENT or value is None:
            return "nothing"
        if not self.show_secrets and is_hidden(self.found, path):
            return HIDDEN
        shown = value if self.show_secrets else without_texts(value, self.found.secrets)
        text = json.dumps(shown, ensure_ascii=False, default=str)
        return text if self.wide or len(text) <= _CLIPPED else f"{text[: _CLIPPED - 1]}…"


def _place(found: Explanation, origin: FieldOrigin) -> str:
    from kubectl_reconcile.core.objects import place_of

    return str(origin.rendered) if origin.rendered is not None else place_of(found.file, origin.line)


def _wrapped(text: str, width: int | None, indent: int = 0) -> list[str]:
    """Return *text* in lines that fit beside an indent; one line where no screen limits it."""
    if not width:
        return [text]
    room = max(width - indent - 2, 20)
    return textwrap.wrap(clean(text), room, break_on_hyphens=False) or [""]
