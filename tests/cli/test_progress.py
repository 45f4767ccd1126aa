"""Waiting: a bar after a while on a terminal, few plain lines in a log, nothing when told to be quiet."""

import io

import click
import pytest

import certcal
from certcal import InputError
from certcal._base.progress import watching
from certcal._base.waiting import REDRAW_SECONDS, Waiting, _NotebookLine
from certcal.cli.errors import run
from certcal.cli.progress import be_quiet, tell


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_log_of_quick_work_stays_silent():
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
    with Waiting(stream, patience=1e6) as waiting:
        waiting.stage("drawing", 1_000_000, 400_000, "draws")
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


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def logged(step, seconds, total=1_000_000, done=0):
    """The lines that a log gets of steps that take so many seconds each."""
    stream, clock = io.StringIO(), Clock()
    with Waiting(stream, clock=clock) as waiting:
        waiting.stage("drawing", total, done, "draws")
        for _ in range(done, total, step):
            clock.now += seconds
            waiting.advance(step)
    text = stream.getvalue()
    assert "\r" not in text
    assert "\x1b" not in text
    return text.splitlines()


def test_a_log_has_a_plain_line_for_each_tenth_of_long_work():
    lines = logged(step=10_000, seconds=6)
    assert lines[0] == "drawing: 100,000 of 1,000,000 draws, about 9 min left"
    assert [line.split()[1] for line in lines] == [f"{tenth}00,000" for tenth in range(1, 10)]


def test_lines_in_a_log_are_at_least_half_a_minute_apart():
    assert logged(step=10_000, seconds=0.29) == []
    lines = logged(step=10_000, seconds=1)
    assert [line.split()[1] for line in lines] == ["300,000", "600,000", "900,000"]


def test_very_long_work_shows_a_sign_of_life_every_ten_minutes():
    lines = logged(step=10_000, seconds=300)
    assert lines[0] == "drawing: 20,000 of 1,000,000 draws, about 8.2 h left"
    assert len(lines) < 60


def test_what_was_done_before_is_not_counted_into_the_rate():
    lines = logged(step=10_000, seconds=6, done=500_000)
    assert lines[0] == "drawing: 600,000 of 1,000,000 draws, about 4 min left"


class GoneTerminal(Terminal):
    """A terminal that is closed while the work goes on."""

    gone = False

    def write(self, text):
        if self.gone:
            raise OSError(5, "Input/output error")
        return super().write(text)


@pytest.mark.parametrize("first", [True, False])
def test_a_terminal_that_is_gone_does_not_stop_the_work(first):
    stream = GoneTerminal()
    with Waiting(stream, patience=1e6) as waiting:
        stream.gone = not first
        waiting._show()
        stream.gone = True
        waiting.stage("reading", 10)
        waiting.advance(1)


class PlainObject:
    """What some programs put in the place of standard error."""

    def write(self, text):
        return len(text)


def closed_stream():
    stream = io.StringIO()
    stream.close()
    return stream


@pytest.mark.parametrize("stream", [None, PlainObject(), closed_stream()], ids=["none", "plain", "closed"])
def test_verbs_answer_whatever_standard_error_is(monkeypatch, stream):
    monkeypatch.setattr("sys.stderr", stream)
    assert certcal.measure([0, 1, 1, 0], [0.2, 0.9, 0.6, 0.1], metrics="ece").n == 4


def test_a_log_that_cannot_be_written_does_not_stop_the_work():
    clock = Clock()
    stream = io.StringIO()
    with Waiting(stream, clock=clock) as waiting:
        waiting.stage("reading", 10)
        stream.close()
        for _ in range(9):
            clock.now += 60
            waiting.advance(1)
    assert waiting._total is None


def test_a_notebook_has_one_line_that_is_gone_at_the_end():
    shown, clock = [], Clock()

    class Handle:
        def update(self, data, raw):
            assert raw
            shown.append(data["text/plain"])

    def display(data, raw, display_id):
        assert raw
        assert display_id
        shown.append(data["text/plain"])
        return Handle()

    line = _NotebookLine(display, patience=2.0, clock=clock)
    line.stage("reading")
    assert shown == []
    clock.now = 2.0
    line.stage("drawing", 1000, unit="draws")
    clock.now += REDRAW_SECONDS / 2
    line.advance(100)
    clock.now += REDRAW_SECONDS / 2
    line.advance(100)
    assert shown == ["drawing: 0 of 1,000 draws", "drawing: 200 of 1,000 draws, about 2 s left"]
    line.close()
    assert shown[-1] == ""


def test_a_quiet_command_shows_no_progress_anywhere():
    seen = []

    @click.command()
    @click.option("--quiet", is_flag=True, expose_value=False, callback=be_quiet)
    def command():
        with watching(True) as waiting:
            seen.append(type(waiting).__name__)
        tell("wrote a file")

    assert run(command, ["--quiet"]) == 0
    assert run(command, []) == 0
    assert seen == ["Silent", "_Log"]


TABLE = {"confidence": [0.9, 0.8, 0.6, 0.3], "correct": [1, 1, 0, 0]}


def test_a_function_is_told_the_parts_of_the_work():
    told = []
    certcal.measure(TABLE, progress=lambda part, done, total: told.append((part, done, total)))
    assert ("measuring", 0, 1) in told
    assert told[-1][1:] == (1, 1)
    for value in (True, False):
        assert certcal.measure(TABLE, progress=value)["ece"].value == certcal.measure(TABLE)["ece"].value
    with pytest.raises(InputError, match=r"^progress: 3 cannot be told .*; pass True, False, a function"):
        certcal.measure(TABLE, progress=3)


def test_what_a_verb_calls_is_silent_of_its_own():
    with watching(True) as outer, watching(True) as inner:
        assert (type(outer).__name__, type(inner).__name__) == ("_Log", "Silent")
    with watching(False), watching(True) as inner:
        assert type(inner).__name__ == "Silent"


def test_a_quiet_command_names_no_files(certcal_command, scores, tmp_path):
    options = ("--metric", "ece", "-o", tmp_path / "numbers.json")
    assert certcal_command("measure", scores, *options).err == f"wrote {tmp_path / 'numbers.json'}\n"
    assert certcal_command("measure", scores, *options, "--force", "--quiet").err == ""
