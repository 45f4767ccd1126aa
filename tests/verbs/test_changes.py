"""Two tables side by side: which rows are the same sample, what differs, per group, and what is refused."""

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest

import certcal
from certcal import InputError, Predictions
from certcal.claims import Estimate, Interval

RNG = np.random.default_rng(11)
N = 600
Z = RNG.uniform(0.05, 0.95, N).round(4)
Y = (RNG.random(N) < Z).astype(int)
SITE = RNG.choice(["east", "west"], N)
OLD = {"id": np.arange(N), "score": (Z**2).round(6), "outcome": Y, "site": SITE}
NEW = {"id": np.arange(N), "score": Z, "outcome": Y, "site": SITE}
SOME = ("ece", "auroc", "accuracy", "brier_score")


def shuffled(table, rng, keep=None):
    order = rng.permutation(N)[:keep]
    return {name: np.asarray(values)[order] for name, values in table.items()}


def without(table, *names):
    return {name: values for name, values in table.items() if name not in names}


def numbers(found):
    return [(row.name, row.old.value, row.new.value, row.interval.lower, row.interval.upper) for row in found.rows]


def test_rows_of_one_key_are_one_sample_in_any_order():
    straight = certcal.compare(OLD, NEW, metrics=SOME)
    mixed = certcal.compare(OLD, shuffled(NEW, RNG), metrics=SOME)
    assert straight.pairing.by == mixed.pairing.by == "key"
    assert mixed.pairing.why == "rows are paired by 'id'"
    for one, other in zip(straight.rows, mixed.rows, strict=True):
        assert one.difference == pytest.approx(other.difference, abs=1e-12)
    assert straight["auroc"].interval.upper == pytest.approx(mixed["auroc"].interval.upper, abs=1e-12)
    renamed = [{"number" if k == "id" else k: v for k, v in each.items()} for each in (OLD, NEW)]
    assert certcal.compare(*renamed, key="number", metrics="ece").pairing.key == "number"


def test_keys_are_the_same_however_they_are_written():
    texts = {**shuffled(NEW, RNG)}
    texts["id"] = [f"{each}" for each in texts["id"]]
    floats = {**OLD, "id": OLD["id"].astype(float)}
    found = certcal.compare(floats, texts, metrics="ece")
    assert (found.pairing.by, found.pairing.only_old, found.new.n) == ("key", 0, N)


def test_rows_of_one_table_only_are_counted_and_left_out():
    found = certcal.compare(shuffled(OLD, np.random.default_rng(1), 500), shuffled(NEW, np.random.default_rng(2), 400))
    kept = found.new.n
    assert (found.pairing.only_old, found.pairing.only_new) == (500 - kept, 400 - kept)
    assert found.old.n == kept < 400
    assert f"left out: {500 - kept} rows only in the old and {400 - kept} rows only in the new" in str(found).replace(
        "\n", " "
    )
    assert json.loads(found.to_json())["pairing"]["only_old"] == 500 - kept


def test_without_a_key_rows_are_paired_by_order_where_what_was_true_agrees():
    old, new = without(OLD, "id"), without(NEW, "id")
    found = certcal.compare(old, new, metrics=SOME)
    assert found.pairing.why == "rows are paired by their order, since what was true agrees in every row"
    assert numbers(found) == numbers(certcal.compare(OLD, NEW, metrics=SOME))
    apart = certcal.compare(old, without(shuffled(NEW, RNG), "id"), metrics=SOME)
    assert (apart.pairing.by, apart.pairing.why) == (None, "rows are not paired: no column is called id or sample")
    assert certcal.compare(old, new, metrics="ece", pair="none").pairing.by is None
    few = {"score": [0.5, 0.4], "outcome": [1, 0]}
    assert certcal.compare(few, few, metrics="ece").pairing.by is None  # they may agree by chance
    assert certcal.compare(few, few, metrics="ece", pair="order").pairing.by == "order"
    twice = {**OLD, "id": np.arange(N) // 2}
    assert certcal.compare(twice, twice, metrics="ece").pairing.by == "order"  # its id tells no rows apart


def test_pairing_narrows_the_interval_of_a_mean():
    paired, apart = (certcal.compare(OLD, NEW, metrics="auroc", pair=each) for each in ("key", "none"))
    widths = [each["auroc"].interval.upper - each["auroc"].interval.lower for each in (paired, apart)]
    assert widths[0] < widths[1] / 2
    assert paired["auroc"].changed is False


def test_groups_are_compared_beside_the_whole():
    found = certcal.compare(OLD, NEW, by="site", metrics=SOME)
    assert list(found.groups) == ["east", "west"]
    alone = certcal.compare(
        *({k: np.asarray(v)[SITE == "west"] for k, v in each.items()} for each in (OLD, NEW)), metrics=SOME
    )
    assert numbers(alone) == [
        (row.name, row.old.value, row.new.value, row.interval.lower, row.interval.upper) for row in found.groups["west"]
    ]
    assert found.to_pandas()["group"].tolist() == ["all"] * 4 + ["east"] * 4 + ["west"] * 4
    assert [each["group"] for each in json.loads(found.to_json())["groups"]] == ["east", "west"]
    assert [each.group for each in found.verdict("every difference ece <= 1").judgements] == ["east", "west"]
    assert "Differences per group" in str(found)
    assert "Intervals hold one by one, not for all groups together." in str(found)


def test_requirements_are_about_the_difference_the_new_and_the_old():
    found = certcal.compare(OLD, NEW, metrics=SOME)
    assert found.verdict("difference ece < 0", "ece <= 0.15", "old ece >= 0.05", "difference auroc >= -0.01")
    (one,) = found.verdict("difference ece < 0").judgements
    assert (one.judged_on, one.value) == ("interval", found["ece"].interval.upper)
    bounded = certcal.compare(OLD, NEW, metrics=SOME, bounds=True, delta=0.1)
    (sure,) = bounded.verdict("difference ece <= 0.5").judgements
    assert (sure.judged_on, sure.value) == ("bound", bounded.bounds.binned.upper.value)
    assert bounded.verdict("difference ece >= -0.9").judgements[0].value == bounded.bounds.binned.lower.value
    assert "Binned calibration error of new minus that of old is between" in bounded.report().to_html()


def test_the_page_has_both_diagrams_and_every_number():
    report = certcal.compare(OLD, NEW, by="site", metrics=SOME).report()
    assert [chart.title for chart in report.charts()][:2] == ["Old", "New"]
    found = certcal.compare(Predictions.from_scores(Z**2, Y), Predictions.from_scores(Z, Y), metrics=SOME)
    assert "Difference in log loss, new minus old: −" in str(found)
    assert found.pairing.by == "order"
    assert len(found.plot().axes) >= 2


@pytest.mark.parametrize(
    ("old", "new", "options", "text"),
    [
        (
            OLD,
            {**NEW, "outcome": np.where(np.arange(N) == 7, 1 - Y, Y)},
            {},
            f"new has outcome {1 - Y[7]} in row 8 where old has {Y[7]} in row 8, for id '7'; correct one of them",
        ),
        (OLD, {**NEW, "id": np.arange(N) // 2}, {"key": "id"}, "column 'id', row 2 has '0' again; a key says each"),
        (OLD, NEW, {"key": "ids"}, "key: there is no column 'ids'"),
        (OLD, {**NEW, "id": np.arange(N) + N}, {"key": "id"}, "old and new have no value of 'id' in common"),
        (OLD, NEW, {"key": "id", "pair": "order"}, "pair: a key pairs the rows already"),
        (OLD, {k: v[:9] for k, v in NEW.items()}, {"pair": "order"}, "old has 600 rows and new 9"),
        (OLD, {"confidence": Z, "correct": Y}, {}, "old has binary scores and new has confidences of the predicted"),
        (OLD, NEW, {"bounds": True, "pair": "none"}, "bounds: bounds on a difference need paired rows"),
        (OLD, NEW, {"sigma": 0.5}, "unexpected argument 'sigma'"),
        (OLD, NEW, {"by": ["a"] * N}, "by: groups of tables are a column"),
        (Predictions.from_scores(Z, Y), Predictions.from_scores(Z, Y), {"key": "id"}, "key: predictions have no"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_what_to_do(old, new, options, text):
    with pytest.raises(InputError, match=text):
        certcal.compare(old, new, **options)


def test_numbers_of_a_result_are_no_table(tmp_path):
    made = certcal.measure(OLD).save(tmp_path / "old.json")
    with pytest.raises(InputError, match=r"old\.json holds the numbers of a result, .* give the table that"):
        certcal.compare(made, made)


def test_next_months_customers_are_other_samples():
    others = {name: values[::-1] for name, values in {**NEW, "id": np.arange(N) + N}.items()}
    found = certcal.compare(OLD, others)
    assert not found.paired
    assert found.pairing.why == "rows are not paired: no value of 'id' is in both tables"
    assert "no value of 'id' is in both tables" in str(found)
    same = certcal.compare(OLD, {**others, "score": OLD["score"][::-1]}).answer
    assert same[0].text.startswith("No change is shown: the calibration error in 15 bins stays at ")
    assert same[-1].text == "See where the new one is wrong:"


def test_tables_of_the_same_rows_under_other_names_are_not_taken_for_other_samples():
    renamed = {**NEW, "id": [f"c{place}" for place in range(N)]}
    said = "^pair: no value of 'id' is in both tables, and what was true agrees in every row; give order if"
    with pytest.raises(InputError, match=said):
        certcal.compare(OLD, renamed)
    assert certcal.compare(OLD, renamed, pair="order").paired
    assert not certcal.compare(OLD, renamed, pair="none").paired


def test_weights_are_respected_and_bounds_refuse_them():
    weight = RNG.random(N)
    old, new = ({**each, "sample_weight": weight} for each in (OLD, NEW))
    found = certcal.compare(old, new)
    expected = float(np.average((Z - Y) ** 2, weights=weight))
    assert any(float(row.new.value) == pytest.approx(expected) for row in found.rows)
    with pytest.raises(InputError, match="equal weight"):
        certcal.compare(old, new, bounds=True)


def test_a_shell_compares_two_files(tmp_path, monkeypatch, capsys):
    from certcal.cli import cli
    from certcal.cli.errors import run

    monkeypatch.chdir(tmp_path)
    for name, table in (("old.csv", OLD), ("new.csv", NEW)):
        rows = zip(*(np.asarray(values).tolist() for values in table.values()), strict=True)
        lines = [",".join(map(str, row)) for row in rows]
        (tmp_path / name).write_text("\n".join([",".join(table), *lines]) + "\n")
    asked = ["compare", "old.csv", "new.csv", "--metric", "ece", "--metric", "auroc", "--by", "site"]
    assert run(cli, [*asked, "--require", "difference ece <= 0", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["pairing"]["key"] == "id"
    assert [row["name"] for row in document["rows"]] == ["ece", "auroc"]
    assert run(cli, [*asked, "--require", "difference ece >= 0", "-o", "page.html"]) == 1
    assert "difference in calibration error in 15 bins is at" in capsys.readouterr().out
    assert run(cli, [*asked, "--sigma", "0.5"]) == 2
    assert "--sigma: it is for runs and logs, and these are tables of predictions" in capsys.readouterr().err
    assert run(cli, ["compare", "new.csv", "old.csv", "--pair", "none", "--metric", "ece"]) == 0
    assert re.search(r"600 samples and 600, rows are not\s+paired, as asked", capsys.readouterr().out)


def test_samples_that_moved_to_another_group_are_not_paired_within_it():
    moved = np.where(np.arange(N) % 7 == 0, np.where(SITE == "east", "west", "east"), SITE)
    found = certcal.compare(OLD, NEW | {"site": moved}, by="site", metrics=["brier_score"])
    assert found["brier_score"].interval.method == "paired mean"
    for group in ("east", "west"):
        (row,) = found.groups[group]
        sides = [np.square(z - Y)[where == group] for z, where in ((OLD["score"], SITE), (NEW["score"], moved))]
        assert (row.old.value, row.new.value) == pytest.approx([side.mean() for side in sides])
        assert row.interval.method == "unpaired mean"


def kinds(found):
    return [(each.kind, each.data.get("quantity")) for each in found.answer]


def test_the_answer_says_which_is_better_by_the_log_loss_then_calibration_then_what_to_do():
    better = certcal.compare(OLD, NEW, metrics="auroc")
    assert kinds(better) == [("shown", "nll"), ("shown", "ece"), ("seen", "calibration_slope"), ("next", None)]
    first = better.answer[0]
    assert first.text.startswith("new is better than old: the log loss falls from 0.")
    assert (better.headline.verdict, first.data["interval"]) == (
        "better",
        [*vars(better.headline.interval).values()][:2],
    )
    assert better.answer[3].command.startswith("certcal.measure(")
    worse = certcal.compare(NEW, OLD)
    assert worse.answer[0].text.startswith("new is worse than old: the log loss rises from 0.")
    assert worse.answer[3].text == "Keep old."
    assert "Difference in log loss, new minus old: +0." in str(worse)
    nearly = certcal.compare(NEW, {**NEW, "score": np.clip(Z + 0.01 * np.sin(9 * Z), 0.01, 0.99)})
    assert [kind for kind, _ in kinds(nearly)] == ["seen", "seen", "seen", "next"]
    assert nearly.answer[0].text.startswith("Which is better is unclear: the log loss ")
    needed, row = nearly.answer[3].data["rows"], nearly.headline
    half = (row.interval.upper - row.interval.lower) / 2
    assert needed == pytest.approx(2.04 * N * (half / row.difference) ** 2, rel=0.1)
    certain = certcal.compare(NEW, {**NEW, "score": np.where((Y == 0) & (Z < 0.3), 0.0, Z)})
    assert certain.headline.name == "brier_score"
    assert (
        "the Brier score, which stands for the log loss that scores of exactly 0 or 1 leave open,"
        in certain.answer[0].text
    )


def test_other_samples_are_compared_by_their_calibration_and_say_nothing_of_the_model():
    month = {"score": np.repeat(Z, 3), "outcome": np.repeat(Y, 3)}
    found = certcal.compare({**month, "score": month["score"] ** 3}, month, pair="none")
    assert kinds(found)[:2] == [("shown", "ece"), ("shown", "observed_expected_ratio")]
    assert "The calibration error in 15 bins falls from" in found.answer[0].text
    assert "rows that are not the same samples may be harder" in found.answer.unsaid[0]
    assert found.headline.name == "ece"


def test_sentences_are_shown_while_their_failures_add_up_to_the_level():
    sides = [certcal.measure({"score": np.repeat(z, 20), "outcome": np.repeat(Y, 20)}) for z in (Z**3, Z)]
    found = certcal.compare(*sides)  # each interval errs to one side with 5 %
    assert [row.verdict for row in found.judged] == ["better", "better", "better"]
    assert kinds(found)[:3] == [("shown", "ece"), ("seen", "observed_expected_ratio"), ("seen", "calibration_slope")]
    assert found.answer.level == 0.95


def test_equal_models_are_seldom_told_apart():
    told, rng = 0, np.random.default_rng(3)
    for _ in range(40):
        x, y = rng.normal(size=(2, 400))
        outcome = (rng.random(400) < 1 / (1 + np.exp(-x - y))).astype(int)
        scores = {"a": 1 / (1 + np.exp(-0.85 * x)), "b": 1 / (1 + np.exp(-0.85 * y)), "y": outcome}
        found = certcal.compare(scores, score=["a", "b"], outcome="y", metrics="auroc")
        told += any(each.kind == "shown" for each in found.answer)
    assert told <= 5


def test_every_metric_knows_its_ideal_and_tests_are_not_subtracted():
    found = certcal.compare(OLD, NEW, metrics="all")
    words = {row.name: row.verdict for row in found.rows}
    assert (words["ece"], words["nll"], words["observed_expected_ratio"], words["auroc"]) == ("better",) * 3 + (
        "unclear",
    )
    assert words["base_rate"] is words["mean_score"] is words["spiegelhalter_z"] is None
    back = {row.name: row.verdict for row in certcal.compare(NEW, OLD, metrics="all").rows}
    assert (back["ece"], back["observed_expected_ratio"]) == ("worse", "worse")
    test = found["spiegelhalter_z"]
    assert (test.difference, test.interval) == (pytest.approx(math.nan, nan_ok=True), None)
    assert "difference_spiegelhalter_z" not in {claim.name for claim in found.claims()}
    (row,) = (row for row in json.loads(found.to_json())["rows"] if row["name"] == "spiegelhalter_p")
    assert (row["difference"], row["old"]["value"] < 0.001) == (None, True)
    slope = replace(found["calibration_slope"], old=estimate(0.5, 0.4, 0.6), new=estimate(1.2, 1.1, 1.3))
    assert (slope.verdict, slope.gain.lower) == ("better", pytest.approx(0.1))
    assert replace(slope, new=estimate(1.2, 0.9, 1.45)).verdict == "unclear"
    assert replace(slope, new=estimate(1.8, 1.7, 1.9)).verdict == "worse"


def test_a_number_prints_as_a_sentence():
    found = certcal.compare(OLD, NEW, metrics="all")
    assert re.fullmatch(
        r"ece was 0\.\d{4} and is 0\.\d{4}, a difference of -0\.\d{4} \(-0\.\d{4} to -0\.\d{4}, 95%\): better\.",
        str(found["ece"]),
    )
    assert re.fullmatch(r"spiegelhalter_p was 0\.0001 and is 0\.\d{4}\.", str(found["spiegelhalter_p"]))


def estimate(value, lower, upper):
    return Estimate("calibration_slope", value, 9, {}, Interval(lower, upper, 0.975, "x"))


def test_two_scores_of_one_table_are_compared_row_by_row(tmp_path, monkeypatch, capsys):
    from certcal.cli import cli
    from certcal.cli.errors import run

    table = {"v1": OLD["score"].round(4), "v2": NEW["score"].round(4), "won": Y}
    found = certcal.compare(table, score=["v1", "v2"], outcome="won", metrics=SOME)
    apart = certcal.compare(
        *({"score": table[name], "outcome": Y} for name in ("v1", "v2")), metrics=SOME, pair="order"
    )
    assert numbers(found) == numbers(apart)
    assert (found.old.source, found.new.source, found.pairing.by) == ("v1", "v2", "row")
    monkeypatch.chdir(tmp_path)
    gaps = [f"{a},{'' if i % 50 == 0 else b},{y}" for i, (a, b, y) in enumerate(zip(*table.values(), strict=True))]
    (tmp_path / "both.csv").write_text("\n".join(["v1,v2,won", *gaps]) + "\n")
    asked = ["compare", "both.csv", "--outcome", "won", "--missing", "drop", "--metric", "ece", "--json"]
    assert run(cli, [*asked, "--score", "v1", "--score", "v2"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["n"], document["pairing"]["only_old"], document["pairing"]["only_new"]) == (N - 12, 12, 0)
    assert document["answer"][-1]["command"] == "certcal measure both.csv --score v2 --outcome won"
    twice = certcal.compare("both.csv", "both.csv", score=["v1", "v2"], outcome="won", missing="drop", metrics="ece")
    assert (twice.old.source, twice.new.source) == ("v1", "v2")
    assert run(cli, [*asked[:-1], "--score", "v1,v2", "-o", "both.html"]) == 0
    assert certcal.check("both.html", "both.csv").outcome == "holds"
    capsys.readouterr()
    assert run(cli, [*asked, "--score", "v1,v2"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == document["rows"]
    renamed = certcal.compare({**OLD, "s": Z}, {**NEW, "t": Z}, score=["s", "t"], metrics="ece")
    assert renamed["ece"].difference == 0
    for scores, text in (("v1", "1 column cannot be compared"), ("v1,v1", "it is twice the same column")):
        assert run(cli, [*asked, "--score", scores]) == 2
        assert text in capsys.readouterr().err


def test_a_column_that_is_unique_in_both_tables_is_offered_as_their_key(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    order = np.random.default_rng(5).permutation(N)
    old, new = ({"score": side["score"], "outcome": Y, "customer": np.arange(N) + 1000} for side in (OLD, NEW))
    new = {name: values[order] for name, values in new.items()}
    found = certcal.compare(old, new, metrics="ece")
    assert (found.paired, found.pairing.suggested) == (False, "customer")
    assert found.answer[-1].command == "certcal.compare(old, new, key='customer')"
    assert certcal.compare(old, new, key="customer", metrics="ece").paired
    for name, table in (("old.parquet", old), ("new.parquet", new)):
        pq.write_table(pa.table(table), tmp_path / name)
    asked = certcal.compare(tmp_path / "old.parquet", tmp_path / "new.parquet", metrics="ece").answer[-1].command
    assert asked.startswith("certcal compare ")
    assert asked.endswith(" --key customer")
    apart = certcal.compare(old, {**new, "customer": np.arange(N) + 9 * N + 1000}, metrics="ece")
    assert (apart.pairing.suggested, "key" in apart.answer[-1].command) == (None, False)
