"""Frames of any library: what is read of them, and what stays out of the way."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import certcal
from certcal import InputError
from certcal.data import open_table, read_predictions

RNG = np.random.default_rng(7)
N = 60
Z = RNG.random(N)
CORRECT = RNG.random(N) < Z
SEGMENT = RNG.choice(["north", "south"], N)
FRAME = pd.DataFrame({"confidence": Z, "correct": CORRECT, "segment": SEGMENT})
POLARS = pl.DataFrame({"confidence": Z, "correct": CORRECT, "segment": SEGMENT})


class Stream:
    """What DuckDB, Ibis and others hand out: the protocol and nothing else. A relation can be read once."""

    def __init__(self, table, *, once=False):
        self.table, self.once = table, once

    def __arrow_c_stream__(self, requested_schema=None):
        table, self.table = self.table, None if self.once else self.table
        return table.__arrow_c_stream__(requested_schema)


class OldFrame:
    """A frame of a pandas that does not speak the protocol yet."""

    def __init__(self, frame):
        self.iloc, self.columns, self.index = frame.iloc, frame.columns, frame.index

    def __len__(self):
        return len(self.index)


FRAMES = {
    "pandas": FRAME,
    "pandas, filtered": pd.concat([FRAME, FRAME]).iloc[:N],
    "pandas, an index that is not unique": FRAME.set_axis([0] * N),
    "pandas, categories": FRAME.assign(segment=FRAME["segment"].astype("category")),
    "pandas, strings": FRAME.assign(segment=FRAME["segment"].astype("string")),
    "pandas, nullable": FRAME.convert_dtypes(),
    "pandas, Arrow inside": FRAME.convert_dtypes(dtype_backend="pyarrow"),
    "pandas, objects": FRAME.astype(object),
    "pandas, sparse": FRAME.assign(confidence=pd.arrays.SparseArray(Z)),
    "pandas, categories of outcomes": FRAME.assign(correct=pd.Categorical(CORRECT)),
    "pandas without the protocol": OldFrame(FRAME),
    "polars": POLARS,
    "polars, categories": POLARS.with_columns(pl.col("segment").cast(pl.Categorical)),
    "polars, enumeration": POLARS.with_columns(pl.col("segment").cast(pl.Enum(["south", "north"]))),
    "polars, in parts": pl.concat([POLARS[:20], POLARS[20:]], rechunk=False),
    "Arrow": pa.table(FRAME),
    "a record batch": pa.RecordBatch.from_pandas(FRAME),
    "a stream": Stream(pa.table(FRAME)),
    "a mapping": {"confidence": list(Z), "correct": list(CORRECT), "segment": list(SEGMENT)},
    "a mapping of series": dict(FRAME),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_every_frame_gives_the_numbers_of_its_arrays(kind):
    found = certcal.measure(FRAMES[kind], by="segment", metrics=["ece", "accuracy"])
    wanted = certcal.measure(certcal.Predictions.from_confidence(Z, CORRECT), metrics=["ece", "accuracy"])
    assert [row.value for row in found.rows] == [row.value for row in wanted.rows]
    assert [group.name for group in found.groups] == ["north", "south"]
    north = certcal.Predictions.from_confidence(Z[SEGMENT == "north"], CORRECT[SEGMENT == "north"])
    assert found.groups[0].rows == certcal.measure(north, metrics=["ece", "accuracy"]).rows


@pytest.mark.parametrize("kind", ["pandas", "polars, categories", "Arrow", "pandas without the protocol"])
def test_every_verb_that_takes_a_table_takes_a_frame(kind):
    frame, arrays = FRAMES[kind], certcal.Predictions.from_confidence(Z, CORRECT)
    assert certcal.bound(frame).claims() == certcal.bound(arrays).claims()
    slopes = [certcal.recalibrate(data, method="platt").map.slope_ for data in (frame, arrays)]
    assert slopes[0] == slopes[1]
    changes = certcal.compare(certcal.measure(frame), certcal.measure(arrays))
    assert changes.claims()


def test_two_frames_of_different_libraries_are_compared_as_files_of_them_are(tmp_path):
    old = FRAME.assign(id=range(N))
    new = pl.from_pandas(old.assign(confidence=Z**2))
    old.to_csv(tmp_path / "old.csv", index=False)
    new.write_parquet(tmp_path / "new.parquet")
    frames, files = certcal.compare(old, new), certcal.compare(tmp_path / "old.csv", tmp_path / "new.parquet")
    assert [claim.value for claim in frames.claims()] == [claim.value for claim in files.claims()]


def test_a_stream_that_can_be_read_once_is_read_once():
    assert certcal.bound(Stream(pa.table(FRAME), once=True)).claims()


def test_only_the_columns_that_are_used_are_converted():
    frame = FRAME.assign(note=[object() for _ in range(N)], wave=1j)
    assert open_table(frame).columns[3].kind == "other"
    assert certcal.measure(frame, metrics=["ece"])["ece"] == certcal.measure(FRAME, metrics=["ece"])["ece"]
    with pytest.raises(
        InputError, match=r"^table: column 'note' holds object, of which no numbers or texts can be made; name another"
    ):
        certcal.measure(frame, by="note")


def test_mixed_values_of_a_column_are_groups_by_their_text():
    frame = FRAME.assign(mixed=[1 if place % 2 else "a" if place % 3 else True for place in range(N)])
    names = [group.name for group in certcal.measure(frame, by="mixed", metrics=["ece"]).groups]
    assert names == ["1", "a", "true"]


@pytest.mark.parametrize("name", ["prediction", "label", "sample_weight", "prob_0"])
def test_an_index_is_never_taken_for_a_column_by_its_name(name):
    frame = FRAME.set_index(pd.Index(np.arange(N) % 2, name=name))
    predictions = read_predictions(frame)
    assert predictions.kind == read_predictions(FRAME).kind
    assert np.array_equal(predictions.correct, CORRECT)
    assert predictions.sample_weight is None


def test_an_index_can_be_named_as_a_column_and_hides_none():
    by_index = certcal.measure(FRAME.set_index("segment"), by="segment", metrics=["ece"])
    by_column = certcal.measure(FRAME, by="segment", metrics=["ece"])
    assert [group.rows for group in by_index.groups] == [group.rows for group in by_column.groups]
    hidden = FRAME.set_index(pd.Index(["x"] * N, name="confidence"))
    assert np.array_equal(read_predictions(hidden).confidence, Z)
    levels = FRAME.set_index(pd.MultiIndex.from_arrays([SEGMENT, np.arange(N)], names=["area", None]))
    assert [group.name for group in certcal.measure(levels, by="area", metrics=["ece"]).groups] == ["north", "south"]


@pytest.mark.parametrize("missing", [np.nan, None, pd.NA])
def test_what_is_missing_is_named_by_its_row_and_a_missing_group_is_a_group(missing):
    frame = FRAME.astype({"confidence": "Float64"})
    frame.loc[3, "confidence"] = missing
    with pytest.raises(InputError, match=r"^table: column 'confidence', row 4 is empty; fill it or drop the row; add"):
        read_predictions(frame)
    groups = FRAME.assign(segment=[missing, *SEGMENT[1:]])
    found = [group.name for group in certcal.measure(groups, by="segment", metrics=["ece"]).groups]
    assert found == ["(missing)", "north", "south"]


def test_a_name_that_stands_twice_is_refused_when_it_is_used():
    frame = FRAME.assign(x=1, y=2).rename(columns={"x": "twice", "y": "twice"})
    assert len(read_predictions(frame)) == N
    with pytest.raises(InputError, match=r"^table: 2 columns are called 'twice'; rename them apart$"):
        open_table(frame).read(["twice"])


def test_names_that_are_numbers_are_read_as_text_without_a_warning():
    frame = FRAME.assign(more=1).rename(columns={"more": 3})
    assert open_table(frame).read(["3"]).column(0).to_pylist() == [1] * N


def test_what_is_no_table_is_refused_with_what_to_do():
    with pytest.raises(InputError, match="not list; name the columns"):
        open_table([{"confidence": 0.5}])


def test_a_lazy_frame_is_collected():
    assert open_table(POLARS.lazy()).names == open_table(POLARS).names
