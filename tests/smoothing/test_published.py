"""Published files of other forms: logs that count votes, curves without samples, certified confidences. All made up."""

import numpy as np
import pytest

from certcal import InputError, certify
from certcal.lab.logs import dominance, read_confidence_log, read_curve, read_log
from certcal.smoothing.robustness import PaDistribution, VoteRecord, vote_radii

N = 1000


def counted(path, votes, predicted, radii, names=("exact_radius", "count")):
    lines = [f"idx\tlabel\tpredict\t{names[1]}\tbound\t{names[0]}\tcorrect\ttime"]
    for i, (k, c, r) in enumerate(zip(votes, predicted, radii, strict=True)):
        lines.append(f"{20 * i}\t1\t{c}\t{k}\t9.9\t{r:.5g}\t{int(c == 1)}\t0:01")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("names", [("exact_radius", "count"), ("radius", "raw_count")])
def test_a_log_that_counts_votes_leaves_only_abstained_classes_open(tmp_path, names):
    votes, predicted = np.array([1000, 990, 700, 540]), [1, 1, 0, -1]
    radii = np.nan_to_num(vote_radii(votes, N, 0.5, 0.001)) * (np.array(predicted) >= 0)
    log = read_log(counted(tmp_path / "log", votes, predicted, radii, names), sigma=0.5, n=N)
    assert log.alpha == 0.001
    assert (log.lowest.tolist(), log.highest.tolist()) == ([1000, 990, 700, 0], [1000, 990, 700, 540])
    seen = PaDistribution.of(log)
    assert seen.open_to == 0.54
    assert [float(each) for each in seen.survival(0.55)] == [0.5, 0.5]


@pytest.mark.parametrize(
    ("votes", "predicted", "change", "text"),
    [
        ([990, 980], [1, 1], 1.01, "explains every radius with the votes given, of 1000 draws,"),
        ([1001, 980], [1, 1], 1.0, "line 2, 1001 votes out of 1000 draws; check n"),
        ([990, 980, 700], [1, 1, -1], 1.0, "line 4, 700 votes abstain, which certify at 0.001"),
    ],
)  # fmt: skip
def test_votes_that_do_not_go_with_their_radii_are_refused(tmp_path, votes, predicted, change, text):
    radii = change * np.nan_to_num(vote_radii(np.minimum(votes, N), N, 0.5, 0.001)) * (np.array(predicted) >= 0)
    path = counted(tmp_path / "log", votes, predicted, radii)
    with pytest.raises(InputError, match=text):
        read_log(path, sigma=0.5, n=N)


def test_a_curve_over_p_brackets_what_lies_between_its_points(tmp_path):
    path = tmp_path / "method_0.25.csv"
    path.write_text("x\ty\n0.5\t0.8\n0.6\t0.8\n0.9\t0.5\n1.0\t0.1\n")
    points = read_curve(path, sigma=0.25)
    seen = points.distribution(10, "curve")
    for p in (0.5, 0.55, 0.6, 0.75, 0.9, 0.95, 1.0):
        assert [float(each) for each in seen.survival(p)] == [float(each) for each in points.survival(p)]
    low = PaDistribution.of(VoteRecord.of([590] * 8 + [100] * 2, N, np.ones(10), sigma=0.25), "low")
    high = PaDistribution.of(VoteRecord.of([1000] * 9 + [100], N, np.ones(10), sigma=0.25), "high")
    assert dominance(high, seen).verdict == "first"
    assert dominance(low, seen).verdict == "second"
    with pytest.raises(InputError, match=r"share\[2\] is 0.5, no whole number of 7 samples"):
        read_curve(path, sigma=0.25).distribution(7)


def test_a_curve_over_the_radius_is_that_of_the_votes(tmp_path):
    votes = np.array([1000, 999, 950, 900, 800, 300])
    radii = np.nan_to_num(vote_radii(votes, N, 0.5, 0.001), nan=-1.0)
    path, at = tmp_path / "noise_0.50_acc", np.linspace(0, 1.2, 40)
    path.write_text("".join(f"{r:.5f}\t{np.mean(radii >= r):.5f}\n" for r in at.round(5)))
    points = read_curve(path, sigma=0.5, n=N, alpha=0.001)
    lower, upper = points.survival(np.sort(votes / N))
    true = [np.mean(votes >= k) for k in np.sort(votes)]
    assert np.all(lower <= true + np.float64(5e-6))
    assert np.all(true <= upper + 5e-6)
    with pytest.raises(InputError, match="does not say how; give the draws"):
        read_curve(path, sigma=0.5)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x\ty\n", "the curve has no points"),
        ("x\ty\n0.5\tmany\n", "line 2 is '0.5.tmany', not two numbers"),
        ("x\ty\n0.5\t0.6\n0.5\t0.5\n", "line 3, p does not increase"),
        ("x\ty\n0.5\t0.6\n0.6\t0.7\n", "line 3, the share rises"),
        ("x\ty\n0.5\t1.6\n", "line 2, the share is outside"),
        ("x\ty\n1.5\t0.6\n", "line 2, p is outside"),
        ("0.5\t0.6\n0.6\t0.7\n", "certified accuracy cannot grow"),
    ],
)
def test_a_damaged_curve_is_refused(tmp_path, text, said):
    path = tmp_path / "curve"
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        read_curve(path, sigma=0.5, n=N, alpha=0.001)


NAMES = "idx\tlabel\tpredict\texp_cdf_00\texp_cdf_50\texp_00\texp_50\tcorrect\ttime\n"
ROWS = ["0\t3\t3\t0.704\t0.5\t0.704\t0.321\t1\t0:39\n", "20\t7\t-1\t0.0\t0.0\t0.0\t0.0\t0\t0:22\n",
        "40\t4\t2\t0.9\t0.8\t0.9\t0.6\t0\t0:22\n"]  # fmt: skip


def test_certified_confidences_are_read_rounded_down_and_can_be_certified(tmp_path):
    path = tmp_path / "log"
    path.write_text(NAMES + "".join(ROWS))
    log = read_confidence_log(path)
    assert (log.radii, log.margins, len(log)) == ((0.0, 0.5), False, 3)
    assert log.lower[0] == pytest.approx([0.7035, 0.4995])
    assert log.certified_accuracy(0.499).certified == (1, 1)
    assert log.certified_accuracy(0.5).certified == (1, 0)  # 0.5 as printed may be a little less
    assert log.certified_accuracy(0.5, [0.0], plain=True).certified == (1,)
    found = certify(log.intervals(), bins=3).to_dict()
    assert [level["n_certified"] for level in found["results"]] == [2, 1]
    path.write_text(NAMES + ROWS[0].replace("0.321", "-0.321"))
    assert read_confidence_log(path).margins
    with pytest.raises(InputError, match="these are margins, not confidences"):
        read_confidence_log(path).intervals()
    with pytest.raises(InputError, match=r"no bounds at radius 0\.3"):
        log.certified_accuracy(0.5, [0.3])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("idx\tlabel\n0\t1\n", "names no column 'predict'"),
        (NAMES, "the log has no samples"),
        (NAMES + ROWS[0].replace("0.704", "nan", 1), "line 2, exp_cdf_00 is 'nan'"),
        (NAMES + ROWS[0].replace("\t1\t0:39", "\t0\t0:39"), "correct contradicts predict and label"),
        (NAMES + ROWS[0][:20] + "\n", "line 2 has 6 fields where the first has 9"),
    ],
)
def test_a_damaged_log_of_confidences_is_refused(tmp_path, text, said):
    path = tmp_path / "log"
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        read_confidence_log(path)


def test_files_of_another_form_are_named_for_what_they_are(tmp_path):
    path = tmp_path / "file"
    for text, said in (
        ("x\ty\n0.5\t0.1\n", "read_curve"),
        ("0.0\t0.9\n", "read_curve"),
        (NAMES, "read_confidence_log"),
    ):
        path.write_text(text)
        with pytest.raises(InputError, match=f"which certcal.lab.logs.{said} reads"):
            read_log(path, sigma=0.5, n=N)
