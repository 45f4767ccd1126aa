"""``certcal.train``: one call, one result, with its log, its claims and its charts."""

import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import certcal
from certcal import InputError
from certcal._base.progress import SILENT
from certcal._base.waiting import APART_SECONDS, Waiting
from certcal.data import Inputs, Parts, Rows, read_split
from certcal.lab.train import _count_classes, _LoopProgress, samples_kept
from certcal.lab.training import recipe
from certcal.lab.training import train as run
from certcal.models.networks import MLP, by_name
from certcal.verbs.model_and_data import open_parts

QUICK: dict[str, Any] = {"epochs": 2, "batch": 100, "limit": 200}


ASKED = {"test": None, "limit": None, "resize": None, "crop": None, "progress": SILENT}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> certcal.Training:
    out = tmp_path_factory.mktemp("training") / "out"
    return certcal.train("mlp", "digits", "gaussian", sigma=0.25, out=out, **QUICK)


def test_the_verb_is_the_loop_with_the_published_recipe(found: certcal.Training) -> None:
    split = read_split("digits")
    made = recipe("gaussian", fine_tune=False, sigma=0.25, epochs=2, batch=100, box=None)
    assert found.recipe == made
    same = run(by_name("mlp", (1, 8, 8), 10), split.train.subset(limit=200), made, test=split.test)
    for one, two in zip(found.log, same.history, strict=True):
        assert {**one, "seconds": 0} == {**two, "seconds": 0}
    assert (found.samples, found.tested) == (200, 899)


def test_claims_are_those_of_the_test_data_after_the_last_epoch(found: certcal.Training) -> None:
    last = found.log[-1]
    names = ("test_accuracy", "test_ece", "test_noisy_accuracy", "test_noisy_ece")
    assert [claim.value for claim in found.claims()] == [last[name] for name in names]
    assert {claim.n for claim in found.claims()} == {899}
    assert [claim.settings.get("sigma") for claim in found.claims()] == [None, None, 0.25, 0.25]
    assert f"accuracy {last['test_accuracy']:.4f}" in repr(found)


def test_without_test_data_the_claim_is_about_what_was_trained_on() -> None:
    data = [[0.0, 1.0], [1.0, 0.0]] * 8, [1, 0] * 8
    made = certcal.train(MLP(2, (8,), classes=2), data, recipe("standard", epochs=3, batch=8))
    (claim,) = made.claims()
    assert (claim.value, claim.settings["on"], made.tested) == (made.log[-1]["accuracy"], "training inputs", None)
    assert (made.file, made.to_dict()["folder"], made.source) == (None, None, "MLP trained on data by standard")
    with pytest.raises(InputError, match="not written anywhere"):
        made.export_events("events")


def test_json_table_and_report_hold_the_log(found: certcal.Training) -> None:
    document = json.loads(found.to_json())
    assert document["history"] == list(found.log)
    assert document["recipe"] == found.recipe.to_dict()
    table = found.to_arrow()
    assert table["test_ece"].to_pylist() == [line["test_ece"] for line in found.log]
    report = found.report()
    charts = {chart.title: chart for chart in report.charts()}
    assert set(charts) >= {"Loss", "Accuracy", "Calibration error"}
    text = report.to_text(full=True)
    for name in ("loss", "accuracy", "test_accuracy", "test_ece", "test_noisy_ece"):
        assert all(f"{line[name]:.4f}" in text for line in found.log)
    assert str(found.file) in text
    assert len(found.plot().axes) == 3


def test_a_recipe_is_taken_as_it_is() -> None:
    with pytest.raises(InputError, match="a recipe and changes are given"):
        certcal.train("mlp", "digits", recipe("standard"), sigma=0.5)


def test_test_data_can_be_given_and_names_make_classes() -> None:
    data = Inputs.from_arrays(np.zeros((4, 2)), [0, 1, 2, 0], ("a", "b", "c"))
    parts, name = open_parts(data, {**ASKED, "test": (np.ones((3, 2)), [0, 1, 1]), "limit": 2})
    assert (len(parts.train), len(parts.test), name) == (2, 3, "data")
    assert _count_classes(parts) == 3
    assert _count_classes(Parts("x", "x", Inputs.from_arrays(np.zeros((2, 2)), [0, 4]), None)) == 5


def test_small_data_are_brought_into_memory_and_large_ones_stay_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.save(tmp_path / "inputs.npy", np.zeros((4, 2), np.float32))
    np.save(tmp_path / "labels.npy", np.array([0, 1, 2, 0]))
    data = np.load(tmp_path / "inputs.npy", mmap_mode="r"), [0, 1, 2, 0]
    for bytes_held, kind in ((32, np.ndarray), (31, Rows)):
        monkeypatch.setattr("certcal.verbs.model_and_data.MOST_IN_MEMORY", bytes_held)
        parts, _ = open_parts(data, {**ASKED, "test": data})
        assert parts.test is not None
        assert isinstance(parts.train.inputs, kind)
        assert isinstance(parts.test.inputs, kind)
        assert isinstance(open_parts(tmp_path, ASKED)[0].train.inputs, kind)


def test_many_lost_classes_are_counted() -> None:
    last = {"kept": 0.25, "largest_weight": 1.0, "lost_classes": list(range(12))}
    assert samples_kept(last) == {
        "kept": "25.0% of the training samples; 75.0% discarded",
        "lost": "every sample of classes 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more",
    }
    assert samples_kept({"kept": 1.0, "largest_weight": 2.5}) == {
        "kept": "100.0% of the training samples, drawn with weights up to 2.5; 0.0% discarded"
    }


def test_a_log_says_now_and_then_where_training_is() -> None:
    class Clock:
        now = 0.0

        def __call__(self) -> float:
            return self.now

    stream, clock = io.StringIO(), Clock()
    with Waiting(stream, clock=clock) as waiting:
        told: Any = _LoopProgress(waiting, 1000)
        for batch in range(1, 11):
            clock.now += APART_SECONDS
            told(SimpleNamespace(epoch=1, epochs=2, share=0.5 + batch / 20, loss=0.5, accuracy=0.75))
    lines = stream.getvalue().splitlines()
    assert lines[0] == "epoch 2/2, loss 0.500, accuracy 75%: 1,200 of 2,000 images, about 4 min left"
    assert [line.partition(": ")[2].split()[0] for line in lines] == ["1,200", "1,400", "1,600", "1,800"]
