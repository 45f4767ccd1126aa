"""Waiting: shown after a while on a terminal, silent otherwise."""

from __future__ import annotations

import io

from certcal.cli._progress import Waiting


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_log_stays_silent():
    stream = io.StringIO()
    with Waiting(stream, patience=0.0) as waiting:
        waiting.stage("reading", 10)
        waiting.advance(10)
    assert stream.getvalue() == ""


def test_quick_work_shows_nothing_on_a_terminal():
    stream = Terminal()
    with Waiting(stream, patience=1e6) as waiting:
        waiting.stage("reading", 10)
        waiting.advance(10)
    assert "reading" not in stream.getvalue()


def test_slow_work_shows_its_stage():
    stream = Terminal()
    with Waiting(stream, patience=1e6) as waiting:
        waiting.stage("reading [bold]x[/bold]", 10)
        waiting._show()  # what the timer does when patience ends
        waiting.advance(5)
    assert "reading [bold]x[/bold]" in stream.getvalue()


def test_nothing_is_shown_after_the_work_is_done():
    stream = Terminal()
    with Waiting(stream, patience=1e6) as waiting:
        pass
    before = stream.getvalue()
    waiting._show()
    assert stream.getvalue() == before


def test_counted_steps_show_their_rate_and_the_time_left():
    stream = Terminal()
    with Waiting(stream, patience=1e6, counted="draws") as waiting:
        waiting.stage("drawing", 1_000_000, 400_000)
        waiting._show()
        waiting.advance(100_000)
        assert waiting._bar.tasks[0].completed == 500_000
        waiting._begun -= 10  # as if ten seconds had passed
        waiting.advance(100_000)
        rate = waiting._bar.tasks[0].fields["rate"]
        waiting._bar.refresh()
    assert 15_000 < float(rate.split()[0].replace(",", "")) <= 20_000
    assert rate.endswith("draws/s, left")
    assert "draws/s, left" in stream.getvalue()


def test_steps_that_are_not_counted_show_no_rate():
    stream = Terminal()
    with Waiting(stream, patience=1e6) as waiting:
        waiting.stage("reading", 10)
        waiting._show()
        waiting.advance(5)
        waiting._bar.refresh()
    assert "/s" not in stream.getvalue()
