"""How recalibration looks in a terminal."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from rich.text import Text

import certcal
from certcal._text import counted, printable
from certcal.calibrators._described import described
from certcal.cli._applying import Applied
from certcal.cli._recalibrating import Fitted
from certcal.cli._show import Output
from certcal.report._old_terminal import comparison
from certcal.report.recalibration import RecalibrationTable
from certcal.report.results import RecalibratedPredictions, as_text


def show_fitted(found: Fitted, source: str) -> None:
    """Print what a map does to samples that it was not fitted to, or that there are none."""
    console = _console()
    results = found.results
    console.print(Text(printable(source), style="bold"))
    if results is None:
        console.print(Text(printable(_on_all(found))))
        return
    console.print(Text(printable(results.description), style="dim"))
    console.print()
    if isinstance(results, RecalibratedPredictions):
        both = [("as it is", results.found.before.rows), (results.found.method, results.found.after.rows)]
        console.print(comparison(both, console.width, "map"))
        heading = "What was measured"
    else:
        console.print(RecalibrationTable(results.found))
        heading = "What is claimed"
    console.print()
    console.print(Text(heading, style="bold"))
    for sentence in results.claims:
        console.print(Text(printable(sentence)))
    console.print()
    console.print(Text(printable(results.notes), style="dim"))


def to_json(found: Fitted, source: str) -> str:
    """The same for machines."""
    if found.results is not None:
        return found.results.to_json()
    document = {"certcal": certcal.__version__, "source": source, "n_fit": found.fitted_on.n, "n_held_out": 0}
    return as_text({**document, "map": described(found.calibrator), "notes": [_on_all(found)]})


def _on_all(found: Fitted) -> str:
    return (
        f"{described(found.calibrator)} was fitted to all {counted(found.fitted_on.n, 'sample')}. Nothing was held "
        "out, so nothing is claimed about it and no numbers are shown: on the samples of the fit they would flatter "
        "the map. Judge it on others with certcal recalibrate apply."
    )


def show_applied(done: Applied, path: Path) -> None:
    """Print what was written, what was left out, and what to do with it."""
    console = _console()
    console.print(Text(printable(done.source), style="bold"))
    console.print(Text(printable(done.description), style="dim"))
    console.print()
    console.print(Text(printable(" ".join(done.sentences))))
    if done.reader is None:
        return
    command = shlex.join(["certcal", done.reader, str(path)])
    console.print(Text(printable(f"{command}  # what it says now")), soft_wrap=True)


def _console() -> Output:
    return Output(file=sys.stdout, highlight=False, markup=False, emoji=False, soft_wrap=False)
