"""A map by group: the common one, and for each group a small correction of its log-odds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError
from certcal.calibrators._base import Calibrator
from certcal.calibrators._choice import LIKELIER, fit_chosen, fold_of_rows, one_sample
from certcal.calibrators._formulas import ByGroup, ScoreFormula
from certcal.calibrators._inputs import MapInput
from certcal.calibrators._logistic import inside, sigmoid
from certcal.calibrators._real_scores import RealScores
from certcal.calibrators.scores import LEAST, Floats
from certcal.data.grouping import GroupColumn, GroupRule
from certcal.predictions import Predictions

Rows = NDArray[np.int64]

# By how much the log-odds of a group move, as a rule: the standard deviation of the corrections' prior. 0 is none.
MOVES = (0.0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
_STEP = 0.02  # log-odds nearer than this are one where strengths are compared
_MOST_RULES, _ONE = 20, 1 - 2.0**-53


@dataclass(frozen=True, eq=False)
class Correction:
    """What is done to the log-odds of the groups of one rule: slope · log-odds + intercept."""

    rule: GroupRule
    codes: Rows
    """Numbers of the groups that have one, ascending."""
    slope: Floats
    intercept: Floats
    move: float
    """The standard deviation of the prior, in log-odds; 0 where groups get the common map."""

    def of(self, codes: Rows) -> tuple[Floats, Floats]:
        """Slope and intercept of each sample; 1 and 0 where its group has none."""
        place = np.searchsorted(self.codes, codes).clip(0, max(self.codes.size - 1, 0))
        if not self.codes.size:
            return np.ones(codes.size), np.zeros(codes.size)
        known = self.codes[place] == codes
        return np.where(known, self.slope[place], 1.0), np.where(known, self.intercept[place], 0.0)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "by": self.rule.by,
            "columns": [
                {"name": each.name, "groups": list(each.names), "starts": list(each.starts)}
                for each in self.rule.columns
            ],
            "move": self.move,
            "codes": self.codes.tolist(),
            "slope": self.slope.tolist(),
            "intercept": self.intercept.tolist(),
        }


class GroupedMap(Calibrator):
    """One map for all, whose log-odds each group corrects: sigmoid(slope · logit(common(z)) + intercept).

    A correction costs the group's own loss and the square of its size: with u the standardised log-odds, the common
    log-odds move by b + a·u, and a, b ~ N(0, move²) is the prior. So a group with few rows keeps the common map and a
    large one gets its own. The move is chosen among 0, .05, .1, .2, .4, .8 and 1.6 by cross-fitted log loss, and is 0
    unless another makes the outcomes 100 times as likely. Several groupings correct one after the other. Groups that
    were not there when it was fitted get the common map. Slopes are at least 0: within a group the order stays.

    It is fitted by :func:`certcal.recalibrate`.

    Attributes
    ----------
    common_, corrections_
        The common map, and what each grouping does to its log-odds.

    Examples
    --------
    >>> import certcal
    >>> rng = np.random.default_rng(0)
    >>> z, north = rng.random(4000), rng.random(4000) < 0.5
    >>> y = rng.random(4000) < np.where(north, z / 2, z)
    >>> r = certcal.recalibrate(y, z, by=np.where(north, "north", "south"), method="platt")
    >>> r.map.transform([0.5, 0.5, 0.5], ["north", "south", "west"]).round(1).tolist()
    [0.2, 0.5, 0.3]
    """

    common_: Any
    corrections_: tuple[Correction, ...]
    _kept: ClassVar = {"common": None, "corrections": None}

    @property
    def rules(self) -> tuple[GroupRule, ...]:
        """What makes the groups, and how columns were cut."""
        return tuple(each.rule for each in self.corrections_)

    @property
    def group_columns(self) -> tuple[str, ...]:
        """The columns that it needs besides the score."""
        return tuple(dict.fromkeys(column.name for rule in self.rules for column in rule.columns))

    def set_fitted(self, common: Any, corrections: Sequence[Correction]) -> Self:
        """What :func:`fit_by_group` found."""
        self.common_, self.corrections_ = common, tuple(corrections)
        return self

    def corrected(self, common: Floats, codes: Rows) -> Floats:
        """What the common map made, corrected by the numbers of the groups."""
        found, odds = np.array(common, np.float64), _log_odds(common)
        moved = np.zeros(found.size, np.bool_)
        for each, own in zip(self.corrections_, codes, strict=True):
            slope, intercept = each.of(own)
            odds = slope * odds + intercept
            moved |= (slope != 1) | (intercept != 0)
        found[moved] = inside(sigmoid(odds[moved]))
        return found

    def transform(self, scores: Any, groups: Any) -> Floats:
        """Probabilities of scores.

        Parameters
        ----------
        scores
            As the common map takes them, one per sample.
        groups
            The group of each, or a mapping of columns to values where there are several.
        """
        from certcal.data.predictions import group_codes

        self._require_fitted()
        return self.corrected(self.common_.transform(scores), group_codes(groups, self.rules, len(scores)))

    predict = transform

    def _formula(self) -> ScoreFormula:
        found = cast("ScoreFormula", self.common_._formula())
        low, high = self._ends()
        odds, reach = (
            found.value.logit(LEAST if low <= LEAST or high >= _ONE else None),
            _log_odds(np.array([low, high])),
        )
        reach = float(np.abs(reach).max())
        for each in self.corrections_:
            slope, intercept = (
                ByGroup.of_rule(each.rule, each.codes, values) for values in (each.slope - 1, each.intercept)
            )
            if each.codes.size:
                odds = odds * (slope + 1.0) + intercept
                reach = max(1.0, float(each.slope.max())) * reach + float(np.abs(each.intercept).max())
        groups = sum(each.codes.size for each in self.corrections_)
        words = f"{found.words}; corrected in {groups} groups of {', '.join(map(repr, self.group_columns))}"
        return ScoreFormula(odds.logistic(reach), words, found.least, found.most)

    def _ends(self) -> tuple[float, float]:
        """The least and the largest probability that the common map gives, as far as that is known."""
        one: Any = self.common_.map_ if isinstance(self.common_, RealScores) else self.common_
        ends = one.transform([0.0, 1.0]) if getattr(one, "monotone", False) else (0.0, 1.0)
        return float(ends[0]), float(ends[1])

    def _state(self) -> dict[str, Any]:
        if not isinstance(self.common_, Calibrator):
            raise InputError(f"a {type(self.common_).__name__} cannot be written as JSON, and it is the common map")
        return super()._state()

    def _restore(self, state: Mapping[str, Any]) -> None:
        common = self._fitted_in(state.get("common"))
        if common is None or isinstance(common, GroupedMap) or hasattr(common, "predict_proba"):
            raise InputError("common is damaged; expected a fitted map of one score")
        given: Any = state.get("corrections")
        if not isinstance(given, list) or not 0 < len(cast("list[Any]", given)) <= _MOST_RULES:
            raise InputError("corrections is damaged; expected a list of them")
        found = [_read_correction(each) for each in cast("list[Any]", given)]
        columns: dict[str, GroupColumn] = {}
        for column in (column for each in found for column in each.rule.columns):
            if columns.setdefault(column.name, column) != column:
                raise InputError("columns is damaged; expected one way to cut each")
        self.set_fitted(common, found)


def fit_by_group(
    given: MapInput, rules: Sequence[GroupRule], common: Any, seed: int, *, believed: bool = False
) -> GroupedMap:
    """Corrections of a common map in as many groups as there are.

    Parameters
    ----------
    given
        With codes of the groups.
    rules
        What makes them.
    common
        A map that was fitted to the same samples; without a fold, one of the same kind.
    seed
        Of the folds that choose how far groups may move.
    believed
        Whether the map was fitted as :func:`choose` fits it.
    """
    predictions: Predictions = given.predictions
    if given.codes is None or len(predictions) < 2:
        raise InputError("corrections by group need groups, and at least 2 samples", argument="by")
    y = predictions.correct.astype(np.float64)
    w = np.ones(y.size) if predictions.sample_weight is None else predictions.sample_weight
    folds = fold_of_rows(predictions, seed, 2)
    held_out = [folds == fold for fold in np.unique(folds)]
    held_out = [test for test in held_out if w[test].any() and w[~test].any()]
    odds = _log_odds(given.apply(common))
    each = [_log_odds(given.apply(_fit_alike(common, given.select(~test), believed))) for test in held_out]
    made: list[Correction] = []
    for rule, codes in zip(rules, given.codes, strict=True):
        move = _best_move(each, held_out, y, w, codes)
        made.append(_correction(rule, odds, y, w, codes, move))
        odds = _correct_odds(made[-1], odds, codes)
        each = [
            _correct_odds(_correction(rule, x[~test], y[~test], w[~test], codes[~test], move), x, codes)
            for x, test in zip(each, held_out, strict=True)
        ]
    return GroupedMap().set_fitted(common, made)


def _fit_alike(common: Any, given: MapInput, believed: bool) -> Any:
    """A map of the same kind, fitted to other samples."""
    samples: Predictions = given.predictions
    if given.real is None:
        return fit_chosen(samples, common, believed=believed)
    return common.alike().fit(given.real, samples.correct, samples.sample_weight)


def _log_odds(p: Floats) -> Floats:
    p = inside(np.asarray(p, np.float64))
    return np.log(p) - np.log1p(-p)


def _correct_odds(found: Correction, odds: Floats, codes: Rows) -> Floats:
    slope, intercept = found.of(codes)
    return slope * odds + intercept


def _correction(rule: GroupRule, odds: Floats, y: Floats, w: Floats, codes: Rows, move: float) -> Correction:
    known, place = np.unique(codes, return_inverse=True)
    if move == 0:
        return Correction(rule, np.empty(0, np.int64), np.empty(0), np.empty(0), 0.0)
    return Correction(rule, known, *_corrections(odds, y, w, place, known.size, move), move)


def _best_move(
    odds: Sequence[Floats], held_out: Sequence[NDArray[np.bool_]], y: Floats, w: Floats, codes: Rows
) -> float:
    """The move with the least cross-fitted log loss, if it makes outcomes 100 times as likely as none; else 0."""
    losses: list[Floats] = []
    sizes: list[Floats] = []
    for x, test in zip(odds, held_out, strict=True):
        fit = _cells(x[~test], y[~test], w[~test], codes[~test])
        rest = _cells(x[test], y[test], w[test], codes[test])
        known, place = np.unique(fit.code, return_inverse=True)
        found = np.empty((len(MOVES), rest.x.size))
        for row, move in enumerate(MOVES):
            t = rest.x
            if move:
                both = _corrections(fit.x, fit.y, fit.w, place, known.size, move)
                slope, intercept = Correction(cast("Any", None), known, *both, move).of(rest.code)
                t = slope * t + intercept
            found[row] = np.logaddexp(0.0, t) - rest.y * t
        losses.append(found)
        sizes.append(rest.w)
    loss = np.concatenate(losses, axis=1)
    mass = np.concatenate(sizes)
    gain = (loss[0] - loss) @ mass / one_sample(w)
    best = int(gain.argmax())
    return MOVES[best] if gain[best] > math.log(LIKELIER) else 0.0


@dataclass(frozen=True, eq=False)
class _Cells:
    """Samples of about the same log-odds, of one outcome and group."""

    x: Floats
    y: Floats
    code: Rows
    w: Floats


def _cells(x: Floats, y: Floats, w: Floats, codes: Rows) -> _Cells:
    place = np.unique(codes, return_inverse=True)[1]
    step = np.round(x / _STEP).astype(np.int64)
    step -= step.min()
    _, first, cell = np.unique((place * (step.max() + 1) + step) * 2 + (y > 0), return_index=True, return_inverse=True)
    mass = np.bincount(cell, w).astype(np.float64)
    mean = np.bincount(cell, w * x) / np.where(mass > 0, mass, 1.0)
    return _Cells(np.where(mass > 0, mean, x[first]), y[first], codes[first], mass)


def _corrections(x: Floats, y: Floats, w: Floats, group: Rows, count: int, move: float) -> tuple[Floats, Floats]:
    """Slope and intercept of each group: the least penalised loss, by Newton's method in all groups at once.

    The loss of a group is strictly convex in (a, b). Where its minimum has a slope below 0, the least under slope >= 0
    has slope 0, and b alone is left.
    """
    centre = float(np.average(x, weights=w))
    unit = math.sqrt(float(np.average((x - centre) ** 2, weights=w))) or 1.0
    u, ridge = (x - centre) / unit, 1 / move**2
    theta = np.zeros((2, count))

    def loss(at: Floats) -> Floats:
        t = x + at[0, group] * u + at[1, group]
        return np.bincount(group, w * (np.logaddexp(0.0, t) - y * t), count) + ridge / 2 * (at**2).sum(axis=0)

    held = np.zeros(count, np.bool_)
    for _ in range(2):
        value = loss(theta)
        for _ in range(100):
            p = sigmoid(x + theta[0, group] * u + theta[1, group])
            slack, curve = w * (p - y), w * p * (1 - p)
            ga, gb = np.bincount(group, slack * u, count), np.bincount(group, slack, count)
            ga, gb = ga + ridge * theta[0], gb + ridge * theta[1]
            haa, hab, hbb = (np.bincount(group, curve * each, count) for each in (u * u, u, np.ones(u.size)))
            haa, hbb = haa + ridge, hbb + ridge
            ga, hab = np.where(held, 0.0, ga), np.where(held, 0.0, hab)
            step = np.stack([hbb * ga - hab * gb, haa * gb - hab * ga]) / (haa * hbb - hab**2)
            decrease = step[0] * ga + step[1] * gb
            if not (decrease > 1e-12).any():
                break
            size = np.ones(count)
            while True:
                there = theta - size * step
                new = loss(there)
                worse = new > value + 1e-12 * (1 + value) - 1e-4 * size * decrease
                if not (worse & (size > 1e-9)).any():
                    break
                size[worse] /= 2
            theta, value = there, new
        below = theta[0] < -unit
        if not below.any():
            break
        held = below
        theta[0, below] = -unit
    return np.maximum(1 + theta[0] / unit, 0.0), theta[1] - theta[0] * centre / unit


def _read_correction(given: Any) -> Correction:
    """A correction of a file, every part checked: texts are data and nothing else."""
    from certcal.calibrators._schema import GroupCorrection, convert_to

    found = convert_to(given, GroupCorrection)
    columns = tuple(GroupColumn(each.name, tuple(each.groups), tuple(each.starts)) for each in found.columns)
    for each in columns:
        if len(set(each.names)) < len(each.names) or len(each.starts) > len(each.names):
            raise InputError("groups is damaged; expected different texts, at least as many as starts")
        if any(b <= a for a, b in pairwise(each.starts)):
            raise InputError("starts is damaged; expected ascending numbers")
    last = min(math.prod(len(each.names) for each in columns), 2**62)
    if any(b <= a for a, b in pairwise([-1, *found.codes, last])):
        raise InputError("codes is damaged; expected ascending numbers of groups")
    if not len(found.codes) == len(found.slope) == len(found.intercept):
        raise InputError("slope or intercept is damaged; expected one number per group")
    slope, intercept = (np.array(each, np.float64) for each in (found.slope, found.intercept))
    return Correction(
        GroupRule(found.by, columns), np.array(found.codes, np.int64), slope, intercept, float(found.move)
    )


def takes_real_scores(calibrator: Any) -> bool:
    """Whether a map takes scores that are no probabilities."""
    return isinstance(calibrator.common_ if isinstance(calibrator, GroupedMap) else calibrator, RealScores)
