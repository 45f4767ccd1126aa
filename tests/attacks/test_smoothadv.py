"""SmoothAdv raises the cross entropy of the average over the noise."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from certcal import InputError
from certcal.attacks import Ball, SmoothAdv, Target
from tests.attacks.conftest import Trained
from tests.attacks.small import batch, differences, small_target


def cross_entropy(target: Target, inputs: Tensor, labels: Tensor) -> Tensor:
    """-log of the mean probability, written out."""
    assert target.noise is not None
    mean = torch.stack([target.network(inputs + each).softmax(1) for each in target.noise]).mean(0)
    return -mean[torch.arange(len(labels)), labels].log()


def test_a_step_follows_the_finite_differences_of_the_loss_of_the_average() -> None:
    target, inputs, labels = small_target(0)
    found = SmoothAdv(1, scale=0.5)(target, inputs, labels, Ball(1e-2, box=None), keep="last")
    slope = differences(lambda x: cross_entropy(target, x, labels).sum(), inputs)
    expected = 1e-2 * slope / slope.norm(dim=1, keepdim=True)
    torch.testing.assert_close(found.inputs - inputs, expected, rtol=1e-5, atol=1e-8)


def test_the_loss_of_every_sample_rises_and_its_steps_are_twice_the_radius_in_all(trained: Trained) -> None:
    target, inputs, labels = batch(trained, 200, seed=0)
    found = SmoothAdv(4)(target, inputs, labels, Ball(0.5))
    before, after = cross_entropy(target, inputs, labels), cross_entropy(target, found.inputs, labels)
    assert (after >= before).all()
    assert after.mean() > 2 * before.mean()
    assert found.calibration is None
    one = SmoothAdv(4, scale=0.25)(target, inputs, labels, Ball(0.5, box=None), keep="last")
    assert Ball(0.5).lengths(inputs, one.inputs).max() <= 0.25 + 1e-6  # four steps of 2 · 0.25 · 0.5 / 4


@pytest.mark.parametrize(("steps", "scale"), [(0, 1.0), (1.5, 1.0), ("two", 1.0), (4, 0.0), (4, float("nan"))])
def test_steps_and_scale_are_checked(steps: int, scale: float) -> None:
    with pytest.raises(InputError, match=r"(steps|scale) is .*; pass a "):
        SmoothAdv(steps, scale)
