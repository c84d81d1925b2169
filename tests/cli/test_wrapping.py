"""Messages on a person's screen: wrapped between words, while tables, objects and what is copied stay whole."""

from __future__ import annotations

import io
import sys

import pytest

from kubectl_reconcile.cli.output.terminal import Terminal, wrapped
from kubectl_reconcile.views.text import Line, Span, Tone, line

LONG = "the object can't be written, for its namespace isn't there and nobody makes it"


def texts(one: Line, width: int | None) -> list[str]:
    return [Terminal().text(part) for part in wrapped(one, width)]


@pytest.mark.parametrize("width", [12, 20, 40, 79])
def test_words_stay_whole_and_none_is_lost(width):
    made = texts((Span("error: ", Tone.BAD), Span(LONG)), width)
    assert all(len(each.rstrip()) <= width for each in made)
    assert "".join(each.removeprefix("  ") if at else each for at, each in enumerate(made)) == f"error: {LONG}"
    assert all(each.startswith("  ") for each in made[1:])


def test_colours_go_on_in_the_next_line():
    first, second = wrapped((Span("error: ", Tone.BAD), Span("one two three", Tone.WARNING)), 14)
    assert first == (Span("error: ", Tone.BAD), Span("one two ", Tone.WARNING))
    assert second[-1] == Span("three", Tone.WARNING)


@pytest.mark.parametrize("width", [None, 200])
def test_what_fits_or_is_read_by_a_program_stays_one_line(width):
    assert texts(line(LONG), width) == [LONG]


def test_a_command_and_a_word_that_are_longer_than_the_screen_stay_whole():
    command = "kubectl reconcile grant web -n a-namespace-with-a-long-name --apply"
    assert texts(line(f"hint: run {command}"), 30) == ["hint: run ", f"  {command}"]
    address = "https://example.com/a/very/long/address.git"
    assert [each.strip() for each in texts(line(f"can't read {address} now"), 20)] == ["can't read", address, "now"]


def test_only_messages_wrap(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    row = (Span("a-name-that-is-long   "), Span("another cell", Tone.BAD))
    shown = line("  spec.replicas: a value with spaces", Tone.WARNING)
    Terminal(width=20).write([row, shown, line("+ added text that is long", Tone.ADDED), line(LONG, Tone.BAD)])
    lines = stream.getvalue().splitlines()
    assert lines[:3] == [Terminal().text(row), Terminal().text(shown), "+ added text that is long"]
    assert len(lines) > 4
    assert lines[3].rstrip() == "the object can't be"
