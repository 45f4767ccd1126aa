"""The Brier adversary drives confidences away from what is true."""

from __future__ import annotations

import pytest
import torch

from certcal.attacks import Ball, BrierAdversary, Target
from certcal.metrics import ece
from tests.attacks.conftest import Trained
from tests.attacks.small import batch, differences, judged, small_target


def test_a_step_follows_the_finite_differences_of_the_top_label_brier_score() -> None:
    target, inputs, labels = small_target(1)
    rows = torch.arange(len(labels))
    chosen = target.log_probabilities(inputs).argmax(1)
    correct = (chosen == labels).double()
    assert 0 < correct.sum() < len(labels)
    found = BrierAdversary(1, scale=0.5)(target, inputs, labels, Ball(1e-2, box=None), keep="last")
    slope = differences(lambda x: (correct - target.log_probabilities(x).exp()[rows, chosen]).square().sum(), inputs)
    expected = 1e-2 * slope / slope.norm(dim=1, keepdim=True)
    torch.testing.assert_close(found.inputs - inputs, expected, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_every_score_rises_and_with_them_the_calibration_error(trained: Trained, norm: str) -> None:
    target, inputs, labels = batch(trained, 300, seed=1)
    ball = Ball(0.5 if norm == "l2" else 0.06, norm)  # pyright: ignore[reportArgumentType]
    found = BrierAdversary(4)(target, inputs, labels, ball)
    before, after, correct = judged(target, inputs, labels, found)
    assert ((correct - after) ** 2 >= (correct - before) ** 2 - 1e-7).all()
    assert ((correct - after) ** 2).mean() > 2 * ((correct - before) ** 2).mean()
    assert ece(after, correct) > ece(before, correct)


def test_a_confidence_of_exactly_one_is_lowered_all_the_same() -> None:
    target = Target(lambda x: 20 * torch.cat((x, -x), 1))
    inputs, labels = torch.tensor([[0.5]]), torch.tensor([0])
    assert target.log_probabilities(inputs).exp()[0, 0] == 1
    found = BrierAdversary(1)(target, inputs, labels, Ball(0.4), keep="last")
    assert found.inputs.item() == pytest.approx(0.1, abs=1e-6)
