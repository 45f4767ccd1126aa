"""Several runs or logs beside each other: everything that is printed or plotted, prepared.

What is compared are families, the runs of one method at several noise levels; runs without a family are families of one
member each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from certcal._base.json import PlainValues
from certcal._base.text import capital
from certcal.lab.logs._accuracies import AccuracyDifference, difference_sentences
from certcal.lab.logs._budgets import SettingTable
from certcal.lab.logs._calibration import CertifiedCalibration
from certcal.lab.logs._dominance import Dominance
from certcal.lab.logs._graph import DominanceGraph
from certcal.lab.logs._repeats import RepeatedRuns
from certcal.result import Answer, Result, Sentence
from certcal.smoothing.robustness.accuracy import AccuracyCurve, AccuracySteps, AverageCertifiedRadius, BestCurve
from certcal.smoothing.robustness.distribution import PaDistribution
from certcal.verbs.compare import CompareSettings

_WHERE = ("draws", "alpha", "radius", "p", "other")
_COLUMNS = (
    "run",
    "family",
    "source",
    "sigma",
    "quantity",
    "samples",
    *_WHERE,
    "certified",
    "n",
    "value",
    "upper",
    "text",
)
# Sentences that an answer has of differences; what they assume, and what they do not say.
_TOLD = 2
_ASSUMED = (
    "these samples are independent draws from those the models will see",
    "networks, radii and level were fixed before looking at them",
)
_UNSAID = ("how another training of the same method would compare", "what the average certified radius ranks")
# Where the curve P(p_A >= p) is written.
_AT_P = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)


@dataclass(frozen=True, eq=False)
class Compared(
    PlainValues,
    keys="name sigma draws alpha n n_abstained certified_accuracy=curve certified_as_printed=printed.certified "
    "average_certified_radius=average distribution notes runs",
):
    """One run or log in a comparison."""

    name: str
    """Of the run."""
    sigma: float
    draws: tuple[int, int]
    alpha: float
    """How it was certified; ``draws`` is the smallest and largest number per sample."""
    n: int
    n_abstained: int
    """Samples, and those without a certificate."""
    curve: AccuracyCurve
    """Certified accuracy; of a log by the fewest votes that its printed radii allow, so at least this."""
    printed: AccuracyCurve
    """The same by a log's radii as printed: above ``curve`` where they were rounded up. Of a run, ``curve``."""
    steps: AccuracySteps
    """``curve`` at every radius."""
    average: AverageCertifiedRadius
    """Average certified radius, with its warning; of a log by its radii as printed."""
    distribution: PaDistribution
    """Of p_A."""
    notes: tuple[str, ...] = ()
    """What a reader should know about a log."""
    runs: int = 1
    """How many runs these are, taken together: then all shares are means over them."""

    @property
    def percents(self) -> tuple[str, ...]:
        """Certified accuracy in per cent as tables have it: 22.96 (≥ 22.31) where a log's rounding leaves it open."""
        lines = zip(self.printed.certified, self.curve.certified, self.curve.percents, strict=True)
        return tuple(
            least if count == sure else f"{100 * count / self.n:.2f} (≥ {least})" for count, sure, least in lines
        )


@dataclass(frozen=True, eq=False)
class RunFamily(PlainValues):
    """One method at several noise levels."""

    name: str
    """Of the method."""
    runs: tuple[Compared, ...]
    """Smallest σ first; a run's name is that of the method and σ."""
    best: BestCurve
    """Highest certified accuracy over σ at each radius."""

    @property
    def sigmas(self) -> tuple[float, ...]:
        """Noise levels, smallest first."""
        return tuple(run.sigma for run in self.runs)

    @property
    def steps(self) -> AccuracySteps:
        """``best`` at every radius."""
        return AccuracySteps.highest(run.steps for run in self.runs)


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Result):
    """Families of runs and logs beside each other; a run without a family is one of its own.

    Made by :func:`certcal.compare`.

    Examples
    --------
    >>> from certcal.lab.logs import compare
    >>> from certcal.smoothing.robustness import VoteRecord
    >>> easy = VoteRecord.of([100, 20], 100, [1, 1], sigma=1.0, label=[0, 1], name="trivial")
    >>> even = VoteRecord.of([90, 90], 100, [1, 1], sigma=1.0, label=[0, 1], name="even")
    >>> both = compare([easy, even], at=[0.5, 1.0])
    >>> [run.curve.texts for run in both.runs], both.best.names, both.dominance[0].verdict
    ([('0.5000', '0.5000'), ('1.0000', '0.0000')], (('even',), ('trivial',)), 'neither')
    """

    view: ClassVar[str] = "certcal.lab.logs.view"

    families: tuple[RunFamily, ...]
    """In the order given; of one run each unless they were named."""
    best: BestCurve
    """Whose certified accuracy is highest at each radius."""
    graphs: tuple[DominanceGraph, ...]
    """Who is better than whom. One graph of all if every family has one run; else one per σ that at least two have, and
    one by the best over σ at each radius."""
    notes: tuple[str, ...] = ()
    """What limits the comparison."""
    budgets: tuple[SettingTable, ...] = ()
    """Certified accuracy at other budgets and levels, one table per budget and σ."""
    calibration: tuple[CertifiedCalibration, ...] = ()
    """What is certified of confidences: of runs, since a log has none."""
    origins: Mapping[str, str] = field(default_factory=dict[str, str])
    """File or folder of each run by the run's name, for those that were read from one."""
    repeats: tuple[RepeatedRuns, ...] = ()
    """Where a method has several runs at a noise level, each of them."""
    differences: tuple[AccuracyDifference, ...] = ()
    """At each radius, who of each pair of single runs certifies more beyond sampling error, all of them together."""
    settings: CompareSettings | None = None
    """What was asked: ``compare(*sources, **vars(c.settings))`` gives the same. None for what was not asked there."""

    def __repr__(self) -> str:
        radii = f"{len(self.at):,} {'radius' if len(self.at) == 1 else 'radii'}"
        return f"<Comparison of {', '.join(self.names)} at {radii}>"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the families."""
        return tuple(family.name for family in self.families)

    @property
    def at(self) -> tuple[float, ...]:
        """Radii."""
        return self.best.at

    @property
    def runs(self) -> tuple[Compared, ...]:
        """All runs, family after family."""
        return tuple(run for family in self.families for run in family.runs)

    @property
    def sigmas(self) -> tuple[float, ...]:
        """All noise levels, smallest first."""
        return tuple(sorted({run.sigma for run in self.runs}))

    def at_sigma(self, sigma: float) -> tuple[tuple[str, Compared], ...]:
        """Names of the families with a run at a noise level, and the runs.

        Parameters
        ----------
        sigma
            One of ``sigmas``.
        """
        return tuple((family.name, run) for family in self.families for run in family.runs if run.sigma == sigma)

    def origin(self, run: Compared) -> str:
        """File or folder of a run; empty when it was in memory.

        Parameters
        ----------
        run
            One of ``runs``.
        """
        return self.origins.get(run.name, "")

    @property
    def sources(self) -> Sequence[str]:
        """Files and folders that were read."""
        return tuple(dict.fromkeys(filter(None, map(self.origin, self.runs))))

    @property
    def dominance(self) -> tuple[Dominance, ...]:
        """Every verdict on a pair."""
        return tuple(pair for graph in self.graphs for pair in graph.pairs)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was found: of each graph, who is better, what the average radius adds, and what is beyond chance."""
        told = ((graph.statement, graph.contradiction, graph.beyond_chance) for graph in self.graphs)
        return tuple(capital(sentence) for group in told for sentence in group if sentence)

    @property
    def answer(self) -> Answer:
        """Who certifies more at which radii, who dominates, and what to do."""
        told = difference_sentences(self.differences)
        if len(self.families) < 2 or not self.graphs:
            return super().answer
        shown = [Sentence("shown", text, "proven") for text in told[:_TOLD]]
        none = "No difference of certified accuracy at these radii is beyond sampling error."
        seen = [] if shown or not self.differences else [Sentence("seen", none)]
        seen.append(Sentence("seen", capital(self.graphs[0].statement)))
        ahead = {each.ahead for each in self.differences}
        further = "Take more samples, or the cheaper one." if not shown else "Choose by the radius that you need."
        if len(ahead) == 1 and shown:
            further = f"Take {ahead.pop()}: at no radius is it behind beyond sampling error."
        level = self.differences[0].level if self.differences else 0.05
        return Answer((*shown, *seen, Sentence("next", further)), _ASSUMED if shown else (), _UNSAID, 1 - level)

    def claims(self) -> Sequence[Dominance]:
        """Every verdict."""
        return self.dominance

    def contents(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "runs": [
                {"source": self.origin(run), "family": family.name} | run.to_dict()
                for family in self.families
                for run in family.runs
            ],
            "type": "comparison",
            "at": list(self.at),
            "families": [
                {"name": family.name, "runs": [run.name for run in family.runs], "best": family.best.to_dict()}
                for family in self.families
            ],
            "best": self.best.to_dict(),
            "budgets": [each.to_dict() for each in self.budgets],
            "graphs": [graph.to_dict() for graph in self.graphs],
            "dominance": [{"sigma": graph.sigma} | pair.to_dict() for graph in self.graphs for pair in graph.pairs],
            "differences": [each.to_dict() for each in self.differences],
            "calibration": [each.to_dict() for each in self.calibration],
            "repeats": [each.to_dict() | {"sources": [self.origin(run) for run in each.runs]} for each in self.repeats],
            "sentences": list(self.sentences),
            "notes": list(self.notes),
        }

    def columns(self) -> Mapping[str, Sequence[Any]]:
        """One line per number, with all digits: what it is, of whom, and where."""
        rows = list(self._rows())
        return {name: [row.get(name) for row in rows] for name in _COLUMNS}

    def _rows(self) -> Iterator[dict[str, Any]]:
        for family in self.families:
            for run in family.runs:
                yield from ({"source": self.origin(run), **row} for row in _run_rows(family.name, run))
        for family in self.families:
            for radius, value, text in zip(self.at, family.best.values, family.best.texts, strict=True):
                best = {"quantity": "best_certified_accuracy", "samples": "all"}
                yield {"family": family.name, **best, "radius": radius, "value": value, "text": text}
        for table in self.budgets:
            for name, values in table.rows:
                for i, radius in enumerate(values.at.tolist()):
                    yield {
                        "family": name,
                        "sigma": table.sigma,
                        "quantity": "converted_certified_accuracy",
                        "samples": "all",
                        **table.setting.to_dict(),
                        "radius": radius,
                        "p": float(values.p[i]),
                        "value": float(values.lower[i]),
                        "upper": float(values.upper[i]),
                    }
        for each in self.differences:
            if each.ahead is not None:
                other = each.second if each.ahead == each.first else each.first
                where = {"sigma": each.sigma, "radius": each.radius, "p": each.p}
                yield {"family": each.ahead, **where, "quantity": "certifies_more_beyond_chance", "other": other}
        for one in self.calibration:
            yield from _calibration_rows(one)
        for several in self.repeats:
            yield from _repeat_rows(several)
        for graph in self.graphs:
            where = {} if graph.sigma is None else {"sigma": graph.sigma}
            for quantity, edges in (
                ("better_than", graph.edges),
                ("strictly_better_than", graph.strict_edges),
                ("better_than_beyond_chance", graph.firm_edges),
            ):
                for better, worse in edges:
                    yield {"family": better, **where, "quantity": quantity, "other": worse}


def _run_rows(name: str, run: Compared) -> Iterator[dict[str, Any]]:
    about = {"run": run.name, "family": name, "sigma": run.sigma, "samples": "all", "n": run.n}
    about |= {"draws": run.draws[0], "alpha": run.alpha}
    curve = run.curve
    for radius, count, value, text in zip(curve.at, curve.certified, curve.values, curve.texts, strict=True):
        here = {**about, "quantity": "certified_accuracy", "radius": radius}
        yield {**here, "certified": count, "value": value, "text": text}
    printed = {"text": "as printed"} if run.average.as_printed else {}
    seen = zip(curve.at, run.printed.certified, run.printed.values, strict=True)
    for radius, count, value in seen if run.average.as_printed else ():
        here = {**about, "quantity": "certified_accuracy_as_printed", "radius": radius}
        yield {**here, "certified": count, "value": value, **printed}
    yield {**about, "quantity": "average_certified_radius", "value": run.average.value, **printed}
    lower, upper = run.distribution.survival(_AT_P)
    for p, low, high in zip(_AT_P, lower.tolist(), upper.tolist(), strict=True):
        yield {**about, "quantity": "share_with_p_a_at_least", "p": p, "value": low, "upper": high}


def _repeat_rows(several: RepeatedRuns) -> Iterator[dict[str, Any]]:
    about = {"family": several.family, "sigma": several.sigma, "samples": "all"}
    deviation = several.average.deviation
    yield {**about, "quantity": "standard_deviation_of_average_certified_radius", "value": deviation}
    for radius, spread in zip(several.at, several.accuracies, strict=True):
        quantity = "standard_deviation_of_certified_accuracy"
        yield {**about, "quantity": quantity, "radius": radius, "value": spread.deviation}


def _calibration_rows(one: CertifiedCalibration) -> Iterator[dict[str, Any]]:
    about = {"family": one.family, "sigma": one.sigma, "alpha": one.alpha}
    for radius, summary in zip(one.radii, one.summaries, strict=True):
        here = {**about, "radius": radius}
        yield {**here, "quantity": "certified_samples", "samples": "all", "value": summary.n_certified}
        for metric in ("calibration_error", "brier_score"):
            ranges = summary[metric]
            for samples, worst in (("certified", ranges.worst), ("all", ranges.worst_all)):
                if worst is not None:
                    worded = {"quantity": f"certified_{metric}", "samples": samples, "text": worst.text}
                    yield {**here, **worded, "value": worst.value}
        skill = summary.skill
        if skill.value == skill.value:  # not undefined
            worded = {"quantity": "certified_skill", "samples": "certified", "text": skill.text}
            yield {**here, **worded, "value": skill.value}
