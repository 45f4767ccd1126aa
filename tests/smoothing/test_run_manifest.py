"""The manifest comes back as it was written, and a file that is anything else is refused in one sentence."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certcal import InputError
from certcal.smoothing import open_run
from certcal.smoothing._counts import default_thresholds
from certcal.smoothing._manifest import (
    DataRecord,
    Manifest,
    ModelRecord,
    Size,
    checksum,
    manifest_from_bytes,
    read_manifest,
    write_manifest,
)

MANIFEST = Manifest(
    run="0123456789abcdef",
    created="2026-01-01T00:00:00+00:00",
    sigma=0.1 + 0.2,
    noise="gaussian",
    seed=2**64 - 1,
    n0=100,
    pilot=1000,
    thresholds=tuple(default_thresholds().tolist()),
    batch=500,
    unit=20_000,
    rows_independent=True,
    sizes=(Size(10, 10_000), Size(12, 20_000)),
    model=ModelRecord("a network", "ab" * 32, "logits", 10, None),
    data=DataRecord("cd" * 32, "ef" * 32, (1, 28, 28), "test.npz"),
    versions={"certcal": "0.1.0"},
)


def test_a_manifest_comes_back_to_the_last_bit(tmp_path):
    write_manifest(tmp_path, MANIFEST)
    assert read_manifest(tmp_path) == MANIFEST
    assert [path.name for path in tmp_path.iterdir()] == ["manifest.json"]
    assert np.array_equal(read_manifest(tmp_path).thresholds, default_thresholds())


def test_a_bit_flipped_anywhere_in_a_manifest_is_noticed(tmp_path):
    small = replace(MANIFEST, sigma=0.5, thresholds=(0.25, 0.5), versions={})  # no digits beyond the last bit
    write_manifest(tmp_path, small)
    path = tmp_path / "manifest.json"
    content = path.read_bytes()
    for bit in range(8 * len(content)):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(InputError):
            raise AssertionError(f"bit {bit}: {manifest_from_bytes(bytes(flipped), path)}")


def test_an_edited_value_is_noticed_and_an_edited_layout_is_not_minded(tmp_path):
    write_manifest(tmp_path, MANIFEST)
    path = tmp_path / "manifest.json"
    fields = json.loads(path.read_text())
    path.write_text(json.dumps(dict(reversed(fields.items())), indent=4))
    assert read_manifest(tmp_path) == MANIFEST
    path.write_text(json.dumps(fields | {"sizes": [[10, 10_000], [12, 19_000]]}))
    with pytest.raises(
        InputError, match=r"manifest\.json: it was damaged or edited, for its checksum .*; restore it, or"
    ):
        open_run(tmp_path)


def changed(**changes: Any) -> bytes:
    fields = MANIFEST.to_dict()
    for place, value in changes.items():
        target, *names = [fields, *place.split("__")]
        for name in names[:-1]:
            target = target[name]
        if value is None:
            del target[names[-1]]
        else:
            target[names[-1]] = value
    return json.dumps(fields | {"checksum": checksum(fields)}).encode()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "not readable as JSON"),
        (b"\xff\xfe", "not readable as JSON"),
        (b"[]", "not a JSON object"),
        (b"{}", "this is not the manifest of a run"),
        (b"[" * 100_000, "not readable as JSON"),
        (b'{"format": NaN}', "NaN is no number"),
        (b"{" + b" " * 9_000_000 + b"}", "larger than any manifest"),
        (b'{"version": ' + b"9" * 5000 + b"}", "not readable as JSON"),
        (changed(format="certcal table"), "this is not the manifest of a run"),
        (changed(version=1), "format version 1, whose shards do not say what they were drawn with; draw again into"),
        (changed(version=3), "format version 3, and this certcal reads 2; update certcal"),
        (json.dumps(MANIFEST.to_dict()).encode(), "checksum is missing"),
        (changed(sigma="0.5"), "sigma is not a finite number above 0"),
        (changed(sigma=-1), "sigma is not a finite number above 0"),
        (changed(sigma=None), "sigma is missing"),
        (changed(seed=-1), "seed is not a whole number from 0"),
        (changed(seed=1.0), "seed is not a whole number"),
        (changed(n0=True), "n0 is not a whole number"),
        (changed(noise="pink"), "noise is none of gaussian, exact"),
        (changed(rows_independent=1), "rows_independent is neither true nor false"),
        (changed(sizes=[]), "sizes is not a list of 1"),
        (changed(sizes=[[5]]), "sizes is not pairs of growing numbers"),
        (changed(sizes=[[5, 10**5], [4, 10**5]]), "sizes is not pairs of growing numbers"),
        (changed(sizes=[[0, 10**5]]), "sizes is not pairs of growing numbers"),
        (changed(sizes=[[5, 999]]), "sizes is not pairs of growing numbers"),
        (changed(sizes=[["5", 10**5]]), "sizes is not pairs of growing numbers"),
        (changed(unit=1, sizes=[[10**9, 10**9]]), "unit is so small that the run has more than 2000000 shards"),
        (changed(thresholds=[0.5, 0.25]), "thresholds is not growing numbers between 0 and 1"),
        (changed(thresholds=[0.5, 1.0]), "thresholds is not growing"),
        (changed(thresholds=["a"]), "thresholds is not growing"),
        (changed(thresholds=0.5), "thresholds is not a list"),
        (changed(run="../../etc"), "run is not a hexadecimal number"),
        (changed(model=[1]), "not a JSON object"),
        (changed(model__outputs="odds"), "model.outputs is none of probabilities, logits"),
        (changed(model__classes=1), "model.classes is not a whole number from 2"),
        (changed(model__description="x" * 5000), "model.description is not a text"),
        (changed(data__shape=[-1]), "data.shape is not the shape of an input"),
        (changed(data__shape="a"), "data.shape is not the shape of an input"),
        (changed(data__inputs=5), "data.inputs is not a text"),
        (changed(versions=[]), "versions is not a table"),
        (changed(versions={"a": 1}), "versions is not a table"),
        (changed(surprise=1), "surprise is not a field that this version knows"),
        (changed(model__surprise=1), "model.surprise is not a field"),
    ],
)
def test_anything_else_is_refused_in_one_sentence(tmp_path, content, sentence):
    (tmp_path / "manifest.json").write_bytes(content)
    with pytest.raises(InputError) as caught:
        open_run(tmp_path)
    assert sentence in str(caught.value)
    assert str(tmp_path / "manifest.json") in str(caught.value)
    assert "\n" not in str(caught.value)


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(name=st.sampled_from(sorted(MANIFEST.to_dict())), value=_VALUES)
def test_no_value_of_a_field_makes_anything_but_a_sentence(tmp_path_factory, name, value):
    folder = tmp_path_factory.mktemp("run")
    fields = MANIFEST.to_dict() | {name: value}
    (folder / "manifest.json").write_text(json.dumps(fields | {"checksum": checksum(fields)}))
    sentence = ""
    try:
        found = open_run(folder).manifest
    except InputError as error:
        sentence = str(error)
    if sentence:
        assert sentence.startswith(str(folder))
    else:
        assert type(getattr(found, name, value)) is type(getattr(MANIFEST, name, value))


def test_a_folder_and_a_file_without_a_run_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"there is no run here \(no manifest.json\); check the path"):
        open_run(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="there is no run here"):
        open_run(tmp_path / "file")
