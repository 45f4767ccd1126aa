from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from certcal import InputError
from certcal.attacks import Ball, Target
from certcal.attacks._ace import shortened
from certcal.attacks.ball import Norm
from certcal.metrics import top_label_brier_score
from tests.attacks.conftest import Trained
from tests.attacks.naive import one_shortened
from tests.attacks.running import ace, one_step_ace
from tests.attacks.test_ace import labels_of, random_network


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_random_steps_keep_to_norm_box_and_label(norm: Norm) -> None:
    rng = np.random.default_rng(7)
    for _ in range(10):
        features, classes = int(rng.integers(1, 9)), int(rng.integers(2, 6))
        network = random_network(rng, features, classes, float(rng.choice([1.0, 30.0])))
        inputs, labels = rng.random((100, features), np.float32), rng.integers(0, classes, 100)
        epsilon = float(rng.choice([0.01, 0.2, 0.9]))
        found = one_step_ace(network, inputs, labels, epsilon=epsilon, norm=norm)
        change = found.inputs.astype(np.float64) - inputs
        assert ((np.abs(change).max(1) if norm == "linf" else np.linalg.norm(change, axis=1)) <= epsilon).all()
        assert found.inputs.min() >= 0
        assert found.inputs.max() <= 1
        assert np.array_equal(labels_of(network, found.inputs), labels_of(network, inputs))
        right = found.predictions.correct == 1
        rise = found.predictions.confidence.astype(np.float64) - found.clean_predictions.confidence
        assert rise[right].max(initial=0) <= 1e-6
        assert rise[~right].min(initial=0) >= -1e-6


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_one_step_agrees_with_its_naive_twin(norm: Norm) -> None:
    rng = np.random.default_rng(3)
    network = random_network(rng, 5, 4, 5.0).double()
    clean = torch.tensor(rng.random((30, 5)))
    kept, right = network(clean).argmax(1), torch.tensor(rng.random(30) < 0.7)
    signs = torch.where(right, 1.0, -1.0).double()
    found = shortened(Target(network), clean, kept, signs, Ball(0.4, norm), 0.5, 15)
    twin = [one_shortened(network, clean[i], int(kept[i]), bool(right[i]), 0.4, norm, (0.0, 1.0)) for i in range(30)]
    assert torch.allclose(found, torch.stack(twin), atol=1e-9)
    full = found - clean
    size = full.abs().amax(1) if norm == "linf" else full.norm(dim=1)
    assert (size < 0.19).any()  # some had to be shortened


def test_it_raises_the_brier_score_and_many_steps_raise_the_objective_more(trained: Trained) -> None:
    inputs, labels = trained.inputs[:300], trained.labels[:300]
    one = one_step_ace(trained.network, inputs, labels, epsilon=0.1)
    many = ace(trained.network, inputs, labels, epsilon=0.1, steps=30)

    def brier(predictions: Any) -> float:
        return top_label_brier_score(predictions.confidence, predictions.correct)

    assert one.accuracy == one.clean_accuracy
    assert brier(one.predictions) > 2 * brier(one.clean_predictions)
    right = one.predictions.correct == 1
    assert many.predictions.confidence[right].mean() < one.predictions.confidence[right].mean()


def test_a_sample_for_which_no_length_keeps_the_label_stays(trained: Trained) -> None:
    inputs, labels = trained.inputs[:100], trained.labels[:100]
    once = one_step_ace(trained.network, inputs, labels, epsilon=0.3, attempts=1)
    often = one_step_ace(trained.network, inputs, labels, epsilon=0.3)
    assert once.moved < often.moved == 100
    assert once.changed == often.changed == 0


@pytest.mark.parametrize(
    ("options", "complaint"), [({"decay": 1.0}, "decay is 1.0"), ({"attempts": 0}, "attempts is 0")]
)
def test_bad_input_is_one_sentence(trained: Trained, options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        one_step_ace(trained.network, trained.inputs[:3], trained.labels[:3], epsilon=0.1, **options)
