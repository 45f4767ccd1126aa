"""Runs over inputs that are read when they are drawn: the same run as from arrays, and never many in memory."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from certcal import InputError, decide, sample, summarize
from certcal.data import DataSettings, Inputs, open_inputs
from certcal.engines import InProcess
from certcal.models import load
from certcal.smoothing import check_inputs, open_run
from certcal.smoothing import sample as draw
from tests.smoothing.drawing import X, Y, assert_same_counts

MODEL = load("tests.smoothing.models_for_tests:linear", outputs="logits")
RECORDED = ("inputs", "labels", "shape", "every")
SETTINGS = {"sigma": 0.5, "n": 60, "n0": 20, "batch": 50}


class Dataset:
    """A data set in a module, which notes whoever reads it."""

    asked: list[int]

    def __init__(self):
        self.asked = []

    def __len__(self):
        return len(X)

    def __getitem__(self, number):
        self.asked.append(number)
        return X[number], int(Y[number])


def saved(folder: Path, inputs=X, labels=Y) -> Path:
    folder.mkdir(exist_ok=True)
    np.save(folder / "inputs.npy", inputs)
    np.save(folder / "labels.npy", labels)
    return folder


class Watched:
    """An engine of this process that says what its pieces carry."""

    def __init__(self, *, remote: bool, shares_files: bool) -> None:
        self.remote, self.shares_files, self.pieces, self.task = remote, shares_files, [], None

    def run(self, task, pieces):
        self.task = task

        def noted():
            for piece in pieces:
                self.pieces.append(piece)
                yield piece

        return InProcess().run(task, noted())


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return draw(MODEL, X, Y, out=tmp_path_factory.mktemp("whole") / "run", **SETTINGS)


@pytest.mark.parametrize("kind", ["arrays on disk", "data set", "named data set"])
def test_a_run_over_what_is_read_later_is_that_over_arrays(tmp_path, monkeypatch, whole, kind):
    monkeypatch.setattr("certcal.smoothing._sample.PIECE_BYTES", 5 * X[0].nbytes)
    given = {
        "arrays on disk": lambda: saved(tmp_path / "data"),
        "data set": Dataset,
        "named data set": lambda: "tests.smoothing.test_lazy_inputs:Dataset",
    }[kind]()
    run = sample(MODEL, given, out=tmp_path / "run", **SETTINGS)
    assert_same_counts(run, whole)
    one, other = ([getattr(each.manifest.data, name) for name in RECORDED] for each in (run, whole))
    assert one == other
    assert sample(MODEL, (X, Y), out=tmp_path / "run", **SETTINGS).manifest == run.manifest


@pytest.mark.parametrize(
    ("engine", "carried"),
    [
        (Watched(remote=True, shares_files=True), False),
        (Watched(remote=True, shares_files=False), True),
        (Watched(remote=False, shares_files=True), False),
    ],
    ids=["files are shared", "files are not shared", "here"],
)
def test_workers_that_see_the_files_read_them_and_others_are_sent_their_rows(tmp_path, engine, carried):
    sample(MODEL, saved(tmp_path / "data"), out=tmp_path / "run", engine=engine, **SETTINGS)
    assert engine.pieces
    assert {piece.inputs is not None for piece in engine.pieces} == {carried}
    assert (engine.task.rows is None) == carried


def test_pieces_fill_whole_batches_so_that_batches_do_not_depend_on_them(tmp_path, monkeypatch, whole):
    seen: list[bytes] = []

    def noted(batch):
        seen.append(batch.tobytes())
        return MODEL(batch)

    from certcal.models import wrap

    for limit in (1, 1 << 30):
        monkeypatch.setattr("certcal.smoothing._sample.PIECE_BYTES", limit)
        seen.append(b"")
        draw(wrap(noted, outputs="logits"), X, Y, out=tmp_path / str(limit), **SETTINGS)
    second = len(seen) - 1 - seen[::-1].index(b"")
    assert sorted(seen[1:second]) == sorted(seen[second + 1 :])


def test_the_driver_never_holds_more_than_a_few_pieces(tmp_path, monkeypatch):
    shape, piece = (1600, 3, 64, 64), 1 << 20
    np.lib.format.open_memmap(saved(tmp_path / "data") / "inputs.npy", "w+", np.uint8, shape).flush()
    np.save(tmp_path / "data" / "labels.npy", np.zeros(shape[0], int))
    for place in ("certcal.smoothing._sample.PIECE_BYTES", "certcal.data.inputs.CHUNK_NUMBERS"):
        monkeypatch.setattr(place, piece if "PIECE" in place else piece // 4)
    first = load("tests.smoothing.models_for_tests:first_two", outputs="logits")
    sample(first, saved(tmp_path / "few", X[:4], Y[:4] % 2), sigma=0.5, n=2, n0=2, batch=8, out=tmp_path / "compiled")
    tracemalloc.start()
    try:
        sample(first, tmp_path / "data", sigma=0.5, n=2, n0=2, batch=8, out=tmp_path / "run")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    whole = 4 * int(np.prod(shape))
    assert peak < whole / 3


def test_every_is_in_the_manifest_in_the_counts_and_in_the_command_that_resumes(tmp_path):
    data = saved(tmp_path / "data")
    run = sample(MODEL, data, out=tmp_path / "run", every=5, limit=4, **SETTINGS)
    assert run.manifest.data.every == 5
    assert open_run(run.path).counts().index.tolist() == [0, 5, 10, 15]
    assert run.counts().label.tolist() == Y[:20:5].tolist()
    assert_same_counts(run, draw(MODEL, X[:20:5], Y[:20:5], out=tmp_path / "arrays", **SETTINGS))
    for given in (X, X[::5], Inputs.from_arrays(X, Y), open_inputs(data).inputs):
        np.testing.assert_array_equal(check_inputs(run.manifest, given), X[:20:5])
    grown = sample(MODEL, data, out=tmp_path / "run", every=5, **SETTINGS)
    assert grown.counts().index.tolist() == list(range(0, len(X), 5))
    next((tmp_path / "run" / "counting").iterdir()).unlink()
    assert f"--every 5 --limit {len(X[::5])}" in summarize(tmp_path / "run").resume
    for other in (1, 4, 20):
        with pytest.raises(InputError, match=f"the run was drawn with every = 5, and {other} is asked for"):
            sample(MODEL, data, out=tmp_path / "run", every=other, **SETTINGS)
    with pytest.raises(InputError, match="the run was drawn from other data"):
        sample(MODEL, (X, Y), out=tmp_path / "run", **SETTINGS)
    assert sample(MODEL, (X[::5], Y[::5]), out=tmp_path / "run", **SETTINGS).manifest.data.every == 5


def test_a_run_that_is_extended_from_memory_remembers_where_its_samples_came_from(tmp_path):
    begun = sample(MODEL, saved(tmp_path / "data"), out=tmp_path / "run", every=5, **SETTINGS)
    more = {**SETTINGS, "n": SETTINGS["n"] + 50}
    grown = sample(MODEL, (X[::5], Y[::5]), out=tmp_path / "run", **more)
    assert (grown.manifest.n, grown.manifest.data) == (more["n"], begun.manifest.data)
    assert grown.counts().index.tolist() == list(range(0, len(X), 5))


def test_inputs_of_a_relative_path_are_read_from_any_folder(tmp_path, monkeypatch):
    saved(tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    inputs = open_inputs("data").inputs.inputs
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    np.testing.assert_array_equal(inputs[[1, 3]], X[[1, 3]])


def test_the_command_that_resumes_prepares_images_as_the_run_did(tmp_path):
    how = DataSettings(resize=256, crop=224)
    run = draw(MODEL, X, Y, out=tmp_path / "run", data_source="photos", data_settings=how, **SETTINGS)
    next((tmp_path / "run" / "counting").iterdir()).unlink()
    assert "--resize 256 --crop 224" in summarize(run).resume


def test_a_file_that_changes_between_reading_and_drawing_ends_the_run_with_a_sentence(tmp_path):
    data = saved(tmp_path / "data")

    class Changing(Watched):
        def run(self, task, pieces):
            saved(data, X + 1)
            return super().run(task, pieces)

    engine = Changing(remote=True, shares_files=True)
    with pytest.raises(InputError, match=r"inputs\.npy: sample 0 is not what it was when it was read first"):
        sample(MODEL, data, out=tmp_path / "run", engine=engine, **SETTINGS)


def test_decisions_read_their_inputs_in_pieces_and_number_them_as_the_data_does(monkeypatch):
    options = {"sigma": 0.5, "radius": 0.1, "n": 300, "n0": 20}
    here = decide(MODEL, (X[::3], Y[::3]), **options)
    monkeypatch.setattr("certcal.smoothing._decisions._READ_BYTES", 2 * X[0].nbytes)
    dataset = Dataset()
    found = decide(MODEL, dataset, every=3, **options)
    assert found.index.tolist() == list(range(0, len(X), 3))
    assert sorted(set(dataset.asked)) == list(range(len(X)))  # all of them once, for their labels
    for name in ("decision", "draws", "votes", "predicted", "label"):
        np.testing.assert_array_equal(getattr(found, name), getattr(here, name))
