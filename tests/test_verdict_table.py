"""Verbs × settings × doors: a requirement that leaves a setting open is met where it is met at every value of it.

Each case is a result that holds several values of some settings. What a number is at each of them is asked one by one,
by requirements that say which; then the requirement without settings must judge the worst of these, in Python, by the
exit code, in JSON, on the page and in its text.
"""

import html
import itertools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
import pytest

import certcal
from certcal import InputError
from certcal.calibrators import CertifiedSamples
from certcal.claims import Estimate
from certcal.cli.emit import DRAWN, Output
from certcal.report.document import Claim
from certcal.report.scale import Scale
from certcal.smoothing import Counts
from certcal.verdict import Judgement, Requirement
from tests.report.attacked import attack_result

RNG = np.random.default_rng(5)
N = 300
SCORE = RNG.random(N).round(3)
TABLE = {
    "score": SCORE,
    "outcome": (RNG.random(N) < SCORE**1.6).astype(int),
    "site": np.array(["east", "west"])[np.arange(N) % 2],
}
NEW = {**TABLE, "score": (SCORE * 0.9).round(3)}
# Wide intervals at the first radius and narrow ones at the last: neither the first nor the largest is the worst.
WIDTHS = {0.1: 0.1, 0.5: 0.4, 1.0: 0.2}
INTERVALS = {
    "radius": np.repeat(list(WIDTHS), N),
    "lower": np.concatenate([np.maximum(SCORE - width, 0) for width in WIDTHS.values()]),
    "upper": np.concatenate([np.minimum(SCORE + width, 1) for width in WIDTHS.values()]),
    "correct": np.tile(TABLE["outcome"], 3),
    "certified": np.concatenate([np.arange(N) >= 90 * place for place in range(3)]).astype(int),
    "site": np.tile(TABLE["site"], 3),
}


def counts(seed: int = 0, sharpness: float = 30) -> Counts:
    rng = np.random.default_rng(seed)
    x = rng.beta(rng.uniform(0.3, sharpness, 40)[:, None], 1.0, (40, 800))
    votes, correct = (x > 0.5).sum(axis=1), np.arange(40) % 5 > 0
    return Counts.from_confidences(x, np.linspace(0.02, 0.98, 49), votes=votes, sigma=0.5, correct=correct)


def trees() -> certcal.Verification:
    from sklearn.ensemble import GradientBoostingClassifier

    x = np.random.default_rng(0).normal(size=(110, 3))
    y = (x[:, 0] + x[:, 1] > 0).astype(int)
    model = GradientBoostingClassifier(n_estimators=5, max_depth=2, random_state=0).fit(x[:80], y[:80])
    return certcal.verify(model, (x[80:], y[80:]), epsilon=[0.02, 0.3], bins=5)


def held_out() -> CertifiedSamples:
    step = np.array([0.08, 0.3, 0.1])
    lower, upper = np.maximum(SCORE[:, None] - step, 0), np.minimum(SCORE[:, None] + step, 1)
    return CertifiedSamples.from_intervals(lower, upper, TABLE["outcome"], SCORE, radii=list(WIDTHS))


class Case(NamedTuple):
    make: Callable[[], Any]
    # Requirements up to their number, and the settings that they leave open.
    asked: Sequence[str]
    settings: Mapping[str, Sequence[Any]]
    # The setting that names the groups, and their names.
    groups: tuple[str, Sequence[str]] | None = None


SITES = ("site", ["east", "west"])
BINS, ECE = {"bins": [5, 20]}, ["ece", "accuracy"]
CASES = {
    "measure": Case(lambda: certcal.measure(TABLE, metrics=ECE, bins=(5, 20)), ["ece <=", "estimate ece >="], BINS),
    "measure bins listed backwards": Case(lambda: certcal.measure(TABLE, metrics=ECE, bins=(20, 5)), ["ece <="], BINS),
    "measure --bounds": Case(lambda: certcal.measure(TABLE, metrics=ECE, bins=(5, 20), bounds=True), ["ece <="], BINS),
    "measure --by": Case(
        lambda: certcal.measure(TABLE, metrics=ECE, bins=(5, 20), by="site"), ["ece <=", "estimate ece >="], BINS, SITES
    ),
    "bound --by": Case(lambda: certcal.bound(TABLE, by="site"), ["ece <=", "calibration error <="], {}, SITES),
    "compare": Case(
        lambda: certcal.compare(TABLE, NEW, metrics=ECE, bins=(5, 20), by="site"),
        ["difference ece <=", "ece <=", "old ece <="],
        BINS,
        ("group", SITES[1]),
    ),
    "compare --bounds": Case(
        lambda: certcal.compare(TABLE, NEW, metrics=ECE, bins=(5, 20), bounds=True), ["difference ece <="], BINS
    ),
    "certify a table": Case(
        lambda: certcal.certify(INTERVALS),
        ["ece <=", "population ece <=", "certified accuracy >=", "brier score <="],
        {"radius": list(WIDTHS)},
    ),
    "certify --by": Case(
        lambda: certcal.certify(INTERVALS, by="site"),
        ["ece <=", "population ece <=", "certified accuracy >="],
        {"radius": list(WIDTHS)},
        SITES,
    ),
    **{
        f"certify a run by {kinds[0]} first": Case(
            lambda kinds=kinds: certcal.certify(counts(), radii=[0.1, 0.3], kind=kinds),
            ["ece <=", "population ece <=", "certified accuracy >="],
            {"radius": [0.1, 0.3], "kind": kinds},
        )
        for kinds in (["standard", "tight"], ["tight", "standard"])
    },
    "verify": Case(
        trees, ["ece <=", "samples ece <=", "brier score <=", "estimate reached <="], {"epsilon": [0.02, 0.3]}
    ),
    "recalibrate": Case(
        lambda: certcal.recalibrate(held_out(), tradeoffs=[0.5]),
        ["ece <=", "brier score <=", "population ece <="],
        {"radius": list(WIDTHS)},
    ),
}


@pytest.fixture(scope="module")
def results() -> Callable[[str], Any]:
    return cache(lambda name: CASES[name].make())


def value_of(found: Any, asked: str, where: Mapping[str, Any]) -> float:
    """The number that a requirement judges when it says which."""
    name, relation = asked.rsplit(" ", 1)
    inside = f"({', '.join(f'{key}={value}' for key, value in where.items())})" if where else ""
    (one,) = found.verdict(f"{name}{inside} {relation} {9 if relation == '<=' else -9}").judgements
    assert one.outcome == "met"
    return one.value


def deciding_end(one: Judgement) -> float:
    """The end of what is known of a number that a requirement is met by; in a requirement that is not met, too."""
    return one.value if one.interval is None else one.interval["<=" in one.requirement]


def emitted(found: Any, folder: Path, capsys: Any, require: str) -> tuple[int, Any, str, str]:
    """What the shell makes of a result: exit code, JSON, page and text."""
    files = tuple(str(folder / f"answer{ending}") for ending in (".html", ".txt"))
    output = Output(DRAWN, True, files, True, require=(Requirement.parse(require),))
    with click.Context(click.Command("verb")):
        output.check()
        try:
            output.emit(found)
            code = 0
        except click.exceptions.Exit as leaving:
            code = leaving.exit_code
    page, text = (Path(file).read_text() for file in files)
    return code, json.loads(capsys.readouterr().out), html.unescape(page).replace("\u00a0", " "), text


def in_page(page: str) -> str:
    """The numbers for machines inside a page."""
    return page.partition('id="data">')[2].partition("</script>")[0]


def points(settings: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(settings, values, strict=True)) for values in itertools.product(*settings.values())]


@pytest.mark.parametrize("name", CASES)
def test_the_worst_of_the_settings_decides_in_every_door(
    name: str, results: Callable[[str], Any], tmp_path: Path, capsys: Any
) -> None:
    kind, found = CASES[name], results(name)
    for asked in kind.asked:
        upper = asked.endswith("<=")
        values = sorted((value_of(found, asked, where) for where in points(kind.settings)), reverse=upper)
        worst = values[0]
        judged = {f"{asked} {worst!r}": True}
        if len(values) > 1:
            assert worst != values[-1], asked
            judged[f"{asked} {(worst + values[-1]) / 2!r}"] = False  # met at the best of them, and not at the worst
        for require, met in judged.items():
            verdict = found.verdict(require)
            (one,) = verdict.judgements
            assert (one.passed, bool(verdict)) == (met, met), require
            assert one.value == worst or (one.outcome == "not met" and not Requirement.parse(require).met_by(one.value))
            assert one.settings_judged == len(values)
        if asked == kind.asked[0]:
            code, document, page, shown = emitted(found, tmp_path, capsys, require)
            assert code == (not met)
            assert [(each["value"], each["passed"]) for each in document["verdict"]] == [(one.value, met)]
            classes = {"met": "pass", "not met": "fail", "not shown": "open"}
            assert f'class="verdict {classes[one.outcome]}"' in page
            assert one.sentence in page
            assert one.sentence in " ".join(shown.split())
            # The number in large type is the one that was judged, and so is the headline elsewhere.
            large = re.search(r'<p class="value">(?:<span>(?:at most|at least)</span>)?<strong><bdi>([^<]*)', page)
            if isinstance(one.claim, Estimate):  # on the scale, with all that is known of it
                assert getattr(Scale.of(one), "text", one.found) in page
            else:
                assert large is not None
                assert large[1] == one.number
            assert (document["headline"]["value"], document["headline"]["text"]) == (one.value, one.text)
            assert one.found in document["headline"]["sentence"]
            assert json.loads(in_page(page))["headline"] == document["headline"]
            assert {each["value"] for each in json.loads(in_page(page))["verdict"]} == {one.value}


@pytest.mark.parametrize("name", CASES)
def test_the_number_that_was_judged_is_the_headline_of_the_page(name: str, results: Callable[[str], Any]) -> None:
    asked = CASES[name].asked[0]
    require = f"{asked} {2 if asked.endswith('<=') else -2}"
    (one,) = results(name).verdict(require).judgements
    report = results(name).report(require=require)
    judged = [block for block in report.headline if isinstance(block, Claim)]
    if isinstance(one.claim, Estimate):
        assert report.verdict.decisive.number == one.number
        assert one.sentence in report.to_text(width=1000)
    else:
        assert judged[0].value == one.found
        assert one.number in judged[0].sentence


@pytest.mark.parametrize("name", [name for name, each in CASES.items() if each.groups is not None])
def test_every_asks_each_group_about_the_worst_of_the_settings(name: str, results: Callable[[str], Any]) -> None:
    kind, found = CASES[name], results(name)
    column, names = kind.groups or ("", ())
    for asked in kind.asked:
        pick = max if asked.endswith("<=") else min
        worst = {
            group: pick(value_of(found, asked, {**each, column: group}) for each in points(kind.settings))
            for group in names
        }
        verdict = found.verdict(f"every {asked} {worst[names[0]]!r}")
        assert {one.group: deciding_end(one) for one in verdict.judgements} == worst
        assert verdict.judgements[0].passed
        beyond = pick(worst.values()) + (-1e-6 if pick is max else 1e-6)
        failed = found.verdict(f"every {asked} {beyond!r}")
        assert not failed
        assert deciding_end(failed.decisive) == pick(worst.values())  # the headline is of the worst group


def test_the_strongest_attack_on_a_metric_decides_and_doing_nothing_is_one() -> None:
    found = attack_result()
    rows = [*found.rows, found.clean]
    for name, relation, pick in (("ece", "<=", max), ("mean_confidence", ">=", min)):
        worst = pick(row[name].value for row in rows)
        (one,) = found.verdict(f"estimate {name} {relation} {worst!r}").judgements
        assert (one.value, one.passed, one.settings_judged) == (worst, True, len(rows))
        beyond = worst + (-1e-6 if pick is max else 1e-6)
        assert not found.verdict(f"estimate {name} {relation} {beyond!r}")
        assert found.verdict(f"estimate {name}(epsilon=0) <= 1").judgements[0].value == found.clean[name].value
        assert len(found.verdict(f"every estimate {name} <= 1").judgements) == len(found.rows)


def test_radii_that_nobody_asked_for_are_refused_until_one_is_named() -> None:
    found = certcal.certify(counts())
    with pytest.raises(InputError, match=r"ece is given for \d+ values of the radius, and none was asked for; ask for"):
        found.verdict("ece <= 1")
    assert found.verdict("ece(radius=0.25) <= 1").judgements[0].value == found.at(0.25).headline.value


def test_a_setting_without_a_number_that_can_decide_is_refused() -> None:
    found = certcal.measure(TABLE, metrics=ECE, bins=(5, 20), bounds=True, bootstrap=0)
    with pytest.raises(InputError, match=r"ece \(bins=5\) is an estimate without an interval or a bound"):
        found.verdict("ece <= 1")
    assert found.verdict("ece(bins=20) <= 1").judgements[0].judged_on == "bound"


def test_several_settings_count_in_what_holds_together_and_not_in_what_passes() -> None:
    found = certcal.measure(TABLE, metrics=ECE, bins=(5, 20), level=0.99)
    verdict = found.verdict("ece <= 1", "accuracy >= 0")
    assert [one.failure for one in verdict.judgements] == [0.01, 0.01]
    assert "at most 1 time in 100 " in verdict.note
    assert verdict.note.endswith("together: 97% sure.")
    # At 20 bins a bound decides, at 5 an interval: either may be wrong.
    mixed = certcal.measure(TABLE, metrics=ECE, bins=(5, 20), level=0.9, bounds=True, delta=0.01)
    assert {mixed.verdict(f"ece(bins={k}) <= 1").judgements[0].failure for k in (5, 20)} == {0.01, 0.1}
    assert mixed.verdict("ece <= 1").judgements[0].failure == 0.1


def test_the_examples_that_were_judged_on_the_first_setting(tmp_path: Path, capsys: Any) -> None:
    from certcal.cli import cli
    from certcal.cli.errors import run

    lines = ["lower,upper,correct,radius,grp"]
    lines += [f"{low},{high},{i % 4 > 0:d},{radius},{'ab'[i % 2]}" for i in range(40) for low, high, radius in _ENDS]
    (tmp_path / "iv.csv").write_text("\n".join(lines) + "\n")
    for require, code in (("ece <= 0.75", 1), ("every ece <= 0.75", 1), ("every ece(radius=0.1) <= 0.75", 0)):
        assert run(cli, ["certify", str(tmp_path / "iv.csv"), "--by", "grp", "--require", require, "--json"]) == code
        verdict = json.loads(capsys.readouterr().out)["verdict"]
        assert {each["settings"]["radius"] for each in verdict} == {1.0 if code else 0.1}


_ENDS = ((0.7, 0.8, 0.1), (0.0, 1.0, 1))
