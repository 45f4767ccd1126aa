"""Groups: columns and crossings, numbers cut at quintiles, dates cut into periods, and nothing dropped."""

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import certcal
from certcal import InputError
from certcal.data import load_table
from certcal.data.predictions import split_by

N = 600
RNG = np.random.default_rng(4)
PREDICTIONS = certcal.Predictions.from_scores(RNG.random(N), RNG.integers(0, 2, N))


def sizes(by: Any) -> dict[str, int]:
    return {each.name: len(each.predictions) for each in split_by(PREDICTIONS, by)[1]}


def cuts(by: Any) -> list[str]:
    return [cut for each in split_by(PREDICTIONS, by)[0] for cut in each.cuts]


def table(**columns: Any) -> pd.DataFrame:
    score, outcome = PREDICTIONS.confidence, PREDICTIONS.correct
    return pd.DataFrame({"score": score, "outcome": outcome, **columns})


def test_few_numbers_are_groups_and_many_are_cut_into_five_parts_that_are_named() -> None:
    assert sizes(np.arange(N) % 20) == {str(k): 30 for k in range(20)}
    ages = np.arange(N) % 50 + 18
    assert sizes(ages) == {"18–27": 120, "28–37": 120, "38–47": 120, "48–57": 120, "58–67": 120}
    assert cuts({"age": ages}) == ["'age' is cut at its quintiles: 18–27, 28–37, 38–47, 48–57, 58–67"]
    assert list(sizes(np.arange(N) - 300.0)) == ["-300 to -181", "-180 to -61", "-60 to 59", "60 to 179", "180 to 299"]


@settings(max_examples=30)
@given(st.integers(0, 2**32), st.integers(1, 300), st.floats(0.1, 4), st.sampled_from([1.0, 0.37, -2.5]))
def test_equal_numbers_are_in_one_group_groups_do_not_overlap_and_all_samples_are_in_one(
    seed: int, most: int, skew: float, scale: float
) -> None:
    x = np.floor(most * np.random.default_rng(seed).random(N) ** skew) * scale
    groups = split_by(PREDICTIONS, x)[1]
    rows = np.concatenate([each.rows for each in groups])
    assert sorted(rows.tolist()) == list(range(N))
    parts = [x[each.rows] for each in groups]
    different = np.unique(x).size
    assert len(parts) == different if different <= 20 else 1 <= len(parts) <= 5
    assert all(one.max() < two.min() for one, two in itertools.pairwise(parts))
    # A part begins as near to its share as a step between two values is.
    ends = np.cumsum(np.unique(x, return_counts=True)[1])[:-1]
    if different > 20:
        for share in np.arange(1, 5) * N / 5:
            best = np.abs(ends - share).min()
            assert best in np.abs(np.cumsum([part.size for part in parts])[:-1] - share)


def test_what_is_missing_is_a_group_of_its_own_beside_cut_numbers_and_so_are_words(tmp_path: Any) -> None:
    x = np.where(np.arange(N) % 10 == 0, np.nan, np.arange(N))
    assert [*sizes(pd.Series(x))][-1] == "(missing)"
    assert sizes(pd.Series(x))["(missing)"] == 60
    path = tmp_path / "t.csv"
    cells = ["" if k % 10 == 0 else "unknown" if k % 10 == 1 else str(k) for k in range(N)]
    table(age=cells).to_csv(path, index=False)
    found = {each.name: len(each.predictions) for each in load_table(path, by="age").groups}
    assert list(found)[5:] == ["(missing)", "unknown"]
    assert (found["(missing)"], found["unknown"], sum(found.values())) == (60, 60, N)


def test_texts_of_a_table_with_types_are_names_and_those_of_a_file_without_are_read(tmp_path: Any) -> None:
    codes = [f"{k % 30}" for k in range(N)]
    assert len(load_table(table(branch=codes), by="branch").groups) == 30
    table(branch=codes).to_csv(tmp_path / "t.csv", index=False)
    assert len(load_table(tmp_path / "t.csv", by="branch").groups) == 5
    # What begins with a zero is a name.
    table(branch=[f"0{code}" for code in codes]).to_csv(tmp_path / "u.csv", index=False)
    assert len(load_table(tmp_path / "u.csv", by="branch").groups) == 30


@pytest.mark.parametrize(
    ("days", "count", "first", "said"),
    [
        (20, 20, "2023-01-01", []),
        (400, 14, "2023-01", ["'opened' is cut into months: 2023-01 to 2024-02"]),
        (1500, 17, "2023-Q1", ["'opened' is cut into quarters: 2023-Q1 to 2027-Q1"]),
        (3200, 9, "2023", ["'opened' is cut into years: 2023 to 2031"]),
    ],
)
@pytest.mark.parametrize("form", ["datetime64", "text", "German text", "CSV", "timestamps"])
def test_dates_are_days_months_quarters_or_years(
    tmp_path: Any, days: int, count: int, first: str, said: list[str], form: str
) -> None:
    opened = pd.Series(pd.Timestamp("2023-01-01") + pd.to_timedelta(np.arange(N) * days // N, unit="D"))
    written: Any = {
        "datetime64": opened,
        "text": opened.dt.strftime("%Y-%m-%d"),
        "German text": opened.dt.strftime("%d.%m.%Y"),
        "CSV": opened,
        "timestamps": opened + pd.Timedelta(hours=13),
    }[form]
    source: Any = table(opened=written)
    if form == "CSV":
        source.to_csv(tmp_path / "t.csv", index=False)
        source = tmp_path / "t.csv"
    loaded = load_table(source, by="opened")
    assert (len(loaded.groups), loaded.groups[0].name) == (count, first)
    assert list(loaded.groupings[0].cuts) == said
    assert loaded.groupings[0].time


def test_months_that_are_written_as_such_stay_months() -> None:
    months = [f"2024-{k % 12 + 1:02}" for k in range(N)]
    assert list(sizes(months)) == [f"2024-{k:02}" for k in range(1, 13)]


def test_crossings_have_a_group_for_each_combination_that_is_there(tmp_path: Any) -> None:
    product, channel = np.array(["card", "loan"])[np.arange(N) % 2], np.array(["web", "shop", "web"])[np.arange(N) % 3]
    found = load_table(table(product=product, channel=channel), by=["product", " product * channel"]).groups
    assert [each.name for each in found] == [
        "product=card", "product=loan",
        " product * channel=card*shop", " product * channel=card*web",
        " product * channel=loan*shop", " product * channel=loan*web",
    ]  # fmt: skip
    assert found[-1].where == {"product": "loan", "channel": "web"}
    assert found[-1].rows.tolist() == np.flatnonzero((product == "loan") & (channel == "web")).tolist()
    # A column may be called so, and is no crossing then.
    assert [each.name for each in load_table(table(**{"a*b": product}), by="a*b").groups] == ["card", "loan"]
    with pytest.raises(InputError, match=r"by: there is no column 'chanel'; did you mean 'channel'\?"):
        load_table(table(product=product, channel=channel), by="product*chanel")


def test_arrays_can_be_given_by_name_and_a_frame_of_them(tmp_path: Any) -> None:
    a, b = np.arange(N) % 2, np.array(["x", "y", "z"])[np.arange(N) % 3]
    assert sizes({"a": a, "b": b}) == {"a=0": 300, "a=1": 300, "b=x": 200, "b=y": 200, "b=z": 200}
    assert sizes(pd.DataFrame({"a": a, "b": b})) == sizes({"a": a, "b": b})
    assert sizes({"a": a}) == {"0": 300, "1": 300}
    for wrong, message in (
        ({"a": a[1:]}, r"it has 599 entries for 600 samples; give one each"),
        ({"a": "b"}, r"'b' is no group per sample; give one each"),
        ("a", r"predictions have no columns"),
        (7, r"7 is no group per sample"),
    ):
        with pytest.raises(InputError, match=message):
            split_by(PREDICTIONS, wrong)


def test_more_groups_than_can_be_told_apart_are_refused() -> None:
    many = {"a": [f"a{k % 40}" for k in range(N)], "b": [f"b{k % 37}" for k in range(N)]}
    with pytest.raises(InputError, match=r"by: 'a\*b' makes 1,480 groups, more than 1000; cross fewer columns"):
        load_table(pd.concat([table(**many)] * 3).assign(b=[f"b{k % 37}" for k in range(3 * N)]), by="a*b")


def test_a_table_read_in_pieces_has_the_groups_it_has_in_memory(tmp_path: Any) -> None:
    path = tmp_path / "t.csv"
    opened = pd.Series(pd.Timestamp("2023-01-01") + pd.to_timedelta(np.arange(N) % 80, unit="D"))
    columns = {"age": np.where(np.arange(N) % 7 == 0, np.nan, np.arange(N) % 53), "opened": opened}
    table(**columns, site=np.array(["b", "a"])[np.arange(N) // 300]).to_csv(path, index=False)
    asked: Any = {"by": ["age", "site*opened"], "metrics": ["ece", "base_rate"], "bootstrap": 0}
    pieces, whole = certcal.measure(path, memory=1, **asked), certcal.measure(path, **asked)
    assert pieces.conventions["streamed"]
    assert not whole.conventions["streamed"]
    assert pieces.groupings == whole.groupings
    assert [(each.name, each.n, each.where) for each in pieces.groups] == [
        (each.name, each.n, each.where) for each in whole.groups
    ]
    for one, two in zip(pieces.groups, whole.groups, strict=True):
        assert one.rate is not None
        assert two.rate is not None
        assert one.rate.columns() == pytest.approx(two.rate.columns(), nan_ok=True)


def test_two_tables_are_not_compared_by_groups_that_they_would_cut_apart() -> None:
    with pytest.raises(
        InputError, match="by: 'age' has many numbers or dates, which two tables would cut in different"
    ):
        certcal.compare(table(age=np.arange(N)), table(age=np.arange(N)), by="age")


def test_a_crossing_of_a_column_with_itself_is_that_column_and_a_column_named_twice_is_one() -> None:
    frame = table(region=np.where(np.arange(N) % 2, "north", "south"), channel=np.arange(N) % 3)
    for by in ("region*region", ["region", "region*region"], ["region", "region"]):
        assert [(each.name, each.by) for each in load_table(frame, by=by).groups] == [
            ("north", "region"),
            ("south", "region"),
        ]
    (crossing,) = load_table(frame, by="region*channel*region").groupings
    assert (crossing.by, crossing.columns) == ("region*channel", ("region", "channel"))
    assert certcal.measure(frame, by="region*region", metrics="ece").groups["north"].n == N // 2


def test_two_columns_in_one_name_are_each_offered_and_crossed() -> None:
    frame = table(region=np.where(np.arange(N) % 2, "north", "south"), channel=np.arange(N) % 3)
    said = r"^by: there is no column 'region,channel', and .* are 2; cross them as 'region\*channel', or give each"
    with pytest.raises(InputError, match=said + r"; add by=\['region', 'channel'\]$"):
        load_table(frame, by="region,channel")
    assert len(load_table(frame, by=["region", "channel"]).groups) == 5
    frame["region,channel"] = "all"
    assert len(load_table(frame, by="region,channel").groups) == 1
