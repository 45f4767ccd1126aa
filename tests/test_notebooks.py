"""What notebooks show of results: the numbers of the text, every name escaped, no colours of its own."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import certcal
from certcal import metrics
from certcal.claims import Bound, Certificate, Estimate, Interval, Ledger
from certcal.metrics import reliability
from certcal.smoothing import Counts, Run, certificates
from certcal.worst_case import calibration_error, certify
from tests.report.test_elements import Seen

HOSTILE = "<script>alert('&')</script>\x1b\u202e\ud800"
VISIBLE = r"<script>alert('&')</script>\x1b\u202e\ud800"

RNG = np.random.default_rng(2)
SHARES = RNG.beta(20, 2, (6, 400))
COUNTS = Counts.from_confidences(SHARES, np.linspace(0.01, 0.99, 99), votes=[400, 400, 399, 390, 210, 200], sigma=0.5)
LEDGER = Ledger(0.001).split(prediction=1, band=2)


def run(name: str) -> Run:
    manifest: Any = SimpleNamespace(
        samples=1200,
        n=1000,
        n0=100,
        noise="gaussian",
        sigma=0.25,
        seed=7,
        model=SimpleNamespace(description=name),
        data=SimpleNamespace(source=name),
        created="2026-01-02T03:04:05Z",
    )
    return Run(Path("runs") / "a", manifest)


RESULTS: dict[str, tuple[Any, list[str]]] = {
    "estimate": (
        Estimate(HOSTILE, 0.12345, 10, {"bins": 15}, Interval(0.1, 0.2, 0.95, "percentile")),
        ["Estimate", VISIBLE, "0.12345", "0.10000 to 0.20001"],
    ),
    "bound": (
        Bound(HOSTILE, 0.08121, "upper", 0.05, 1000, (HOSTILE,), {"chance <of the draw>": 0.040001}),
        [
            "Bound",
            VISIBLE,
            "at most 0.0813",
            "chance <of the draw>",
            "0.0401",
            "95% sure, for samples drawn like these 1,000",
        ],
    ),
    "lower bound": (
        Bound("accuracy", 0.81219, "lower", 0.05, 1000, (), {"share": 0.90009}),
        ["at least 0.8121", "0.9000"],
    ),
    "bound without terms": (Bound("ece", 0.5, "upper", 0.05, 10, ()), ["at most 0.5000"]),
    "ledger": (LEDGER, ["prediction", "0.000333334", "band", "0.000666667", "0.001"]),
    "certificate": (
        Certificate("error", 0.29853, "upper", 2 / 3, LEDGER, 500, (HOSTILE,)),
        ["Certificate", "at most 0.2986", "0.666666", VISIBLE, "0.000333334"],
    ),
    "measurements": (
        metrics.measure(certcal.Predictions.from_confidence([0.75, 0.75, 0.2], [1, 0, 0]), bins=10, bootstrap=20),
        ["3 samples", "not guarantees", "ece", "10", "0.23333", "95% interval"],
    ),
    "reliability": (
        reliability([0.75, 0.75, 0.2], [1, 0, 0], bins=10),
        ["95% band (joint)", "0.7 to 0.8", "0.7500", "0.5000", "-0.2500", "ECE 0.23333", "8 of them empty"],
    ),
    "worst case": (
        calibration_error([0.1, 0.5, 0], [0.6, 0.9, 1], [1, 0, 1], certified=[1, 1, 0], bins=3),
        ["Worst case", "at most 0.9001", "not certified free", "at most 0.9334"],
    ),
    "best case": (calibration_error([0.1, 0.5], [0.6, 0.9], [1, 0], bins=3, best=True), ["Best case", "at least"]),
    "summary": (
        certify([0.5, 0.25, 0], [0.75, 0.5, 1], [1, 0, 1], certified=[1, 1, 0]),
        ["2 of 3 samples are certified", "certified accuracy", "0.3333", "Brier score", "0.2501", "0.4834", "0.05"],
    ),
    "empty summary": (certify([0], [1], [1], certified=[0]), ["0 of 1 samples", "undefined", "1.0000"]),
    "certificates": (
        certificates(COUNTS, 2 / 3),
        ["Certificates", "0.666666", "6", "without a certified prediction", "2", "tangent", "0.001", "Gaussian"],
    ),
    "familywise certificates": (certificates(COUNTS, 9.0, familywise=True), ["any certificate fails", "undefined"]),
    "run": (run(HOSTILE), ["runs/a", "1,200", "1,000, and 100 to choose", "sigma 0.25, seed 7", VISIBLE]),
}


def markup_of(result: Any) -> str:
    return result._repr_html_()


def text_of(markup: str) -> str:
    return " ".join(part[0] for part in Seen(markup).found if isinstance(part, list))


@pytest.mark.parametrize("name", RESULTS)
def test_notebooks_show_the_numbers_and_the_names_of_a_result(name: str) -> None:
    result, told = RESULTS[name]
    shown = text_of(markup_of(result))
    assert [part for part in told if part not in shown] == []


@pytest.mark.parametrize("name", RESULTS)
def test_notebooks_get_only_plain_elements_that_are_closed_and_have_no_colour(name: str) -> None:
    found = Seen(markup_of(RESULTS[name][0])).found
    tags = [part[0] for part in found if isinstance(part, tuple)]
    plain = {"div", "p", "strong", "table", "caption", "thead", "tbody", "tr", "th", "td", "ul", "li"}
    assert set(tags) <= plain
    assert sorted(part[1:] for part in found if isinstance(part, str)) == sorted(tags)
    attributes = {key for part in found if isinstance(part, tuple) for key in part[1]}
    assert attributes <= {"scope", "class"}


@pytest.mark.parametrize("name", ["bound", "certificate", "estimate", "worst case"])
def test_a_claim_shows_the_sentence_that_it_makes(name: str) -> None:
    result = RESULTS[name][0]
    start = result.sentence.split("\x1b")[0].split("<script>")[0]
    assert start in text_of(markup_of(result))


TABLE = {
    "score": np.linspace(0.02, 0.98, 200),
    "outcome": np.arange(200) % 3 == 0,
    "segment": ["north", "<south>"] * 100,
    "more": range(200),
}
ANSWERS = {
    "measurement": lambda: certcal.measure(TABLE, by="segment"),
    "bounds": lambda: certcal.bound(TABLE),
    "recalibration": lambda: certcal.recalibrate(TABLE),
    "mapped table": lambda: certcal.recalibrate(TABLE).apply(TABLE, everything=True),
    "comparison": lambda: certcal.compare(certcal.measure(TABLE), certcal.measure(TABLE, bins=10)),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_every_answer_about_a_table_shows_its_page(name: str) -> None:
    answer = ANSWERS[name]()
    frame, *_ = Seen(markup_of(answer)).found
    assert frame[0] == "iframe"
    page = frame[1]["srcdoc"]
    assert answer.report().title in text_of(page)
    assert "<south>" not in page


def test_a_table_of_an_answer_is_a_frame() -> None:
    frame = certcal.measure(TABLE, by="segment").to_pandas()
    assert frame.loc[(frame["segment"] == "north") & (frame["metric"] == "ece"), "value"].notna().all()
    assert certcal.recalibrate(TABLE, fraction=0.5).apply(TABLE).to_pandas()["more"].max() <= 199
