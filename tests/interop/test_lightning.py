"""Calibration after every epoch, with real trainers: what is logged are the metrics of all samples."""

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import certcal
from certcal import InputError, Predictions, metrics
from certcal.calibrators import TemperatureScaling
from tests.interop.networks_for_tests import QUIET, classifier, linear, loader, recorder, samples

# Lightning 2.6 on torch 2.13, and its advice on how many processes should load these few samples.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning"),
    pytest.mark.filterwarnings("ignore:.*does not have many workers:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*number of training batches:UserWarning"),
]

METRICS = ("ece", "smooth_ece", "nll")
DATA, OTHERS = samples(200), samples(70, seed=1)


@pytest.fixture(scope="module")
def library():
    import lightning.pytorch

    return lightning.pytorch


@pytest.fixture
def make(library):
    """A trainer with a callback of these options, and the callback's record."""

    def made(*more, epochs=1, **options):
        from certcal.interop.lightning import CalibrationCallback

        record = recorder(library)
        callbacks = [CalibrationCallback(**{"inputs": "logits", **options}), record, *more]
        return library.Trainer(max_epochs=epochs, callbacks=callbacks, **QUIET), record

    return made


def predictions(data, weights=None):
    layer = linear()
    if weights is not None:
        layer.load_state_dict(weights)
    with torch.no_grad():  # in the batches of the loader: products of other sizes round otherwise on some machines
        logits = torch.cat([layer(inputs) for inputs, _ in loader(data)])
    return Predictions.from_logits(logits.numpy(), data[1].numpy())


def ece(data, weights=None, **options):
    found = predictions(data, weights)
    return metrics.ece(found.confidence, found.correct, **options)


def at_best_temperature(found):
    """The temperature that fits predictions best, and their ECE at it."""
    fitted = TemperatureScaling().fit(found.logits, found.labels)
    scaled = Predictions.from_probabilities(fitted.predict_proba(found.logits), found.labels)
    return fitted.temperature_, metrics.ece(scaled.confidence, scaled.correct)


@pytest.mark.parametrize("name", ["lightning.pytorch", "pytorch_lightning"])
def test_each_epoch_is_measured_on_all_its_samples_and_the_sanity_check_is_not(name):
    from certcal.interop.lightning import CalibrationCallback

    library = importlib.import_module(name)
    record = recorder(library)
    callbacks = [CalibrationCallback(inputs="logits", metrics=("ece", "nll"), bins=10), record]
    library.Trainer(max_epochs=2, callbacks=callbacks, **QUIET).fit(classifier(library), loader(DATA), loader(OTHERS))
    assert record.sanity == [{}]
    assert [epoch for epoch, _, _ in record.seen] == [0, 1]
    for _, weights, values in record.seen:
        found = certcal.measure(predictions(OTHERS, weights), metrics=["ece", "nll"], bins=10)
        assert values == pytest.approx({f"val_{row.name}": row.value for row in found.rows}, rel=1e-12)
        assert values["val_ece"] == found.rows[0].value
    assert record.seen[0][2] != record.seen[1][2]


def test_every_metric_of_the_list_is_that_of_the_function(make, library):
    from certcal.interop.torchmetrics import BY_NAME

    trainer, _ = make(metrics=tuple(BY_NAME), classes=3, bins=8, closed="right")
    (values,) = trainer.validate(classifier(library), loader(DATA), verbose=False)
    found = predictions(DATA)
    z, c, p, y = found.confidence, found.correct, found.probabilities, found.labels
    binned = {"bins": 8, "closed": "right"}
    expected = {
        **{f"val_{name}": getattr(metrics, name)(z, c, **binned) for name in ("ece", "mce", "lp_ece", "debiased_ece")},
        **{f"val_{name}": getattr(metrics, name)(z, c) for name in ("smooth_ece", "kde_ece", "top_label_brier_score")},
        **{f"val_{name}": getattr(metrics, name)(p, y) for name in ("brier_score", "nll")},
        "val_classwise_ece": metrics.classwise_ece(p, y, **binned),
    }
    assert values == pytest.approx(expected, rel=1e-9)
    assert values["val_ece"] == expected["val_ece"]


def test_tests_have_their_own_names_and_each_loader_its_own_values(make, library):
    trainer, _ = make(metrics=("ece",), test_prefix="final/")
    found = trainer.test(classifier(library), [loader(DATA), loader(OTHERS)], verbose=False)
    together = {name: value for each in found for name, value in each.items()}
    assert together == {"final/ece/dataloader_idx_0": ece(DATA), "final/ece/dataloader_idx_1": ece(OTHERS)}


def test_other_epochs_are_left_alone(make, library):
    trainer, record = make(epochs=4, every_n_epochs=2, metrics=("ece",))
    trainer.fit(classifier(library), loader(DATA), loader(OTHERS))
    measured = {epoch: values.get("val_ece") == ece(OTHERS, weights) for epoch, weights, values in record.seen}
    assert measured == {0: False, 1: True, 2: False, 3: True}


def test_what_the_step_returns_may_have_any_form(make, library):
    expected = ece(DATA)
    named, _ = make(metrics=("ece",), keys=("logits", "label"))
    step = classifier(library, lambda logits, labels: {"logits": logits, "label": labels})
    assert named.validate(step, loader(DATA), verbose=False) == [{"val_ece": expected}]
    of_batch, _ = make(metrics=("ece",), predict=lambda module, batch, _: (module.layer(batch[0]), batch[1]))
    assert of_batch.validate(classifier(library, lambda *_: None), loader(DATA), verbose=False) == [
        {"val_ece": expected}
    ]
    probable, _ = make(metrics=("ece",), inputs="probabilities")
    step = classifier(library, lambda logits, labels: {"preds": logits.double().softmax(1), "target": labels})
    (values,) = probable.validate(step, loader(DATA), verbose=False)
    assert values["val_ece"] == pytest.approx(expected, rel=1e-6)


def test_the_temperature_is_the_one_that_fits_all_samples(make, library):
    trainer, _ = make(metrics=("ece",), temperature=True)
    (values,) = trainer.validate(classifier(library), loader(DATA), verbose=False)
    temperature, scaled = at_best_temperature(predictions(DATA))
    assert values == {"val_ece": ece(DATA), "val_temperature": temperature, "val_ece_scaled": scaled}
    assert temperature > 1  # the network was made too sure


def test_what_is_logged_can_stop_a_training(make, library):
    stopping = library.callbacks.EarlyStopping("val_ece", patience=1, mode="max")
    trainer, record = make(stopping, epochs=20)
    trainer.fit(classifier(library), loader(DATA), loader(OTHERS))
    values = [values["val_ece"] for _, _, values in record.seen]
    assert len(values) < 20
    assert values[-1] <= max(values[:-1])


@pytest.mark.parametrize(
    ("returns", "message"),
    [
        (
            lambda logits, _: logits.sum(),
            "validation_step returned no dictionary with 'preds' and 'target'; return one",
        ),
        (lambda logits, labels: {"preds": logits * torch.nan, "target": labels}, r"validation batch 0: logits\[0, 0\]"),
        (lambda logits, labels: {"preds": logits, "target": labels + 1}, r"validation batch 0: labels"),
    ],
)
def test_what_is_no_prediction_is_refused_in_one_sentence(make, library, returns, message):
    trainer, _ = make()
    with pytest.raises(InputError, match=message):
        trainer.validate(classifier(library, returns), loader(DATA), verbose=False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"inputs": "scores"}, "inputs is 'scores'"),
        ({"metrics": ()}, "metrics is empty; choose from ece"),
        ({"metrics": ("ecee",)}, "metrics is 'ecee'"),
        ({"metrics": ("classwise_ece",)}, "classwise_ece needs the number of classes"),
        ({"bins": 0}, "bins"),
        ({"every_n_epochs": 0}, "every_n_epochs is 0; pass 1 or more"),
        ({"inputs": "confidence", "temperature": True}, "a temperature needs logits or probabilities"),
    ],
)
def test_options_are_refused_before_the_training(make, options, message):
    with pytest.raises(InputError, match=message):
        make(**options)


def test_two_processes_with_unequal_shares_log_what_one_would(tmp_path):
    root = Path(__file__).parent.parent.parent
    code = (
        "import sys, pathlib; sys.path.insert(0, sys.argv[1])\n"
        "from tests.interop.networks_for_tests import validate_in_two_processes\n"
        "validate_in_two_processes(pathlib.Path(sys.argv[2]))"
    )
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1", "MASTER_ADDR": "127.0.0.1"}
    command = [sys.executable, "-c", code, str(root), str(tmp_path)]
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            errors = process.communicate(timeout=300)[1]
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, errors
    first, second = (json.loads((tmp_path / f"rank{rank}.json").read_text()) for rank in (0, 1))
    assert first == second
    found = predictions(DATA)
    expected = certcal.measure(found, metrics=METRICS)
    assert {f"val_{row.name}": row.value for row in expected.rows} == pytest.approx(
        {name: value for name, value in first.items() if name.removeprefix("val_") in METRICS}, rel=1e-9
    )
    assert first["val_ece"] == ece(DATA)
    temperature, scaled = at_best_temperature(found)
    assert (first["val_temperature"], first["val_ece_scaled"]) == (temperature, scaled)


@pytest.mark.parametrize("missing", [("torch",), ("lightning", "pytorch_lightning")])
def test_without_the_library_the_import_says_what_to_install(monkeypatch, missing):
    for name in missing:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "certcal.interop.lightning", raising=False)
    with pytest.raises(ImportError, match=r"needs torch and lightning; .* pip install 'certcal\[lightning\]'"):
        importlib.import_module("certcal.interop.lightning")
