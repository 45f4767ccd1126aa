"""A study's table as a review looks at it: one sheet per data set, the most accurate models first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError
from certcal.lab.study._battery import BINNED
from certcal.lab.study._designs import first_equal_models, is_size, match_columns, robustness_columns
from certcal.lab.study._findings import Finding, FindingTable
from certcal.lab.study._resampling import Resampling
from certcal.lab.study._table import OK, MeasuredColumn, Stage, StudyTable

if TYPE_CHECKING:
    from certcal.lab.study._review import StudyReviewSettings

Floats = NDArray[np.float64]

LABELS = {
    "ece": "ECE",
    "equal_mass_ece": "equal-mass ECE",
    "classwise_ece": "classwise ECE",
    "classwise_equal_mass_ece": "classwise equal-mass ECE",
    "mce": "MCE",
    "ks_error": "KS calibration error",
    "kde_ece": "KDE-ECE",
    "mmce": "MMCE",
    "nll": "NLL",
    "brier_score": "Brier score",
}
# Sizes of the parts that the benchmark study looks at, for populations like it.
_PUBLISHED_TOPS = (1000, 2000, 3000, 4000, 5000)
_SHARES = (10, 4, 2)
SMALLEST_TOP = 10
# Models of a ranking, and different texts of a column that is a choice.
_RANKED, _MOST_CHOICES = 20, 12


@dataclass(frozen=True, eq=False)
class Sheet:
    """The models of one data set, the most accurate first (or the least) and those without an accuracy last.

    Columns are taken from the table when they are looked at: a large table is not copied.
    """

    name: str
    source: StudyTable
    rows: NDArray[np.int64]

    @classmethod
    def of(cls, name: str, source: StudyTable, rows: NDArray[np.int64], sign: int = -1) -> Sheet:
        """Some rows of a table, sorted by accuracy: descending, or with sign 1 ascending."""
        if "accuracy" in source:
            rows = rows[np.argsort(sign * source["accuracy"][rows], kind="stable")]
        return cls(name, source, rows)

    def __len__(self) -> int:
        return self.rows.size

    def __contains__(self, column: object) -> bool:
        return column in self.source

    def __getitem__(self, column: str) -> Floats:
        return self.source.numbers([column])[self.rows, 0]

    def raw(self, column: str) -> NDArray[Any]:
        """A column of texts or numbers."""
        return self.source[column][self.rows]

    def numbers(self, columns: Sequence[str]) -> Floats:
        """Columns side by side."""
        return np.column_stack([self[column] for column in columns]) if columns else np.empty((len(self), 0))

    def complete(self, *columns: str) -> tuple[Floats, ...]:
        """Columns without the models that lack one of them."""
        values = [self[column] for column in columns]
        kept = ~np.isnan(values).any(axis=0)
        return tuple(value[kept] for value in values)

    def columns_by_accuracy(self, *columns: str) -> tuple[Floats, ...]:
        """Columns of the models that have them and an accuracy, so that the first are the most accurate."""
        return self.complete(*columns, "accuracy")[:-1]

    def column_of(self, metric: str, bins: int | None, stage: Stage = "pre") -> str:
        return str(MeasuredColumn(stage, metric, bins if metric in BINNED else None))

    def bins(self, metric: str, stage: Stage) -> list[int]:
        """Bin counts at which a metric was measured, ascending."""
        found = (m for m in self.source.measurements if m.metric == metric and m.stage == stage)
        return sorted(m.bins for m in found if m.bins is not None)

    @cached_property
    def accuracy(self) -> float:
        """Median accuracy, NaN without any."""
        return self._median("accuracy")

    @cached_property
    def samples(self) -> float:
        """Median number of test samples, NaN if it is not known."""
        return self._median("n")

    def _median(self, column: str) -> float:
        known = self.complete(column)[0] if column in self else np.empty(0)
        return float(np.median(known)) if known.size else math.nan

    def error_by_chance(self, bins: int, accuracy: float | None = None) -> float:
        """What the ECE of a perfectly calibrated model is at most on average, because of the finite test set.

        For given confidences z, the gap of a bin is a sum of independent terms of mean zero and variance z(1 - z),
        whose mean absolute value is at most the square root of their summed variance. Over M bins (Cauchy and Schwarz)
        that makes at most √(M v / n), with v the mean of z(1 - z), and v is at most a(1 - a) for the accuracy a, the
        mean of z (Jensen). NaN if the table has no sample counts or accuracies.
        """
        share = self.accuracy if accuracy is None else accuracy
        if not self.samples >= 1 or not 0 <= share <= 1:
            return math.nan
        return min(1.0, math.sqrt(bins * share * (1 - share) / self.samples))  # no ECE is larger


@dataclass(frozen=True, eq=False)
class Population:
    """The models of a review by data set, and its settings."""

    sheets: tuple[Sheet, ...]
    metric: str
    bins: int
    resampling: Resampling
    beta: float
    wanted: tuple[int, ...] | None
    robustness: tuple[str, ...]
    sizes: tuple[str, ...]
    architecture: tuple[str, ...]
    rule: str = "none"  # by which models are the same cell
    copies: int = 0  # models that are the same cell as another one, by the published rule if by none
    most: str = "most"  # whether parts are of the most or the least accurate models

    @property
    def column(self) -> str:
        """The column of the chosen metric before temperature scaling."""
        return self.sheets[0].column_of(self.metric, self.bins)

    @property
    def scaled(self) -> str:
        """The column of the chosen metric after temperature scaling."""
        return self.sheets[0].column_of(self.metric, self.bins, "post")

    @property
    def label(self) -> str:
        """The chosen metric in words."""
        return LABELS[self.metric]

    @property
    def binned(self) -> str:
        """The chosen metric if it has bins, or else the ECE."""
        return self.metric if self.metric in BINNED else "ece"

    @property
    def words(self) -> dict[str, Any]:
        """What a sentence may say of the review."""
        return {"label": self.label, "binned": LABELS[self.binned], "scaled": self.scaled, "most": self.most}

    def columns(self, name: str) -> tuple[str, ...]:
        """Columns by what they are (metric, scaled, robustness, sizes or architecture), or one by its name."""
        known = {"metric": (self.column,), "scaled": (self.scaled,)}
        known |= {each: getattr(self, each) for each in ("robustness", "sizes", "architecture")}
        return known.get(name, (name,))

    def __contains__(self, column: object) -> bool:
        return column in self.sheets[0]

    @cached_property
    def models(self) -> dict[str, int]:
        """A number for every model."""
        names = dict.fromkeys(name for sheet in self.sheets for name in sheet.raw("model").tolist())
        return {name: row for row, name in enumerate(names)}

    def wide(self, column: str) -> Floats:
        """A column as a model × data set matrix, NaN where a model was not measured."""
        values = np.full((len(self.models), len(self.sheets)), np.nan)
        for place, sheet in enumerate(self.sheets):
            values[[self.models[name] for name in sheet.raw("model").tolist()], place] = sheet[column]
        return values

    def by_mean_rank(self, *columns: str) -> tuple[list[Floats], Floats]:
        """Columns as model × data set matrices, the most accurate models first, and what these are sorted by.

        That is the mean rank by accuracy. Models whose first column is known on fewer than two data sets are left out.
        """
        values = [self.wide(column) for column in columns]
        score = np.full(len(self.models), np.nan)
        order = np.arange(len(self.models))
        if "accuracy" in self:
            accuracy = self.wide("accuracy")
            place = np.full(accuracy.shape, np.nan)
            sign = -1 if self.most == "most" else 1
            for column in range(accuracy.shape[1]):
                known = ~np.isnan(accuracy[:, column])
                _, ranks, counts = np.unique(sign * accuracy[known, column], return_inverse=True, return_counts=True)
                middle = np.cumsum(counts) - counts / 2
                place[known, column] = middle[ranks] / known.sum()
            known = ~np.isnan(place)
            np.divide(np.where(known, place, 0).sum(axis=1), known.sum(axis=1), out=score, where=known.any(axis=1))
            order = np.argsort(score, kind="stable")
        order = order[(~np.isnan(values[0][order])).sum(axis=1) > 1]
        return [each[order] for each in values], score[order]

    def models_text(self, top: int, n: int) -> str:
        """Which models, in words."""
        return f"the {top:,} {self.most} accurate models" if top < n else f"all {n:,} models"

    def part_text(self, top: int) -> str:
        """Which part of the models, in the name of a finding."""
        return f"top {top:,}" if self.most == "most" else f"{top:,} least accurate"

    def tops(self, n: int) -> tuple[int, ...]:
        """Sizes of the most accurate parts that are looked at, the last being all."""
        if self.wanted is not None:
            chosen: Sequence[int] = self.wanted
        elif n >= _PUBLISHED_TOPS[-1]:
            chosen = _PUBLISHED_TOPS
        else:
            chosen = [round(n / share) for share in _SHARES]
        return (*sorted({top for top in chosen if SMALLEST_TOP <= top < n}), n)

    def sheet_tops(self, sheet: Sheet) -> tuple[int, ...]:
        """Sizes of the parts of a data set, by the models that have the metric."""
        if "accuracy" not in sheet:
            return (len(sheet),)
        return self.tops(sheet.columns_by_accuracy(self.column)[0].size)

    def correlation(self, sheet: Sheet, x: str, y: str, name: str, *, top: int | None = None) -> Finding:
        """Kendall's correlation of two columns of a sheet, among its most accurate models if ``top`` is given."""
        first, second = sheet.complete(x, y) if top is None else sheet.columns_by_accuracy(x, y)
        kept = first.size if top is None else min(top, first.size)
        whole = f"{sheet.name}: {name}, " + (self.part_text(kept) if kept < first.size else "all models")
        return self.resampling.correlation(whole, first, second, tag=f"{sheet.name}/{kept}", top=top)

    def harmonic_scores(self, sheet: Sheet) -> Floats | None:
        """HCS_β = (1 + β)·Acc·(1 - ECE) / (β·Acc + 1 - ECE) of every model of a sheet; None without the two columns.

        NaN where one of the two is missing, or not a share from 0 to 1.
        """
        column = sheet.column_of("ece", self.bins)
        if column not in sheet or "accuracy" not in sheet:
            return None
        accuracy, calibrated, beta = sheet["accuracy"], 1 - sheet[column], self.beta
        below = beta * accuracy + calibrated
        known = (accuracy >= 0) & (accuracy <= 1) & (calibrated >= 0) & (calibrated <= 1)
        found = np.where(known, 0.0, np.nan)
        np.divide((1 + beta) * accuracy * calibrated, below, out=found, where=known & (below > 0))
        return found

    def ranking(self, sheet: Sheet) -> FindingTable | None:
        """The models with the best harmonic calibration score, and their places by accuracy and by ECE."""
        scores = self.harmonic_scores(sheet)
        if scores is None or np.isnan(scores).all():
            return None
        models, accuracy, error = (
            sheet.raw("model"),
            sheet["accuracy"],
            sheet[sheet.column_of("ece", self.bins)],
        )
        order = np.argsort(-scores, kind="stable")
        rows = tuple(
            (
                str(place),
                str(models[row]),
                float(scores[row]),
                float(accuracy[row]),
                float(error[row]),
                str(1 + int((accuracy > accuracy[row]).sum())),
                str(1 + int((error < error[row]).sum())),
            )
            for place, row in enumerate(order[~np.isnan(scores[order])][:_RANKED].tolist(), 1)
        )
        score = f"HCS (β = {self.beta:g})"
        header = ("place", "model", score, "accuracy", f"ECE ({self.bins} bins)", "by accuracy", "by ECE")
        return FindingTable(f"{sheet.name}: best harmonic calibration scores", header, rows)


def populate(table: StudyTable, asked: StudyReviewSettings) -> tuple[Population, str]:
    """The rows of a split that did not fail, by data set; and the split."""
    metric, bins, split = asked.metric, asked.bins, asked.split
    column = str(MeasuredColumn("pre", metric, bins if metric in BINNED else None))
    if column not in table:
        raise InputError(f"the table has no column {column!r}; {_metric_remedy(table, metric)}")
    robust = robustness_columns(table, asked.robustness)
    sizes = None if asked.sizes is None else match_columns(table, asked.sizes, "sizes", numbers=True)
    design = (
        None if asked.architecture is None else match_columns(table, asked.architecture, "architecture", numbers=False)
    )
    split = _only_split(table) if split is None else split
    if split not in table.splits:
        there = ", ".join(map(repr, table.splits)) or "no rows"
        raise InputError(f"there is no {split!r}", argument="split", remedy=f"the table has {there}")
    kept = np.flatnonzero((table["status"] == OK) & (table["split"] == split))
    if not kept.size:
        raise InputError(f"no row of split {split!r} was measured; measure some models first")
    same = first_equal_models(table["model"][kept].tolist(), "published" if asked.unique == "none" else asked.unique)
    copies = sum(name != first for name, first in same.items())
    if copies and asked.unique != "none":
        kept = kept[[same[name] == name for name in table["model"][kept].tolist()]]
    names, sign = table["data"][kept], -1 if asked.least is None else 1
    chosen = _chosen_data(list(dict.fromkeys(names.tolist())), asked.data)
    kept = kept[np.isin(names, chosen)]
    names = table["data"][kept]
    sheets = tuple(Sheet.of(name, table, kept[names == name], sign) for name in chosen)
    given = [name for name in table.given if name not in robust]
    population = Population(
        sheets,
        metric,
        bins,
        Resampling(asked.resamples, asked.level, asked.seed),
        asked.hcs_beta,
        asked.tops if asked.least is None else asked.least,
        robust,
        tuple(name for name in given if is_size(name) and _varies(table[name][kept])) if sizes is None else sizes,
        tuple(name for name in given if _is_choice(table[name][kept])) if design is None else design,
        asked.unique,
        copies,
        "most" if asked.least is None else "least",
    )
    return population, split


def _chosen_data(names: list[str], wanted: Sequence[str] | None) -> list[str]:
    if unknown := [name for name in wanted or () if name not in names]:
        remedy = f"the table has {', '.join(map(repr, names))}"
        raise InputError(f"there is no data set {unknown[0]!r}", argument="data", remedy=remedy)
    return names if wanted is None else list(dict.fromkeys(wanted))


def _only_split(table: StudyTable) -> str:
    splits = list(dict.fromkeys(table["split"][table["status"] == OK].tolist())) or table.splits
    if len(splits) > 1 and "test" not in splits:
        raise InputError(f"the table has the splits {', '.join(map(repr, splits))}; pass split, one of them")
    return "test" if "test" in splits else splits[0] if splits else "test"


def _metric_remedy(table: StudyTable, metric: str) -> str:
    before = [m for m in table.measurements if m.stage == "pre"]
    counts = sorted(m.bins for m in before if m.metric == metric and m.bins is not None)
    if counts:
        return f"{metric} was measured at {', '.join(map(str, counts))} bins: pass bins, one of them"
    names = ", ".join(dict.fromkeys(m.metric for m in before))
    if not names:
        return "it has no calibration errors before temperature scaling at all: measure the models first"
    return f"before temperature scaling it has {names}: pass metric, one of them, or measure the models first"


def _varies(values: NDArray[Any]) -> bool:
    """Whether a column holds numbers that are not all the same."""
    if values.dtype == object:
        return False
    known = values[~np.isnan(values)]
    return known.size > 0 and bool((known != known[0]).any())


def _is_choice(values: NDArray[Any]) -> bool:
    """Whether a column holds texts of which there are only a few different ones."""
    return values.dtype == object and 2 <= len(set(values.tolist())) <= _MOST_CHOICES
