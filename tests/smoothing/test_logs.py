"""Published certification logs: real ones with known answers, made-up ones with known votes, and broken ones.

The real logs are not part of the project. Where they are absent small stand-ins of the same form take their place,
whose answers come from the naive twins; the assertions are the same.
"""

import warnings
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import certcal
from certcal import InputError
from certcal.lab.logs import LogWarning, compare, dominance, read_log
from certcal.smoothing.robustness import (
    PaDistribution,
    VoteRecord,
    average_certified_radius,
    certified_accuracy,
    vote_radii,
)
from tests.smoothing import naive_robustness as naive

FOLDER = Path(__file__).parents[3] / "shared" / "data"
AT = (0.0, 0.25, 0.5, 0.75, 1.0)
HEADER = "idx\tlabel\tpredict\tradius\tcorrect\ttime\n"


def line(index, label, predict, radius, correct):
    return f"{index}\t{label}\t{predict}\t{radius}\t{correct}\t0:00:14.1\n"


def printed(votes, correct, *, n, sigma, alpha, text="{:.3}".format):
    """The log that a certification with these votes prints."""
    radii = vote_radii(votes, n, sigma, alpha)
    rows = []
    for index, (radius, right) in enumerate(zip(radii, correct, strict=True)):
        if np.isnan(radius):
            rows.append(line(index, 3, -1, "0.0", 0))
        else:
            rows.append(line(index, 3, 3 if right else 5, text(float(radius)), int(right)))
    return HEADER + "".join(rows)


@dataclass(frozen=True)
class Oracle:
    path: Path
    n: int
    average: float
    accuracies: tuple[float, ...] | None


@pytest.fixture(scope="module")
def oracles(tmp_path_factory) -> dict[float, Oracle]:
    averages = {0.12: 0.2758, 0.25: 0.4240, 0.50: 0.5251, 1.00: 0.5105}
    known = {0.50: (0.6568, 0.5491, 0.4279, 0.3245, 0.2197)}  # Table 5 of Sun et al., "Gaussian, sigma = 0.5"
    found = {}
    for sigma, average in averages.items():
        path = FOLDER / f"cifar10_resnet110_gaussian_sigma_{sigma:.2f}.tsv"
        if path.exists():
            found[sigma] = Oracle(path, 100_000, average, known.get(sigma))
        else:
            found[sigma] = stand_in(tmp_path_factory.mktemp("logs") / path.name, sigma)
    return found


def stand_in(path: Path, sigma: float) -> Oracle:
    rng = np.random.default_rng(int(100 * sigma))
    n, size = 200, 400
    votes = np.minimum(n, rng.binomial(n, rng.beta(8, 0.5 + sigma, size)) + 2)
    correct = rng.random(size) < 0.95 - 0.4 * sigma  # more noise, fewer right
    text = printed(votes, correct, n=n, sigma=sigma, alpha=0.001)
    path.write_text(text)
    fields = [row.split("\t") for row in text.splitlines()[1:]]
    radii = [None if row[2] == "-1" else float(row[3]) for row in fields]
    hits = [int(row[4]) for row in fields]
    average = sum(r for r, c in zip(radii, hits, strict=True) if r is not None and c) / size
    return Oracle(path, n, average, tuple(float(naive.certified_accuracy(radii, hits, at)) for at in AT))


@pytest.mark.parametrize("sigma", [0.12, 0.25, 0.50, 1.00])
def test_the_known_figures_of_real_logs_are_found(oracles, sigma):
    oracle = oracles[sigma]
    log = read_log(oracle.path, sigma=sigma, n=oracle.n, alpha=0.001)
    assert log.alpha == 0.001
    assert average_certified_radius(log.radii, log.correct).value == pytest.approx(oracle.average, abs=5e-5)
    curve = certified_accuracy(log.radii, log.correct, AT)
    if oracle.accuracies is not None:
        assert curve.values == oracle.accuracies
    assert curve.certified[0] == np.count_nonzero(log.correct & ~log.abstained)


@pytest.mark.parametrize("sigma", [0.12, 0.25, 0.50, 1.00])
def test_alpha_is_inferred_from_the_radii_of_real_logs_and_false_claims_are_noticed(oracles, sigma):
    oracle = oracles[sigma]
    log = read_log(oracle.path, sigma=sigma, n=oracle.n)
    assert log.alpha == 0.001
    assert "alpha = 0.001 was inferred" in log.notes[0]
    with pytest.warns(LogWarning, match=r"not certified at alpha = 0\.01 as claimed; alpha = 0\.001 is used"):
        assert read_log(oracle.path, sigma=sigma, n=oracle.n, alpha=0.01).alpha == 0.001


@pytest.mark.parametrize("sigma", [0.12, 0.25, 0.50, 1.00])
def test_the_noise_level_is_found_where_all_votes_certify_the_largest_radius(oracles, sigma):
    oracle = oracles[sigma]
    log = read_log(oracle.path, n=oracle.n, alpha=0.001)
    assert log.sigma == sigma
    assert "sigma was found" in log.notes[0]
    assert read_log(oracle.path, n=oracle.n).sigma == sigma


@pytest.mark.parametrize(
    ("votes", "sigma", "why"),
    [
        ([1000, 990, 950, 900], 0.25, "the largest radius is that of one sample"),
        ([998, 998, 950, 900], 0.25, "no round one fits"),
        ([1000, 1000, 950, 900], 0.123, "no round one fits"),
    ],
)
def test_no_noise_level_is_found_where_radii_leave_it_open(tmp_path, votes, sigma, why):
    path = tmp_path / "log.tsv"
    path.write_text(printed(np.array(votes), np.ones(4), n=1000, sigma=sigma, alpha=0.001))
    with pytest.raises(InputError, match=f"cannot be found .*{why}"):
        read_log(path, n=1000, alpha=0.001)


def test_a_noise_level_is_refused_at_which_one_radius_is_none_of_the_possible_ones(tmp_path):
    path = tmp_path / "log.tsv"
    text = printed(np.array([1000, 1000, 999, 998]), np.ones(4), n=1000, sigma=0.25, alpha=0.001)
    path.write_text(text)
    assert read_log(path, n=1000, alpha=0.001).sigma == 0.25
    last, above = text.splitlines()[-1], text.splitlines()[-2]
    between = (float(last.split("\t")[3]) + float(above.split("\t")[3])) / 2
    path.write_text(text + line(4, 3, 3, f"{between:.3f}", 1))
    with pytest.raises(InputError, match="cannot be found"):
        read_log(path, n=1000, alpha=0.001)


def test_a_folder_of_logs_is_a_family_of_noise_levels(tmp_path):
    votes = np.array([1000, 1000, 995, 950, 900, 400])
    for name in ("plain", "sharp"):
        for sigma in (0.25, 0.5):
            place = tmp_path / name / f"{sigma}"
            place.mkdir(parents=True)
            (place / "log.tsv").write_text(printed(votes, votes > 500, n=1000, sigma=sigma, alpha=0.001))
            (place / "readme.txt").write_text("not a log")
    found = certcal.compare({name: tmp_path / name for name in ("plain", "sharp")}, n=1000, alpha=0.001, radii=[0.25])
    assert found.sigmas == (0.25, 0.5)
    (tmp_path / "none").mkdir()
    with pytest.raises(InputError, match="neither a run nor a folder of certification logs"):
        certcal.compare(plain=tmp_path / "plain", none=tmp_path / "none", n=1000)


def test_unpaired_logs_are_compared_without_statements_about_pairs(tmp_path):
    rng = np.random.default_rng(0)
    for name, size in (("few", 60), ("many", 90)):
        votes = np.minimum(1000, rng.binomial(1000, 0.97 + 0.02 * (name == "many"), size) + 10)
        (tmp_path / name).write_text(printed(votes, np.ones(size), n=1000, sigma=0.5, alpha=0.001))
    given = {name: tmp_path / name for name in ("few", "many")}
    with pytest.raises(InputError, match="different samples"):
        certcal.compare(given, sigma=0.5, n=1000)
    paired = certcal.compare(given, sigma=0.5, n=1000, samples="common")
    free = certcal.compare(given, sigma=0.5, n=1000, samples="unpaired")
    assert [run.n for run in free.runs] == [60, 90]
    assert paired.graphs[0].chances
    assert not free.graphs[0].chances
    assert free.notes[0].startswith("Samples are not paired")


def test_recovered_votes_certify_the_printed_radii_again(oracles):
    oracle = oracles[0.50]
    log = read_log(oracle.path, sigma=0.50, n=oracle.n)
    known = ~log.abstained
    for votes in (log.lowest, log.highest):
        again = vote_radii(votes[known], log.n, 0.50, log.alpha)
        unit = 10.0 ** (np.floor(np.log10(np.maximum(log.radii[known], 1e-9))) - 2)
        assert np.all(np.abs(again - log.radii[known]) <= 0.5001 * unit)
    assert np.all(log.lowest <= log.highest)
    assert np.all(np.isnan(vote_radii(log.highest[log.abstained], log.n, 0.50, log.alpha)))


def test_converting_a_real_log_to_its_own_setting_gives_its_own_curve(oracles):
    oracle = oracles[0.50]
    log = read_log(oracle.path, sigma=0.50, n=oracle.n)
    asked = PaDistribution.of(log).certified_accuracy(AT, n=oracle.n, alpha=0.001)
    curve = certified_accuracy(log.radii, log.correct, AT)
    assert np.all(asked.lower <= np.array(curve.values))
    assert np.all(asked.upper >= np.array(curve.values))
    # between them lie only samples whose printed radius is within its rounding of R
    assert np.all(asked.upper - asked.lower < 0.02)


def test_real_logs_of_different_noise_are_compared(oracles):
    logs = [read_log(oracles[sigma].path, sigma=sigma, n=oracles[sigma].n) for sigma in (0.25, 1.00)]
    both = compare(logs, at=AT)
    assert both.best.names[0] == (both.runs[0].name,)
    assert both.best.names[-1] == (both.runs[1].name,)
    assert both.dominance[0].verdict == "neither"
    assert both.runs[0].name == oracles[0.25].path.stem


@given(
    st.lists(st.integers(0, 1000), min_size=1, max_size=30),
    st.sampled_from(["{:.3}", "{:.4g}", "{:.3f}", "{!r}"]),
    st.sampled_from([0.25, 1.0]),
    st.sampled_from([1000, 100_000]),
    st.sampled_from([0.05, 0.01, 0.001, 2e-4, 1e-6]),
)
def test_every_vote_count_is_inside_what_its_printed_radius_allows(tmp_path_factory, below, form, sigma, n, alpha):
    path = tmp_path_factory.mktemp("log") / "log.tsv"
    votes = [n, n - 23, n - 5, *(n - (n // 1000 * missed) // 2 for missed in below)]
    path.write_text(printed(votes, [1] * len(votes), n=n, sigma=sigma, alpha=alpha, text=form.format))
    log = read_log(path, sigma=sigma, n=n, alpha=alpha)
    assert (log.alpha, log.notes) == (alpha, ())
    assert np.all(log.lowest <= votes)
    assert np.all(votes <= log.highest)
    if form == "{!r}":
        known = ~log.abstained
        np.testing.assert_array_equal(log.lowest[known], log.highest[known])
    assert inferred(path, sigma, n) in (alpha, "each explain every radius")


def inferred(path, sigma, n):
    """The level that is inferred, or the part of the refusal that says why none is."""
    try:
        return read_log(path, sigma=sigma, n=n).alpha
    except InputError as error:
        return "each explain every radius" if "each explain every radius" in str(error) else str(error)


# Radii far from the top, and below 0.01, where three significant digits tell neighbouring votes apart.
LOW = [50_369, 50_381, 50_402, 50_437, 50_470, 50_512, 50_549, 50_583, 50_611, 50_646, 50_690, 50_727, 50_750, 60_000]


@pytest.mark.parametrize("claimed", [None, 0.001, 0.01])
def test_a_level_that_leaves_one_radius_unexplained_is_not_settled_on(tmp_path, claimed):
    path = tmp_path / "log.tsv"
    # The largest radius, 3.56, is also that of all votes at alpha = 1e-8.
    path.write_text(printed([99_991, *LOW], [1] * (len(LOW) + 1), n=100_000, sigma=1.0, alpha=0.01))
    assert "\t3.56\t" in path.read_text()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        log = read_log(path, sigma=1.0, n=100_000, alpha=claimed)
    assert log.alpha == 0.01
    assert [each.category for each in caught] == ([LogWarning] if claimed == 0.001 else [])
    assert len(log.notes) == (claimed != 0.01)
    assert np.all(log.lowest <= [99_991, *LOW])
    assert np.all([99_991, *LOW] <= log.highest)


def test_a_level_that_is_not_round_is_used_when_it_is_given_and_not_replaced_by_a_round_one(tmp_path):
    path = tmp_path / "log.tsv"
    path.write_text(printed([100_000, *LOW], [1] * (len(LOW) + 1), n=100_000, sigma=1.0, alpha=0.003))
    assert read_log(path, sigma=1.0, n=100_000, alpha=0.003).notes == ()
    with pytest.raises(InputError, match=r"no round alpha up to 0\.05 explains every radius.*; give the level it was"):
        read_log(path, sigma=1.0, n=100_000)
    with pytest.raises(
        InputError, match=r"of sample \d+ is none that 100000 draws certify at alpha = 0\.001 .*no round"
    ):
        read_log(path, sigma=1.0, n=100_000, alpha=0.001)


def test_every_radius_is_asked_and_not_only_those_that_tell_most(tmp_path):
    path = tmp_path / "log.tsv"
    content = printed(range(1000, 900, -1), [1] * 100, n=1000, sigma=1.0, alpha=0.001, text="{:.3f}".format)
    possible = {f"{radius:.3f}" for radius in vote_radii(range(1001), 1000, 1.0, 0.001)}
    impossible = next(f"0.{digits}" for digits in range(101, 200) if f"0.{digits}" not in possible)
    path.write_text(content + line(100, 3, 3, impossible, 1))
    with pytest.raises(InputError, match=f"radius {impossible} of sample 100 is none that 1000 draws certify"):
        read_log(path, sigma=1.0, n=1000, alpha=0.001)


def test_levels_that_fit_equally_well_are_named(tmp_path):
    path = tmp_path / "log.tsv"
    path.write_text(printed([60_000, 55_000], [1, 0], n=100_000, sigma=1.0, alpha=0.001))
    with pytest.raises(
        InputError, match=r"alpha = 0\.05, 0\.02, 0\.01, 0\.005 and 23 others each explain every radius"
    ):
        read_log(path, sigma=1.0, n=100_000)
    assert read_log(path, sigma=1.0, n=100_000, alpha=0.001).notes == ()
    path.write_text(HEADER + line(0, 3, 3, "1.5", 1))
    with pytest.raises(InputError, match=r"alpha = 0\.05, 0\.02, 0\.01, 0\.005 and 2 others each explain every radius"):
        read_log(path, sigma=1.0, n=100)


def test_certified_accuracy_of_a_log_counts_no_sample_whose_radius_was_rounded_up(tmp_path):
    path = tmp_path / "log.tsv"
    first = int(np.argmax(vote_radii(np.arange(10_001), 10_000, 0.5, 0.001) >= 0.5))
    votes = [first - 2, first - 1, first, first + 1, 9000]
    path.write_text(printed(votes, [1] * 5, n=10_000, sigma=0.5, alpha=0.001))
    assert path.read_text().count("\t0.5\t") == 4
    log = read_log(path, sigma=0.5, n=10_000, alpha=0.001)
    both = compare([log, VoteRecord.of(votes, 10_000, [1] * 5, sigma=0.5, name="run")], at=[0.5])
    # Sure of the log, certified by the votes, and as printed.
    assert [run.curve.certified for run in both.runs] == [(1,), (3,)]
    assert [run.printed.certified for run in both.runs] == [(5,), (3,)]
    assert both.best.names == (("run",),)
    assert "1 of these 5 samples (20.00 %)" in both.runs[0].curve.sentences[0]
    assert [run.average.as_printed for run in both.runs] == [True, False]
    assert [run.percents for run in both.runs] == [("100.00 (≥ 20.00)",), ("60.00",)]
    assert any("as is what stands after ≥" in note for note in both.notes)
    families = compare({"log": [log]}, [0.5])
    assert families.best.values == (0.2,)
    assert [run.curve.texts for run in (*both.runs, *families.families[0].runs)] == [
        ("0.2000",),
        ("0.6000",),
        ("0.2000",),
    ]


def test_a_log_of_abstentions_is_read(tmp_path):
    path = tmp_path / "log.tsv"
    path.write_text(HEADER + line(0, 3, -1, "0.0", 0))
    log = read_log(path, sigma=1.0, n=100, alpha=0.001)
    assert (log.lowest.tolist(), log.highest.tolist()) == ([0], [65])
    assert log.highest[0] == naive.smallest_votes(0.5, 100, 0.001) - 1
    seen = PaDistribution.of(log)
    assert [float(side[0]) for side in seen.survival([0.6])] == [0.0, 1.0]


def test_what_the_digits_hide_leaves_dominance_open(tmp_path):
    paths = [tmp_path / "a.tsv", tmp_path / "b.tsv"]
    for path in paths:
        path.write_text(printed([900, 800, 100], [1, 1, 1], n=1000, sigma=1.0, alpha=0.001))
    a, b = (PaDistribution.of(read_log(path, sigma=1.0, n=1000, alpha=0.001)) for path in paths)
    assert dominance(a, b).verdict == "unclear"


def test_a_wrong_noise_is_noticed_where_the_radii_show_it(tmp_path):
    path = tmp_path / "log.tsv"
    path.write_text(printed([1000, 999, 990], [1, 1, 1], n=1000, sigma=1.0, alpha=0.001))
    with pytest.raises(InputError, match=r"1000 draws certify at alpha = 0\.001 and sigma = 0\.25, and no round alpha"):
        read_log(path, sigma=0.25, n=1000, alpha=0.001)


GOOD = HEADER + line(0, 3, 3, "1.5", 1) + line(1, 8, 1, "0.757", 0) + line(2, 5, -1, "0.0", 0)


@pytest.mark.parametrize(
    "change", [str, lambda t: t.replace("\n", "\r\n"), lambda t: "\ufeff" + t, lambda t: t + "\n\n"]
)
def test_line_ends_and_marks_of_other_systems_do_not_matter(tmp_path, change):
    path = tmp_path / "log.tsv"
    path.write_bytes(change(GOOD).encode())
    log = read_log(path, sigma=1.0, n=100, alpha=0.001)
    assert log.lowest.tolist() == [100, 90, 0]
    assert log.correct.tolist() == [True, False, False]
    assert certified_accuracy(log.radii, log.correct, [0]).fractions == (Fraction(1, 3),)


def test_other_columns_and_their_order_do_not_matter(tmp_path):
    path = tmp_path / "log.tsv"
    path.write_text("radius\tcorrect\tidx\tpredict\tlabel\n1.5\t1\t0\t3\t3\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_log(path, sigma=1.0, n=100, alpha=0.001).lowest.tolist() == [100]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "the file is empty"),
        (b"\n\n", "the file is empty"),
        (b"\xff\xfe\x00", "not a text file"),
        (HEADER.encode(), "the log has no samples"),
        (b"idx,label,predict,radius,correct\n0,1,1,0.5,1\n", "names no column 'idx', 'label'"),
        (b"idx\tlabel\tpredict\tcorrect\n0\t1\t1\t1\n", "names no column 'radius'"),
        (b"idx\tidx\tlabel\tpredict\tradius\tcorrect\n0\t0\t1\t1\t0.5\t1\n", "names a column twice"),
        ((GOOD + "3\t8\t8").encode(), "line 5 has 3 fields where the first has 6"),
        ((GOOD + line(3, 8, 8, "nan", 1)).encode(), "line 5, radius is 'nan', not a number"),
        ((GOOD + line(3, 8, 8, "inf", 1)).encode(), "line 5, radius is 'inf'"),
        ((GOOD + line(3, 8, 8, "-0.5", 1)).encode(), "line 5, radius is '-0.5'"),
        ((GOOD + line(3, 8, 8, "1e999999999", 1)).encode(), "line 5, radius is '1e999999999'"),
        ((GOOD + line(3, 8, 8, "", 1)).encode(), "line 5, radius is ''"),
        ((GOOD + line(3, 8, 8, "9" * 50, 1)).encode(), "line 5, radius is '9999"),
        ((GOOD + line("x", 8, 8, "0.5", 1)).encode(), "line 5, idx is 'x', not a whole number"),
        ((GOOD + line(3, "2.0", 2, "0.5", 1)).encode(), r"line 5, label is '2\.0'"),
        ((GOOD + line(3, -2, 2, "0.5", 0)).encode(), "line 5, label is negative"),
        ((GOOD + line(3, 8, -3, "0.5", 0)).encode(), "line 5, predict is below -1"),
        ((GOOD + line(3, 8, 8, "0.5", 2)).encode(), "line 5, correct is neither 0 nor 1"),
        ((GOOD + line(3, 8, 8, "0.5", 0)).encode(), "line 5, correct contradicts"),
        ((GOOD + line(3, 8, 7, "0.5", 1)).encode(), "line 5, correct contradicts"),
        ((GOOD + line(3, 8, -1, "0.5", 0)).encode(), "line 5, an abstention has a radius above 0"),
        ((GOOD + line(2, 8, 8, "0.757", 1)).encode(), "line 5, sample 2 comes a second time"),
        (
            (GOOD + line(3, 8, 8, "7.25", 1)).encode(),
            r"radius 7\.25 of sample 3 is none that 100 draws certify at alpha = 0\.001",
        ),
        ((GOOD + line("9" * 30, 8, 8, "0.5", 1)).encode(), "line 5, idx is '999"),
    ],
)
def test_broken_logs_are_refused_with_their_line(tmp_path, content, text):
    path = tmp_path / "log.tsv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=text) as caught:
        read_log(path, sigma=1.0, n=100, alpha=0.001)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changed", "text"),
    [({"sigma": 0}, "sigma is 0"), ({"n": 0}, "n is 0"), ({"n": 1.5}, "n is 1.5"), ({"alpha": 1}, "alpha is 1")],
)
def test_settings_that_cannot_be_are_refused(tmp_path, changed, text):
    path = tmp_path / "log.tsv"
    path.write_text(GOOD)
    with pytest.raises(InputError, match=text):
        read_log(path, **({"sigma": 1.0, "n": 100, "alpha": 0.001} | changed))


def test_a_log_that_is_not_there_is_a_sentence(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_log(tmp_path / "none.tsv", sigma=1.0, n=100)
    with pytest.raises(InputError, match="cannot be read"):
        read_log(tmp_path, sigma=1.0, n=100)
