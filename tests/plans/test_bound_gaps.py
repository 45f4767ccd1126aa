"""Plans about bounds: what their jobs compute, how gaps become rates, and what is printed beside them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import certcal
from certcal import InputError, bounds
from certcal.lab.plans import bound_gaps, noise_auroc
from certcal.lab.plans.bound_gaps import gap_curve, true_errors
from certcal.lab.plans.jobs import JobContext
from certcal.lab.plans.plan import open_plan
from certcal.lab.study import SYNTHETIC
from certcal.metrics import ece
from tests.bounds import naive_smooth

SMALLEST = 1e-6
PAPERS = ["NW", "TV", "Lip+Bkt", "ECE"]
GIVEN: dict[str, Any] = {"n": 500, "bandwidth": 0.1, "delta": 0.05, "bins": 10}


def try_methods(tmp_path: Path, first: int, count: int, methods: list[str], function: str = "smooth") -> Any:
    source = {"function": function}
    return bound_gaps.values(JobContext(tmp_path), source=source, first=first, count=count, methods=methods, **GIVEN)


def test_a_job_has_the_values_of_the_bounds_and_pieces_of_a_job_those_of_the_whole(tmp_path: Path) -> None:
    every = list(bound_gaps.METHODS)
    whole = try_methods(tmp_path, 0, 2, every)
    pieces = [try_methods(tmp_path, first, 1, every)["values"] for first in (0, 1)]
    assert whole["values"] == {name: pieces[0][name] + pieces[1][name] for name in every}
    rng = np.random.default_rng([1, 500, 1])
    s, y = SYNTHETIC["smooth"].draw(500, rng)
    z = bounds.perturb(s, 0.1, np.random.default_rng([1, 500, 1, 1]))
    expected = {
        "NW": bounds.smooth(z, y, 0.1, form="published").value,
        "TV": bounds.bounded_variation(s, y, form="published").value,
        "Lip+Bkt": bounds.lipschitz(z, y, 5.0, form="published").value,
        "ECE": ece(s, y, 10),
        "smooth": bounds.smooth(z, y, 0.1).value,
        "smooth, repaired": bounds.smooth(z, y, 0.1, form="repaired").value,
        "bounded variation": bounds.bounded_variation(s, y).value,
        "Lipschitz": bounds.lipschitz(z, y, 5.0).value,
        "binned": bounds.binned(s, y, 10).value,
    }
    assert {name: values[1] for name, values in whole["values"].items()} == pytest.approx(expected, rel=1e-12)
    assert set(whole["seconds"]) == {"drawing", *every}


def test_the_errors_of_perturbed_and_binned_scores_are_those_of_fine_sums() -> None:
    found = true_errors("oscillating", 0.05, 15)
    points = (np.arange(600) + 0.5) / 600
    eta = SYNTHETIC["oscillating"].eta(points)
    slow = naive_smooth.perturbed_calibration_error(points, eta, np.full(600, 1 / 600), 0.05)
    assert found["perturbed"] == pytest.approx(slow, abs=1e-4)
    assert found["true"] == SYNTHETIC["oscillating"].calibration_error
    assert found["binned"] < 0.01  # two whole waves in each of 15 bins
    assert true_errors("oscillating", 0.05, 15, 1024)["perturbed"] == pytest.approx(found["perturbed"], abs=5e-6)


def test_a_slope_leaves_out_sizes_with_a_capped_value_and_its_interval_holds_that_of_the_means() -> None:
    rng = np.random.default_rng(0)
    values = {n: (0.2 + n ** (-1 / 3) * rng.uniform(0.9, 1.1, 50)).tolist() for n in (1000, 10_000, 100_000)}
    found = gap_curve(values, 0.2)
    assert found.slope == pytest.approx(-1 / 3, abs=0.01)
    assert found.interval is not None
    assert found.interval[0] < found.slope < found.interval[1] < found.interval[0] + 0.02
    capped = gap_curve({**values, 100: [0.3, 1.0]}, 0.2)
    assert (capped.slope, capped.failures, capped.draws) == (found.slope, 0, 152)
    failing = gap_curve({**values, 100: [0.1, 0.15]}, 0.2)
    assert (failing.slope, failing.failures) == (found.slope, 2)
    assert gap_curve({10: [1.0], 100: [0.5], 1000: [0.4]}, 0.0).slope is None
    assert gap_curve({10: [0.1, 0.3]}, 0.2, heuristic=True).gaps == pytest.approx([0.1])


def test_figure_3_and_table_1_share_their_jobs_and_a_full_plan_has_every_repetition_once(tmp_path: Path) -> None:
    full = open_plan("muc-figure3")
    drawn: dict[tuple[str, int], list[int]] = {}
    for (name, n), job in bound_gaps.planned(full):
        given = job.arguments
        assert given["count"] * n <= max(n, full.samples)
        drawn.setdefault((name, n), []).extend(range(given["first"], given["first"] + given["count"]))
    assert set(drawn) == {(name, 10**power) for name in SYNTHETIC for power in range(2, 8)}
    assert all(sorted(each) == list(range(64)) for each in drawn.values())  # section 7
    same = bound_gaps.planned(open_plan("muc-table1"))
    assert [job.fingerprint for _, job in same] == [job.fingerprint for _, job in bound_gaps.planned(full)]
    figure = certcal.reproduce("muc-figure3", out=tmp_path, scale=SMALLEST)
    assert (figure.done, figure.failures, len(figure.charts)) == (12, (), 4)
    assert figure.tables[0].rows()[:4] == [f"calibrated | {method}" for method in PAPERS]
    assert any("NW has the best performance. Here: the least gap" in note for note in figure.notes)
    table = certcal.reproduce("muc-table1", out=tmp_path, scale=SMALLEST)
    assert table.done == 12
    assert table.tables[0].text("NW", "least slope") == "−0.406 / –"  # of three small sizes most are capped
    assert not table.plan.as_printed


def test_slopes_are_the_least_and_the_largest_over_the_functions(tmp_path: Path) -> None:
    wanted = {"functions": ["calibrated", "smooth"], "methods": ["bounded variation"], "sizes": [300, 900, 2700]}
    found = certcal.reproduce("muc-table1", out=tmp_path, changes={**wanted, "repetitions": 3, "samples": 900})
    least, largest = (found.tables[0].cell("bounded variation", f"{name} slope").ours for name in ("least", "largest"))
    single = [str(found.tables[1].cell("bounded variation", head).ours) for head in ("s", "s + 0.1 sin(2πs)")]
    assert sorted(float(text.split()[0]) for text in single) == pytest.approx([least, largest], abs=6e-4)
    assert found.jobs == 2 * (1 + 3 + 3)


def test_bounds_of_real_scores_come_from_tables_that_are_brought(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    s = rng.random(1500)
    lines = [f"{score},{int(rng.random() < score)}" for score in s.tolist()]
    (tmp_path / "phishing.csv").write_text("\n".join(["score,outcome", *lines]))
    wanted: dict[str, Any] = {"changes": {"tables": ["phishing"], "sizes": [1000, 1500, 2000]}, "out": tmp_path / "out"}
    found = certcal.reproduce("muc-figure4", data=str(tmp_path), scale=SMALLEST, **wanted)
    rows = {
        row: [found.tables[0].cell(row, n).ours for n in ("10^3", "1,500", "2,000")] for row in found.tables[0].rows()
    }
    assert list(rows) == ["phishing | NW", "phishing | TV", "phishing | Lip+Bkt"]
    assert [line.label for line in found.charts[0].panels[0].marks] == ["NW", "TV", "Lip+Bkt"]
    for small, large, missing in rows.values():
        assert small >= large > 0  # type: ignore[operator]
        assert missing is None
    same = certcal.reproduce("muc-figure4", data={"phishing": str(tmp_path / "phishing.csv")}, scale=SMALLEST, **wanted)
    assert same.tables[0].text("phishing | NW", "10^3") == found.tables[0].text("phishing | NW", "10^3")
    words = "no table of scores and outcomes called amazon-polarity or civil-comments or yelp-polarity; bring their"
    with pytest.raises(InputError, match=words):
        certcal.reproduce("muc-figure4", data=str(tmp_path), scale=SMALLEST, out=tmp_path / "other")


def test_reconstructions_come_closer_with_more_samples_and_denoising_is_worst_at_the_ends(tmp_path: Path) -> None:
    found = certcal.reproduce("muc-figure5", out=tmp_path, scale=SMALLEST)
    table = found.tables[0]

    def row(name: str) -> list[Any]:
        return [table.cell(f"monotone, {name}", head).ours for head in ("10^3", "10^4", "10^5")]

    for name in ("everywhere | NW", "everywhere | TV", "near 0 and 1 | TV"):
        assert row(name)[0] > row(name)[1] > row(name)[2]
    assert row("near 0 and 1 | TV")[2] > 2 * row("everywhere | TV")[2]
    assert len(found.charts) == 3


def test_auroc_by_bandwidth_is_that_of_networks_with_and_without_the_loss_for_noise(tmp_path: Path) -> None:
    changes = {"tasks.0.data": "digits", "network": "mlp", "epochs": 2}
    found = certcal.reproduce("muc-figure2", out=tmp_path, scale=SMALLEST, changes=changes, device="cpu")
    assert (found.done, found.failures) == (3, ())
    plain, aware = (
        [found.tables[0].cell(row, h).ours for h in found.tables[0].columns()] for row in found.tables[0].rows()
    )
    assert plain[0] != plain[1] != 0.5
    assert aware[0] == "–"
    assert [line.y[1] for line in found.charts[0].panels[0].marks] == [plain[1], aware[1]]
    assert all(isinstance(each, float) for each in (*plain, *aware[1:]))
    assert "minus that with h = 0.015625" in found.notes[0]
    full = [job.arguments for _, job in noise_auroc.planned(open_plan("muc-figure2"))]
    assert len(full) == 64 * 6
    assert {(each["train"], each["test"], tuple(each["positive"])) for each in full} == {(2500, 500, (0, 1, 8, 9))}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"methods": ["KDE"]}, "muc-figure3: there is no 'KDE'; there are NW, TV"),
        ({"functions": ["parabola"]}, "muc-figure3: there is no 'parabola'; there are calibrated, smooth"),
        ({"layout": "violin"}, "layout"),
        ({"bandwidth": 0}, "bandwidth"),
    ],
)
def test_a_wrong_field_is_named(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        certcal.reproduce("muc-figure3", changes=changes, dry_run=True, probe=0)
