"""Inputs of a model: every format gives the same arrays, and what cannot be used is one sentence."""

import dataclasses
import hashlib
import io
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certcal import InputError
from certcal.data import Inputs, read_inputs

RNG = np.random.default_rng(3)
N = 700
FEATURES = RNG.normal(size=(N, 3)).astype(np.float32)
LABELS = RNG.integers(0, 5, N)
IMAGES = RNG.integers(0, 256, (6, 2, 4, 5), dtype=np.uint8)


def a_table(features=FEATURES, labels=LABELS):
    return pa.table({"b": features[:, 0], "label": labels, "a": features[:, 1], "c": features[:, 2]})


def written(path, table):
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=300)
    elif path.suffix == ".feather":
        pyarrow.feather.write_feather(table, path, chunksize=170)
    else:
        pyarrow.csv.write_csv(table, path)
    return path


# ------------------------------------------------------------------------------------------------------ what is read


@pytest.mark.parametrize("ending", [".parquet", ".feather", ".csv"])
def test_the_columns_beside_the_label_are_features_in_the_order_of_the_file(tmp_path, ending):
    data = read_inputs(written(tmp_path / f"table{ending}", a_table()))
    np.testing.assert_array_equal(data.inputs, FEATURES)
    np.testing.assert_array_equal(data.labels, LABELS)
    assert (data.inputs.dtype, data.labels.dtype) == (np.float32, np.int64)
    assert data.inputs.flags.c_contiguous
    assert data.fingerprint == Inputs.from_arrays(FEATURES, LABELS).fingerprint


@pytest.mark.parametrize("compressed", [False, True])
def test_an_archive_gives_the_same_as_the_arrays_in_it(tmp_path, compressed):
    (np.savez_compressed if compressed else np.savez)(tmp_path / "a.npz", inputs=IMAGES, labels=[0, 1, 2, 0, 1, 2])
    data = read_inputs(tmp_path / "a.npz")
    np.testing.assert_array_equal(data.inputs, IMAGES.astype(np.float32) / np.float32(255))
    assert data.labels.tolist() == [0, 1, 2, 0, 1, 2]
    assert data.fingerprint == Inputs.from_arrays(IMAGES, [0, 1, 2, 0, 1, 2]).fingerprint
    assert len(data) == 6


def test_arrays_in_fortran_order_and_foreign_byte_order_are_the_same_inputs(tmp_path):
    plain = Inputs.from_arrays(FEATURES, LABELS)
    np.savez(tmp_path / "f.npz", inputs=np.asfortranarray(FEATURES.astype(">f4")), labels=LABELS.astype(">i2"))
    data = read_inputs(tmp_path / "f.npz")
    assert data.inputs.flags.c_contiguous
    assert data.inputs.dtype.isnative
    assert data.fingerprint == plain.fingerprint


def test_labels_may_have_another_name_when_it_is_given(tmp_path):
    path = written(tmp_path / "t.parquet", pa.table({"x": [0.5, 1.5], "species": [1, 0]}))
    data = read_inputs(path, label="species")
    assert (data.inputs.tolist(), data.labels.tolist()) == ([[0.5], [1.5]], [1, 0])
    np.savez(tmp_path / "t.npz", inputs=np.zeros((2, 1)), y=[1, 0])
    assert read_inputs(tmp_path / "t.npz", label="y").labels.tolist() == [1, 0]


def test_numbers_of_a_table_stay_as_they_are_whatever_their_type(tmp_path):
    table = pa.table({"k": pa.array([0, 255], pa.uint8()), "flag": [True, False], "label": [0.0, 1.0]})
    data = read_inputs(written(tmp_path / "t.parquet", table))
    assert data.inputs.tolist() == [[0, 1], [255, 0]]
    assert (data.scale, data.labels.tolist()) == ("other", [0, 1])


# -------------------------------------------------------------------------------------------------- scale, fingerprint


def test_every_pixel_becomes_the_float_nearest_to_its_share_of_255():
    data = Inputs.from_arrays(np.arange(256, dtype=np.uint8).reshape(1, 256), [0])
    assert data.inputs[0].tolist() == [float(np.float32(k / 255)) for k in range(256)]
    assert data.scale == "k/255"


def test_the_scale_is_that_of_pixels_only_if_all_numbers_are():
    pixels = IMAGES.astype(np.float32) / np.float32(255)
    labels = np.zeros(6, int)
    assert Inputs.from_arrays(pixels, labels).scale == "k/255"
    assert Inputs.from_arrays(IMAGES / 255, labels).scale == "k/255"  # float64 rounds to the same
    for other in (np.nextafter(pixels[3, 1, 2, 3], np.float32(2)), 1.5, -1 / 255, 0.5):
        changed = pixels.copy()
        changed[3, 1, 2, 3] = other
        assert Inputs.from_arrays(changed, labels).scale == "other"


def test_the_fingerprint_is_that_of_shapes_types_and_bytes():
    inputs, labels = np.array([[0.5], [1.0]], "<f4"), np.array([1, 0], "<i8")
    text = b"<f4 (2, 1)\n" + inputs.tobytes() + b"<i8 (2,)\n" + labels.tobytes()
    assert Inputs.from_arrays(inputs, labels).fingerprint == hashlib.sha256(text).hexdigest()


@given(st.integers(0, N - 1), st.integers(0, 2))
def test_any_change_of_a_number_a_label_or_the_shape_changes_the_fingerprint(row, column):
    changed, labels = FEATURES.copy(), LABELS.copy()
    changed[row, column] = np.nextafter(changed[row, column], np.float32(9))
    labels[row] += 1
    prints = {
        Inputs.from_arrays(FEATURES, LABELS).fingerprint,
        Inputs.from_arrays(changed, LABELS).fingerprint,
        Inputs.from_arrays(FEATURES, labels).fingerprint,
        Inputs.from_arrays(FEATURES.reshape(N, 3, 1), LABELS).fingerprint,
    }
    assert len(prints) == 4


def test_inputs_do_not_change_and_do_not_share_memory_with_what_they_were_made_from():
    features, labels = FEATURES.copy(), LABELS.copy()
    data = Inputs.from_arrays(features, labels)
    features[:], labels[:] = 0, 0
    assert data.fingerprint == Inputs.from_arrays(data.inputs, data.labels).fingerprint
    with pytest.raises(ValueError, match="read-only"):
        data.inputs[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        data.labels[0] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.scale = "k/255"
    assert features.flags.writeable


def test_the_representation_is_short():
    assert repr(Inputs.from_arrays(IMAGES, np.zeros(6, int))).startswith("Inputs(n=6, shape=(2, 4, 5), scale='k/255', ")


# ------------------------------------------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("inputs", "labels", "message"),
    [
        ([[0.5, np.nan]], [0], r"^inputs\[0, 1\] is nan; drop the sample or repair it$"),
        ([[[0.5], [1.0]], [[0.5], [-np.inf]]], [0, 0], r"^inputs\[1, 1, 0\] is -inf; drop"),
        ([[0.5, 1e300]], [0], r"^inputs\[0, 1\] is 1e\+300, too large for float32; rescale"),
        ([0.5, 0.25], [0, 1], r"^inputs has shape \(2,\); pass one row \(or one image\) per sample"),
        (np.zeros((0, 3)), [], r"^inputs has shape \(0, 3\), so there is nothing in it"),
        (np.zeros((2, 0)), [0, 1], r"^inputs has shape \(2, 0\), so there is nothing in it"),
        ([["a"]], [0], r"^inputs\[0, 0\] is .*'a'.*, not a number"),
        (np.zeros((3, 1)), [0, 1], r"^lengths differ: inputs has 3, labels has 2"),
        (np.zeros((2, 1)), [0, -1], r"^labels\[1\] is -1; labels are whole numbers from 0"),
        (np.zeros((2, 1)), [0, 0.5], r"^labels\[1\] is 0\.5; labels are whole numbers"),
        (np.zeros((2, 1)), [0, np.nan], r"^labels\[1\] is nan; labels are whole numbers"),
        (np.zeros((2, 1)), [0, 10**12], r"^labels\[1\] is 1000000000000; labels are whole numbers from 0 to 999999"),
        (np.zeros((2, 1)), np.eye(2, dtype=int), r"^labels has shape \(2, 2\); pass one value per sample"),
    ],
)
def test_bad_arrays_are_refused_with_place_and_remedy(tmp_path, inputs, labels, message):
    with pytest.raises(InputError, match=message):
        Inputs.from_arrays(inputs, labels)
    path = tmp_path / "bad.npz"
    np.savez(path, inputs=inputs, labels=labels)
    with pytest.raises(InputError, match=message.replace("^", rf"^{path}: ")):
        read_inputs(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", r"no column of true classes was found; name it label; the columns are 'a', 'b'"),
        ("a,labl\n1,2\n", r"did you mean 'labl'\?"),
        ("a,label,labels\n1,2,3\n", r"'label' and 'labels' may each be the label"),
        ("label\n1\n", r"there is no column but 'label'; the other columns are the features"),
        ("a,label\n", r"the table has no rows"),
        ("a,label\n1,0\nx,0\n", r"column 'a', row 2 \(line 3\) is 'x', not a number"),
        ("a,label\n1,0\n,0\n", r"column 'a', row 2 is empty"),
        ("a,label\n1,0\ninf,0\n", r"column 'a', row 2 is inf; drop the sample or repair it"),
        ("a,label\n1,0\n1e39,0\n", r"column 'a', row 2 is 1e\+39, too large for float32"),
        ("a,label\n1,0\n1\n", r"line 3 has 1 fields where the header has 2"),
        ("a,label\n1,0\n1,cat\n", r"column 'label', row 2 is 'cat', not a class number; use whole numbers from 0"),
        ("a,label\n1,0\n1,0.5\n", r"column 'label', row 2 is '0\.5', not a class number"),
        ("a,label\n1,0\n1,-2\n", r"column 'label', row 2 is -2; labels are whole numbers from 0"),
        ("a,label\n1,0\n1,\n", r"column 'label', row 2 is empty"),
        ("", r"the file is empty"),
    ],
)
def test_bad_tables_are_refused_in_the_words_of_the_file(tmp_path, text, message):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        read_inputs(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert str(caught.value).count(str(path)) == 1
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (["u", "v"], "column 'x' does not hold numbers; drop it: every column but the label is a feature"),
        ([[1.0], [2.0]], "column 'x' does not hold numbers"),
        ([0.5, None], "column 'x', row 2 is empty"),
        ([0.5, float("nan")], "column 'x', row 2 is nan; drop the sample"),
    ],
)
def test_columns_that_are_no_features_are_refused_in_typed_tables(tmp_path, column, message):
    path = written(tmp_path / "t.parquet", pa.table({"x": column, "label": [0, 1]}))
    with pytest.raises(InputError, match=message):
        read_inputs(path)


def test_rows_are_counted_across_pieces(tmp_path):
    features = FEATURES.copy()
    features[555, 1] = np.nan
    path = written(tmp_path / "t.parquet", a_table(features))
    with pytest.raises(InputError, match="column 'a', row 556 is nan"):
        read_inputs(path)
    labels = LABELS.copy()
    labels[444] = -1
    path = written(tmp_path / "u.parquet", a_table(labels=labels))
    with pytest.raises(InputError, match="column 'label', row 445 is -1; labels are whole numbers"):
        read_inputs(path)


def test_one_array_alone_is_refused_with_what_to_do(tmp_path):
    np.save(tmp_path / "x.npy", FEATURES)
    with pytest.raises(InputError, match=r"a \.npy file holds one array, without labels; give the folder of"):
        read_inputs(tmp_path / "x.npy")


def test_an_archive_without_the_arrays_says_which_it_has(tmp_path):
    path = tmp_path / "t.npz"
    np.savez(path, images=IMAGES, labels=np.zeros(6))
    with pytest.raises(
        InputError, match=r"there is no array 'inputs'; .*numpy\.savez.*; the arrays are 'images', 'lab"
    ):
        read_inputs(path)
    np.savez(path, inputs=IMAGES)
    with pytest.raises(InputError, match=r"there is no array 'labels'; .*; the arrays are 'inputs'$"):
        read_inputs(path)


def forged(path: Path, shape: tuple[int, ...], content: bytes, dtype: str = "<f8") -> Path:
    """An archive whose inputs have a header of our choice."""
    stream, labels = io.BytesIO(), io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": dtype, "fortran_order": False, "shape": shape})
    np.lib.format.write_array(labels, np.zeros(2))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inputs.npy", stream.getvalue() + content)
        archive.writestr("labels.npy", labels.getvalue())
    return path


def test_hostile_archives_are_refused_before_memory_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr("certcal.data.formats.physical_memory", lambda: 2**24)
    with pytest.raises(InputError, match=r"reading it needs .* GiB and this machine has"):
        read_inputs(forged(tmp_path / "a.npz", (10**9, 10**6), b""))
    with pytest.raises(InputError, match=r"array 'inputs' has 144 bytes where its header says 160"):
        read_inputs(forged(tmp_path / "b.npz", (2, 2), bytes(16)))
    # Two megabytes of pixels fit into sixteen; as float32 they are eight. Five would not.
    np.savez_compressed(tmp_path / "c.npz", inputs=np.zeros((2, 2**20), np.uint8), labels=[0, 1])
    assert (tmp_path / "c.npz").stat().st_size < 2**13
    assert len(read_inputs(tmp_path / "c.npz")) == 2
    np.savez_compressed(tmp_path / "d.npz", inputs=np.zeros((2, 5 * 2**19), np.uint8), labels=[0, 1])
    with pytest.raises(InputError, match=r"reading it needs .* GiB and this machine has"):
        read_inputs(tmp_path / "d.npz")


def test_objects_are_never_unpickled_and_damage_is_one_sentence(tmp_path):
    path = tmp_path / "o.npz"
    np.savez(path, inputs=np.array([[{}], [{}]], object), labels=[0, 1], allow_pickle=True)
    with pytest.raises(InputError, match="array 'inputs' holds Python objects, which certcal never unpickles"):
        read_inputs(path)
    np.savez(path, inputs=FEATURES, labels=LABELS)
    whole = path.read_bytes()
    path.write_bytes(whole[:-200])
    with pytest.raises(InputError, match="this npz archive cannot be read"):
        read_inputs(path)
    path.write_bytes(whole[:3000] + bytes([whole[3000] ^ 1]) + whole[3001:])
    with pytest.raises(InputError, match="this npz archive cannot be read"):
        read_inputs(path)
    path.write_bytes(b"no archive")
    with pytest.raises(InputError, match="this is not an npz archive"):
        read_inputs(path)


@settings(max_examples=50)
@given(st.data())
def test_a_flipped_byte_gives_inputs_or_one_sentence(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("flips") / data.draw(st.sampled_from(["t.npz", "t.parquet", "t.feather", "t.csv"]))
    if path.suffix == ".npz":
        np.savez(path, inputs=FEATURES[:9], labels=LABELS[:9])
    else:
        written(path, a_table().slice(0, 9))
    content = bytearray(path.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(bytes(content))
    try:
        found, sentence = read_inputs(path), ""
    except InputError as error:
        found, sentence = None, str(error)
    assert found is None or (np.isfinite(found.inputs).all() and found.inputs.shape[0] == len(found))
    assert (found is None) == sentence.startswith(f"{path}: ")
