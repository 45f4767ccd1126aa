"""One headline: whatever is called the calibration error on these samples is one number, over one set of samples.

Settings times doors. A door yields every number that it shows under that name, and every count of certified samples at
the headline's radius; what else is true has another name.
"""

import html
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import certcal
from certcal import Certification
from certcal.report.document import Heading, KeyNumbers, Table
from certcal.smoothing import Counts, certificates
from tests.smoothing.drawing import draw

RADIUS = 0.1
OTHERS = ("population", "every certificate holds", "equal-mass", "maximum", "uncertified", "ks ")
SETTINGS: dict[str, dict[str, Any]] = {
    **{kind: {"kind": kind} for kind in ("tangent", "tight", "cdf")},
    "all kinds": {"kind": "all"},
    "several radii": {"radii": [0.0, 0.05, RADIUS]},
    "together": {"radii": [0.0, RADIUS], "together": True},
    "familywise": {"familywise": True},
    "published": {"accounting": "published"},
    "alpha": {"alpha": 0.05},
    "bins": {"bins": 7, "closed": "right"},
    "many bins": {"bins": 2100},
    "equal mass": {"edges": "equal-mass", "adaptive": True},
    "nothing certified": {"radii": [40.0]},
}


@cache
def counts() -> Counts:
    rng = np.random.default_rng(8)
    x = rng.beta(rng.uniform(0.3, 30, 40)[:, None], 1.0, (40, 300))
    votes = (x > 0.5).sum(axis=1)
    return Counts.from_confidences(x, np.linspace(0.05, 0.95, 19), votes=votes, sigma=0.5, correct=rng.random(40) < 0.8)


@cache
def found(name: str) -> Certification:
    return certcal.certify(counts(), **{"radii": [RADIUS], **SETTINGS[name]})


def python(made: Certification) -> tuple[Any, dict[str, Any]]:
    """The certificates of the headline's radius, made by hand, and how errors are binned."""
    asked, edges = made.settings, made.settings.binning_with_edges(made.clean.values).get("edges")
    given = {"familywise": asked.familywise, **asked.accounting_of(len(made.radii))}
    one = certificates(counts(), made.radii[made.place], made.conventions["alpha"], made.kinds[0], **given)
    return one, {"bins": asked.bins, "closed": asked.closed, "edges": edges}


# ------------------------------------------------------------------------------------------------------------ the doors


def in_text(text: str) -> tuple[set[str], set[int]]:
    """Calibration errors on these samples and counts of certified samples that a text names."""
    flat = " ".join(text.split())
    form = r"(\S+ )?(?:\bECE|calibration error)((?:[^.;≤]|\.\d)*?) at most (\d\.\d{4}|\d+\.\d\d%)"
    named = re.findall(form, flat, re.IGNORECASE)
    kept = {text for before, after, text in named if not any(word in f"{before}{after}".lower() for word in OTHERS)}
    values = {as_decimals(text) for text in kept}
    counted = re.findall(r"(\d[\d,]*)(?: of [\d,]+ samples)? certified\b", flat)
    return values, {int(each.replace(",", "")) for each in counted}


def as_decimals(text: str) -> str:
    return f"{Decimal(text[:-1]) / 100:.4f}" if text.endswith("%") else text


def walked(value: Any, inside: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every mapping inside, with the key it is under."""
    if isinstance(value, dict):
        yield inside, value
        for key, part in value.items():
            yield from walked(part, key)


def at_headline(made: Certification) -> str:
    """The settings of the headline, as requirements say them; a table without radii has one number only."""
    line = made.at()
    told = {"radius": line.radius, "kind": line.kind}
    named = ", ".join(f"{name}={value}" for name, value in told.items() if value is not None)
    return f"({named})" if named else ""


def in_json(made: Certification) -> tuple[set[str], set[int]]:
    document, line = made.to_dict(), made.at().to_dict()
    top = document["headline"]
    assert line == next(each for each in document["results"] if each["radius"] == top["radius"])
    values, n = in_text(line["headline"])
    values.add(top["text"])
    n |= {line["n_certified"]} | ({top["n"]} if top["samples"] == "certified" else set())
    assert top["value"] == made.at().headline.value
    assert top["certified_accuracy"] == line["certified_accuracy"]["value"]
    judged = made.document(require=f"ece{at_headline(made)} <= 2")["headline"]  # a requirement takes nothing of it away
    assert {key: judged[key] for key in top if key != "sentence"} == {
        key: each for key, each in top.items() if key != "sentence"
    }
    for key, each in walked(line):
        own = str(each.get("name", ""))
        on_these = each.get("extreme", "highest") == "highest" and key != "all" and "text" in each
        if own.startswith("calibration error") and on_these and not any(word in own for word in OTHERS):
            values.add(each["text"])
        if key == "certified" and "n" in each:
            n.add(each["n"])
    return values, n


def in_table(made: Certification) -> tuple[set[str], set[int]]:
    columns, one = made.columns(), made.at()
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    rows = [row for row in rows if (row["radius"], row["group"]) == (one.radius, one.group)]
    errors = [row for row in rows if row["claim"] == "calibration_error"]
    if made.counts is None:
        errors = [row for row in errors if row["samples"] == "certified"] or errors
    return {row["text"] for row in errors}, {row["n"] for row in rows if row["samples"] == "certified"}


def in_blocks(made: Certification) -> tuple[set[str], set[int]]:
    """Cells of the page's tables: what stands under ECE, and beside it."""
    report, one = made.report(), made.at()
    values, n = set[str](), set[int]()
    for block in (each for section in (*report.sections, *report.appendix) for each in section.blocks):
        if isinstance(block, KeyNumbers):
            values |= {as_decimals(each.text) for each in block.numbers if each.name == "calibration error"}
            assert one.summary.accuracy.text in [as_decimals(each.text) for each in block.numbers]
        if isinstance(block, Table):
            heads = [column.head for column in block.columns]
            for row in (dict(zip(heads, row, strict=True)) for row in block.texts() if not isinstance(row, Heading)):
                here = row.get("radius", one.radius_text) == one.radius_text
                if here and row.get(made.by or "", one.group or "all") == (one.group or "all"):
                    values |= {row["ECE"]} if row.get("ECE", "–") not in ("–", "") else set()
                    n |= {int(row["certified"])} if str(row.get("certified", "")).isdigit() else set()
    return values, n


def in_page(made: Certification) -> tuple[set[str], set[int]]:
    return in_html(made.to_bytes(".html").decode())


def in_html(page: str) -> tuple[set[str], set[int]]:
    """The same of a page, whose cells and paragraphs are apart."""
    page = re.sub(r"<(script|style)\b.*?</\1>", " ", page, flags=re.DOTALL)
    page = re.sub(r"</?(?:span|strong|em|b|i|a|code|small)\b[^>]*>", "", page)
    return in_text(html.unescape(re.sub(r"<[^>]+>", " ; ", page)))


def in_gate(made: Certification) -> tuple[set[str], set[int]]:
    asked = (f"ece{at_headline(made)} <= 2", "ece <= 2", "samples ece <= 2", "calibration error <= 2")
    first, *others = made.verdict(*asked).judgements
    # Of several radii or kinds the worst decides, unless one is asked for.
    worst = max((line.headline for line in made.lines), key=lambda each: each.value)
    assert {each.text for each in others} <= {worst.text}
    return {first.text}, set()


def in_python(made: Certification) -> tuple[set[str], set[int]]:
    if made.counts is None:
        return {made.at().headline.text}, {made.at().summary.n_certified}
    one, binned = python(made)
    claim = one.claim(**binned)
    assert claim == made.at().claim
    assert claim.n == (one.n_certified or len(one))
    assert "every_certificate_holds" in repr(one.summary())
    return {claim.text}, {one.n_certified, one.summary().n_certified}


DOORS: dict[str, Callable[[Certification], tuple[set[str], set[int]]]] = {
    "JSON": in_json,
    "table": in_table,
    "page": in_page,
    "blocks": in_blocks,
    "terminal": lambda made: in_text(made.report().to_text()),
    "first screen": lambda made: in_text(str(made)),
    "notebook": lambda made: in_html(html.unescape(made._repr_html_())),
    "repr": lambda made: in_text(repr(made)),
    "gate": in_gate,
    "Python": in_python,
}


@cache
def source(name: str) -> Certification:
    """Other sources than counts: a plain table of intervals, and one that a run made."""
    one = certificates(counts(), RADIUS)
    table = {"lower": one.lower, "upper": one.upper, "correct": one.correct, "certified": one.certified}
    return certcal.certify({**table, "radius": np.full(40, RADIUS)} if name == "table with a radius" else table)


@pytest.mark.parametrize("name", [*SETTINGS, "table", "table with a radius"])
def test_every_door_has_one_calibration_error_over_one_set_of_samples(name: str) -> None:
    made = found(name) if name in SETTINGS else source(name)
    one = made.at()
    for door, read in DOORS.items():
        values, n = read(made)
        # A page with a slider says it of every radius.
        lines = [one] if door not in ("page", "terminal", "notebook") else made.whole()
        assert values, door
        assert values <= {line.headline.text for line in lines}, door
        assert n <= {line.summary.n_certified for line in lines}, door
    if one.claim is not None:
        assert one.claim.n == (one.summary.n_certified or one.summary.n)
        assert one.summary["calibration_error"].worst_all.name == "calibration error where every certificate holds"
    shown = " ".join(str(made).split())
    accuracy = one.summary.accuracy
    said = accuracy.sentence[1:].replace(accuracy.text, f"{100 * Decimal(accuracy.text):.2f}%")
    assert said in shown
    assert shown.index(said) < shown.index("Bins are")


@pytest.mark.parametrize("name", SETTINGS)
def test_all_kinds_and_accounts_of_one_alpha_certify_the_same_samples(name: str) -> None:
    """Sets differ only where alpha is shared otherwise, and say so: familywise, published, another alpha."""
    made = found(name)
    assert len({(line.radius, line.summary.n_certified) for line in made.lines}) == len(made.radii)
    if name not in ("familywise", "published", "alpha", "nothing certified"):
        assert made.at().summary.n_certified == found("tangent").at().summary.n_certified
    assert found("published").at().summary.n_certified > found("tangent").at().summary.n_certified  # so it could differ


def test_a_run_has_the_same_headline_by_both_ways_and_abstains_as_often_as_it_shows(tmp_path: Path) -> None:
    labels = np.arange(24) % 3
    run = draw(tmp_path / "run", labels=labels, n=300, unit=20_000)
    for radius in (0.0, 0.1, 40.0):
        made, one = certcal.certify(run, radii=[radius]), run.certificates(radius)
        assert one.claim() == made.at().claim
        assert one.n_certified == made.at().summary.n_certified
    rate = certcal.summarize(run).overview.abstained
    assert 0 < rate == made.about["run"]["abstention_rate"] < 1
    assert round(24 * rate) == 24 - certcal.certify(run, radii=[0.0]).at().summary.n_certified
    made = certcal.certify(run, radii=[0.1])
    made.save(tmp_path / "intervals.parquet")
    again = certcal.certify(tmp_path / "intervals.parquet")
    assert again.at().summary.n_certified == made.at().summary.n_certified
    assert "calibration error where every certificate holds" in again.at().headline.sentence
    assert "Certify the run itself to have its noise averaged" in " ".join(str(again).split())


def test_some_of_the_samples_keep_what_is_certified_and_what_it_costs() -> None:
    one = certificates(counts(), RADIUS)
    rows = np.arange(0, 40, 2)
    some = one.select(rows)
    np.testing.assert_array_equal(some.certified, one.certified[rows])
    assert some.claim().n == some.n_certified
    assert some.claim().settings["noise"] == "averaged over the samples"
    assert some.recalibrated(some.lower, some.upper, "the identity").claim().value == some.claim_of_intervals().value


def test_radii_that_hold_together_pay_once_for_what_is_one_event() -> None:
    """Class probabilities have limits for all radii; the sum of the ends has an event at each of them."""
    for kind, shared in (("tangent", ("limits_of_the_ends", "sum_of_the_ends")), ("tight", ("sum_of_the_ends",))):
        alone, four = (certificates(counts(), RADIUS, 0.01, kind, together=k).claim() for k in (1, 4))
        before, after = dict(alone.ledger.entries), dict(four.ledger.entries)
        assert after == {name: part / (4 if name in shared else 1) for name, part in before.items()}
        total = sum(part * (4 if name in shared else 1) for name, part in after.items())
        assert total == pytest.approx(0.01)
        assert four.value > alone.value
        assert four.n == alone.n


def test_radii_that_the_votes_have_reached_share_alpha_among_all_that_they_might_have() -> None:
    """Else alpha would be shared among a number that depends on the draws, and the parts need not add up to it."""
    x = np.full((3, 200), 0.9)
    shown, shared = set[int](), set[int]()
    for votes in (200, 187, 120):
        drawn = Counts.from_confidences(x, np.array([0.5]), votes=[votes] * 3, sigma=1.0)
        made = certcal.certify(drawn, together=True)
        shown.add(len(made.radii))
        shared |= {line.claim.settings["radii that hold together"] for line in made.lines if line.claim is not None}
    assert (len(shown), shared) == (3, {max(shown)})


def test_as_papers_count_the_claim_has_one_of_three_times_alpha() -> None:
    assert certificates(counts(), RADIUS, 0.001, accounting="published").claim().ledger.spent == pytest.approx(0.001)
