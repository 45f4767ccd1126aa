"""A page is read, not searched: few words before its appendix, and each claim once."""

import pytest

import certcal
from certcal.report.document import Claim
from tests.browser.making import draw, intervals_table, predictions_table
from tests.report.compared_families import record, seven
from tests.report.parsed import Node, parsed

MOST = 1250
# What is not seen, or only by those who open it; and what stands below the answer.
UNSEEN = {"details", "script", "style", "noscript", "title", "desc", "footer"}
BELOW = {"appendix", "reproducibility"}


def visible(node: Node) -> str:
    """The text that a reader has in front of them before the appendix."""
    said = []
    for child in node.children:
        if isinstance(child, str):
            said.append(child)
        elif child.tag not in UNSEEN and child.attributes.get("id") not in BELOW and "hidden" not in child.attributes:
            said.append(visible(child))
    return " ".join(said)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("words")
    table, intervals = folder / "predictions.csv", folder / "intervals.csv"
    predictions_table(table, "hospital", ("north", "south"))
    intervals_table(intervals, ("0", "0.125", "0.25", "0.5", "1"), ("adults", "children"))
    run = draw(folder / "run", 0.25)
    return {
        "table": certcal.measure(table, bounds=True),
        "groups": certcal.measure(table, by="hospital", bounds=True, bootstrap=20),
        "run": certcal.certify(run),
        "intervals": certcal.certify(intervals, by="group"),
    }


@pytest.mark.parametrize("name", ["table", "groups", "run", "intervals"])
def test_a_page_has_few_words_before_its_appendix(results, name):
    body = parsed(
        results[name]
        .report(
            require={"run": "ece(radius=0.125) <= 0.5", "intervals": "ece <= 0.5"}.get(name, "estimate ece <= 0.5"),
            about={"model": "a", "owner": "b"},
        )
        .to_html()
    ).one("body")
    words = visible(body).split()
    assert 100 < len(words) < MOST


@pytest.mark.parametrize("name", ["table", "run", "intervals"])
def test_the_claim_of_the_headline_is_said_once(results, name):
    report = results[name].report()
    said = " ".join(visible(parsed(report.to_html()).one("body")).split())
    assert [said.count(each.text) for each in report.answer] == [1] * len(report.answer)


@pytest.mark.parametrize("name", ["table", "groups", "run", "intervals"])
def test_the_first_screen_has_at_most_three_sentences_beside_the_fields_of_its_claim(results, name):
    headline = results[name].report().headline
    claim, *more = headline if isinstance(headline[0], Claim) else headline[1:]
    assert len(claim.sentence.split()) <= 30
    assert claim.value
    assert claim.probability
    assert len(more) <= 2


@pytest.mark.parametrize("name", ["table", "groups", "run", "intervals", "runs", "families"])
def test_no_block_of_a_claim_and_no_verdict_has_more_than_thirty_words(results, name):
    pages = {"runs": certcal.compare(record(0, 0.25), record(1, 0.5), record(2, 0.5)), "families": seven()}
    found = pages.get(name) or results[name]
    report = found.report()
    sections = [*report.sections, *report.appendix]
    blocks = [*report.headline, *(block for section in sections for block in section.blocks)]
    said = [block.sentence for block in blocks if isinstance(block, Claim)]
    said += [claim.sentence for claim in found.claims()] if name in pages else []
    assert said
    assert [each for each in said if len(each.split()) > 30] == []


def test_hidden_and_folded_words_are_not_counted():
    page = parsed("<body><p>one two<b hidden>three</b></p><details>four</details><p id=appendix>five</p></body>")
    assert visible(page.one("body")).split() == ["one", "two"]
