"""Adversaries of a batch: each climbs its own measure, and keeps to ball and box."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from certcal import InputError
from certcal.attacks import (
    AcceAdversary,
    Ball,
    BrierAdversary,
    EceAdversary,
    ExactAdversary,
    SignAdversary,
    SmoothAdv,
    Target,
)
from certcal.attacks.confidence import bin_edges, calibration_error
from certcal.metrics import ece
from certcal.worst_case import calibration_error as worst_case
from tests.attacks.conftest import Trained
from tests.attacks.small import SIGMA, batch, differences, judged, small_target

CALIBRATION = AcceAdversary(3, sigma=SIGMA), EceAdversary(3), ExactAdversary(3), SignAdversary(3)
EVERY = (SmoothAdv(3), BrierAdversary(3), *CALIBRATION)


def name_of(adversary: Any) -> str:
    return type(adversary).__name__


def cross_entropy(target: Target, inputs: Tensor, labels: Tensor) -> Tensor:
    """-log of the mean probability, written out."""
    assert target.noise is not None
    mean = torch.stack([target.network(inputs + each).softmax(1) for each in target.noise]).mean(0)
    return -mean[torch.arange(len(labels)), labels].log()


Measure = Callable[[Tensor, Tensor], Tensor]


def relaxed(z: Tensor, correct: Tensor) -> Tensor:
    """The relaxed calibration error at the start, a = 1/M in M bins."""
    return sum((((correct - z) / 4).sum().abs() for _ in range(4)), torch.zeros(()))


# What each climbs, from the confidences in the clean predictions and whether these are right.
MEASURES: dict[Any, Measure | None] = {
    SmoothAdv(1, scale=0.5): None,
    BrierAdversary(1, scale=0.5): lambda z, correct: (correct - z).square().sum(),
    AcceAdversary(1, scale=0.5, bins=4): relaxed,
    SignAdversary(1, scale=0.5): relaxed,
    EceAdversary(1, scale=0.5, bins=4): lambda z, correct: calibration_error(z, correct, bin_edges(4, z)),
}


@pytest.mark.parametrize("adversary", MEASURES, ids=name_of)
def test_a_step_follows_the_finite_differences_of_what_is_climbed(adversary: Any) -> None:
    target, inputs, labels = small_target(1)
    rows, chosen = torch.arange(len(labels)), target.log_probabilities(inputs).argmax(1)
    correct, measure = (chosen == labels).double(), MEASURES[adversary]
    assert 0 < correct.sum() < len(labels)

    def value(x: Tensor) -> Tensor:
        if measure is None:
            return cross_entropy(target, x, labels).sum()
        return measure(target.log_probabilities(x).exp()[rows, chosen], correct)

    found = adversary(target, inputs, labels, Ball(1e-2, box=None), keep="last")
    slope = differences(value, inputs)
    expected = 1e-2 * slope / slope.norm(dim=1, keepdim=True)
    torch.testing.assert_close(found.inputs - inputs, expected, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize(
    ("adversary", "seed"),
    [
        (AcceAdversary(3, bins=5, sigma=0.3), 2),
        (ExactAdversary(3, bins=5), 5),
        (EceAdversary(3, bins=5), 5),
        (SignAdversary(3), 2),
    ],
    ids=["acce", "exact", "ece", "sign"],
)
def test_its_calibration_error_has_the_gradient_of_finite_differences(adversary: Any, seed: int) -> None:
    target, inputs, labels = small_target(seed)
    found = adversary(target, inputs, labels, Ball(0.2, box=None))
    at = target.log_probabilities(found.inputs).requires_grad_(True)
    (slope,) = torch.autograd.grad(found.calibration(at), at)
    torch.testing.assert_close(slope, differences(found.calibration, at.detach()), rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("adversary", EVERY, ids=name_of)
@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_what_every_adversary_finds_is_in_ball_and_box_exactly(trained: Trained, adversary: Any, norm: Any) -> None:
    target, inputs, labels = batch(trained, 200, 7)
    for epsilon in (0.0, 0.03, 0.7):
        ball = Ball(epsilon, norm)
        for keep in ("best", "last"):
            found = adversary(target, inputs, labels, ball, keep=keep).inputs
            assert not found.requires_grad
            assert (ball.lengths(inputs, found) <= epsilon).all()
            assert ((found >= 0) & (found <= 1)).all()


@pytest.mark.parametrize("adversary", EVERY, ids=name_of)
def test_every_adversary_finds_the_same_twice_and_leaves_its_arguments_alone(trained: Trained, adversary: Any) -> None:
    target, inputs, labels = batch(trained, 100, 8)
    copies = inputs.clone(), labels.clone()
    first, second = (adversary(target, inputs, labels, Ball(0.4)).inputs for _ in range(2))
    assert torch.equal(first, second)
    assert torch.equal(inputs, copies[0])
    assert torch.equal(labels, copies[1])


@pytest.mark.parametrize("adversary", EVERY, ids=name_of)
def test_outputs_that_are_not_numbers_leave_the_inputs_where_they_are(adversary: Any) -> None:
    inputs, labels = torch.rand(4, 3), torch.tensor([0, 1, 2, 0])
    found = adversary(Target(lambda x: x * float("nan")), inputs, labels, Ball(0.5), keep="last")
    assert torch.equal(found.inputs, inputs)


@pytest.mark.parametrize("adversary", [AcceAdversary(1, 2.0, sigma=SIGMA), ExactAdversary(1, 2.0)], ids=name_of)
def test_the_best_point_is_never_below_the_clean_one(trained: Trained, adversary: Any) -> None:
    for seed in range(30):  # a few samples and one long step: the last point is often worse than the clean one
        target, inputs, labels = batch(trained, 5, seed)
        found = adversary(target, inputs, labels, Ball(0.6))
        before, after, correct = judged(target, inputs, labels, found)
        assert ece(after, correct) >= ece(before, correct) - 1e-6


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize(
    ("adversary", "least"), [(BrierAdversary(4), 1.0), (EceAdversary(4), 1.3)], ids=["brier", "ece"]
)
def test_the_calibration_error_of_a_trained_model_rises(
    trained: Trained, adversary: Any, least: float, norm: Any
) -> None:
    target, inputs, labels = batch(trained, 300, seed=1)
    found = adversary(target, inputs, labels, Ball(0.5 if norm == "l2" else 0.06, norm))
    before, after, correct = judged(target, inputs, labels, found)
    assert ece(after, correct) > least * ece(before, correct)
    if isinstance(adversary, BrierAdversary):
        assert ((correct - after) ** 2 >= (correct - before) ** 2 - 1e-7).all()
        assert ((correct - after) ** 2).mean() > 2 * ((correct - before) ** 2).mean()


def test_smoothadv_raises_the_loss_of_every_sample_and_its_steps_are_twice_the_radius_in_all(trained: Trained) -> None:
    target, inputs, labels = batch(trained, 200, seed=0)
    found = SmoothAdv(4)(target, inputs, labels, Ball(0.5))
    before, after = cross_entropy(target, inputs, labels), cross_entropy(target, found.inputs, labels)
    assert (after >= before).all()
    assert after.mean() > 2 * before.mean()
    assert found.calibration is None
    one = SmoothAdv(4, scale=0.25)(target, inputs, labels, Ball(0.5, box=None), keep="last")
    assert Ball(0.5).lengths(inputs, one.inputs).max() <= 0.25 + 1e-6  # four steps of 2 · 0.25 · 0.5 / 4


def test_a_confidence_of_exactly_one_is_lowered_all_the_same() -> None:
    target = Target(lambda x: 20 * torch.cat((x, -x), 1))
    inputs, labels = torch.tensor([[0.5]]), torch.tensor([0])
    assert target.log_probabilities(inputs).exp()[0, 0] == 1
    found = BrierAdversary(1)(target, inputs, labels, Ball(0.4), keep="last")
    assert found.inputs.item() == pytest.approx(0.1, abs=1e-6)


def test_the_signs_at_hand_are_those_of_the_exact_program_for_samples_that_cannot_move() -> None:
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


@pytest.mark.parametrize("adversary", EVERY, ids=name_of)
@pytest.mark.parametrize(
    ("name", "value"), [("steps", 0), ("steps", 1.5), ("steps", "two"), ("scale", 0.0), ("scale", float("nan"))]
)
def test_steps_and_scale_are_checked(adversary: Any, name: str, value: Any) -> None:
    with pytest.raises(InputError, match=rf"{name} is .*; pass a "):
        replace(adversary, **{name: value})


@pytest.mark.parametrize("name", ["rho", "rho_growth", "assignment_rate", "sigma", "bins"])
def test_settings_that_make_no_sense_are_refused(name: str) -> None:
    for adversary in (AcceAdversary(2), *((ExactAdversary(2), EceAdversary(2)) if name == "bins" else ())):
        with pytest.raises(InputError, match=f"{name} is"):
            replace(adversary, **{name: 0})


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("keep", ["best", "last"])
def test_acce_in_one_step_moves_all_confidences_one_way(trained: Trained, norm: Any, keep: Any) -> None:
    for seed in range(5):
        target, inputs, labels = batch(trained, 60, seed)
        ball = Ball(0.4 if norm == "l2" else 0.05, norm)
        acce, sign = (each(target, inputs, labels, ball, keep) for each in (AcceAdversary(1), SignAdversary(1)))
        torch.testing.assert_close(acce.inputs, sign.inputs, rtol=0, atol=1e-6)


@pytest.mark.parametrize("steps", [2, 10])
def test_acce_with_a_small_rate_of_its_assignments_still_does(trained: Trained, steps: int) -> None:
    target, inputs, labels = batch(trained, 60, 3)
    sign = SignAdversary(steps)(target, inputs, labels, Ball(0.4), keep="last").inputs
    slow = AcceAdversary(steps, assignment_rate=1e-4)(target, inputs, labels, Ball(0.4), keep="last").inputs
    torch.testing.assert_close(slow, sign, rtol=0, atol=1e-6)
    usual = AcceAdversary(steps, assignment_rate=1.0)(target, inputs, labels, Ball(0.4), keep="last").inputs
    assert (usual - sign).abs().max() > 0.01


def test_all_confidences_go_away_from_the_accuracy_of_the_batch(trained: Trained) -> None:
    target, inputs, labels = batch(trained, 200, 4)
    for truth in (labels, torch.zeros_like(labels)):  # right more often than sure, and hardly ever right
        found = SignAdversary(1, 0.05)(target, inputs, truth, Ball(0.4), keep="last")
        before, after, correct = judged(target, inputs, truth, found)
        way = np.sign(correct.mean() - before.mean())
        assert (way * (before - after) > -1e-6).mean() > 0.95
        assert way * (correct.mean() - after.mean()) > way * (correct.mean() - before.mean())
