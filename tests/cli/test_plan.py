"""``certcal plan``: how many samples a bound takes."""

import json

import pytest

import certcal
from certcal import bounds
from tests.cli.test_bound import pair


def test_a_number_of_samples_is_planned_with_and_without_a_table(certcal_command, scores, tmp_path):
    ran = certcal_command("plan", 0.2, "--error", 0.05, "--delta", 0.1, "-o", tmp_path / "plan.html")
    found = bounds.plan(0.2, 0.1, error=0.05)
    assert ran.code == 0
    assert found.sentence[1:] in " ".join(ran.out.split())
    assert f"{found.curve[-1].n:,} {found.curve[-1].bound:.4f} " in " ".join(ran.out.split())
    assert f"{found.n:,} samples" in (tmp_path / "plan.html").read_text("utf-8")
    z, _ = pair(scores)
    document = json.loads(certcal_command("plan", "20%", scores, "--method", "ks", "--power", 0.5, "--json").out)
    assert (document["schema"], document["source"]) == ("certcal/plan/1", str(scores))
    assert document["n"] == bounds.plan(0.2, method="ks", scores=z, power=0.5).n
    assert certcal.plan(0.2, z, method="ks", power=0.5).n == document["n"]
    assert certcal.plan(0.2, str(scores), method="ks", power=0.5).n == document["n"]


def test_scores_without_outcomes_are_enough_for_a_plan(certcal_command, tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("pd\n" + "0.1\n0.2\n" * 20)
    ran = certcal_command("plan", 0.3, path, "--score", "pd", "--json")
    assert json.loads(ran.out)["n"] == certcal.plan(0.3, {"pd": [0.1, 0.2] * 20}, score="pd").n


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((), "TARGET is missing"),
        (("2",), "target is 2.0; pass an error between 0 and 1"),
        (("0.1", "--method", "smooth"), "--method: 'smooth' is not one of 'binned', 'ks'"),
        (("0.1", "--error", "0.2"), "error is 0.2; pass an error from 0 to below the target 0.1"),
        (("0.1", "--by", "site"), "there is no option '--by'"),
        (("0.1", "."), "this is a folder"),
    ],
)
def test_what_cannot_be_planned_leaves_with_a_sentence(certcal_command, words, text):
    ran = certcal_command("plan", *words)
    assert (ran.code, ran.out) == (2, "")
    assert text in ran.err
