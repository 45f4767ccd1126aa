"""``certcal bound``: the bounds of the library, with their terms and assumptions, shown and written."""

import csv
import io
import json
from fractions import Fraction

import numpy as np
import pytest

import certcal
from certcal import bounds
from certcal._base.rounding import claim_text, share_text
from certcal.data import load_table
from tests.cli.conftest import flat
from tests.report.parsed import assert_sound


def pair(path):
    predictions = load_table(path).predictions
    return predictions.confidence, predictions.correct


@pytest.fixture
def probabilities(tmp_path):
    rng = np.random.default_rng(4)
    p = rng.dirichlet([1, 1, 1], 150)
    path = tmp_path / "classes.npz"
    np.savez(path, probabilities=p, labels=[rng.choice(3, p=row) for row in p])
    return path


def test_each_bound_is_shown_with_its_terms_and_its_assumptions(certcal_command, scores):
    ran = certcal_command("bound", scores)
    assert (ran.code, ran.err) == (0, "")
    z, c = pair(scores)
    for name, found in (
        ("bounded variation", bounds.bounded_variation(z, c)),
        ("binned", bounds.binned(z, c)),
        ("binned, from below", bounds.binned_lower(z, c)),
        ("KS", bounds.ks(z, c)),
        ("Kuiper", bounds.kuiper(z, c)),
    ):
        relation = ("at most", "≤") if found.side == "upper" else ("at least", "≥")
        assert f"{found.name[1:]} is {relation[0]} {claim_text(found)}" in flat(ran.out)
        assert f"{relation[1]} {claim_text(found)}" in next(
            line for line in ran.out.splitlines() if line.startswith(f"{name} ")
        )
        for term, value in found.terms.items():
            assert f"{term} {share_text(value, found.side)}" in flat(ran.out)
        assert all(each in flat(ran.out) for each in found.assumptions)
    assert "the best of these 6 may be wrong 6 times as often" in flat(ran.out)
    assert max(len(line) for line in ran.out.splitlines() if not line.startswith("  certcal ")) <= 80
    full = flat(certcal_command("bound", scores, "--explain").out)
    assert bounds.binned(z, c).sentence in full


def test_a_level_is_printed_rounded_down(certcal_command, scores):
    ran = certcal_command("bound", scores, "--delta", "0.05000004")
    assert "Each bound is 94.99% sure" in flat(ran.out)
    assert "94.99% sure, for samples drawn like these" in flat(ran.out)


def test_every_sentence_about_perturbed_scores_says_so_by_itself(certcal_command, scores):
    document = json.loads(certcal_command("bound", scores, "--perturb", 0.2, "--json").out)
    assert len(document["bounds"]) == 7
    for entry in (*document["bounds"], document["interval"]):
        assert "perturbed scores" in entry["name"]
        assert "perturbed scores" in entry["sentence"]
        (noise,) = [each for each in entry["assumptions"] if "perturbed once" in each]
        assert "by the sech kernel of bandwidth 0.2" in noise
    plain = json.loads(certcal_command("bound", scores, "--json").out)
    assert not any("perturbed" in entry["sentence"] + "".join(entry["assumptions"]) for entry in plain["bounds"])


def test_a_bandwidth_is_chosen_and_said_to_be_for_other_samples(certcal_command, scores):
    found = bounds.choose_bandwidth(*pair(scores), 0.01)
    ran = certcal_command("bound", scores, "--choose-bandwidth", "1%")
    assert (ran.code, ran.err) == (0, "")
    assert found.sentence[1:] in ran.out
    assert f"samples that had no part in this choice: certcal bound TABLE --perturb {found.bandwidth:g}" in ran.out
    document = json.loads(certcal_command("bound", scores, "--choose-bandwidth", 0.01, "--json").out)
    assert document["bandwidth"] == found.bandwidth
    assert "bounds" not in document


def test_noise_may_be_on_the_logit_scale(certcal_command, scores):
    found = bounds.choose_bandwidth(*pair(scores), 0.01, scale="logit")
    ran = certcal_command("bound", scores, "--choose-bandwidth", "1%", "--scale", "logit")
    assert f"certcal bound TABLE --perturb {found.bandwidth:g} --scale logit" in ran.out
    document = json.loads(certcal_command("bound", scores, "--perturb", 0.3, "--scale", "logit", "--json").out)
    assert document["conventions"]["scale"] == "logit"
    expected = bounds.smooth(*pair(scores), 0.3, perturb=True, scale="logit")
    assert document["bounds"][0]["value"] == expected.value
    for each in document["bounds"]:
        assert any("on the logit scale" in assumption for assumption in each["assumptions"])


def test_no_figure_of_the_page_has_two_terms_with_one_hatching(scores):
    made = certcal.bound(scores, perturb=0.2).report()
    charts = [*made.picture[0].charts, *made.charts()]
    assert len(charts) > 1
    assert sum(len(chart.panels[0].names) for chart in charts) == 6
    assert all(len({term for terms in chart.panels[0].terms for term in terms}) <= 8 for chart in charts)


def test_one_row_is_bounded_from_both_sides(certcal_command, tmp_path):
    path = tmp_path / "one.csv"
    path.write_text("confidence,correct\n0.7,1\n")
    ran = certcal_command("bound", path)
    assert (ran.code, ran.err) == (0, "")
    assert "1 sample; confidence" in ran.out
    assert "≥ 0.00%" in ran.out
    numbers = next(block for block in certcal.measure(path).report().sections if block.title == "Key numbers").blocks[0]
    assert {"–"} == {each.text for each in numbers.numbers if each.name == "AUROC"}


def test_a_picture_of_many_terms_leaves_out_those_that_could_not_be_told_apart(certcal_command, scores, tmp_path):
    assert certcal_command("bound", scores, "--perturb", 0.2, "-o", tmp_path / "terms.svg").code == 0
    assert (tmp_path / "terms.svg").stat().st_size > 1000


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--delta", "2"), "--delta: 2 is not a probability of failing below 0.5; did you mean 0.02?"),
        (("--perturb", "0"), "--perturb: 0 is not a number above 0"),
        (("--perturb", "1e9"), "bandwidth is 1e+09; pass a number from 1e-9 to 1000"),
        (("--perturb", "0.1", "--lipschitz", "2"), "--perturb: it cannot be combined with lipschitz"),
        (("--perturb", "0.1", "--classwise"), "--perturb: it cannot be combined with classwise"),
        (("--choose-bandwidth", "0.01", "--perturb", "0.1"), "--choose-bandwidth prints a bandwidth and nothing else"),
        (("--choose-bandwidth", "0.01", "-o", "x.json"), "leave --perturb and -o out"),
        (("--choose-bandwidth", "-1"), "between 0 and 1"),
        (("--scale", "logit"), "--scale: it is of perturb or lipschitz; pass one of them, or leave it out"),
        (("--classwise",), "--classwise: it needs a probability for each class"),
        (("--weight", "w"), "there is no column 'w'"),
        (("--by", "nothing"), "there is no column 'nothing'"),
        (("--weight", "score", "--lipschitz", "2"), "--lipschitz: only the binned error has a bound for weighted"),
        (("--weight", "score", "--perturb", "0.1"), "--perturb: only the binned error has a bound for weighted"),
        (("--weight", "score", "--largest-weight", "0.1"), "above largest_weight = 0.1; pass a larger limit"),
        (("--weight", "score", "--choose-bandwidth", "0.1"), "samples of equal weight; leave the weights out"),
        (("--largest-weight", "2"), "--largest-weight: the samples have no weights; leave it out"),
        (("--form", "repaired"), "--form: only the bound of perturbed scores has this form; pass perturb"),
        (("--form", "published", "--perturb", "0.1", "--scale", "logit"), "the logit scale has the direct form only"),
        (("--form", "published", "--where"), "--form: a band has one form; leave it out"),
        (("--form", "published", "--choose-bandwidth", "0.1"), "leave --form out"),
        (("--form", "published", "--weight", "score"), "--form: only the binned error has a bound for weighted"),
        (("--lipshitz", "2"), "did you mean '--lipschitz'?"),
        (("-o", "bounds.doc"), "choose one of the endings .html, .txt, .png, .svg, .pdf, .json, .csv"),
    ],
)
def test_bad_input_leaves_with_a_sentence(certcal_command, scores, options, text):
    ran = certcal_command("bound", scores, *options)
    assert (ran.code, ran.out) == (2, "")
    assert text in ran.err


def test_streamed_samples_have_no_bounds_and_it_is_said(certcal_command, scores):
    ran = certcal_command("measure", scores, "--metric", "ece", "--bounds", "--memory", "1kB")
    assert ran.code == 2
    assert "--bounds: bounds need" in ran.err


def test_weighted_samples_have_bounds_of_the_binned_error_only_and_the_largest_weight_is_assumed(
    certcal_command, scores
):
    shown = flat(certcal_command("bound", scores, "--weight", "score").out)
    assert "only the binned error of the weighted population has a bound" in shown
    assert f"no weight in the population exceeds {pair(scores)[0].max():g}, the largest seen" in shown


@pytest.fixture
def grouped(tmp_path):
    rng = np.random.default_rng(2)
    score, site = rng.random(301), np.array(["north"] * 200 + ["south"] * 100 + ["east"])
    path = tmp_path / "sites.csv"
    rows = zip(score, (rng.random(301) < score).astype(int), site, strict=True)
    path.write_text("score,outcome,site\n" + "".join(f"{s:.6f},{y},{g}\n" for s, y, g in rows))
    return path


def test_groups_share_delta_and_none_is_dropped(certcal_command, grouped):
    ran = certcal_command("bound", grouped, "--by", "site", "--json")
    document = json.loads(ran.out)
    assert document["by"] == "site"
    assert [(each["group"], each["n"]) for each in document["groups"]] == [("east", 1), ("north", 200), ("south", 100)]
    share = bounds.equal_share(0.05, 3)
    z, c = pair(grouped)
    for group, rows in (("north", slice(200)), ("south", slice(200, 300)), ("east", slice(300, 301))):
        (found,) = [each for each in document["groups"] if each["group"] == group]
        values = {each["method"]: each["value"] for each in found["bounds"]}
        assert values["binned"] == bounds.binned(z[rows], c[rows], delta=share).value
        assert values["ks"] == bounds.ks(z[rows], c[rows], share).value
        assert "interval" in found
    assert document["bounds"][1]["value"] == bounds.binned(z, c).value  # the whole has a delta of its own
    shown = flat(certcal_command("bound", grouped, "--by", "site").out)
    assert "hold for all 3 groups together (95% sure)" in shown
    assert "each group's fails at most 1 time in 60" in shown


def test_groups_are_in_files_and_requirements(certcal_command, grouped, tmp_path):
    files = [tmp_path / f"groups.{ending}" for ending in ("csv", "html")]
    assert certcal_command("bound", grouped, "--by", "site", "-o", files[0], "-o", files[1]).code == 0
    rows = list(csv.DictReader(io.StringIO(files[0].read_text())))
    assert list(dict.fromkeys(row["site"] for row in rows)) == ["all", "east", "north", "south"]
    ends = [row["side"] for row in rows if row["method"] == "binned_interval" and row["site"] == "north"]
    assert ends == ["lower", "upper"]
    assert "Bounds per group" in assert_sound(files[1].read_text()).text
    assert certcal_command("bound", grouped, "--by", "site", "--require", "binned <= 0.3").code == 0
    assert certcal_command("bound", grouped, "--by", "site", "--require", "every binned <= 0.3").code == 1


def test_what_is_to_hold_together_shares_delta_over_everything(certcal_command, grouped):
    document = json.loads(certcal_command("bound", grouped, "--by", "site", "--joint", "--json").out)
    every = [each for part in (document, *document["groups"]) for each in part["bounds"]]
    assert len(every) == 4 * 5
    assert {each["delta"] for each in every} == {bounds.equal_share(0.05, 20)}
    assert sum(Fraction(each["delta"]) for each in every) <= Fraction(0.05)
    assert document["interval"]["delta"] == pytest.approx(2 * 0.05 / 20)
    assert document["interval"]["upper"] == document["bounds"][1]["value"]
    assert document["conventions"]["joint"] is True
    shown = flat(certcal_command("bound", grouped, "--joint").out)
    assert "All bounds here hold together (95% sure)" in shown
    assert "choose one before looking" not in shown


def test_groups_of_predictions_are_given_per_sample(scores):
    predictions = load_table(scores).predictions
    sites = np.arange(len(predictions)) % 2
    found = certcal.bound(predictions, by=sites)
    assert [each.name for each in found.groups] == ["0", "1"]
    assert found.by == "group"
    for by, message in ((sites[1:], "entries for"), ("site", "predictions have no columns")):
        with pytest.raises(certcal.InputError, match=message):
            certcal.bound(predictions, by=by)
    with pytest.raises(certcal.InputError, match=r"groups of a table are columns of it, .* give the column's name"):
        certcal.bound(scores, by=sites)


@pytest.mark.parametrize("more", [(), ("--lipschitz", "3"), ("--perturb", "0.2", "--seed", "4")])
def test_where_the_model_is_miscalibrated_is_shown_with_the_band_of_the_library(
    certcal_command, scores, tmp_path, more
):
    z, c = pair(scores)
    expected = {
        "": lambda: bounds.isotonic_band(z, c, 0.01),
        "--lipschitz": lambda: bounds.surrogate(z, c, None, 0.01, constant=3.0),
        "--perturb": lambda: bounds.surrogate(z, c, 0.2, 0.01, seed=4, perturb=True),
    }[more[0] if more else ""]()
    asked = ("bound", scores, "--where", "--delta", "0.01", *more)
    document = json.loads(certcal_command(*asked, "--json", "-o", tmp_path / "where.html").out)
    assert (document["kind"], document["delta"]) == (expected.kind, 0.01)
    assert document["upper"] == pytest.approx(expected.upper.tolist())
    assert document["lower"] == pytest.approx(expected.lower.tolist())
    curve = bounds.denoised(bounds.perturb(z, 0.2, 4) if "--perturb" in more else z, c, 0.01)
    assert document["denoised"] == {"scores": curve.scores.tolist(), "values": curve.values.tolist()}
    page = (tmp_path / "where.html").read_text("utf-8")
    assert_sound(page)
    assert "total variation denoising" in page
    shown = certcal_command(*asked)
    assert shown.code == 0
    assert "Where is the model miscalibrated?" in shown.out
    assert scores.name in shown.out


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (("--by", "site"), "--where is for all samples; leave --by out"),
        (("--weight", "score"), "a band is for samples of equal weight; leave the weights out"),
        (("--perturb", "0.1", "--scale", "logit"), "--scale: a band has noise on the probability scale; leave it out"),
    ],
)
def test_a_band_that_there_is_not_is_refused(certcal_command, scores, more, sentence):
    ran = certcal_command("bound", scores, "--where", *more)
    assert (ran.code, ran.out) == (2, "")
    assert sentence in ran.err


def test_the_published_and_the_repaired_form_can_be_asked_for(certcal_command, scores):
    s, y = pair(scores)
    z = bounds.perturb(s, 0.1, 0)

    def found(form, *options):
        document = json.loads(certcal_command("bound", scores, "--form", form, *options, "--json").out)
        values = {each["method"]: each["value"] for each in document["bounds"]}
        return values, {each["method"]: each["value"] for each in document.get("unproved", ())}, document["conventions"]

    direct, repaired = (found(form, "--perturb", 0.1) for form in ("direct", "repaired"))
    assert direct[0]["smooth"] == bounds.smooth(z, y, 0.1).value
    assert "form" not in direct[2]
    assert repaired[0] == direct[0] | {"smooth": bounds.smooth(z, y, 0.1, form="repaired").value}
    assert (repaired[1], repaired[2]["form"]) == ({}, "repaired")
    values, unproved, _ = found("published", "--perturb", 0.1)
    assert "smooth" not in values  # its proof has a gap
    assert unproved == {"smooth": bounds.smooth(z, y, 0.1, form="published").value}
    assert values["bounded_variation"] == bounds.bounded_variation(z, y, form="published").value
    assert values["lipschitz"] == bounds.lipschitz(z, y, 5.0, form="published").value
    assert found("published")[0]["bounded_variation"] == bounds.bounded_variation(s, y, form="published").value
    shown = flat(certcal_command("bound", scores, "--form", "published", "--perturb", 0.1).out)
    assert "Published formula, not a bound" in shown
    assert "An estimate" in shown
    ran = certcal_command("bound", scores, "--form", "published", "--perturb", 0.1, "--require", "smooth <= 1")
    assert ran.code != 0  # nothing is proved by it
