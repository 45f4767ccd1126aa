"""From numbers to an answer: calibrated or not, in which direction, too extreme or too timid, where, what to do next.

*What is random.* The outcomes, given the scores (and weights), independent of each other; η_i is the probability of
outcome i. Groups are cut by the scores alone: given the scores they are fixed, however the cuts were found.

*What is claimed.* Limits of the mean of η in a group, which is the group's mean score if the scores are calibrated. The
number of events in a group is a sum of independent draws, so the limits of Clopper and Pearson for draws that differ
(``certcal.bounds.clopper_pearson``) hold for every number of samples; with weights those of Hoeffding do. A range is
called wrong where its mean score lies outside its limits. Limits of neighbours, averaged with their weights, are limits
of their union whenever they hold, so it costs nothing to merge them after looking.

*Together.* Shown sentences are wrong with probability at most 5 %: all samples as one group have 0.5 % of it, the
groups 1.5 % (Šidák: given the scores they are independent), the slope, or all classes, 0.5 %, and the upper end of the
ECE's interval 2.5 %. By the union bound it does not matter which sentences the numbers choose. The limits of groups and
classes are proven, those of slope and ECE asymptotic. That scores are not calibrated follows from any of the first
three and costs nothing; that they are calibrated is never shown.

*Segments.* Where it is asked which segments are wrong (``by``), groups of scores leave them 1 % of their 1.5 %, in
equal shares: segments may overlap, so that only the union bound is left. They are cut by the columns that name them and
never by outcomes; given scores and columns they are fixed, and their limits are those of a group. A segment that is
wrong does not show that the scores are: as a function of the score alone they may be right.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from certcal._base.json import PlainValues
from certcal._base.rounding import round_outward
from certcal._base.text import counted, these
from certcal.binning import BinTable, mass_edges, sums
from certcal.claims import Estimate
from certcal.predictions import Predictions
from certcal.result import Answer, Sentence

if TYPE_CHECKING:
    from certcal.verbs.groups import GroupRate

# Probabilities of being wrong that add up to 5 %; what groups leave to segments, where these are asked for.
ERROR, GROUPS, WHOLE, SLOPE = 0.025, 0.015, 0.005, 0.005
SEGMENTS = 0.010
# Groups of equal mass, and how many samples one has at least; steps of the isotonic curve; parts of the scores.
_GROUPS, _FEWEST, _STEPS, _QUANTILES = 10, 20, 1000, 100
# A limit of the ECE that says nothing, as those of few samples.
_WITHOUT_NEWS = 0.9
# Events that are told one by one, not as a share.
_MOST_COUNTED = 1000


class _Words(NamedTuple):
    """How a kind of score is spoken of."""

    scores: str
    happen: str
    predicted: str
    under: str
    over: str


_SCORES = _Words("scores", "happen", "predicted", "understated", "overstated")
_CONFIDENCES = _Words("confidences", "are right", "claimed", "too low", "too high")


@dataclass(frozen=True)
class ObservedRate(PlainValues, keys="start end n predicted observed ratio lower upper direction"):
    """Samples whose scores lie in a range: what was predicted of them, what was observed, limits of the true rate."""

    start: float
    end: float
    """The range of scores, without its end unless that is 1."""
    n: int
    weight: float
    """Number of samples, and the sum of their weights."""
    predicted: float
    observed: float
    """Mean score, and share of outcomes 1."""
    lower: float
    upper: float
    """Limits of the mean probability of outcome 1, that hold together with those of the other groups."""

    @property
    def ratio(self) -> float:
        """Observed over predicted."""
        return self.observed / self.predicted if self.predicted > 0 else math.inf if self.observed > 0 else math.nan

    @property
    def direction(self) -> int:
        """1 where more happens than is predicted, beyond sampling error; -1 where less does; else 0."""
        room = 1e-12  # a mean of scores is rounded
        return int(self.lower > self.predicted + room) - int(self.upper < self.predicted - room)

    @property
    def gap(self) -> float:
        """Observed minus predicted."""
        return self.observed - self.predicted

    @property
    def ratio_interval(self) -> tuple[float, float]:
        """Ends for the true ratio."""
        lower, upper = (end / self.predicted if self.predicted > 0 else math.inf for end in (self.lower, self.upper))
        return lower, upper

    @property
    def gap_interval(self) -> tuple[float, float]:
        """Ends for the true gap."""
        return self.lower - self.predicted, self.upper - self.predicted


@dataclass(frozen=True, eq=False)
class Diagnosis(PlainValues, keys="whole groups curve? classes?"):
    """What an answer about calibration is made of besides the metrics."""

    whole: ObservedRate
    """All samples as one group."""
    groups: tuple[ObservedRate, ...]
    """By ascending score: ten groups of equal mass, fewer of few samples, or the bins of a table read in pieces."""
    curve: tuple[tuple[float, ...], tuple[float, ...]] | None = None
    """Mean score and observed rate of each level of an isotonic regression."""
    classes: tuple[ObservedRate, ...] = ()
    """Of all probabilities, how often each class is predicted and observed."""
    quantiles: tuple[float, ...] = ()
    """Mean scores of a hundred groups of equal mass, which show where scores are; none of a table read in pieces."""
    share: float = GROUPS
    """Probability with which some limits of the groups are wrong."""

    @classmethod
    def of(cls, predictions: Predictions, share: float = GROUPS) -> Diagnosis:
        """That of predictions in memory; ``share`` is what the groups may fail with."""
        z, c, w = predictions.confidence, predictions.correct, predictions.sample_weight

        def table(groups: int) -> BinTable:
            return sums(z, c, w, mass_edges(z, w, groups, "left"))

        found = cls.of_bins(table(min(_GROUPS, max(1, z.size // _FEWEST))), share)
        classes = _class_rates(predictions) if w is None else ()
        fine = table(min(_QUANTILES, z.size))
        quantiles = tuple(fine.mean_confidence[fine.weight > 0].tolist())
        return cls(found.whole, found.groups, _curve(table(min(_STEPS, z.size))), classes, quantiles, share)

    @classmethod
    def of_bins(cls, bins: BinTable, share: float = GROUPS) -> Diagnosis:
        """That of bins, where nothing else is known."""
        return cls(rate_of(bins, WHOLE), _rates(bins, share), share=share)

    @property
    def ranges(self) -> list[tuple[ObservedRate, Sequence[ObservedRate]]]:
        """Ranges that are wrong beyond sampling error, with their groups.

        Neighbours that err in one direction are a range, from the first to the last that do so beyond sampling error.
        """
        found: list[tuple[ObservedRate, Sequence[ObservedRate]]] = []
        for _, run in groupby(self.groups, lambda each: each.gap > 0):
            members = list(run)
            clear = [place for place, each in enumerate(members) if each.direction]
            spans = [members[clear[0] : clear[-1] + 1]] if clear else []
            if spans and not _union(spans[0]).direction:
                spans = [list(part) for side, part in groupby(members, lambda each: each.direction) if side]
            found += [(_union(span), span) for span in spans]
        return found


def rate_of(bins: BinTable, alpha: float) -> ObservedRate:
    """All bins as one group, with limits that fail with probability at most alpha."""
    names = ("count", "weight", "squared_weight", "confidence_sum", "correct_sum")
    whole = BinTable(bins.edges[[0, -1]], bins.closed, *(getattr(bins, name).sum(keepdims=True) for name in names))
    return _rates(whole, alpha)[0]


def _rates(bins: BinTable, alpha: float) -> tuple[ObservedRate, ...]:
    from certcal.metrics import Reliability

    band = Reliability.of_bins(bins, "joint", 1 - alpha)
    lower, upper = band.lower, band.upper
    assert lower is not None
    assert upper is not None
    return tuple(
        ObservedRate(
            *(float(bins.edges[k]), float(bins.edges[k + 1]), int(bins.count[k]), float(bins.weight[k])),
            *(float(bins.mean_confidence[k]), float(bins.accuracy[k]), float(lower[k]), float(upper[k])),
        )
        for k in np.flatnonzero(bins.weight > 0).tolist()
    )


def _union(groups: Sequence[ObservedRate]) -> ObservedRate:
    weights = [each.weight for each in groups]
    means = np.average(
        [(each.predicted, each.observed, each.lower, each.upper) for each in groups], axis=0, weights=weights
    )
    return ObservedRate(groups[0].start, groups[-1].end, sum(each.n for each in groups), sum(weights), *means.tolist())


def _curve(bins: BinTable) -> tuple[tuple[float, ...], tuple[float, ...]]:
    from certcal.metrics.isotonic import pool

    used = bins.weight > 0
    scores, weight = bins.confidence_sum[used], bins.weight[used]
    fit = pool(scores / weight, weight, bins.correct_sum[used])
    starts = fit.blocks[:-1]
    places = np.add.reduceat(scores, starts) / np.add.reduceat(weight, starts)
    return tuple(places.tolist()), tuple(fit.value[starts].tolist())


def _class_rates(predictions: Predictions) -> tuple[ObservedRate, ...]:
    if predictions.probabilities is None or predictions.labels is None:
        return ()
    from certcal.bounds.concentration import binomial_limits

    n, classes = map(int, predictions.probabilities.shape)
    predicted = predictions.probabilities.mean(axis=0, dtype=np.float64)
    hits = np.bincount(predictions.labels, minlength=classes)
    lower, upper = binomial_limits(hits, np.full(classes, n, np.int64), SLOPE / classes, identical=False)
    rows = zip(predicted.tolist(), (hits / n).tolist(), lower.tolist(), upper.tolist(), strict=True)
    return tuple(ObservedRate(0.0, 1.0, n, float(n), *row) for row in rows)


# ------------------------------------------------------------------------------------------------------------ sentences


def calibration_answer(
    found: Diagnosis,
    task: str,
    *,
    slope: Estimate | None = None,
    error: Estimate | None = None,
    segments: Sequence[tuple[Mapping[str, str], GroupRate]] = (),
    repair: str = "",
    prove: str = "",
    unsaid: Sequence[str] = (),
) -> Answer:
    """The answer about scores, or confidences, and their outcomes.

    Limits of ``segments``, by the values of their columns, fail with probability at most ``SEGMENTS`` together.
    ``repair`` and ``prove`` are commands, or calls, that fit a map and that bound the error.
    """
    words = _SCORES if task == "binary" else _CONFIDENCES
    line = None if slope is None else _about_slope(slope)
    where = (
        None if words is _CONFIDENCES and _is_all_of(found) and found.whole.direction else _about_ranges(found, words)
    )
    told = [each for each in (line, where, _about_classes(found.classes)) if each is not None]
    shown = any(each.kind == "shown" for each in told)
    asked = [_about_segments(segments, words)] if segments else []
    if shown or found.whole.direction:
        first = [_not_calibrated(found, words, line)]
        next_step = Sentence("next", "Fit a map, and judge it on rows that it has not seen.", data={"command": repair})
        if found.whole.observed in (0, 1):
            said = f"Every outcome is {found.whole.observed:.0f}: see first whether the outcomes are complete."
            next_step = Sentence("next", said)
    else:
        on_all = "On the whole no" if asked and asked[0].kind == "shown" else "No"
        first = [Sentence("seen", f"{on_all} miscalibration is shown by {these(found.whole.n, 'sample')}.")]
        first += _about_error(error)
        next_step = Sentence("next", "For a limit that is proven:", data={"command": prove})
        if on_all != "No":
            said = (
                "One map for all scores does not mend a group: look at its rows, or train on more of them. Its limit:"
            )
            next_step = Sentence("next", said, data={"command": prove})
    drawn = f"{these(found.whole.n, 'sample')} are" if found.whole.n > 1 else "this sample is an"
    assumptions = (
        f"{drawn} independent draw{'s' if found.whole.n > 1 else ''} from those the model will see",
        "none of them was used to train, choose or recalibrate the model",
    )
    room = 3 - len(first) - len(asked)  # of the slope and the ranges the latter say more
    told = told[max(0, len(told) - room) :] if asked else told[:room]
    return Answer((*first, *told, *asked, next_step), assumptions, tuple(unsaid))


def _not_calibrated(found: Diagnosis, words: _Words, line: Sentence | None) -> Sentence:
    whole, data = found.whole, dict[str, Any]()
    said = [_pattern(found, words)] if found.ranges else []
    if whole.direction:
        lead = "" if not said else "in all " if words is _SCORES else "on the whole "
        said.append(f"{lead}{_on_the_whole(whole, words)}")
        data = _deviation_data(whole, words)
    if not said and line is None:
        said.append("some class is predicted too often or too rarely")
    basis = "proven" if said else "asymptotic"
    said = said or ["the slope is not 1"]
    return Sentence("shown", f"Not calibrated: {'; '.join(said)}.", basis, data)


def _pattern(found: Diagnosis, words: _Words) -> str:
    places = {"low": list[str](), "middling": list[str](), "high": list[str]()}
    for union, span in found.ranges:
        side = words.under if union.direction > 0 else words.over
        first, last = _is_outermost(found, span)
        if first and last:
            return f"all {words.scores} are {side}"
        places["low" if first else "high" if last else "middling"].append(side)
    if any(len(set(sides)) > 1 for sides in places.values()):
        return f"some {words.scores} are {words.under} and some {words.over}"
    named = [(place, sides[0]) for place, sides in places.items() if sides]
    (place, side), *rest = named
    if rest and all(other == side for _, other in rest):
        return f"{' and '.join(place for place, _ in named)} {words.scores} are {side}"
    return f"{place} {words.scores} are {side}" + "".join(f", {more} {words.scores} {other}" for more, other in rest)


def _on_the_whole(whole: ObservedRate, words: _Words) -> str:
    if words is not _SCORES:
        name = "overconfident" if whole.direction < 0 else "underconfident"
        ends = sorted(map(abs, whole.gap_interval))
        points = f"{100 * abs(whole.gap):.1f} points ({_span(100 * ends[0], 100 * ends[1], 1, ideal=0.0)})"
        right, claimed = _two_percents(whole.observed, whole.predicted)
        return f"{name} by {points}: {right} are right where {claimed} is claimed"
    low, high = whole.ratio_interval
    if not math.isfinite(whole.ratio):
        happened, predicted = _two_percents(whole.observed, whole.predicted)
        return f"{happened} {words.happen} where {predicted} is {words.predicted}"
    if not 0.5 <= whole.ratio <= 2:
        return f"{whole.ratio:.2g} times as many events as predicted ({_span(low, high, 1 if low >= 1 else 2)})"
    ends = sorted((abs(low - 1), abs(high - 1)))
    more = f"{percent(abs(whole.ratio - 1))} {'more' if whole.direction > 0 else 'fewer'} events than predicted"
    return f"{more} ({_span(100 * ends[0], 100 * ends[1], 0 if ends[0] >= 0.1 else 1, '%', 0.0)})"


def _about_slope(slope: Estimate) -> Sentence | None:
    """Shown where 1 lies outside the interval at its share of the level, for which both sides grow like quantiles."""
    value, spread = float(slope.value), slope.interval
    if spread is None or not all(map(math.isfinite, (value, spread.lower, spread.upper))):
        return None
    longer = NormalDist().inv_cdf(1 - SLOPE / 2) / NormalDist().inv_cdf((1 + spread.level) / 2)
    low, high = (value + longer * (end - value) for end in (spread.lower, spread.upper))
    if low <= 1 <= high:
        return None
    what = "too extreme" if high < 1 else "too timid"
    data = {"quantity": slope.name, "value": value, "interval": [low, high], "ideal": 1.0}
    said = f"Scores are {what}: slope {value:.2f} ({_span(low, high, 2)}), ideal 1."
    return Sentence("shown", said, "asymptotic", data)


def _about_ranges(found: Diagnosis, words: _Words) -> Sentence | None:
    """At most two ranges, of which most samples are wrong by most; and the worst group of the first."""
    ranges = found.ranges
    if not ranges:
        return None
    named = sorted(ranges, key=lambda pair: -abs(pair[0].gap) * pair[0].weight)[:2]
    texts = [
        _about_range(found, union, groups, words) for union, groups in sorted(named, key=lambda pair: pair[0].start)
    ]
    left = len(ranges) - len(named)
    texts += [f"{counted(left, 'more range')} below."] if left else []
    data = {
        "quantity": "observed rate",
        "ranges": [{**u.to_dict(), "interval": list(u.ratio_interval)} for u, _ in ranges],
    }
    return Sentence("shown", " ".join(texts), "proven", data)


def _is_outermost(found: Diagnosis, span: Sequence[ObservedRate]) -> tuple[bool, bool]:
    """Whether a range has the lowest group, and the highest; where many scores are 1, others end there, too."""
    return span[0] is found.groups[0], span[-1] is found.groups[-1]


def _is_all_of(found: Diagnosis) -> bool:
    """Whether all groups err alike, so that the sentence about the whole has said it."""
    ranges = found.ranges
    return len(ranges) == 1 and len(ranges[0][1]) == len(found.groups)


def _about_range(found: Diagnosis, union: ObservedRate, groups: Sequence[ObservedRate], words: _Words) -> str:
    first, last = _is_outermost(found, groups)
    happen, predicted = _two_percents(union.observed, union.predicted)
    said = f"{happen} {words.happen} where {predicted} is {words.predicted}"
    if not (first and last):
        low, high = _two_percents(union.start, union.end)
        place = f"Below {high}" if first else f"Above {low}" if last else f"From {low} to {high}"
        constant = union.start == union.end or union.predicted in (0, 1)
        said = said if constant else f"{place}, {said}"
    if words is _SCORES and math.isfinite(union.ratio) and not 0.8 < union.ratio < 1.25:
        low, high = union.ratio_interval
        said += f": {_times(union.ratio)} as many ({_span(low, high, 1 if union.ratio >= 1 else 2)})"
        worst = max(groups, key=lambda each: each.ratio * union.direction if math.isfinite(each.ratio) else -math.inf)
        if len(groups) > 1 and worst.ratio > 1.25 * union.ratio:
            said += f", {_times(worst.ratio)} {_name_of_group(found, worst)}"
    return f"{said}."


def _name_of_group(found: Diagnosis, group: ObservedRate) -> str:
    place, count = found.groups.index(group), len(found.groups)
    part = "tenth" if count == 10 else "group"
    if place in (0, count - 1):
        return f"in the {'highest' if place else 'lowest'} {part}"
    return f"in {part} {place + 1} of {count}"


def _deviation_data(rate: ObservedRate, words: _Words) -> dict[str, Any]:
    if words is _SCORES:
        return {"quantity": "observed / expected", "value": rate.ratio, "interval": list(rate.ratio_interval)}
    return {"quantity": "accuracy - mean confidence", "value": rate.gap, "interval": list(rate.gap_interval)}


def _about_segments(segments: Sequence[tuple[Mapping[str, str], GroupRate]], words: _Words) -> Sentence:
    """The one that deviates most beyond chance, and how many others do."""
    where, rate = min(segments, key=lambda pair: (not pair[1].direction, *pair[1].order))
    wrong = sum(bool(each.direction) for _, each in segments)
    data = _deviation_data(rate, words)
    data |= {"where": dict(where), "n": rate.n, "groups": len(segments), "wrong": wrong}
    said = f"here {' and '.join(f'{name} is {value}' for name, value in where.items())}, "
    said += _deviation(rate, words)
    if not wrong:
        lead = f"Of {len(segments)} groups none is shown to be wrong; most suspicious: w" if len(segments) > 1 else "W"
        return Sentence("seen", f"{lead}{said}.", data=data)
    what = "observed / expected" if words is _SCORES else "the gap"
    more = f" In {wrong} of {len(segments)} groups {what} is off." if wrong > 1 else ""
    return Sentence("shown", f"W{said}.{more}", "proven", data)


def _deviation(rate: GroupRate, words: _Words) -> str:
    happen, predicted = _two_percents(rate.observed, rate.predicted)
    if words is not _SCORES:
        ends = sorted(map(abs, rate.gap_interval))
        said = f"{happen} {words.happen} where {predicted} is {words.predicted}: {100 * abs(rate.gap):.1f} points"
        inside = f" ({_span(100 * ends[0], 100 * ends[1], 1, ideal=0.0)})" if rate.direction else ""
        return f"{said} too {'few' if rate.gap < 0 else 'many'}{inside}"
    low, high = rate.ratio_interval
    if not math.isfinite(rate.ratio):
        return f"{happen} {words.happen} where {predicted} is {words.predicted}"
    said = f"{happen} {words.happen} where {predicted} is {words.predicted}"
    if rate.counted and rate.n * rate.predicted < _MOST_COUNTED:
        expected = rate.n * rate.predicted
        events = counted(round(rate.n * rate.observed), "event")
        said = f"{events} for {expected:.{0 if expected >= 100 else 1 if expected >= 1 else 2}f} predicted"
    if 0.8 < rate.ratio < 1.25:
        return f"{said}: O/E {rate.ratio:.2f} ({_span(low, high, 2)})"
    return f"{said}: {_times(rate.ratio)} as many ({_span(low, high, 1 if rate.ratio >= 1 else 2)})"


def _about_classes(classes: Sequence[ObservedRate]) -> Sentence | None:
    if not classes:
        return None
    place = max(range(len(classes)), key=lambda k: (bool(classes[k].direction), abs(classes[k].gap)))
    one = classes[place]
    observed, predicted = _two_percents(one.observed, one.predicted)
    data: dict[str, Any] = {"quantity": "class rate", "class": place, "value": one.observed}
    data |= {"predicted": one.predicted, "interval": [one.lower, one.upper]}
    said = f"Worst class: {place} is {observed} of the samples where {predicted} is predicted."
    return Sentence("shown", said, "proven", data) if one.direction else Sentence("seen", said, data=data)


def _about_error(error: Estimate | None) -> list[Sentence]:
    if error is None or error.name != "ece" or error.interval is None or (1 - error.interval.level) / 2 > ERROR + 1e-12:
        return []
    most = float(error.interval.upper)
    if not most < _WITHOUT_NEWS:
        return []
    limit = f"{round_outward(100 * most, 'upper', 1)}%"
    said = f"The calibration error in {error.settings['bins']} bins is at most {limit}."
    data = {"quantity": error.name, "value": float(error.value), "limit": most}
    return [Sentence("shown", said, "asymptotic", data)]


# ---------------------------------------------------------------------------------------------------- numbers and words


def percent(share: float, more: int = 0) -> str:
    """A share in per cent with two digits of its distance from the nearer end, none between 10 % and 90 %."""
    away = min(share, 1 - share) if share <= 1 else share
    digits = 0 if away >= 0.1 or away <= 0 else min(6, -math.floor(math.log10(away)) - 1)
    return f"{100 * share:.{digits + more}f}%"


def _two_percents(one: float, other: float) -> tuple[str, str]:
    """Two shares in as many digits as tell them apart."""
    pairs = [(percent(one, more), percent(other, more)) for more in range(5)]
    return next((pair for pair in pairs if pair[0] != pair[1]), pairs[0])


def _times(ratio: float) -> str:
    return f"{ratio:.2g} times" if ratio < 99.5 else f"{ratio:.0f} times"


def _span(low: float, high: float, digits: int, unit: str = "", ideal: float = 1.0) -> str:
    """An interval rounded outward, with as many digits as still leave out what it leaves out."""
    start, end = round_outward(low, "lower", digits), round_outward(high, "upper", digits)
    if not low <= ideal <= high and float(start) <= ideal <= float(end) and digits < 6:
        return _span(low, high, digits + 1, unit, ideal)
    return f"{start}{unit} to {end}{unit}"


def command_for(words: Sequence[str], call: str, source: str, columns: Mapping[str, Any], *more: str) -> str:
    """A command about the same table, to be copied; of what is in memory, a call with the same options."""
    if source.startswith("demo: "):  # the data of a demonstration are in no file
        source, columns = "YOUR.csv", {}
    named = {role: str(name) for role, name in columns.items() if role != "kind" and not isinstance(name, list)}
    if source == "standard input" or "." in source.rpartition("/")[2]:
        source = "-" if source == "standard input" else source
        options = [word for role, name in named.items() for word in (f"--{role}", name)]
        return shlex.join(["certcal", *words, source, *options, *more])
    first = "data" if named or source != "predictions" else "y_true, y_prob"
    told, end, rest = [first, *(f"{role}={name!r}" for role, name in named.items())], "", [*more]
    asked: dict[str, list[str]] = {}
    while rest:
        option = rest.pop(0).lstrip("-").replace("-", "_")
        asked.setdefault(option, []).append(rest.pop(0) if rest and not rest[0].startswith("-") else "")
    if path := asked.pop("o", None):
        end = f".save({path[0]!r})"
    for option, values in asked.items():
        shown = values if len(values) > 1 else values[0]
        is_number = option != "by" and values[0].isdecimal()
        told.append(f"{option}={'True' if not shown else values[0] if is_number else repr(shown)}")
    return f"certcal.{call}({', '.join(told)}){end}"
