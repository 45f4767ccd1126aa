"""The report of bounds: each claim once, with its probability, its assumptions and its terms."""

import pytest

import certcal
from certcal._base.rounding import claim_text
from certcal.report.charts import Stack
from certcal.report.document import Claim, Figures, Table
from certcal.report.views.bounds import bound_name

TABLE = {"confidence": [0.75] * 400, "correct": [1, 1, 1, 0] * 100}


@pytest.fixture(scope="module")
def found():
    return certcal.bound(TABLE, source="table")


def test_the_headline_is_the_first_bound_and_the_section_has_all(found):
    made = found.report()
    (claim,) = made.headline
    first = next(iter(found.bounds.values()))
    assert claim.sentence == f"Calibration error is at most {claim_text(first)} in the population."
    assert claim.probability == "95% sure, for samples drawn like these 400."
    assert claim.assumptions == tuple(first.assumptions)
    (section,) = made.sections
    table, *claims = section.blocks
    lower, upper = found.interval.lower, found.interval.upper
    (figures,) = made.picture
    assert isinstance(table, Table)
    assert table.texts() == [
        [bound_name(method), each.name, f"{'≤' if each.side == 'upper' else '≥'} {claim_text(each)}"]
        for method, each in found.bounds.items()
    ] + [["binned, both sides", found.interval.name, " to ".join(map(claim_text, (lower, upper)))]]
    assert ["binned", "binned calibration error of the population", "≤ 6.43%"] in table.texts()
    assert isinstance(figures, Figures)
    drawn = [
        name for chart in figures.charts for panel in chart.panels if isinstance(panel, Stack) for name in panel.names
    ]
    assert drawn == [bound_name(method) for method, each in found.bounds.items() if each.side == "upper"]
    # The headline's claim is not said again.
    assert all(isinstance(each, Claim) for each in claims)
    assert [each.value.split()[-1] for each in claims] == [
        claim_text(getattr(each, "upper", each)) for each in found.claims()[1:]
    ]
    assert claim.sentence not in [each.sentence for each in claims]


def test_terms_are_rounded_in_the_direction_of_the_bound(found):
    (claim,) = found.report().headline
    bound = found.claims()[0]
    terms = dict(claim.terms.texts())
    assert set(terms) == set(bound.terms)
    assert all(float(terms[name].removesuffix("%")) >= 100 * value for name, value in bound.terms.items())


def test_notes_say_that_one_bound_is_to_be_chosen_before_looking(found):
    several = len(found.bounds) + 1
    assert f"the best of these {several} may be wrong {several} times as often" in found.report().notes[1]


def test_perturbed_scores_are_said_to_be_perturbed():
    found = certcal.bound({"confidence": [0.2, 0.9] * 50, "correct": [0, 1] * 50}, perturb=0.1)
    assert any("perturbed scores" in note for note in found.report().notes)
