"""Requirements by the names that are printed: every label works in every form, and the same names ask results."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import certcal
from certcal import InputError
from certcal.report.document import Heading, Table
from certcal.report.names import vocabulary

N = 600
RNG = np.random.default_rng(11)
SCORE = RNG.random(N)
OUTCOME = (RNG.random(N) < SCORE).astype(int)
THIRD = RNG.random((N, 3)) + 0.1
CHANCES = THIRD / THIRD.sum(axis=1, keepdims=True)
LABEL = np.array([RNG.choice(3, p=each) for each in CHANCES])
TABLES: dict[str, dict[str, Any]] = {
    "binary": {"score": SCORE, "outcome": OUTCOME},
    "top-label": {"confidence": 0.3 + 0.7 * SCORE, "correct": OUTCOME},
    "multiclass": {"p_0": CHANCES[:, 0], "p_1": CHANCES[:, 1], "p_2": CHANCES[:, 2], "label": LABEL},
}
GROUPS = {"region": np.where(SCORE < 0.5, "north", "south"), "product": RNG.choice(["gold", "tin"], N)}


def tables(part: Any) -> Iterator[Table]:
    if isinstance(part, Table):
        yield part
    for name in ("blocks", "sections", "appendix"):
        for each in getattr(part, name, None) or ():
            yield from tables(each)


def printed_labels(result: Any) -> list[str]:
    """The first column of every table whose head says "metric", but for headings."""
    named = [each for each in tables(result.report()) if each.columns[0].head == "metric"]
    return list(dict.fromkeys(str(row[0]) for each in named for row in each.rows if not isinstance(row, Heading)))


@pytest.fixture(scope="module")
def measured() -> dict[str, Any]:
    return {task: certcal.measure(table, metrics="all") for task, table in TABLES.items()}


@pytest.fixture(scope="module")
def compared() -> dict[str, Any]:
    return {task: certcal.compare(table, table, metrics="all") for task, table in TABLES.items()}


@pytest.mark.parametrize("task", TABLES)
def test_every_label_of_a_table_of_metrics_names_its_number(task: str, measured: dict[str, Any]) -> None:
    labels = printed_labels(measured[task])
    assert len(labels) >= len({row.name for row in measured[task].rows})
    asked: set[str] = set()
    for label in labels:
        (one,) = measured[task].verdict(f"estimate {label} <= 1e9").judgements
        asked.add(one.claim.name)
    assert asked == {row.name for row in measured[task].rows}


@pytest.mark.parametrize("task", TABLES)
@pytest.mark.parametrize("prefix", ["old ", "new ", "difference ", ""])
def test_every_label_of_a_comparison_names_its_number_behind_a_prefix(
    task: str, prefix: str, compared: dict[str, Any]
) -> None:
    rows = {row.name: row for row in compared[task].rows}
    labels = [each for each in printed_labels(compared[task]) if each]
    assert len(labels) >= len(rows)
    for label in labels:
        if prefix == "difference " and "Spiegelhalter" in label:  # a test has no difference
            continue
        (one,) = compared[task].verdict(f"estimate {prefix}{label} <= 1e9").judgements
        row = rows[one.claim.name.removeprefix(prefix.strip()).lstrip(" _")]
        expected = {"old ": row.old, "difference ": row.claim}.get(prefix, row.new)
        assert one.value == expected.value, label


def test_a_range_and_the_way_that_tables_print_it_are_read(measured: dict[str, Any]) -> None:
    found = measured["binary"]
    assert found.verdict(
        "-9 <= slope <= 9", "0 <= accuracy at threshold 0.5 <= 1", "= reliability (miscalibration) <= 1"
    )
    with pytest.raises(InputError, match=r"has no threshold=0\.7; there is threshold=0\.5"):
        found.verdict("accuracy at threshold 0.7 >= 0")
    with pytest.raises(InputError, match=r"has a decimal comma; write 5\.5% with a point"):
        found.verdict("ece <= 5,5%")


@pytest.mark.parametrize(
    "name", ["log loss", "NLL", "slope", "O/E", "observed / expected", "ece", "ECE, equal-mass bins"]
)
def test_results_are_asked_by_the_names_of_requirements(name: str) -> None:
    table = {**TABLES["binary"], **GROUPS}
    measured = certcal.measure(table, by="region")
    wanted = measured.verdict(f"estimate {name} <= 9").judgements[0].claim.name
    for found in (measured, measured.groups[0], certcal.compare(table, table)):
        assert found[name].name == wanted
        assert name in found
    assert certcal.compare(table, table)[f"old {name}"].name == f"old {wanted}"


def test_a_name_that_is_not_there_or_not_clear_says_so() -> None:
    found = certcal.measure(TABLES["binary"], bins=(5, 10))
    with pytest.raises(KeyError, match=r"there are 2 of 'ECE'; ask for one, as in \['ECE', 5\] or \['ECE', 10\]"):
        found["ECE"]
    assert found["ECE", 5].settings["bins"] == 5
    with pytest.raises(KeyError, match=r"did you mean 'ece'\?"):
        found["eec"]
    bounds = certcal.bound(TABLES["binary"])
    assert bounds["ece"] is bounds["binned"]
    assert "auroc" not in bounds
    mapped = certcal.recalibrate(TABLES["binary"])
    assert mapped["log loss"].value == mapped["nll"].value == mapped.after["nll"].value


def test_groups_are_called_as_in_tables_and_once() -> None:
    found = certcal.measure({**TABLES["binary"], **GROUPS}, by="region*product")
    (one,) = found.verdict("ece(region=north, product=gold) <= 1").judgements
    assert (one.group, one.where) == ("north*gold", "north × gold")
    assert "calibration error in 15 bins for north × gold is" in one.sentence
    assert found.verdict("ece(region*product=North × gold) <= 1").judgements[0].value == one.value
    # Of several groups with that value the worst decides.
    ends = [group["ece"].interval.upper for group in found.groups if group.where["region"] == "north"]
    (worst,) = found.verdict("ece(region=north) <= 1").judgements
    assert (worst.value, worst.settings_judged) == (max(ends), len(ends))


def test_what_a_group_is_called_is_found_in_other_spellings_and_guessed() -> None:
    found = certcal.measure({**TABLES["binary"], "age": np.arange(N) % 50}, by="age")
    name = found.groups[1].name
    assert "–" in name
    assert found.verdict(f"ece(age={name.replace('–', '-')}) <= 1").judgements[0].group == name
    named = certcal.measure({**TABLES["binary"], **GROUPS}, by="region")
    with pytest.raises(InputError, match=r"ece has no region=nord; did you mean 'north'\?"):
        named.verdict("ece(region=nord) <= 1")
    with pytest.raises(InputError, match=r"did you mean 'region'\?"):
        named.verdict("ece(regoin=north) <= 1")
    with pytest.raises(InputError, match=r"there is bins or closed, and groups with by$"):
        certcal.measure(TABLES["binary"]).verdict("ece(region=north) <= 1")


def test_an_infinite_or_undefined_number_says_why_and_what_it_is_without() -> None:
    score, outcome = SCORE.copy(), OUTCOME.copy()
    score[[3, 7]], outcome[[3, 7]] = (0.0, 1.0), (1, 0)
    found = certcal.measure(outcome, score)
    loss, slope = found.verdict("log loss <= 0.5", "slope >= 0.5").judgements
    why = ", because 2 scores of exactly 0 or 1 were wrong (indices 3, 7); without them it is "
    assert loss.sentence.startswith(f"not met: log loss is infinite (limit 0.5){why}")
    assert slope.sentence.startswith(f"not shown: calibration slope is undefined (limit 0.5){why}")
    assert not any("sure" in each.sentence for each in (loss, slope))
    assert {each.name: f"{each.value:.4f}" for each in found.certain_errors.without}["nll"] in loss.sentence
    assert "interval" not in str(found["nll"])
    assert "interval" in str(found["ece"])
    certain = certcal.compare({"score": SCORE, "outcome": outcome}, {"score": score, "outcome": outcome})
    assert "is infinite (limit 1), because 2 scores" in str(certain.verdict("log loss <= 1"))


def test_a_group_of_one_outcome_says_so_and_what_to_do() -> None:
    outcome = np.where(GROUPS["region"] == "north", 0, OUTCOME)
    found = certcal.measure({"score": SCORE, "outcome": outcome, **GROUPS}, by="region")
    n = found.groups["north"].n
    said = (
        f"AUROC for north (worst of 2 groups, 1 not shown) is undefined (limit 0.6), because all {n} outcomes are 0; "
    )
    assert f"not shown: {said}leave that group out, or make the groups coarser." in str(
        found.verdict("every auroc >= 0.6")
    )


def test_an_interval_and_a_bound_are_told_apart() -> None:
    table = TABLES["binary"]
    assert "95% sure (asymptotic)" in str(certcal.measure(table).verdict("ece <= 100%"))
    assert "95% sure (proven)" in str(certcal.bound(table).verdict("ece <= 100%"))
    both = certcal.measure(table, bounds=True).verdict("ece <= 100%", "auroc >= 0")
    assert re.findall(r"95% sure \((\w+)\)", str(both)) == ["proven", "asymptotic"]


def test_requirements_are_lists_or_arguments_and_never_keywords_of_a_verb() -> None:
    found = certcal.measure(TABLES["binary"])
    asked = ["ece <= 90%", "auroc >= 0"]
    assert str(found.verdict(asked)) == str(found.verdict(*asked)) == str(found.report(require=asked).verdict)
    assert found.report(require=asked[0]).verdict == found.verdict(asked[0])
    with pytest.raises(
        InputError, match=r"unexpected argument 'require'; ask the result, as in \.verdict\('ece <= 5%'\)"
    ):
        certcal.measure(OUTCOME, SCORE, require="ece <= 5%")  # pyright: ignore[reportCallIssue]


def test_one_array_and_one_too_many_name_the_call_to_write() -> None:
    import pandas

    with pytest.raises(InputError, match=r"not Series; name the columns, or write certcal\.measure\(y_true, y_prob\)"):
        certcal.measure(pandas.Series(SCORE))
    with pytest.raises(InputError, match=r"write|check\(page, \(y_true, y_prob\)\)"):
        certcal.check("page.html", OUTCOME, SCORE)  # pyright: ignore[reportCallIssue]


@pytest.mark.parametrize("prefix", ["old", "new", "difference", "clean", "reached"])
@pytest.mark.parametrize(
    ("printed", "name"), [("log loss", "nll"), ("O/E", "observed_expected_ratio"), ("calibration error", "ece")]
)
def test_a_prefix_stays_before_every_name_that_is_meant(prefix: str, printed: str, name: str) -> None:
    assert f"{prefix}_{name}" in vocabulary().names(f"{prefix.title()} {printed}")
    assert name not in vocabulary().names(f"{prefix} {printed}")
