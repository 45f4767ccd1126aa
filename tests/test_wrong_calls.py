"""A wrong argument of a public function is one sentence that names it, and nothing else comes out."""

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import certcal
from certcal import InputError, Predictions, bounds, calibrators, metrics, smoothing, study, worst_case
from certcal._base.arguments import names_wrong_types
from certcal.lab import logs
from certcal.smoothing import robustness

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
ENDS = {"lower": SCORE, "upper": SCORE, "correct": OUTCOME}
RECORD = robustness.VoteRecord.of([99, 90], 100, [1, 1], sigma=1.0)
PA = robustness.PaDistribution.of(RECORD)
TABLE = study.StudyTable.of({"model": ["a", "b"], "accuracy": [0.8, 0.9]})
# Calls that work, and which of their arguments are made wrong.
CALLS: tuple[tuple[Any, dict[str, Any], str], ...] = (
    (metrics.ece, PAIR, "confidence correct bins edges closed sample_weight"),
    (metrics.lp_ece, PAIR, "p"),
    (metrics.kde_ece, PAIR, "bandwidth kernel"),
    (metrics.mmce, PAIR, "width"),
    (metrics.accuracy_at_threshold, SCORES, "scores outcomes threshold"),
    (metrics.calibration_intercept, SCORES, "joint"),
    (metrics.harmonic_score, {"accuracy": 0.9, "calibration_error": 0.1}, "accuracy calibration_error beta"),
    (metrics.measure_stream, {"chunks": lambda: [PAIRS]}, "bins closed chunks intervals level"),
    (metrics.survey_stream, {"chunks": lambda: [PAIRS]}, "chunks intervals memory"),
    (metrics.bootstrap, {"metric": metrics.ece}, "level replicates seed"),
    (bounds.binned, PAIR, "confidence correct bins delta edges closed largest_weight"),
    (bounds.smooth, SCORES | {"bandwidth": 0.1}, "bandwidth delta form folds seed perturb scale"),
    (bounds.every_bound, PAIR, "confidence correct delta joint"),
    (bounds.equal_share, {"delta": 0.05, "parts": 3}, "delta parts"),
    (bounds.plan, {"target": 0.5, "repetitions": 5}, "target delta error power bins repetitions seed scores"),
    (bounds.clopper_pearson, {"count": 3, "n": 9, "alpha": 0.05}, "count n alpha side identical"),
    (bounds.hoeffding, {"mean": 0.5, "n": 9, "alpha": 0.05}, "mean n alpha side"),
    (bounds.empirical_bernstein, {"mean": 0.5, "variance": 0.1, "n": 9, "alpha": 0.05}, "mean variance n alpha side"),
    (bounds.difference, {f"{k}_{m}": v for k, v in PAIR.items() for m in "ab"}, "names delta seed"),
    (worst_case.calibration_error, ENDS, "lower correct bins edges closed certified best"),
    (worst_case.nll, ENDS, "upper certified best"),
    (worst_case.certify, ENDS, "chosen adaptive binary delta alpha"),
    (worst_case.population_bound, {"worst_case": worst_case.mce(SCORE, SCORE, OUTCOME)}, "worst_case delta"),
    (calibrators.fit_predictions, {"predictions": PAIRS}, "predictions method map_bins"),
    (calibrators.mapped, {"calibrator": calibrators.PlattScaling().fit(SCORE, OUTCOME)}, "predictions"),
    (calibrators.named_calibrator, {"name": "platt"}, "name map_bins"),
    (calibrators.certified_path, {"samples": None}, "samples tradeoffs"),
    (calibrators.save, {"calibrator": None, "path": "nowhere/map.json"}, "calibrator"),
    (smoothing.overview, {"counts": None}, "counts"),
    (smoothing.certificates, {"counts": None, "radius": 0.1}, "counts"),
    (smoothing.check_inputs, {"inputs": SCORE}, "manifest"),
    (smoothing.usable_counts, {}, "run"),
    (smoothing.open_run, {}, "path"),
    (robustness.best_accuracy, {}, "curves"),
    (logs.compare, {"sources": [RECORD]}, "sources alpha samples names"),
    (logs.dominance, {"first": PA, "second": PA}, "first second n"),
    (robustness.smallest_votes, {"p": 0.5, "n": 10, "alpha": 0.01}, "p n alpha"),
    (robustness.vote_radii, {"votes": 9, "draws": 10, "sigma": 1, "alpha": 0.01}, "votes draws sigma alpha"),
    (study.battery, {"predictions": PAIRS}, "predictions"),
    (study.join, {"table": TABLE, "other": TABLE}, "table other on columns"),
    (study.stack, {}, "tables"),
    (study.overview, {"table": TABLE}, "table"),
    (study.review, {"table": TABLE}, "table sizes robustness matrix architecture split"),
    (study.search, {"table": TABLE, "space": "table"}, "table objectives column space split"),
    (study.unfinished, {}, "out"),
    (
        certcal.measure,
        {"data": PAIRS, "bootstrap": 0},
        "metrics progress settings bins closed level seed band delta bounds",
    ),
    (certcal.bound, {"data": PAIRS}, "by progress settings delta joint bins closed scale form seed"),
    (certcal.recalibrate, {"data": PAIRS}, "method confidence progress settings fraction seed bins closed delta"),
    (certcal.apply_map, {"map": metrics, "data": PAIRS}, "map progress settings"),
    (certcal.export_map, {"map": calibrators.PlattScaling().fit([0.2, 0.8], [0, 1]), "to": "sql"}, "map to column"),
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


def test_an_array_where_a_text_is_expected_is_named() -> None:
    for call, name in (
        (lambda: certcal.measure(PAIRS, source=SCORE), "source"),  # pyright: ignore[reportArgumentType]
        (lambda: study.overview(TABLE, notes=5), "notes"),  # pyright: ignore[reportArgumentType]
    ):
        with pytest.raises(InputError, match=f"^{name} is .*; pass a"):
            call()


def test_memory_is_a_number_of_bytes(tmp_path: Path) -> None:
    (tmp_path / "scores.csv").write_text("score,outcome\n0.5,1\n0.2,0\n")
    for wrong in ("text", -1, 2.5, [1], Odd()):
        with pytest.raises(InputError, match="memory: "):
            certcal.measure(tmp_path / "scores.csv", memory=wrong)


def test_a_verb_without_its_data_says_how_it_is_called() -> None:
    with pytest.raises(InputError, match=r"^measure was given no data; call it as measure\(data\), measure\(y_true, "):
        certcal.measure()
    with pytest.raises(InputError, match=r"^apply_map was given no data; call it as apply_map\(map, data\)$"):
        certcal.apply_map("map.json")


def test_what_is_no_fault_of_the_arguments_stays_as_it_is() -> None:
    """A failure inside, or in a function of the user's own, must not be blamed on an argument that is right."""

    @names_wrong_types
    def shares(counts: list[int], names: tuple[str, ...] | None = None, *, half: bool = False) -> list[float]:
        return [count / sum(counts) for count in counts[:: 2 if half else 1]]

    with pytest.raises(ZeroDivisionError):
        shares([0, 0], names=("a",), half=True)
    with pytest.raises(InputError, match=r"^counts is \['a'\]; pass a list, each of which is a whole number$"):
        shares(["a"])  # pyright: ignore[reportArgumentType]
    with pytest.raises(LookupError, match="of the user's own"):
        metrics.bootstrap(_fails, SCORE, OUTCOME)


def _fails(*_: Any, **__: Any) -> float:
    raise LookupError("of the user's own")


def test_a_long_path_stays_whole_in_a_sentence() -> None:
    path = "/data/" + "x" * 2000 + "/scores.csv"
    said = str(InputError(f"{path}: has the columns {', '.join(map(str, range(3000)))}"))
    assert said.startswith(f"{path}: has the columns 0, 1")
    assert len(said) < len(path) + 810
