"""The first screen of every kind of result has a picture, once on its page, and in its text and its figures, too."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

import certcal
from certcal.models import wrap
from certcal.report.charts import Chart, Panel, Stack
from certcal.report.document import Choice, Figures, Report, Section, Text
from certcal.result import Answer, Curves, Result, Sentence
from tests.report.attacked import attack_result
from tests.report.compared_families import rich
from tests.report.parsed import Node, assert_sound
from tests.report.recalibrated import interval_samples, run_samples
from tests.report.test_certification import made_counts

RNG = np.random.default_rng(0)
P = RNG.uniform(0.05, 0.95, 200)
Y = (RNG.random(200) < P**1.5).astype(int)
X = RNG.random((60, 4)).astype(np.float32)
C = (X[:, 0] > 0.5).astype(int)
TREE = DecisionTreeClassifier(max_depth=2).fit(X, C)
INTERVALS = {"lower": np.maximum(P - 0.1, 0), "upper": np.minimum(P + 0.1, 1), "correct": Y}


def verify(epsilon: Any, **settings: Any) -> certcal.Verification:
    return certcal.verify(TREE, (X, C), epsilon=epsilon, **settings)


def decide() -> Result:
    model = wrap(lambda batch: 8 * np.asarray(batch)[:, :2], "logits")
    return certcal.decide(model, (X, C), radius=0.05, sigma=0.25, n=200, n0=20, seed=3)


RESULTS: dict[str, Callable[[], Result]] = {
    "measure": lambda: certcal.measure(Y, P),
    "bound": lambda: certcal.bound(Y, P),
    "compare": lambda: certcal.compare(*(certcal.Predictions.from_scores(P**k, Y) for k in (1, 2))),
    "compare bounds": lambda: certcal.compare(*(certcal.bound(Y, P**k) for k in (1, 2))),
    "compare runs": rich,
    "recalibrate": lambda: certcal.recalibrate(Y, P),
    "recalibrate a run": lambda: certcal.recalibrate(run_samples(60)),
    "recalibrate at one radius": lambda: certcal.recalibrate(interval_samples(200, [0.25])),
    "attack": attack_result,
    "verify": lambda: verify(0.1),
    "verify without an attack": lambda: verify(0.1, attack=False),
    "verify several sizes": lambda: verify([0.05, 0.1, 0.2]),
    "certify a run": lambda: certcal.certify(made_counts(), radii=[0, 0.1, 0.3]),
    "certify at one radius": lambda: certcal.certify(made_counts(), radii=0.1),
    "certify intervals": lambda: certcal.certify(INTERVALS),
    "decide": decide,
    "plan": lambda: certcal.plan(0.3),
    "band": lambda: certcal.bounds.surrogate(P, Y, 2**-2, perturb=True),
}


@pytest.fixture(scope="module", params=RESULTS)
def report(request: pytest.FixtureRequest) -> Report:
    return RESULTS[request.param]().report()


def charts_of(blocks: Any) -> Iterator[Chart]:
    for block in blocks:
        if isinstance(block, Chart):
            yield block
        elif isinstance(block, Figures):
            yield from block.charts
        elif isinstance(block, Choice):
            yield from (chart for frame in block.frames for chart in charts_of(frame))


def titles(root: Node) -> list[str]:
    return [each.one("title").text for each in root.all("svg", role="img")]


def test_a_page_with_an_answer_shows_a_picture_beside_it_and_the_same_chart_nowhere_else(report: Report) -> None:
    drawn = list(charts_of(report.picture))
    assert drawn
    root = assert_sound(report.to_html())
    (beside,) = root.of_class("picture")
    assert titles(beside) == [each.title for each in drawn]
    again = [each for each in charts_of(b for s in report.for_page().sections for b in s.blocks) if each in drawn]
    assert again == []
    hidden = {each.title for each in report.sections if each.pictured}
    assert not hidden & {each.text for each in root.one("nav").all("a")}
    assert not hidden & {each.text for each in root.all("h2")}


def test_calibration_errors_beside_an_answer_have_an_axis_in_percent() -> None:
    for name in ("verify", "verify without an attack", "verify several sizes", "certify a run"):
        (chart,) = charts_of(RESULTS[name]().report().picture)
        (panel,) = chart.panels
        assert isinstance(panel, Panel | Stack)
        axis = panel.axis if isinstance(panel, Stack) else panel.y
        assert axis.ticks
        assert all(text.endswith("%") for _, text in axis.ticks), name


def test_what_a_page_pictures_is_still_in_its_text_and_its_figures() -> None:
    report = attack_result().report()
    assert "mean confidence" in report.to_text()
    assert [each.title for each in report.charts()][:2] == [each.title for each in charts_of(report.picture)]
    found = certcal.certify(made_counts(), radii=[0, 0.1, 0.3])
    part = found.report().to_text(full=True).partition("ECE by radius")[2].partition("Certified accuracy")[0]
    assert all(line.headline.text in part for line in found.lines)


def test_the_bars_of_one_size_of_the_box_are_what_was_seen_reached_and_certified() -> None:
    found = verify(0.1)
    one = found.at()
    (chart,) = charts_of(found.report().picture)
    (stack,) = chart.panels
    assert isinstance(stack, Stack)
    clean = certcal.metrics.ece(found.confidence[one.verified.certified], found.correct[one.verified.certified])
    sums = [sum(terms.values()) for terms in stack.terms]
    assert sums == pytest.approx([clean, one.reached.value, one.worst.value, one.population.value])
    assert stack.totals[2:] == [f"at most {100 * float(each.text):.2f}%" for each in (one.worst, one.population)]
    assert stack.totals[1].startswith("at least ")
    (unattacked,) = charts_of(verify(0.1, attack=False).report().picture)
    assert isinstance(unattacked.panels[0], Stack)
    assert not any("reached" in name for name in unattacked.panels[0].names)


def test_a_section_that_is_pictured_stays_where_there_is_no_answer_to_stand_beside() -> None:
    part = Section("Part", Text("Seen."), pictured=True)
    bare = Report("Asked", [], [part], picture=part.blocks)
    assert "Part" in assert_sound(bare.to_html()).one("nav").text
    told = bare.of(answer=Answer((Sentence("fact", "It is so."),)))
    assert "Part" not in assert_sound(told.to_html()).one("nav").text
    assert "Seen." in assert_sound(told.to_html()).of_class("picture")[0].text


def test_curves_of_one_chart_are_the_picture_of_an_answer_without_a_view_of_its_own() -> None:
    found = certcal.plan(0.3)
    (title,) = [title for title, part in found.parts().items() if isinstance(part, Curves)]
    report = found.report()
    assert [each.title for each in report.sections if each.pictured] == [title]
    assert [each.title for each in charts_of(report.picture)] == ["Typical bound"]
