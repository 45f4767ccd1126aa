"""What numbers are called for people, in which order they stand, and how each is computed.

The words of metrics are in their entries, :data:`certcal.metrics.METRICS`; those of certified numbers are here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from inspect import signature
from typing import Any

from certcal.claims import Estimate
from certcal.metrics import METRICS
from certcal.metrics.registry import SECTION_NAMES, SECTIONS, entry_named
from certcal.report.document import Cell, Column, Heading, Table
from certcal.report.numbers import bins_text
from certcal.verdict import CLAIM_NAMES, Vocabulary, plain


@dataclass(frozen=True)
class Wording:
    """What the parts of a reliability diagram are called."""

    number: str
    mean: str
    rate: str
    """The number of each sample, its mean in a bin, and the share that it is held against."""
    over: str
    under: str
    """What a bin is whose mean number is above, or below, the rate; behind "bins that are"."""


_CONFIDENCE = Wording("confidence", "mean confidence", "accuracy", "overconfident", "underconfident")
_SCORE = Wording("score", "mean score", "observed rate", "over-predicted", "under-predicted")


def wording(task: str | None) -> Wording:
    """The words of a kind of task.

    Examples
    --------
    >>> wording("binary").rate, wording("multiclass").rate
    ('observed rate', 'accuracy')
    """
    return _SCORE if task == "binary" else _CONFIDENCE


# What certified numbers are called.
CERTIFIED_NAMES = {
    "certified_accuracy": "certified accuracy",
    "base_rate": "base rate",
    "certified_skill": "certified skill",
    "certified_best_skill": "certified skill of the best monotone map",
    "certified_miscalibration": "certified miscalibration",
    "certified_resolution": "certified resolution",
    "certified_uncertainty": "uncertainty",
    "brier_score": "Brier score",
    "nll": "log loss",
    "calibration_error": "calibration error (ECE)",
    "mce": "largest gap of a bin (MCE)",
    "ks_error": "KS calibration error",
    "population_bound": "calibration error in the population",
    "calibration_error_where_every_certificate_holds": "calibration error where every certificate holds",
    "claimed_calibration_error": "calibration error, with certificates that fail",
    "equal_mass_error": "equal-mass calibration error (AdaECE)",
    "equal_mass_error_where_every_certificate_holds": "equal-mass calibration error where every certificate holds",
}

CALIBRATION_ERROR = (
    "The calibration error is how far confidences and the share of right predictions lie apart, averaged over "
    "predictions; smaller is better."
)
_SCORE_ERROR = (
    "The calibration error is how far scores and observed rates lie apart, averaged over samples; smaller is better."
)

CERTIFIED = {
    "base_rate": "The share of outcomes that are 1. Rounded down.",
    "certified_accuracy": "The share of all samples whose prediction is certified and correct. Rounded down.",
    "certified_skill": "1 minus the certified Brier score over that of one constant confidence for all samples. Above "
    "0, the confidences carry information that survives inside the intervals. Rounded down.",
    "certified_best_skill": "The certified skill of the non-decreasing map of the confidences that has the least "
    "certified Brier score: one isotonic regression, of correctness on the lower end of each correct sample's interval "
    "and the upper end of each wrong one's. It is fitted to these very samples, so it is an optimistic figure for "
    "others. Rounded down.",
    "certified_miscalibration": "The certified Brier score minus that of the same map: what a non-decreasing map can "
    "take away, and no more. Rounded up.",
    "certified_resolution": "The Brier score of one constant confidence minus the certified one of the same map: 0 "
    "when no non-decreasing map is certified to beat a constant. No confidences inside the intervals have less. "
    "Rounded down.",
    "certified_uncertainty": "The Brier score of one constant confidence for all samples, the best one: p(1 − p), with "
    "p the share of correct samples among those that are certified. Rounded up.",
    "brier_score": "Each correct sample is put at the lower end of its interval and each wrong one at the upper end: "
    "no other confidences have a larger score.",
    "nll": "Each correct sample is put at the lower end of its interval and each wrong one at the upper end: no other "
    "confidences have a larger loss.",
    "calibration_error": "The largest ECE over all confidences inside the intervals, found exactly: for a given sign "
    "of every bin the best place of each sample is known, and a dynamic program goes over all signs.",
    "mce": "The largest gap that any single bin can have, over all confidences inside the intervals.",
    "ks_error": "The largest Kolmogorov–Smirnov distance over all confidences inside the intervals, found exactly.",
    "population_bound": "The worst case on these samples, plus the sampling error, plus what intervals that fail can "
    "add.",
    "calibration_error_where_every_certificate_holds": "The largest ECE over all confidences inside the intervals, "
    "found exactly. It takes the far end of every interval at once and counts none as failed; the calibration error "
    "averages their noise, or counts those that fail.",
    "claimed_calibration_error": "The largest ECE that the limits of all samples' ends and of their sum allow "
    "together: the noise of different samples is independent, so that of a sum is small. With familywise "
    "certificates, the worst case on these samples; with published ones, that where some fail: the tail of a binomial "
    "distribution bounds how many, and those that do most harm may have any confidence, right or wrong.",
    "equal_mass_error": "Equal-mass bins with edges recomputed from the attacked confidences. A bound: the best signs "
    "with one change per edge, each edge between the order statistics of the interval ends. The sentence also says "
    "what some confidences have.",
    "claimed_equal_mass_error": "The bound where every certificate holds, with each edge further out by as many ranks "
    "as certificates fail, plus what those samples can add themselves.",
}
CERTIFIED["equal_mass_error_where_every_certificate_holds"] = CERTIFIED["equal_mass_error"]


def calibration_error(task: str | None = None) -> str:
    """What a calibration error is, in a sentence."""
    return _SCORE_ERROR if task == "binary" else CALIBRATION_ERROR


def label(name: str, task: str | None = None) -> str:
    """What a metric is called for people, in the words of a kind of task."""
    entry = entry_named(name, task)
    return name.replace("_", " ") if entry is None else entry.text("label", task)


@cache
def vocabulary() -> Vocabulary:
    """What requirements may call numbers: names of rows, and what they are called in print.

    Examples
    --------
    >>> vocabulary().meanings["o_e"], vocabulary().labels["ks_error"]
    (('observed_expected_ratio',), 'KS calibration error')
    >>> vocabulary().meanings["slope"]
    ('calibration_slope',)
    """
    labels, meanings = dict(CERTIFIED_NAMES), dict[str, tuple[str, ...]]()
    for entry in METRICS.values():
        for kind in entry.tasks:
            name, texts = entry.text("name", kind), (entry.text("label", kind), entry.text("short", kind), entry.name)
            labels.setdefault(name, texts[0].partition(" (")[0])
            brief = entry.name.removesuffix("_error").removeprefix("calibration_")
            for text in (name, *texts, texts[0].partition(" (")[0], brief):
                meanings[plain(text)] = tuple(dict.fromkeys((*meanings.get(plain(text), ()), name)))
    for name, text in CERTIFIED_NAMES.items():
        for each in (name, text, text.partition(" (")[0]):
            meanings[plain(each)] = tuple(dict.fromkeys((*meanings.get(plain(each), ()), name)))
    return Vocabulary(labels, meanings)


@cache
def requirement_names() -> frozenset[str]:
    """Plain spellings of all that a requirement can be about, but for metrics of one's own."""
    from certcal import bounds

    methods = [name for name in bounds.__all__ if "delta" in signature(getattr(bounds, name)).parameters]
    words = vocabulary()
    return frozenset(
        {*words.meanings, *words.labels, *CLAIM_NAMES, *methods, *(f"classwise_{each}" for each in methods), "bound"}
    )


def row_label(row: Estimate, task: str | None = None) -> str:
    """The label of a row, with its threshold if there is one.

    Examples
    --------
    >>> row_label(Estimate("accuracy", 0.8, 9, {"threshold": 0.5}), "binary")
    'accuracy at threshold 0.5'
    """
    at = row.settings.get("threshold")
    return label(row.name, task) + ("" if at is None else f" at threshold {at:g}")


def short_label(name: str, task: str | None = None) -> str:
    """The label of a metric in a narrow column."""
    entry = entry_named(name, task)
    return label(name) if entry is None else entry.text("short", task)


def definition(name: str, task: str | None = None) -> str:
    """How a metric is computed; nothing for metrics of one's own."""
    entry = entry_named(name, task)
    return "" if entry is None else entry.text("definition", task)


def headlines(task: str) -> list[str]:
    """Metrics for tables with a line per group, most telling first."""
    shown = (entry for entry in METRICS.values() if entry.headline and task in entry.tasks)
    return [entry.text("name", task) for entry in sorted(shown, key=lambda entry: entry.headline)]


def in_sections(rows: Iterable[Estimate], task: str | None = None) -> list[tuple[str, list[Estimate]]]:
    """Rows under the headings they belong to, in their places there.

    Examples
    --------
    >>> rows = [Estimate("ece", 0.1, 9), Estimate("accuracy", 0.8, 9)]
    >>> [(title, [row.name for row in members]) for title, members in in_sections(rows)]
    [('Accuracy', ['accuracy']), ('Calibration error in bins', ['ece'])]
    """
    sections: dict[str, list[Estimate]] = {title: [] for title in SECTIONS}
    for row in rows:
        entry = entry_named(row.name, task)
        sections.setdefault("Other" if entry is None else entry.section, []).append(row)
    for members in sections.values():
        members.sort(key=lambda row: getattr(entry_named(row.name, task), "place", 0))
    spelled = SECTION_NAMES.get(task or "", {})
    return [(spelled.get(title, title), members) for title, members in sections.items() if members]


def definitions(rows: Iterable[Estimate], task: str | None = None) -> Table:
    """What each metric of some rows is, once."""
    known = [name for name in dict.fromkeys(row.name for row in rows) if definition(name, task)]
    texts = [(label(name, task), definition(name, task)) for name in known]
    return Table((Column("metric"), Column("definition")), texts)


def metric_rows(
    rows: Iterable[Estimate], task: str | None, cells: Callable[[Estimate], Sequence[Cell]]
) -> list[Sequence[Cell] | Heading]:
    """Lines of a table of metrics, under their headings: the name, the number of bins, and cells."""
    made: list[Sequence[Cell] | Heading] = []
    for heading, members in in_sections(rows, task):
        made += [Heading(heading), *([row_label(row, task), bins_text(row), *cells(row)] for row in members)]
    return made


def cautions(rows: Iterable[Estimate], task: str | None = None) -> str:
    """What readers of these metrics should know, for the note below their table."""
    entries = (entry_named(name, task) for name in dict.fromkeys(row.name for row in rows))
    return " ".join(entry.caution for entry in entries if entry is not None and entry.caution)


def per_group(
    by: str | None,
    columns: Mapping[Any, Column],
    lines: Iterable[tuple[str, int, Mapping[Any, Cell]]],
    caption: str,
    note: str = "",
    fit: str = "drop",
) -> Table:
    """A line per group: its name, its number of samples, and cells by the keys of their columns."""
    heads = [Column(by or "group", wrap=True), Column("samples", "count", priority=1), *columns.values()]
    rows = [[name, n, *(cells.get(key, "") for key in columns)] for name, n, cells in lines]
    return Table(heads, rows, caption, note, fit)
