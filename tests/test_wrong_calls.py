"""A wrong argument of a public function is one sentence that names it, and nothing else comes out."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import certcal
from certcal import InputError, Predictions, bounds, metrics

N = 24
RNG = np.random.default_rng(0)
SCORE = RNG.uniform(0.05, 0.95, N)
OUTCOME = (RNG.random(N) < SCORE).astype(int)
PAIRS = Predictions.from_scores(SCORE, OUTCOME)


class Odd:
    """An object that is nothing in particular, and prints long."""

    def __repr__(self) -> str:
        return "Odd(" + "x" * 5000 + ")"


# What people pass by mistake, and what they would never pass.
WRONG: tuple[Any, ...] = (
    *(
        "text",
        b"x",
        1 + 2j,
        [None],
        ["a", "b"],
        [[1, 2], [3]],
        [1, "a", None],
        np.zeros((2, 3, 4)),
        np.full(N + 1, 2.5),
    ),
    *(np.array(["a"] * N), np.array([Odd()] * N, object), np.array(["2020-01-01"] * N, "datetime64[D]"), Odd()),
    *(datetime.date(2020, 1, 1), {"a": 1, 2: "b"}, int, Path("nowhere"), list(range(-3000, 0)), np.arange(-3000.0, 0)),
)
PAIR = {"confidence": SCORE, "correct": OUTCOME}
SCORES = {"scores": SCORE, "outcomes": OUTCOME}
# Calls that work, and which of their arguments are made wrong.
CALLS: tuple[tuple[Any, dict[str, Any], str], ...] = (
    (metrics.ece, PAIR, "confidence correct bins edges closed sample_weight"),
    (metrics.lp_ece, PAIR, "p"),
    (metrics.kde_ece, PAIR, "bandwidth kernel"),
    (metrics.mmce, PAIR, "width"),
    (metrics.accuracy_at_threshold, SCORES, "scores outcomes threshold"),
    (metrics.calibration_intercept, SCORES, "joint"),
    (metrics.harmonic_score, {"accuracy": 0.9, "calibration_error": 0.1}, "accuracy calibration_error beta"),
    (metrics.measure_stream, {"chunks": lambda: [PAIRS]}, "bins closed"),
    (bounds.binned, PAIR, "confidence correct bins delta edges closed largest_weight"),
    (bounds.smooth, SCORES | {"bandwidth": 0.1}, "bandwidth delta form folds seed perturb scale"),
    (bounds.every_bound, PAIR, "confidence correct delta joint"),
    (bounds.equal_share, {"delta": 0.05, "parts": 3}, "delta parts"),
    (bounds.plan, {"target": 0.5, "repetitions": 5}, "target delta error power bins repetitions seed scores"),
    (bounds.clopper_pearson, {"count": 3, "n": 9, "alpha": 0.05}, "count n alpha side identical"),
    (bounds.hoeffding, {"mean": 0.5, "n": 9, "alpha": 0.05}, "mean n alpha side"),
    (bounds.empirical_bernstein, {"mean": 0.5, "variance": 0.1, "n": 9, "alpha": 0.05}, "mean variance n alpha side"),
    (certcal.measure, {"data": PAIRS, "bootstrap": 0}, "progress settings bins closed level seed band delta bounds"),
    (certcal.bound, {"data": PAIRS}, "by progress settings delta joint bins closed scale form seed"),
    (certcal.recalibrate, {"data": PAIRS}, "progress settings fraction seed bins closed delta"),
    (certcal.apply_map, {"map": metrics, "data": PAIRS}, "map progress settings"),
    (certcal.summarize, {"run": "nowhere"}, "run progress"),
)


@pytest.mark.parametrize(("function", "given", "arguments"), CALLS, ids=lambda value: getattr(value, "__name__", ""))
def test_a_wrong_argument_is_a_sentence(function: Any, given: dict[str, Any], arguments: str) -> None:
    """Some fit by chance, such as an array of zeros for means; what comes out otherwise is an InputError, and short."""
    for argument in arguments.split():
        said: list[str] = []
        for wrong in WRONG:
            try:
                function(**given | {argument: wrong})
            except InputError as error:
                said.append(str(error))
        assert len(said) >= len(WRONG) / 2, argument
        assert max(map(len, said)) < 810


def test_shapes_that_do_not_fit_together_are_named() -> None:
    with pytest.raises(InputError, match=r"mean has shape \(2,\) and n has shape \(3,\); pass as many of each"):
        bounds.hoeffding([0.1, 0.2], [5, 6, 7], 0.05)
    with pytest.raises(InputError, match=r"mean has shape \(2,\) and variance has shape \(3,\)"):
        bounds.empirical_bernstein([0.1, 0.2], [0.1, 0.1, 0.1], 9, 0.05)
    with pytest.raises(InputError, match=r"count has shape \(2,\) and n has shape \(3,\)"):
        bounds.clopper_pearson([1, 2], [5, 6, 7], 0.05)


def test_memory_is_a_number_of_bytes(tmp_path: Path) -> None:
    (tmp_path / "scores.csv").write_text("score,outcome\n0.5,1\n0.2,0\n")
    for wrong in ("text", -1, 2.5, [1], Odd()):
        with pytest.raises(InputError, match="memory: "):
            certcal.measure(tmp_path / "scores.csv", memory=wrong)


def test_every_bound_names_its_own_arguments() -> None:
    with pytest.raises(InputError, match=r"^confidence\[1\] is 1.6, outside"):
        bounds.every_bound([0.5, 1.6], [1, 0])
    with pytest.raises(InputError, match=r"^correct\[1\] is 7, neither 0 nor 1"):
        bounds.every_bound([0.5, 0.6], [1, 7])
