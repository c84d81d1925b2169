"""What an import has found, as lines for people, and the files of Syncs that it writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kubectl_reconcile.core.importing.fields import Fate
from kubectl_reconcile.core.importing.tools import STOPPING, Tally, by_text
from kubectl_reconcile.core.importing.units import Imported, Step, Unit, credential_steps, grant_steps
from kubectl_reconcile.views.text import Line, Tone, clean, line
from kubectl_reconcile.views.yamltext import dump_object

REPORT = "import-report.txt"
"""The file with what people must know and do, beside those with Syncs."""

_NAMED = 4


def summary(found: Imported) -> Iterator[Line]:
    """Yield how much became Syncs."""
    tally = Tally.of([found])
    left = tally.here - tally.translated
    text = f"{tally.translated} of {tally.here} units become {count(len(found.syncs), 'Sync')}"
    yield line(text, Tone.WARNING if left else Tone.GOOD)
    if elsewhere := tally.units - tally.here:
        yield line(
            f"{elsewhere} more {'is' if elsewhere == 1 else 'are'} for other clusters: run a daemon there, and import them with it"
        )


def report(found: Imported, *, everyone: bool = False) -> Iterator[Line]:
    """Yield what is to be known of units and of what else was read; where *everyone* is, all units that something is said of are named."""
    yield from summary(found)
    yield from _found(found.here, "not possible, so no Sync is made", STOPPING, Tone.BAD, everyone=everyone)
    yield from _found(found.here, "unknown", (Fate.UNKNOWN,), Tone.WARNING, everyone=everyone)
    yield from _found(found.here, "approximated", (Fate.APPROXIMATED,), Tone.PLAIN, everyone=everyone)
    yield from _found(found.others, "besides", tuple(Fate), Tone.PLAIN, everyone=everyone)


def steps(found: Imported) -> Iterator[Line]:
    """Yield the commands that people run: before there are Syncs, and once they are there."""
    yield from _steps("Secrets that the Syncs name", credential_steps(found.units))
    yield from _steps("once the Syncs are in the cluster, rights of their accounts", grant_steps(found.units))


def _steps(title: str, found: Iterable[Step]) -> Iterator[Line]:
    commands = [clean(each.command) for each in found]
    if commands:
        yield line("")
        yield line(f"{title}:", Tone.TITLE)
        yield from (line(f"  {each}") for each in dict.fromkeys(commands))


def _found(units: Sequence[Unit], title: str, fates: Sequence[Fate], tone: Tone, *, everyone: bool) -> Iterator[Line]:
    told = by_text(units, *fates)
    if not told:
        return
    yield line("")
    yield line(f"{title}:", Tone.TITLE)
    for (place, text), whom in told.items():
        yield line(f"  {clean(place)}: {clean(text.replace('`', ''))}", tone)
        yield line(f"    {_names(whom, everyone=everyone)}", Tone.ASIDE)


def _names(units: Sequence[Unit], *, everyone: bool) -> str:
    names = [clean(str(each.ref)) + (f" ({clean(each.file)})" if each.file else "") for each in units]
    shown = names if everyone else names[:_NAMED]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def count(number: int, what: str) -> str:
    """Return a number of things, as in ``1 file`` and ``2 files``."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def file_of(units: Iterable[Unit]) -> str:
    """Return the text of a file with the Syncs of *units*, each below what is to be known of it."""
    return "---\n".join(
        "".join(f"{text}\n" for text in (*_head(unit), *dump_object(each))) for unit in units for each in unit.syncs
    )


def _head(unit: Unit) -> Iterator[str]:
    yield f"# From {clean(str(unit.ref))}"
    for each in unit.findings:
        yield f"# {each.fate}: {clean(each.place)}: {clean(each.text.replace('`', ''))}"


def report_text(found: Imported) -> str:
    """Return the report and the steps as text, with all names."""
    lines = (*report(found, everyone=True), *steps(found))
    return "".join(f"{''.join(span.text for span in each)}\n" for each in lines)
