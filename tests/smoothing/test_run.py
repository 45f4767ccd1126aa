"""The run on disk: continued, extended, refused, and never silently wrong."""

import contextlib
import errno
import json
import os
import pickle
import resource
import shutil
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from certcal import InputError
from certcal.engines import InProcess, LocalProcesses
from certcal.models import Source, wrap
from certcal.models.networks import LeNet
from certcal.smoothing import Run, SamplingError, open_run
from certcal.smoothing._manifest import Size
from certcal.smoothing._sample import Drawing
from certcal.smoothing._sampler import check_rows, noisy_inputs
from tests.smoothing import models_for_tests
from tests.smoothing.drawing import HERE, ROOT, X, Y, assert_same_counts, digests, draw, model, shards


class Counting:
    """The engine in this process, which remembers which units it was given, and can stop early."""

    remote = False

    def __init__(self, stop_after=None):
        self.units = []
        self.stop_after = stop_after

    def run(self, task, pieces):
        for work, result in InProcess().run(task, pieces):
            if len(self.units) == self.stop_after:
                raise KeyboardInterrupt
            self.units.append(work.unit)
            yield work, result


@pytest.fixture(autouse=True, scope="module")
def quick_disk():
    """These tests write thousands of small files; waiting for the disk each time would test the disk."""
    with mock.patch("os.fsync"):
        yield


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return draw(tmp_path_factory.mktemp("whole") / "run")


def test_a_run_counts_every_draw_once(whole):
    counts = whole.counts()
    np.testing.assert_array_equal(counts.draws, np.full(24, 400))
    np.testing.assert_array_equal(counts.histogram.sum(axis=1), counts.draws)
    np.testing.assert_array_equal(counts.label, Y)
    np.testing.assert_array_equal(counts.index, np.arange(24))
    assert counts.seed == whole.manifest.seed == 7
    assert whole.state().complete
    assert whole.state().finished == 24 * 420


def test_a_run_agrees_with_the_sampler_asked_in_one_go(whole):
    from certcal.smoothing import Sampler

    sampler = Sampler(model(), sigma=0.5, seed=7, batch=32)
    chosen = sampler.select(X, np.arange(24), 20).votes.argmax(axis=1)
    tally = sampler.count(X, np.arange(24), chosen, 0, 400)
    counts = whole.counts()
    np.testing.assert_array_equal(counts.predicted, chosen)
    np.testing.assert_array_equal(counts.votes, tally.votes)
    np.testing.assert_array_equal(counts.histogram, tally.histogram)
    np.testing.assert_array_equal(counts.sums, tally.sums)
    np.testing.assert_array_equal(whole.class_votes().toarray(), tally.class_votes)


def test_an_opened_run_is_the_run_that_was_drawn(whole):
    opened = open_run(whole.path)
    assert opened.manifest == whole.manifest
    assert_same_counts(opened, whole)


def test_samples_that_are_only_promised_take_no_memory(whole, tmp_path):
    m = whole.manifest
    run = Run(tmp_path, structs.replace(m, sizes=(Size(10**9, m.n),), unit=2**62))
    tracemalloc.start()
    with pytest.raises(InputError, match="are not drawn yet"):
        run.counts()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10_000_000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert not run.state().complete
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + 1_000_000


def test_a_finished_run_is_not_drawn_again(whole, tmp_path):
    before = {path: path.stat().st_mtime_ns for path in shards(whole)}
    engine = Counting()
    draw(whole.path, engine=engine)
    assert engine.units == []
    assert {path: path.stat().st_mtime_ns for path in shards(whole)} == before


def test_the_manifest_says_what_was_drawn_with_what(whole):
    m = json.loads((whole.path / "manifest.json").read_text())
    assert (m["sigma"], m["n0"], m["seed"], m["pilot"], m["noise"]) == (0.5, 20, 7, 40, "gaussian")
    assert m["sizes"] == [[24, 400]]
    assert len(m["thresholds"]) == 255
    assert m["model"]["source"] == f"{HERE}:linear"
    assert m["model"]["classes"] == 3
    assert m["rows_independent"] is True
    assert "numpy" in m["versions"]


@settings(max_examples=15)
@given(
    unit=st.integers(1, 300),
    batch=st.integers(1, 70),
    n=st.integers(1, 30),
    stops=st.lists(st.integers(0, 9), max_size=2),
)
def test_the_result_does_not_depend_on_how_the_work_is_cut_or_interrupted(unit, batch, n, stops, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cut")
    small = {"inputs": X[:5], "labels": Y[:5], "n": n, "n0": 7}
    for stop in stops:
        with contextlib.suppress(KeyboardInterrupt):
            draw(folder / "cut", **small, unit=unit, batch=batch, engine=Counting(stop_after=stop))
    cut = draw(folder / "cut", **small, unit=unit, batch=batch)
    assert_same_counts(cut, draw(folder / "plain", **small, unit=10**6, batch=64))


def test_workers_give_the_same_run_and_read_the_inputs_themselves(whole, tmp_path):
    np.save(tmp_path / "inputs.npy", X)
    run = draw(tmp_path / "run", inputs=np.load(tmp_path / "inputs.npy", mmap_mode="r"), workers=2)
    assert_same_counts(run, whole)
    assert digests(run) == digests(whole)


@pytest.mark.parametrize("batch", [2, 3, 32, 500])
@pytest.mark.parametrize("name", ["chummy", "coin"])
def test_a_model_whose_rows_mind_each_other_is_refused_before_anything_is_written(tmp_path, name, batch):
    sentence = "changes with the other inputs of its batch .*batch normalisation in training mode.* a batch of 1"
    with pytest.raises(SamplingError, match=sentence):
        draw(tmp_path / "run", model=model(name), batch=batch)
    assert not (tmp_path / "run").exists()
    alone = draw(tmp_path / "run", model=model(name), batch=1, n=5, n0=2)
    assert alone.state().complete, "an input alone in its batch has no neighbours"


@given(batch=st.integers(2, 600), samples=st.integers(1, 24), sigma=st.floats(0.01, 10), seed=st.integers(0, 99))
def test_no_batch_size_or_data_hides_a_model_whose_rows_mind_each_other(batch, samples, sigma, seed):
    noisy = noisy_inputs(X[: min(8, samples)], sigma=sigma, seed=seed, noise="gaussian")
    for name in ("chummy", "coin"):
        with pytest.raises(SamplingError):
            check_rows(model(name), noisy, batch)
    for name in ("linear", "sized", "almost", "not_a_number", "probabilities"):
        check_rows(model(name), noisy, batch)


def test_last_bits_that_neighbours_change_are_recorded_and_the_batch_size_is_kept(tmp_path):
    run = draw(tmp_path / "run", model=model("almost"))
    assert not run.manifest.rows_independent
    assert draw(tmp_path / "run", model=model("almost"), n=500, batch=50).manifest.batch == 32


def test_networks_pass_at_any_batch_size_and_one_in_training_mode_does_not():
    import torch

    images = np.random.default_rng(0).random((8, 1, 28, 28), np.float32)
    noisy = noisy_inputs(images, sigma=0.5, seed=0, noise="gaussian")
    for batch in (1, 2, 5, 100):
        check_rows(wrap(LeNet().eval(), "logits"), noisy, batch)
    layers = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.BatchNorm1d(784), torch.nn.Linear(784, 3)).train()

    def training(batch):
        with torch.no_grad():
            return layers(torch.from_numpy(batch)).numpy()

    with pytest.raises(SamplingError, match="batch normalisation in training mode"):
        check_rows(wrap(training, "logits"), noisy, 100)


def test_a_model_that_minds_the_batch_size_gives_the_same_run_however_it_is_interrupted(tmp_path):
    plain = draw(tmp_path / "plain", model=model("sized"))
    assert not plain.manifest.rows_independent
    for after in (1, 9):
        with pytest.raises(KeyboardInterrupt):
            draw(tmp_path / "cut", model=model("sized"), engine=Counting(stop_after=after))
    cut = draw(tmp_path / "cut", model=model("sized"), batch=50)
    assert_same_counts(plain, cut)
    assert digests(plain) == digests(cut)
    other = draw(tmp_path / "other", model=model("sized"), batch=50)
    assert np.any(other.counts().histogram != plain.counts().histogram), "the batch matters for this model"


def test_more_draws_make_the_run_that_a_larger_one_would_have_been(tmp_path):
    draw(tmp_path / "grown", n=150)
    engine = Counting()
    grown = draw(tmp_path / "grown", n=400, engine=engine)
    assert {(unit.start, unit.stop) for unit in engine.units} == {(150, 400)}
    fresh = draw(tmp_path / "fresh")
    assert_same_counts(grown, fresh, ("label", "predicted", "draws", "votes", "invalid", "histogram"))
    assert grown.manifest.pilot == 15
    assert (grown.manifest.samples, grown.manifest.n) == (24, 400)


def test_more_samples_make_the_run_that_a_larger_one_would_have_been(tmp_path):
    draw(tmp_path / "grown", inputs=X[:5], labels=Y[:5])
    engine = Counting()
    grown = draw(tmp_path / "grown", engine=engine)
    assert min(unit.first for unit in engine.units) == 5
    assert_same_counts(grown, draw(tmp_path / "fresh"))


def test_a_run_can_grow_both_ways_before_it_is_finished(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        draw(tmp_path / "grown", inputs=X[:3], labels=Y[:3], n=50, engine=Counting(stop_after=2))
    draw(tmp_path / "grown", inputs=X[:9], labels=Y[:9], n=90)
    grown = draw(tmp_path / "grown")
    assert_same_counts(grown, draw(tmp_path / "fresh"), ("predicted", "draws", "votes", "histogram"))


def test_a_run_that_is_being_extended_can_be_used_at_its_former_size(tmp_path):
    former = draw(tmp_path / "grown", inputs=X[:9], labels=Y[:9], n=150).counts()
    with pytest.raises(KeyboardInterrupt):
        draw(tmp_path / "grown", n=400, engine=Counting(stop_after=3))
    grown = open_run(tmp_path / "grown")
    with pytest.raises(InputError, match=r"not drawn yet; give the same .* counts\(samples=9, n=150\)"):
        grown.counts()
    np.testing.assert_array_equal(grown.counts(9, 150).histogram, former.histogram)
    np.testing.assert_array_equal(grown.counts(4, 150).votes, former.votes[:4])
    sizes = r"which is no size that the run ever had; pass one of: samples=9 with n=150, samples=24 with n=400"
    for samples, n in ((9, 149), (9, 15), (9, 40), (10, 150), (None, 150)):
        with pytest.raises(InputError, match=f"n is {n} for {samples or 24} samples, {sizes}"):
            grown.counts(samples, n)
    with pytest.raises(InputError, match="samples is 25; pass a number of samples from 1 to 24"):
        grown.counts(25)


def test_counts_say_from_which_sizes_the_run_grew(tmp_path):
    draw(tmp_path / "grown", inputs=X[:9], labels=Y[:9], n=150)
    assert open_run(tmp_path / "grown").counts().earlier == ()
    grown = draw(tmp_path / "grown", n=400)
    assert grown.counts().earlier == ((9, 150),)
    assert grown.counts(9, 150).earlier == ()
    assert draw(tmp_path / "grown", n=500).counts(24, 400).earlier == ((9, 150),)


def test_a_worker_that_loads_another_model_is_refused():
    first = model()
    task = Drawing(first, first.source, {"sigma": 0.5, "seed": 0}, X[:4], first.fingerprint(X[:4]))
    for name in ("other", "linear_but_for_a_hair"):
        travelled = pickle.loads(pickle.dumps(replace(task, source=Source(f"{HERE}:{name}", "logits"))))
        with pytest.raises(SamplingError, match=f"{name} is another model in a worker process than here"):
            travelled.prepare()
    assert np.allclose(model("linear_but_for_a_hair")(X), first(X), rtol=1e-6)
    pickle.loads(pickle.dumps(task)).prepare()


def test_another_batch_size_is_used_only_where_it_does_not_matter(whole, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        draw(tmp_path / "run", engine=Counting(stop_after=4))
    run = draw(tmp_path / "run", batch=100)
    assert run.manifest.batch == 32
    assert digests(run) == digests(whole)


# Refusals


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"sigma": 0.25}, r"drawn with sigma = 0\.5, and 0\.25 is asked for; give the same, or choose another folder"),
        ({"seed": 8}, "drawn with seed = 7, and 8 is asked for"),
        ({"n0": 21}, "drawn with n0 = 20, and 21 is asked for"),
        ({"n": 399}, "is for n = 400 draws per sample, and n = 399 is asked for; draws are only ever added"),
        ({"noise": "exact"}, "drawn with noise = gaussian, and exact is asked for"),
        ({"model": model("other")}, "another model: .*:linear .*fingerprint [0-9a-f]{12}, and this is .*:other"),
        ({"model": model("probabilities", "probabilities")}, "outputs = logits, and probabilities is asked for"),
        ({"inputs": X + np.float32(1)}, "other data: its 24 inputs have fingerprint [0-9a-f]{12}, and the first 24"),
        ({"labels": (Y + 1) % 3}, "other data: its 24 labels have fingerprint"),
        ({"inputs": X[:20], "labels": Y[:20]}, "for 24 samples, and 20 are given; samples are only ever added"),
        ({"inputs": X[::-1]}, "other data: its 24 inputs"),
        ({"inputs": X.reshape(24, 2, 2)}, r"the shape of an input = \(4,\), and \(2, 2\) is asked for"),
    ],
)
def test_something_else_in_the_same_folder_is_refused_with_both_values(whole, change, sentence):
    before = {path: path.read_bytes() for path in [*shards(whole), whole.path / "manifest.json"]}
    with pytest.raises(InputError, match=sentence):
        draw(whole.path, **change)
    assert {path: path.read_bytes() for path in before} == before


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("all of it")
    with pytest.raises(InputError, match=r"holds other files \(thesis.tex\) and no manifest.json; choose an empty"):
        draw(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_folder_of_a_process_killed_before_it_began_is_free(tmp_path):
    (tmp_path / ".lock").write_text("123")
    (tmp_path / ".manifest.json.4711.certcal-tmp").write_text('{"form')
    assert draw(tmp_path).state().complete
    assert not (tmp_path / ".manifest.json.4711.certcal-tmp").exists()


def test_files_of_yours_in_a_run_are_left_alone(tmp_path):
    (tmp_path / ".notes.tmp").write_text("all of it")
    with pytest.raises(InputError, match=r"holds other files \(\.notes\.tmp\) and no manifest\.json"):
        draw(tmp_path)
    run = draw(tmp_path / "run")
    (run.path / ".notes.tmp").write_text("all of it")
    draw(run.path, n=500)
    assert [(folder / ".notes.tmp").read_text() for folder in (tmp_path, run.path)] == ["all of it"] * 2


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"sigma": 0}, "sigma is 0.0; pass a positive finite number"),
        ({"n": 0}, "n is 0; pass a number of draws from 1"),
        ({"n": 1.5}, "n is 1.5; pass"),
        ({"n0": 0}, "n0 is 0; pass"),
        ({"seed": -1}, "seed is -1; pass"),
        ({"batch": 0}, "batch is 0; pass"),
        ({"workers": 0}, "workers is 0; pass"),
        ({"noise": "pink"}, "noise is 'pink'; pass one of 'gaussian', 'exact'"),
        ({"inputs": np.full((24, 4), np.nan)}, r"inputs\[0, 0\] is nan"),
        ({"labels": Y[:3]}, "lengths differ: inputs has 24, labels has 3"),
        ({"labels": Y + 3}, r"labels\[\d+\] is \d; labels are whole numbers from 0 to 2"),
        ({"noise": "exact"}, "sample 0 is not on the grid k/255"),
        ({"model": models_for_tests.linear}, r"model \(function\) is not a certcal model; use certcal.models.wrap"),
        ({"model": wrap(models_for_tests.linear, outputs="logits"), "workers": 2}, "lives in this process only"),
        (
            {"model": wrap(models_for_tests.linear, outputs="logits"), "engine": LocalProcesses(1)},
            "use certcal.models.load with its path or 'package.module:name', or use workers=1",
        ),
        ({"model": model("linear", "probabilities")}, r"all 8 outputs that were tried are invalid .* declare outputs"),
        ({"unit": 1, "n": 10**6}, "unit is 1, which cuts the run into more than 2000000 shards"),
    ],
)
def test_what_cannot_be_drawn_is_refused_before_anything_is_written(tmp_path, change, sentence):
    with pytest.raises(InputError, match=sentence):
        draw(tmp_path / "run", **change)
    assert not (tmp_path / "run").exists()


# Bad models


def test_outputs_that_are_no_numbers_count_against_the_class_and_are_reported(tmp_path):
    counts = draw(tmp_path / "run", model=model("not_a_number")).counts()
    good = draw(tmp_path / "good").counts()
    assert counts.invalid.sum() > 100
    assert np.all(counts.votes + counts.invalid <= 400)
    assert np.all(counts.histogram[:, 0] >= counts.invalid)
    same = counts.predicted == good.predicted
    assert np.all(counts.votes[same] <= good.votes[same])


@pytest.mark.parametrize("workers", [1, 2])
def test_a_model_that_fails_names_the_sample_and_keeps_the_rest(tmp_path, workers):
    inputs = X.copy()
    inputs[17] = 9
    with pytest.raises(InputError, match=r"failed on sample 17: .*too far out.*; what was drawn before is kept in"):
        draw(tmp_path / "run", model=model("fails_far_out"), inputs=inputs, unit=40, workers=workers)
    state = open_run(tmp_path / "run").state()
    assert 0 < state.finished < state.total
    assert state.damaged == ()


def test_a_model_of_the_wrong_input_shape_is_one_sentence_and_leaves_nothing(tmp_path):
    with pytest.raises(InputError, match="sample 0"):
        draw(tmp_path / "run", inputs=np.zeros((24, 5), np.float32))
    assert not (tmp_path / "run").exists()


def test_another_number_of_classes_in_the_middle_is_one_sentence(tmp_path):
    calls = []

    def moody(batch):
        calls.append(1)
        return models_for_tests.linear(batch)[:, : 3 if len(calls) < 40 else 2]

    with pytest.raises(InputError, match="classes"):
        draw(tmp_path / "run", model=wrap(moody, outputs="logits"))
    assert open_run(tmp_path / "run").state().finished > 0


# Disks


def test_a_full_disk_is_a_sentence_and_nothing_is_lost(tmp_path, whole, monkeypatch):
    written = []

    def full(descriptor):
        written.append(descriptor)
        if len(written) > 30:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(InputError, match=r"No space left on device.*; all that was finished before is kept"):
            draw(tmp_path / "run")
    state = open_run(tmp_path / "run").state()
    assert 0 < state.finished < state.total
    assert state.damaged == ()
    assert list((tmp_path / "run").rglob(".*.certcal-tmp")) == []
    run = draw(tmp_path / "run")
    assert_same_counts(run, whole)
    assert digests(run) == digests(whole)


def test_a_disk_quota_in_another_process_is_a_sentence_and_the_run_goes_on_later(tmp_path, whole):
    script = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "import pathlib, resource, signal\n"
        "from certcal import InputError\n"
        "from tests.smoothing.drawing import draw\n"
        "path = pathlib.Path(sys.argv[1])\n"
        "def tighten(done, total):\n"
        "    if done > 4000:\n"
        "        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try:\n"
        "    draw(path, progress=tighten)\n"
        "except InputError as error:\n"
        "    print(error)\n"
    )
    ran = subprocess.run([sys.executable, "-c", script, str(tmp_path / "run")], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "cannot be written (File too large); all that was finished before is kept" in ran.stdout
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 1000
    state = open_run(tmp_path / "run").state()
    assert 4000 < state.finished < state.total
    assert digests(draw(tmp_path / "run")) == digests(whole)


def test_a_place_that_cannot_be_written_is_a_sentence(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(InputError, match=r"file/run: the folder cannot be created \(Not a directory\); choose a place"):
        draw(tmp_path / "file" / "run")
    with pytest.raises(InputError, match="the folder cannot be created"):
        draw(tmp_path / "file")


def test_a_file_system_that_is_read_only_is_a_sentence():
    # /proc refuses new names, to root as well.
    with pytest.raises(InputError, match=r"the folder cannot be created .*; choose a place that can be written to"):
        draw("/proc/run")


def test_a_second_process_on_the_same_folder_refuses(tmp_path):
    refused = []

    def second(done, total):
        if not refused:
            script = (
                f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
                "from pathlib import Path\nfrom certcal import InputError\nfrom tests.smoothing.drawing import draw\n"
                "try:\n    draw(Path(sys.argv[1]))\nexcept InputError as error:\n    print(error)\n"
            )
            ran = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True)
            refused.append((ran.stdout, ran.stderr))

    assert draw(tmp_path, progress=second).state().complete
    assert refused[0][1] == ""
    assert refused[0][0].startswith(f"{tmp_path}: another process ({os.getpid()} on ")
    assert refused[0][0].endswith("is drawing into this run; wait for it, or choose another folder\n")


# Damage


def flip(path):
    content = bytearray(path.read_bytes())
    content[40] ^= 0x40  # in the first column
    path.write_bytes(content)


def cut_short(path):
    path.write_bytes(path.read_bytes()[:-20])


def empty(path):
    path.write_bytes(b"")


def from_the_neighbour(path):
    other = next(each for each in sorted(path.parent.iterdir()) if each != path)
    path.write_bytes(other.read_bytes())


def text(path):
    path.write_text("PAR1 this is not what it seems PAR1")


@pytest.mark.parametrize("damage", [flip, cut_short, empty, from_the_neighbour, text])
@pytest.mark.parametrize("stage", ["selection", "counting"])
def test_a_damaged_shard_is_found_and_only_it_is_drawn_again(tmp_path, whole, damage, stage):
    run = draw(tmp_path / "run")
    unit = [unit for unit in run.manifest.units() if unit.stage == stage][1]
    damage(run.path / unit.name)
    state = open_run(run.path).state()
    assert [unit.name for unit, _ in state.damaged] == [unit.name]
    assert state.missing == (unit,)
    with pytest.raises(InputError, match=f"the shard of samples {unit.first} .* is damaged: .*; give the same sample"):
        open_run(run.path).counts()
    engine = Counting()
    again = draw(run.path, engine=engine)
    assert engine.units == [unit]
    assert digests(again) == digests(whole)
    assert_same_counts(again, whole)
    (aside,) = again.set_aside()
    note = (run.path / "damaged" / aside).with_suffix(".txt").read_text()
    assert note.startswith(f"{unit.name} was moved here because it")


def test_a_shard_of_another_run_is_found_and_drawn_again(tmp_path, whole):
    run, foreign = draw(tmp_path / "run"), draw(tmp_path / "foreign", seed=8)
    unit = run.manifest.units()[-1]
    (run.path / unit.name).write_bytes((foreign.path / unit.name).read_bytes())
    assert [reason for _, reason in run.state().damaged] == ["it belongs to another run"]
    assert_same_counts(draw(run.path), whole)


def test_every_single_flipped_byte_is_found_or_changes_nothing(tmp_path, whole):
    from certcal.smoothing._shards import DamagedShardError, read_shard

    unit = whole.manifest.units()[-1]
    content = (whole.path / unit.name).read_bytes()
    expected = read_shard(whole.path, whole.manifest, unit)
    assert expected is not None
    copy = tmp_path / unit.name
    copy.parent.mkdir()
    found = 0
    for place in range(len(content)):
        copy.write_bytes(content[:place] + bytes([content[place] ^ 0x21]) + content[place + 1 :])
        try:
            columns = read_shard(tmp_path, whole.manifest, unit)
        except DamagedShardError:
            found += 1
            continue
        assert columns is not None
        for name, column in expected.items():
            np.testing.assert_array_equal(columns[name], column)
    assert found > len(content) // 2


def test_numbers_that_no_drawing_gives_are_found_even_with_their_digest(tmp_path):
    from certcal.smoothing._shards import read_shard, write_shard

    run = draw(tmp_path / "run")
    unit = run.manifest.units()[-1]
    columns = read_shard(run.path, run.manifest, unit)
    assert columns is not None
    wrong = {"votes": unit.stop - unit.start + 1, "sums": 2**30 * (unit.stop - unit.start), "class_votes": 0}
    for name, number in wrong.items():
        changed = columns[name].copy()
        changed[0] = number
        write_shard(run.path, run.manifest, unit, columns | {name: changed})
        assert [reason for _, reason in run.state().damaged] == ["its numbers contradict each other"], name


def test_counts_of_a_class_that_was_not_selected_are_not_used(tmp_path, whole):
    from certcal.smoothing._shards import read_shard, write_shard

    run = draw(tmp_path / "run")
    unit = run.manifest.units()[-1]
    columns = read_shard(run.path, run.manifest, unit)
    assert columns is not None
    predicted, rows = (columns["predicted"] + 1) % 3, np.repeat(np.arange(len(columns["voted"])), columns["voted"])
    own = columns["classes"] == predicted[rows]
    votes = np.bincount(rows[own], columns["class_votes"][own], len(predicted)).astype(np.int64)
    write_shard(run.path, run.manifest, unit, columns | {"predicted": predicted, "votes": votes})
    assert [reason for _, reason in run.state().damaged] == ["it counts another class than was selected"]
    assert_same_counts(draw(run.path), whole)


@pytest.mark.parametrize(
    "change",
    [
        {"sigma": 5.0},
        {"run": "5eed" * 8},
        {"noise": "exact"},
        {"seed": 8},
        {"n0": 30},
        {"pilot": 10},
        {"thresholds": [0.5]},
        {"thresholds": [k / 1024 for k in range(1, 256)]},
        {"batch": 500},
        {"unit": 90},
        {"rows_independent": False},
        {"sizes": [[24, 300]]},
        {"model": {"outputs": "probabilities"}},
        {"model": {"classes": 7}},
        {"data": {"shape": [2, 2]}},
    ],
)
def test_a_manifest_that_does_not_match_its_shards_is_refused_and_nothing_is_drawn_over_them(whole, tmp_path, change):
    from certcal.smoothing._manifest import checksum

    folder = tmp_path / "run"
    shutil.copytree(whole.path, folder)
    fields = json.loads((folder / "manifest.json").read_text())
    del fields["checksum"]
    for name, value in change.items():
        fields[name] = fields[name] | value if isinstance(value, dict) else value
    (folder / "manifest.json").write_text(json.dumps(fields | {"checksum": checksum(fields)}))
    before = {path: path.read_bytes() for path in folder.rglob("*.parquet")}
    sentence = r"manifest\.json: it does not match its shards, which were drawn with other settings; restore it"
    run = open_run(folder)
    for ask in (run.counts, run.state):
        with pytest.raises(InputError, match=sentence):
            ask()
    m = run.manifest
    same = {"sigma": m.sigma, "noise": m.noise, "seed": m.seed, "n0": m.n0, "n": m.n}
    with pytest.raises(InputError, match=f"{sentence}|was drawn (with|from)|k/255"):
        draw(folder, **same)
    with pytest.raises(InputError):
        draw(folder, **same | {"n": m.n + 100})
    assert {path: path.read_bytes() for path in folder.rglob("*.parquet")} == before
    assert open_run(folder).manifest == m


def test_progress_counts_forward_passes_to_the_end(tmp_path):
    seen = []
    draw(tmp_path / "run", progress=lambda done, total: seen.append((done, total)))
    assert seen[0] == (0, 24 * 420)
    assert seen[-1] == (24 * 420, 24 * 420)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_exact_noise_is_recorded_and_drawn(tmp_path):
    pixels = np.random.default_rng(1).integers(0, 256, (5, 4)).astype(np.uint8)
    run = draw(tmp_path / "run", inputs=pixels, labels=Y[:5], noise="exact")
    assert run.manifest.noise == run.counts().noise == "exact"


def test_a_run_shows_what_it_is(whole):
    assert repr(whole) == f"Run({str(whole.path)!r}: 24 samples, n=400, n0=20, sigma=0.5)"


def test_certificates_of_a_run_are_those_of_its_counts(whole):
    from certcal.smoothing import certificates

    one, two = whole.certificates(0.1, alpha=0.01), certificates(whole.counts(), 0.1, alpha=0.01)
    np.testing.assert_array_equal(one.lower, two.lower)
    np.testing.assert_array_equal(one.certified, two.certified)
    assert one.certified.any()
