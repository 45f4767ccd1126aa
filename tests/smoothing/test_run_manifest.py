"""The manifest comes back as it was written, and a file that is anything else is refused in one sentence."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from certcal import InputError
from certcal.smoothing import Manifest, default_thresholds, open_run
from certcal.smoothing._manifest import (
    DataRecord,
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


# A manifest as certcal 0.1 wrote it. It must be read for ever: do not change it.
WRITTEN_BY_0_1 = """
{"format": "certcal run", "version": 2, "run": "0123456789abcdef", "created": "2026-01-01T00:00:00+00:00",
 "sigma": 0.30000000000000004, "noise": "gaussian", "seed": 18446744073709551615, "n0": 100, "pilot": 1000,
 "thresholds": [0.25, 0.5], "batch": 500, "unit": 20000, "rows_independent": true, "sizes": [[10, 10000], [12, 20000]],
 "model": {"description": "ein Netz, größer", "fingerprint": "abababab", "outputs": "logits", "classes": 10,
           "source": null, "weights": null},
 "data": {"inputs": "cdcdcdcd", "labels": "efefefef", "shape": [1, 28, 28], "source": "test.npz"},
 "versions": {"certcal": "0.1.0"}, "checksum": "98cfa870c7c15d56e32eab708bf1573e39abd29b902024e02c759f95eeaaa675"}
"""


def test_runs_of_version_2_stay_readable_and_their_shards_still_belong_to_them(tmp_path):
    path = tmp_path / "manifest.json"
    path.write_text(WRITTEN_BY_0_1, encoding="utf-8")
    manifest = read_manifest(tmp_path)
    assert (manifest.sigma, manifest.seed, manifest.thresholds) == (0.1 + 0.2, 2**64 - 1, (0.25, 0.5))
    assert (manifest.sizes, manifest.n) == ((Size(10, 10_000), Size(12, 20_000)), 20_000)
    assert (manifest.model.description, manifest.data.shape) == ("ein Netz, größer", (1, 28, 28))
    assert manifest.drawing == "7acc72e02c4f1c846a93ae1b11e111eee5c7e314d709c7f35d133de85339ffb8"
    write_manifest(tmp_path, manifest)
    assert json.loads(path.read_text("utf-8")) == json.loads(WRITTEN_BY_0_1)


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
        (b"[]", "this is not the manifest of a run"),
        (b"{}", "this is not the manifest of a run"),
        (b"[" * 100_000, "not readable as JSON"),
        (b'{"format": NaN}', "not readable as JSON"),
        (b"{" + b" " * 9_000_000 + b"}", "larger than any manifest"),
        (b'{"version": ' + b"9" * 5000 + b"}", "not readable as JSON"),
        (changed(format="certcal table"), "this is not the manifest of a run"),
        (changed(version=1), "format version 1, whose shards do not say what they were drawn with; draw again into"),
        (changed(version=4), "format version 4, and this certcal reads 2 and 3; update certcal"),
        (json.dumps(MANIFEST.to_dict()).encode(), "its checksum is not that of its fields"),
        (changed(sigma="0.5"), "Expected float, got str - at $.sigma"),
        (changed(sigma=-1), "Expected float > 0.0 - at $.sigma"),
        (changed(sigma=None), "missing required field sigma"),
        (changed(seed=-1), "Expected int >= 0 - at $.seed"),
        (changed(seed=2**64), "Expected a seed below 2**64 - at $.seed"),
        (changed(seed=1.0), "Expected int, got float - at $.seed"),
        (changed(n0=True), "Expected int, got bool - at $.n0"),
        (changed(noise="pink"), "Invalid enum value 'pink' - at $.noise"),
        (changed(rows_independent=1), "Expected bool, got int - at $.rows_independent"),
        (changed(sizes=[]), "Expected array of length >= 1 - at $.sizes"),
        (changed(sizes=[[5]]), "Expected array of length 2, got 1 - at $.sizes[0]"),
        (changed(sizes=[[5, 10**5], [4, 10**5]]), "Expected growing numbers of samples and draws - at $.sizes"),
        (changed(sizes=[[0, 10**5]]), "Expected int >= 1 - at $.sizes[0][0]"),
        (changed(sizes=[[5, 999]]), "Expected growing numbers of samples and draws - at $.sizes"),
        (changed(sizes=[["5", 10**5]]), "Expected int, got str - at $.sizes[0][0]"),
        (changed(unit=1, sizes=[[10**9, 10**9]]), "Expected at most 2000000 shards - at $.unit"),
        (changed(thresholds=[0.5, 0.25]), "Expected growing numbers - at $.thresholds"),
        (changed(thresholds=[0.5, 1.0]), "Expected float < 1.0 - at $.thresholds[1]"),
        (changed(thresholds=["a"]), "Expected float, got str - at $.thresholds[0]"),
        (changed(thresholds=0.5), "Expected array, got float - at $.thresholds"),
        (changed(run="../../etc"), "- at $.run"),
        (changed(model=[1]), "Expected object, got array - at $.model"),
        (changed(model__outputs="odds"), "Invalid enum value 'odds' - at $.model.outputs"),
        (changed(model__classes=1), "Expected int >= 2 - at $.model.classes"),
        (changed(model__description="x" * 5000), "Expected str of length <= 4000 - at $.model.description"),
        (changed(data__shape=[-1]), "Expected int >= 1 - at $.data.shape[0]"),
        (changed(data__shape="a"), "Expected array, got str - at $.data.shape"),
        (changed(data__inputs=5), "Expected str, got int - at $.data.inputs"),
        (changed(versions=[]), "Expected object, got array - at $.versions"),
        (changed(versions={"a": 1}), "Expected str, got int - at $.versions[...]"),
        (
            changed(surprise=1),
            "unknown field surprise; it is of a newer certcal, or the file was damaged",
        ),
        (changed(model__surprise=1), "unknown field surprise - at $.model"),
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


def test_a_field_that_a_later_version_adds_leaves_older_shards_readable() -> None:
    class Later(Manifest, frozen=True, forbid_unknown_fields=True, dict=True):
        device: str = "cpu"

    plain = {name: getattr(MANIFEST, name) for name in MANIFEST.__struct_fields__}
    assert Later(**plain).drawing == MANIFEST.drawing
    assert Later(**plain, device="cuda").drawing != MANIFEST.drawing
