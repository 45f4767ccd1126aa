"""``certcal.certify``: what runs and tables certify at several radii, and what is behind it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import certcal
from certcal import Certification, InputError, certify, metrics, worst_case
from certcal._base.assumptions import own_kind
from certcal.data import Inputs, read_intervals
from certcal.smoothing import CONFIDENCES, Counts, Run, certificates, check_inputs, pooled_claim
from certcal.smoothing.robustness import PaDistribution, VoteRecord
from tests.smoothing.drawing import X, draw

SAMPLES, DRAWS = 40, 1500


def make_counts(samples: int = SAMPLES, draws: int = DRAWS, seed: int = 0) -> Counts:
    rng = np.random.default_rng(seed)
    sharpness = rng.uniform(0.3, 30, samples)[:, None]
    x = rng.beta(sharpness, 1.0, (samples, draws))
    votes = (x > 0.5).sum(axis=1)
    return Counts.from_confidences(
        x, np.linspace(0.02, 0.98, 49), votes=votes, sigma=0.5, correct=rng.random(samples) < 0.8
    )


@pytest.fixture(scope="module")
def counts() -> Counts:
    return make_counts()


@pytest.fixture(scope="module")
def found(counts: Counts) -> Certification:
    return certify(counts)


def test_every_line_is_what_certificates_of_its_radius_and_kind_say(counts: Counts) -> None:
    settings: Any = {"alpha": 0.01, "bins": 7, "closed": "right", "delta": 0.1}
    asked = certify(counts, radii=[0.3, 0.1], kind=("tight", "cdf"), **settings)
    assert [(one.radius, one.kind) for one in asked.lines] == [
        (r, kind) for r in (0.1, 0.3) for kind in ("tight", "cdf")
    ]
    assert (asked.radii, asked.kinds) == ((0.1, 0.3), ("tight", "cdf"))
    for one in asked.lines:
        own = certificates(counts, one.radius, 0.01, one.kind)
        assert one.certificates is not None
        np.testing.assert_array_equal(one.certificates.lower, own.lower)
        assert one.summary.to_dict() == own.summary(bins=7, closed="right", delta=0.1).to_dict()
        binned: Any = {"bins": 7, "closed": "right", "delta": 0.01}
        assert one.claim == (
            own.claim_of_intervals(**binned)
            if one.kind == "cdf"
            else pooled_claim(counts, one.radius, confidence="tight", **binned)
        )
        assert one.width == own.mean_width
        assert asked.at(one.radius, one.kind) is one
    assert asked.at() is asked.lines[2]
    with pytest.raises(InputError, match=r"radius: 0.2 is not one of 0.1, 0.3"):
        asked.at(0.2)
    with pytest.raises(InputError, match="group: 'loose' is not one of 'tight', 'cdf'"):
        asked.at(0.1, "loose")


def test_without_radii_they_are_quarters_of_sigma_and_the_headline_is_half_of_it(
    counts: Counts, found: Certification
) -> None:
    radii = list(found.radii)
    largest = float(np.nanmax(certificates(counts, 0.0).radii))
    assert radii == [0.125 * step for step in range(len(radii))]
    assert radii[-1] <= largest < radii[-1] + 0.125
    assert found.at().radius == 0.25


def test_the_headline_of_given_radii_is_the_largest_whatever_was_drawn(counts: Counts) -> None:
    for seed in (1, 2):
        assert certify(make_counts(seed=seed), radii=[0.2, 9.0, 0.2, -0.0]).radii == (0.0, 0.2, 9.0)
    asked = certify(counts, radii=np.array([0.2, 9.0]))
    assert asked.at().radius == 9.0
    assert asked.at().summary.n_certified == 0
    claim = asked.claims()[0]
    assert claim is asked.at().claim
    assert (claim.value, claim.settings["samples"]) == (1, "all")


def test_progress_counts_pairs_of_radius_and_kind(counts: Counts) -> None:
    seen: list[Any] = []

    class Watching:
        def stage(self, text: str, total: int | None = None, done: int = 0, unit: str = "") -> None:
            seen.append((text, total))

        def say(self, text: str) -> None:
            seen.append(text)

        def advance(self, steps: int) -> None:
            seen.append(steps)

    certify(counts, radii=[0.1, 0.2], kind=("cdf", "standard"), progress=Watching())
    assert seen == [("reading", None), ("certifying", 4), 1, 1, 1, 1]


def test_an_unfinished_run_is_refused_unless_what_is_drawn_will_do(tmp_path: Path) -> None:
    made = draw(tmp_path / "run", n=400, unit=4000)
    late = [unit for unit in made.manifest.units() if unit.stage == "counting" and unit.first >= 10]
    assert late
    for unit in late:
        (made.path / unit.name).unlink()
    again = Run(made.path, made.manifest)
    with pytest.raises(InputError, match=r"run: the run is not complete, .* or add drawn_only to use what is drawn"):
        certify(again)
    some = certify(made.path, radii=0.1, drawn_only=True)
    assert some.n == late[0].first
    assert some.seeds == {"noise of the run": made.manifest.seed}
    assert some.at().claim == pooled_claim(made.counts(samples=late[0].first), 0.1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"source": "no/such/run"}, "no/such/run: there is no such file"),
        ({"kind": ()}, "kind: no kind was given; give tangent, tight"),
        ({"kind": "loose"}, "kind: 'loose' is not one of 'tangent'"),
        ({"radii": []}, "radii: 0 different radii were given; give from 1 to 1000"),
        ({"radii": np.linspace(0, 1, 1001)}, "radii: 1001 different radii were given"),
        ({"radii": [0.1, -1]}, "radii: -1 is not a number of at least 0"),
        ({"radii": ["far"]}, "radii: 'far' is not a number"),
        ({"alpha": 0}, "alpha: it is 0, and certificates from noise may fail"),
        ({"kind": "all", "compare": True}, "compare: it needs one kind of certificate"),
        ({"by": "site"}, "by: it is for tables of intervals, and counts is a run; leave it out"),
        ({"columns": {"lower": "lb"}}, "lower: it is for tables of intervals"),
        ({"radius": 0.1}, "unexpected argument 'radius'; did you mean 'radii'?"),
    ],
)
def test_what_cannot_be_certified_is_one_sentence(counts: Counts, changes: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"source": counts, "radii": [0.1]} | changes
    with pytest.raises(InputError, match=message):
        certify(given.pop("source"), **given)


# ------------------------------------------------------------------------------------------- clean beside worst case


def test_estimates_of_confidence_are_within_their_error_of_the_mean_of_the_draws() -> None:
    rng = np.random.default_rng(4)
    x = rng.beta(2, 0.5, (30, 200))
    thresholds = np.sort(rng.random(9))
    found = Counts.from_confidences(x, thresholds, votes=[200] * 30, sigma=1.0).confidence_estimates()
    assert (np.abs(found.values - x.mean(axis=1)) <= found.error + 1e-12).all()
    assert ((found.values >= 0) & (found.values <= 1)).all()


def test_the_error_of_an_estimate_cannot_be_smaller() -> None:
    """Draws at the lower ends of their cells are half a cell below the middle, and just below the next ones above."""
    thresholds = np.array([0.1, 0.5, 0.6])
    low, high = np.array([0.0, 0.1, 0.5, 0.6]), np.nextafter([0.1, 0.5, 0.6, 1.0], 0)
    counted = Counts.from_confidences([low, high], thresholds, votes=[4, 4], sigma=1.0).confidence_estimates()
    np.testing.assert_allclose(counted.values - counted.error, low.mean(), atol=1e-12)
    np.testing.assert_allclose(counted.values + counted.error, high.mean(), atol=1e-12)


def test_clean_bins_are_of_the_samples_that_are_certified_at_the_radius(counts: Counts, found: Certification) -> None:
    estimates = counts.confidence_estimates().values
    for radius in found.radii:
        one, clean = found.at(radius), found.clean_bins(radius)
        assert clean is not None
        assert one.certificates is not None
        assert one.worst_bins is not None
        kept = one.certificates.certified
        assert clean.ece == metrics.ece(estimates[kept], one.certificates.correct[kept])
        assert clean.table.count.sum() == one.worst_bins.table.count.sum() == one.summary.n_certified
        assert clean.table.correct_sum.sum() == one.worst_bins.table.correct_sum.sum()


def test_worst_bins_are_those_of_the_witness_and_have_the_signs_of_their_gaps(found: Certification) -> None:
    one = found.at()
    assert one.worst is not None
    assert one.worst_bins is not None
    assert one.worst.signs is not None
    table = one.worst_bins.table
    reached = np.abs(table.gap_sum).sum() / one.summary.n_certified
    assert reached == pytest.approx(one.worst.value, abs=1e-9)
    assert one.worst_bins.ece == one.worst.value
    used = table.count > 0
    assert (table.gap_sum[used] * one.worst.signs[used] >= -1e-9).all()


def test_where_no_sample_is_certified_there_is_nothing_to_draw(counts: Counts) -> None:
    nothing = certify(counts, radii=[50.0])
    assert nothing.clean_bins() is None
    assert nothing.at().worst_bins is None
    assert nothing.at().worst is None
    assert nothing.widths("tight") is None
    assert nothing.influential() == ()


# ------------------------------------------------------------------------------------------------------------- widths


@pytest.mark.parametrize("kind", CONFIDENCES)
def test_widths_of_any_kind_are_those_of_its_certificates(counts: Counts, found: Certification, kind: str) -> None:
    own = certificates(counts, 0.25, confidence=kind)
    widths = np.sort((own.upper - own.lower)[own.certified])
    seen = found.widths(kind)
    assert seen is not None
    assert seen is found.widths(kind)
    assert (seen.kind, seen.radius, seen.n, seen.mean) == (kind, 0.25, own.n_certified, own.mean_width)
    for value, share in zip(seen.values, seen.shares, strict=True):
        assert share == pytest.approx(np.mean(widths <= value), abs=1e-15)
    for q, value in zip((0.05, 0.25, 0.5, 0.75, 0.95), seen.quantiles, strict=True):
        assert np.mean(widths <= value) >= q - 1e-12
        assert np.mean(widths < value) < q
    assert seen.median == seen.quantiles[2]


def test_many_widths_are_thinned_to_two_hundred_exact_steps() -> None:
    many = certify(make_counts(samples=600, draws=300), radii=[0.0])
    own = many.at().certificates
    assert own is not None
    widths = (own.upper - own.lower)[own.certified]
    seen = many.widths("tangent")
    assert seen is not None
    assert np.unique(widths).size > 200
    assert seen.values.size == 200
    assert (seen.values[0], seen.values[-1], seen.shares[-1]) == (widths.min(), widths.max(), 1.0)
    np.testing.assert_allclose(seen.shares, [np.mean(widths <= value) for value in seen.values], atol=1e-15)


# ---------------------------------------------------------------------------------------------------------------- p_A


def test_the_curve_of_p_a_is_exact_where_it_is_kept_and_never_too_high_between() -> None:
    rng = np.random.default_rng(3)
    record = VoteRecord.of(rng.integers(0, 5001, 900), 5000, rng.random(900) < 0.9, sigma=1.0)
    seen = PaDistribution.of(record)
    whole, thin = seen.curve(10**6), seen.curve(50)
    assert not whole.thinned
    assert thin.thinned
    assert thin.p.size == 50
    assert (thin.p[0], thin.p[-1]) == (0.5, 1.0)
    np.testing.assert_array_equal(thin.lower, seen.survival(thin.p)[0])
    between = rng.uniform(0.5, 1, 500)
    drawn = thin.lower[np.searchsorted(thin.p, between)]
    assert (drawn <= seen.survival(between)[0]).all()
    exact = whole.lower[np.searchsorted(whole.p, between)]
    np.testing.assert_array_equal(exact, seen.survival(between)[0])
    with pytest.raises(InputError, match="most is 1"):
        seen.curve(1)


def test_a_certification_has_the_distribution_of_p_a_of_its_counts(counts: Counts, found: Certification) -> None:
    correct = counts.predicted == counts.label
    assert found.p_a.survival(0.9)[0] == np.mean(correct & (counts.votes / counts.draws >= 0.9))


# ------------------------------------------------------------------------------------------------- samples that matter


def test_the_most_influential_samples_have_the_largest_contributions(counts: Counts, found: Certification) -> None:
    one, told = found.at(), found.influential(5)
    assert one.worst is not None
    assert one.certificates is not None
    added = one.worst.contributions
    assert [each.contribution for each in told] == sorted(added, reverse=True)[:5]
    for each in told:
        i = each.index
        assert each.contribution == added[i] > 0
        assert (each.label, each.predicted) == (counts.label[i], counts.predicted[i])
        assert (each.lower, each.upper) == (one.certificates.lower[i], one.certificates.upper[i])
        assert each.lower <= each.witness == one.worst.witness[i] <= each.upper
        assert (each.votes, each.draws) == (counts.votes[i], DRAWS)
        assert each.radius == one.certificates.radii[i] >= 0.25
        low, high = map(float, each.interval_text.split(" to "))
        assert low <= each.lower
        assert each.upper <= high
    everyone = found.influential(10_000)
    assert sum(each.contribution for each in everyone) == pytest.approx(added[added > 0].sum())
    with pytest.raises(InputError, match="k is 0; pass how many samples to name"):
        found.influential(0)


def test_a_sample_is_named_by_its_place_in_the_data_set(counts: Counts) -> None:
    moved = replace(counts, index=counts.index + 100)
    told, same = (certify(each, radii=0.25).influential(3) for each in (moved, counts))
    assert [each.index - 100 for each in told] == [each.index for each in same]


# ------------------------------------------------------------------------------------------------------------- inputs


def test_inputs_are_taken_only_if_the_run_was_drawn_from_them(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (24, 4), dtype=np.uint8)
    run = draw(tmp_path / "run", inputs=pixels, n=40)
    taken = check_inputs(run.manifest, pixels)
    np.testing.assert_array_equal(taken, pixels.astype(np.float32) / np.float32(255))
    more = np.concatenate([pixels, pixels])
    for same in (more, taken, taken.astype(np.float64), Inputs.from_arrays(pixels, np.zeros(24, int))):
        np.testing.assert_array_equal(check_inputs(run.manifest, same), taken)
    for other in (pixels[::-1], X, pixels.astype(np.float32)):
        with pytest.raises(InputError, match="are not the data that the run was drawn from, by their fingerprint"):
            check_inputs(run.manifest, other)
    for other in (pixels[:23], pixels[:, :3]):
        with pytest.raises(InputError, match="the run is of 24 samples of shape"):
            check_inputs(run.manifest, other)
    with pytest.raises(InputError, match="inputs"):
        check_inputs(run.manifest, 7)


# ------------------------------------------------------------------------------------------------------------- tables

TABLE = {
    "lower": [0.5, 0.25, 0.4, 0.1, 0.3, 0.0],
    "upper": [0.75, 0.5, 0.9, 0.6, 0.7, 1.0],
    "correct": [1, 0, 1, 0, 1, 1],
    "certified": [1, 1, 1, 1, 1, 0],
    "radius": [0.25, 0.25, 0.25, 1, 1, 1],
    "site": ["a", "b", "a", "b", "a", "b"],
}


def test_a_table_in_memory_in_a_file_and_read_already_are_certified_alike(tmp_path: Path) -> None:
    import pandas as pd

    frame = pd.DataFrame(TABLE)
    frame.to_csv(tmp_path / "intervals.csv", index=False)
    made = [
        certify(source, bins=4, delta=0.1, alpha=0.01)
        for source in (TABLE, frame, tmp_path / "intervals.csv", read_intervals(tmp_path / "intervals.csv"))
    ]
    first = made[0].to_dict()
    assert [each.to_dict()["results"] for each in made] == [first["results"]] * 4
    for line, rows in zip(made[0].lines, (slice(0, 3), slice(3, 6)), strict=True):
        ends = [np.array(TABLE[name][rows]) for name in ("lower", "upper", "correct")]
        own = certcal.worst_case.certify(
            *ends, certified=np.array(TABLE["certified"][rows]), bins=4, delta=0.1, alpha=0.01
        )
        assert line.summary.to_dict() == own.to_dict()
        assert line.headline is line.summary["calibration_error"].worst
    headline, population, *rest = made[0].claims()
    assert headline is made[0].at(1).worst
    assert population is made[0].at(1).summary.population
    assert len(rest) > 20
    assert repr(made[0]).startswith("<Certification of table: 3 samples, certified accuracy 0.3333, calibration error")


@pytest.mark.parametrize("limit", ["0.99", "99%"])
def test_a_claim_that_the_answer_tells_is_not_told_again_whatever_a_requirement_is_written_in(
    counts: Counts, limit: str
) -> None:
    found = certify(counts, radii=[0.1])
    text = found.report(require=f"ece <= {limit}").to_text(width=400)
    assert text.count(f"on the {found.at().summary.n_certified} certified samples") == 1


def test_radii_and_groups_of_a_table_can_be_chosen() -> None:
    found = certify(TABLE, radii=[0.25], by="site")
    assert [(line.radius, line.group) for line in found.lines] == [(0.25, None), (0.25, "a"), (0.25, "b")]
    assert found.at(group="b").summary.n == 1
    renamed = {("eps" if name == "radius" else name): values for name, values in TABLE.items()}
    assert certify(renamed, columns={"radius": "eps"}).radii == (0.25, 1.0)
    with pytest.raises(InputError, match=r"radii: table has no rows at radius 0.5; there are 0.25, 1"):
        certify(TABLE, radii=0.5)
    for name, value in {"kind": "cdf", "familywise": True, "drawn_only": True}.items():
        with pytest.raises(InputError, match=f"{name}: it is for runs, and table is a table; leave it out"):
            certify(TABLE, **{name: value})
    for asked in (found.clean_bins, found.influential, lambda: found.save("intervals.parquet")):
        with pytest.raises(InputError, match="a table has intervals and no draws; certify a run for this"):
            asked()


def test_the_groups_of_a_table_share_delta_and_the_whole_has_its_own() -> None:
    rng = np.random.default_rng(3)
    lower, correct = rng.uniform(0.4, 0.8, 240), rng.random(240) < 0.8
    table = {"lower": lower, "upper": lower + 0.1, "correct": correct, "site": np.arange(240) % 3}
    found = certify(table, by="site", delta=0.06)
    whole, *groups = found.lines
    assert [line.population.delta for line in found.lines] == pytest.approx([0.06, 0.02, 0.02, 0.02])
    assert sum(line.population.delta for line in groups) <= 0.06
    for place, line in enumerate(groups):
        mine = table["site"] == place
        own = worst_case.certify(lower[mine], lower[mine] + 0.1, correct[mine], delta=line.population.delta)
        assert line.summary.to_dict() == own.to_dict()
    assert whole.summary.to_dict() == certify({**table, "site": np.zeros(240)}, delta=0.06).at().summary.to_dict()
    shown = " ".join(str(found).split())
    assert "hold together at one radius (94% sure): each group's fails at most 1 time in" in shown
    assert "at most 1 time in 50. That of all samples is as sure, by itself." in shown


# ---------------------------------------------------------------------------------- files, and kinds of one's own


def test_saved_intervals_certify_to_the_same_values(counts: Counts, tmp_path: Path) -> None:
    first = certify(counts, radii=[0.125, 0.25])
    first.save(tmp_path / "intervals.parquet")
    again = certify(tmp_path / "intervals.parquet")
    for one, two in zip(first.lines, again.lines, strict=True):
        assert one.summary.to_dict() == two.summary.to_dict()
    assert again.origin is not None
    assert again.origin.confidence == "tangent"
    with pytest.raises(InputError, match="a file of intervals needs one kind of certificate"):
        certify(counts, radii=0.25, kind="all").save(tmp_path / "all.parquet")
    table = first.to_pandas()
    assert table.loc[table.claim == "calibration_error", "value"].tolist() == [
        line.headline.value for line in first.lines
    ]


def test_a_kind_of_ones_own_is_certified_like_a_built_in_one(counts: Counts) -> None:
    class Mine:
        name = "mine"
        all_radii = True

        def __call__(self, part: Counts, radius: float, alpha: float) -> Any:
            return np.zeros(len(part)), np.ones(len(part))

    found = certify(counts, radii=[0.1, 0.2], kind=["tight", Mine()], familywise=True)
    assert found.kinds == ("tight", "mine")
    assert found.conventions["confidence"] == ["tight", "mine"]
    assert found.at(0.1, "mine").width == 1.0
    assert found.at(0.1, "mine").worst.value >= found.at(0.1, "tight").worst.value  # pyright: ignore
    assert found.widths("mine", 0.2).quantiles == (1.0,) * 5  # pyright: ignore
    claims = {kind: found.at(0.1, kind).claim for kind in ("tight", "mine")}
    assert own_kind("mine") in claims["mine"].assumptions  # pyright: ignore
    assert not any("not checked" in each for each in claims["tight"].assumptions)  # pyright: ignore
    told = " ".join(found.report().notes)
    assert "hold together: 99.9% sure" in told  # both kinds hold at all radii at once

    def other(part: Counts, radius: float, alpha: float) -> Any:
        return np.zeros(len(part)), np.ones(len(part))

    told = " ".join(certify(counts, radii=[0.1, 0.2], kind=other, familywise=True).report().notes)
    assert "hold together at each radius: 99.9% sure" in told


def test_a_kind_of_ones_own_cannot_pass_for_a_built_in_one(counts: Counts) -> None:
    def tight(counts: Counts, radius: float, alpha: float) -> tuple[Any, Any]:
        return np.full(len(counts), 0.9), np.ones(len(counts))

    with pytest.raises(InputError, match="confidence: tight is the name of a built-in kind; give yours another"):
        certcal.certify(counts, radii=[0.1], kind=tight)


def test_edges_are_given_frozen_or_recomputed_and_papers_count_alpha_three_times(
    counts: Counts, tmp_path: Path
) -> None:
    given = certify(counts, radii=0.1, edges=[0, 0.5, 0.8, 1])
    assert given.settings == certify(counts, radii=0.1, bins=3, edges=[0, 0.5, 0.8, 1]).settings
    with pytest.raises(InputError, match="bins: it is 5, and the edges make 3 bins; leave it out"):
        certify(counts, radii=0.1, bins=5, edges=[0, 0.5, 0.8, 1])
    assert given.conventions["bins"] == 3
    assert given.at().worst is not None
    assert "edges=given" in given.at().worst.sentence
    frozen = certify(counts, radii=0.1, bins=4, edges="equal-mass", adaptive=True)
    line = frozen.at()
    edges = certcal.binning.equal_mass_edges(counts.confidence_estimates().values, 4)
    assert line.worst is not None
    assert line.worst.bins is not None
    np.testing.assert_array_equal(line.worst.bins.edges, edges)
    assert line.adaptive is not None
    bracket = line.summary["equal_mass_error"].worst
    assert bracket is not None
    assert bracket.reached is not None
    assert bracket.reached <= bracket.value < line.adaptive.value  # failing certificates cost
    assert "AdaECE" in str(frozen)
    assert frozen.to_dict()["results"][0]["adaptive_claim"]["value"] == line.adaptive.value
    table = frozen.save(tmp_path / "intervals.parquet")
    again = certify(table, bins=4, edges="equal-mass").at()
    assert again.worst is not None
    assert again.worst.value == line.worst.value
    with pytest.raises(InputError, match="no column of confidences without an attack"):
        certify({"lower": [0.5], "upper": [0.6], "correct": [1]}, edges="equal-mass")
    for edges_given, words in (("quantiles", "'quantiles' is not one of"), ([0, 0.5], "the last 1")):
        with pytest.raises(InputError, match=words):
            certify(counts, edges=edges_given)
    with pytest.raises(InputError, match="grid"):
        certify(counts, grid=True)


def test_published_accounting_has_the_published_radius_and_says_what_it_spends() -> None:
    n = 100_000
    counts = Counts.from_confidences(np.full((1, n), 0.9), [0.5], votes=[n], sigma=1.0, correct=[True])
    ours, theirs = (certificates(counts, 0.5, 0.001, "standard", accounting=each) for each in ("ledger", "published"))
    assert theirs.radii[0] == pytest.approx(3.8115, abs=2e-4)
    assert ours.radii[0] < 3.8
    assert theirs.ledger.spent == pytest.approx(0.003)
    assert theirs.alpha == pytest.approx(0.003)
    assert theirs.lower[0] > ours.lower[0]
    claim = theirs.claim()
    assert "0.001 to each of three bounds" in claim.statement
    shown = str(certify(counts, radii=0.5, accounting="published"))
    assert "alpha as papers count it" in " ".join(shown.split())
    assert "alpha 0.003 each (as papers count: 0.001 for each of three bounds)" in " ".join(shown.split())
    with pytest.raises(InputError, match="exclude each other"):
        certificates(counts, 0.5, familywise=True, accounting="published")
