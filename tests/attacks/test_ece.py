"""The adversary of the calibration error at hand climbs along its gradient."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from certcal.attacks import Ball, EceAdversary, Target
from certcal.attacks.confidence import bin_edges, calibration_error
from certcal.metrics import ece
from certcal.worst_case import calibration_error as worst_case
from tests.attacks.conftest import Trained
from tests.attacks.small import batch, differences, judged, small_target


def test_a_step_follows_the_finite_differences_of_the_calibration_error() -> None:
    target, inputs, labels = small_target(1)
    rows = torch.arange(len(labels))
    chosen = target.log_probabilities(inputs).argmax(1)
    correct = (chosen == labels).double()
    assert 0 < correct.sum() < len(labels)

    def error(x: torch.Tensor) -> torch.Tensor:
        z = target.log_probabilities(x).exp()[rows, chosen]
        return calibration_error(z, correct, bin_edges(4, z))

    found = EceAdversary(1, scale=0.5, bins=4)(target, inputs, labels, Ball(1e-2, box=None), keep="last")
    slope = differences(error, inputs)
    expected = 1e-2 * slope / slope.norm(dim=1, keepdim=True)
    torch.testing.assert_close(found.inputs - inputs, expected, rtol=1e-5, atol=1e-8)


def test_its_signs_are_those_of_the_exact_program_for_samples_that_cannot_move() -> None:
    z = torch.tensor([0.35, 0.55, 0.62, 0.71, 0.95, 0.97])
    correct = [1, 0, 1, 1, 1, 0]
    # Two classes and log odds equal to the input, so that the confidence of the predicted class is that of z.
    target = Target(lambda x: torch.cat((x, torch.zeros_like(x)), 1))
    inputs = torch.logit(torch.maximum(z, 1 - z)).unsqueeze(1)
    labels = torch.tensor([0 if right else 1 for right in correct])
    found = EceAdversary(1, bins=5)(target, inputs, labels, Ball(1e-3, box=None), keep="last")
    confidence = torch.maximum(z, 1 - z).numpy()
    exact = worst_case(confidence, confidence, correct, 5)
    assert exact.signs is not None
    bins = np.minimum((confidence * 5).astype(int), 4)
    moved = np.sign((found.inputs - inputs).squeeze(1).numpy())
    np.testing.assert_array_equal(moved, -exact.signs[bins])
    assert len(set(moved)) == 2
    assert found.calibration is not None
    assert float(found.calibration(target.log_probabilities(inputs))) == pytest.approx(exact.value, abs=1e-6)


def test_wrong_predictions_of_a_bin_that_is_not_sure_enough_lose_confidence_too() -> None:
    target = Target(lambda x: torch.cat((x, torch.zeros_like(x)), 1))
    inputs, labels = torch.full((5, 1), 0.5), torch.tensor([0, 0, 0, 0, 1])
    found = EceAdversary(2, bins=1)(target, inputs, labels, Ball(0.25))
    assert (found.inputs == 0.25).all()


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_the_calibration_error_of_a_trained_model_rises(trained: Trained, norm: str) -> None:
    target, inputs, labels = batch(trained, 300, seed=1)
    ball = Ball(0.5 if norm == "l2" else 0.06, norm)  # pyright: ignore[reportArgumentType]
    found = EceAdversary(4)(target, inputs, labels, ball)
    before, after, correct = judged(target, inputs, labels, found)
    assert ece(after, correct) > 1.3 * ece(before, correct)
