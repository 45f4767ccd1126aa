"""What maps do to confidences, for a terminal: a line per map, and the sentences of what is claimed.

All texts of certified numbers arrive rounded in the safe direction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from certcal._text import counted
from certcal.calibrators import Judged, JudgedAt, Recalibration
from certcal.calibrators._predictions import PredictionRecalibration
from certcal.calibrators._verdict import verdict
from certcal.claims import Bound, Estimate
from certcal.report._old_terminal import frame
from certcal.report.names import label
from certcal.report.numbers import number

CLEAN = {"brier_score": "Brier", "ece": "ECE", "auroc": "AUROC"}
_NOTHING = "-"


@dataclass(frozen=True)
class _Column:
    """A column of the table: two lines of heading, "least", "most" or nothing, and the text of each map.

    ``extra`` columns are shown where there is room for those of all radii.
    """

    header: tuple[str, str]
    relation: str
    texts: tuple[str, ...]
    extra: bool = False

    @property
    def width(self) -> int:
        return 2 + max(map(len, (*self.header, *self.texts)))


class RecalibrationTable:
    """One line per map: estimates without a perturbation, then what is certified at each radius.

    A narrow terminal gets the radii one below the other.

    Parameters
    ----------
    found
        From :func:`certcal.calibrators.recalibrate`.

    Examples
    --------
    >>> import numpy as np
    >>> from certcal.calibrators import CertifiedSamples, recalibrate
    >>> z, correct = np.linspace(0.5, 0.9, 40), np.arange(40) % 3 > 0
    >>> samples = CertifiedSamples.from_intervals(z - 0.1, z + 0.1, correct, z, radii=[0.25])
    >>> console = Console(width=80, color_system=None)
    >>> with console.capture() as shown:
    ...     console.print(RecalibrationTable(recalibrate(samples, tradeoffs=[])))
    >>> [line[:19].rstrip() for line in shown.get().splitlines()[4:]]
    ['  as it is', '> isotonic, λ = 0.5']
    """

    def __init__(self, found: Recalibration) -> None:
        self.found = found

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        found = self.found
        names = [("> " if line is found.chosen else "  ") + line.name for line in found.lines]
        names = [name.replace("λ", "lambda") for name in names] if options.ascii_only else names
        groups = list(self._groups())
        room = options.max_width - max(map(len, names)) - 1
        if sum(column.width for group in groups for column in group) > room:
            groups = [[column for column in group if not column.extra] for group in groups]
        tables: list[list[_Column]] = [[]]
        for group in groups:
            if tables[-1] and sum(column.width for column in (*tables[-1], *group)) > room:
                tables.append([])
            tables[-1] += group
        for place, columns in enumerate(tables):
            if place:
                yield Text("")
            yield self._table(names, columns, ascii_only=options.ascii_only)

    def _groups(self) -> Iterator[list[_Column]]:
        lines = self.found.lines
        if self.found.identity.clean:
            yield [
                _Column(("clean", name), "", tuple(number(line.clean[key].value) for line in lines))
                for key, name in CLEAN.items()
            ]
        for k, radius in enumerate(self.found.radii):
            yield _certified(radius, [line.at[k] for line in lines])

    def _table(self, names: Sequence[str], columns: Sequence[_Column], *, ascii_only: bool) -> Table:
        signs = {"least": ">=", "most": "<="} if ascii_only else {"least": "≥", "most": "≤"}
        table = frame()
        table.padding = (0, 1, 0, 0)
        table.add_column("\n\nmap", no_wrap=True)
        for column in columns:
            table.add_column("\n".join((*column.header, signs.get(column.relation, ""))), justify="right", no_wrap=True)
        for row, (name, line) in enumerate(zip(names, self.found.lines, strict=True)):
            style = "bold" if line is self.found.chosen else ""
            table.add_row(name, *(column.texts[row] for column in columns), style=style)
        return table


def _certified(radius: str, at: Sequence[JudgedAt]) -> list[_Column]:
    """The columns of one radius."""
    start = f"R {radius}" if radius else "certified"

    def column(name: str, relation: str, text: Callable[[JudgedAt], str], *, extra: bool = False) -> _Column:
        return _Column((start, name), relation, tuple(map(text, at)), extra)

    return [
        column("Brier", "most", lambda one: worst_text(one, "brier_score")),
        column("ECE", "most", lambda one: worst_text(one, "calibration_error")),
        column("skill", "least", lambda one: _known(one.summary.skill.text)),
        column("ECE bound", "most", lambda one: _bound(one.summary.population), extra=True),
        column("gain", "least", lambda one: _bound(one.gain), extra=True),
    ]


def worst_text(at: JudgedAt, metric: str) -> str:
    """The worst case of the certified samples, or a dash when none is."""
    worst = at.summary[metric].worst
    return _NOTHING if worst is None else worst.text


def _known(text: str) -> str:
    return _NOTHING if text == "undefined" else text


def _bound(bound: Bound | None) -> str:
    return _NOTHING if bound is None else bound.text


def recalibration_claims(found: Recalibration) -> list[str]:
    """What the map that was asked for does at the largest radius, what is claimed of it, and the verdict.

    Parameters
    ----------
    found
        From :func:`certcal.calibrators.recalibrate`.
    """
    before, after = found.identity, found.chosen
    first, last = before.at[-1], after.at[-1]
    where = at_radius(last.radius)
    kept = counted(last.summary.n_certified, "certified sample")
    if not last.summary.n_certified:
        smaller = " The table has the smaller radii." if any(at.summary.n_certified for at in after.at) else ""
        none = f"{_capital(where)}, none of {counted(found.n_held_out, 'held-out sample')} is certified.{smaller}"
        return [none, *([f"{_clean(before, after)} These are estimates."] if after.clean else [])]
    sentences = [
        f"{_capital(where)}, on {kept} of {found.n_held_out:,} that the map was not fitted to, {after.name} takes the "
        f"certified Brier score from at most {worst_text(first, 'brier_score')} to at most "
        f"{worst_text(last, 'brier_score')}, and the worst calibration error from at most "
        f"{worst_text(first, 'calibration_error')} to at most {worst_text(last, 'calibration_error')}."
    ]
    if after.clean:
        sentences.append(f"{_clean(before, after)} These are estimates.")
    claim = last.summary.headline if last.claim is None else last.claim.sentence
    place = f"{where}, " if last.claim is None and last.radius else ""  # else the sentence says it
    sentences.append(f"After the map, {place}{claim}")
    if last.summary.population is not None:
        sentences.append(_capital(f"{where}, {last.summary.population.sentence}"))
    return [*sentences, verdict(found)]


def prediction_sentence(found: PredictionRecalibration) -> str:
    """What a calibrator does to predictions that it was not fitted to.

    Parameters
    ----------
    found
        From ``recalibrate_predictions``.
    """
    after = {row.name: row for row in found.after.rows}
    parts = [
        f"{label(row.name)} {_change(row, after[row.name])}"
        for row in found.before.rows
        if row.name in ("nll", "ece", "accuracy") or (row.name == "top_label_nll" and "nll" not in after)
    ]
    return f"On {counted(found.n_held_out, 'sample')} that the map was not fitted to, {', '.join(parts)}; estimates."


def _change(before: Estimate, after: Estimate) -> str:
    first, second = number(before.value), number(after.value)
    return f"stays {first}" if first == second else f"goes from {first} to {second}"


def at_radius(radius: str) -> str:
    """Where something holds.

    Examples
    --------
    >>> at_radius("0.5"), at_radius("")
    ('at radius 0.5', 'inside the given intervals')
    """
    return f"at radius {radius}" if radius else "inside the given intervals"


def _clean(before: Judged, after: Judged) -> str:
    parts = [
        f"{each.name} {_change(each, after.clean[key]).removeprefix('goes ')}" for key, each in before.clean.items()
    ]
    n = next(iter(before.clean.values())).n
    return f"Without a perturbation, on {f'all {n:,}' if n > 1 else 'it'}: {', '.join(parts)}."


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
