"""The ACCE adversary is algorithm 2 of Emde et al. (2024): ADMM on assignments, confidences from the network."""

import numpy as np
import pytest
import torch
from torch import Tensor

from certcal.attacks import AcceAdversary, Ball, Target
from certcal.attacks._acce import Admm, begin_admm, inaccessible, reachable
from certcal.metrics import ece
from tests.attacks.conftest import Trained
from tests.attacks.small import SIGMA, batch, judged, small_target
from tests.worst_case import naive_admm

# Appendix E.2: three bins, and which of them the two samples cannot reach.
EDGES = torch.tensor([0, 1 / 3, 2 / 3, 1], dtype=torch.float64)
LOWER, UPPER = torch.tensor([0.1, 0.5], dtype=torch.float64), torch.tensor([0.6, 0.9], dtype=torch.float64)
CLEAN, CORRECT = torch.tensor([0.23, 0.78], dtype=torch.float64), torch.tensor([1.0, 0.0], dtype=torch.float64)
SETTINGS = AcceAdversary(1, bins=3, rho=0.5, rho_growth=1.1, assignment_rate=0.1)


def worked_example() -> Admm:
    return begin_admm(SETTINGS, CLEAN, CORRECT, inaccessible(LOWER, UPPER, EDGES))


def by_sample(tensor: Tensor) -> np.ndarray:
    """As printed: a vector, sample by sample."""
    return tensor[0].T.reshape(-1).numpy()


def test_inaccessible_bins_of_the_worked_example_are_the_printed_ones() -> None:
    assert inaccessible(LOWER, UPPER, EDGES).T.int().tolist() == [[0, 0, 1], [1, 0, 0]]


def test_one_update_on_the_worked_example_is_the_one_computed_by_hand() -> None:
    admm = worked_example()
    assert by_sample(admm.state.a).tolist() == [1 / 3] * 6
    admm.advance(CLEAN)
    # All bins have Σ a (c - z) = (0.77 - 0.78) / 3 < 0, so the gradient of a is 0.77 and -0.78, and ρ Kᵀa = 0.5 / 3
    # more in the blocked bins. a stays within 1.2 · |1/3 - 1/2| = 0.2 of 1/2: from 1/3 - 0.077 it comes back to 0.3.
    a = np.array([0.3, 0.3, 0.3, 1 / 3 + 0.078 - 0.05 / 3, 1 / 3 + 0.078, 1 / 3 + 0.078])
    np.testing.assert_allclose(by_sample(admm.state.a), a, atol=1e-12)
    np.testing.assert_allclose(by_sample(admm.state.q1), a, atol=1e-12)  # (28) with λ₁ = 0
    q2 = 0.5 + np.sqrt(6) / 2 * (a - 0.5) / np.sqrt(((a - 0.5) ** 2).sum())  # (29) with λ₂ = 0
    np.testing.assert_allclose(by_sample(admm.state.q2), q2, atol=1e-12)
    duals = [by_sample(each) for each in admm.state.dual]
    np.testing.assert_allclose(duals[0], 0, atol=1e-12)
    np.testing.assert_allclose(duals[1], 0.5 * (a - q2), atol=1e-12)
    np.testing.assert_allclose(duals[2], [0.5 * (0.9 - 1), 0.5 * (a[3:].sum() - 1)], atol=1e-12)
    np.testing.assert_allclose(duals[3], [0.5 * 0.3, 0.5 * a[3]], atol=1e-12)
    np.testing.assert_allclose(duals[4], 0, atol=1e-12)
    assert admm.state.rho.item() == pytest.approx(0.55)


def test_further_updates_follow_the_printed_program_with_the_confidences_that_come() -> None:
    admm = worked_example()
    program = naive_admm.printed(LOWER.tolist(), UPPER.tolist(), [1, 0], EDGES.tolist())
    state = naive_admm.start(program, CLEAN.tolist(), 0.5)
    random = np.random.default_rng(0)
    for _ in range(12):
        z = random.random(2)
        admm.advance(torch.tensor(z))
        reach = 1.2 * np.abs(state["q2"] - 0.5).max()
        state["z"] = state["g"] = np.repeat(z, 3)
        a = state["a"] - 0.1 * np.clip(naive_admm.gradient_of_a(program, state), -5, 5)
        state["a"] = np.clip(a, 0.5 - reach, 0.5 + reach)
        state["q1"] = np.clip(state["dual"][0] / state["rho"] + state["a"], 0, 1)
        ray = state["dual"][1] / state["rho"] + state["a"] - 0.5
        state["q2"] = 0.5 + np.sqrt(6) / 2 * ray / np.linalg.norm(ray)
        residuals = naive_admm.constraints(program, state)
        state["dual"] = [dual + state["rho"] * each for dual, each in zip(state["dual"], residuals, strict=True)]
        state["rho"] = min(1.1 * state["rho"], 10.0)
        for name in ("a", "q1", "q2"):
            np.testing.assert_allclose(by_sample(getattr(admm.state, name)), state[name], atol=1e-10, err_msg=name)
        for fast, slow in zip(admm.state.dual[:4], state["dual"], strict=False):
            np.testing.assert_allclose(by_sample(fast), slow, atol=1e-10)


def test_reach_is_the_standard_certificate_around_the_clean_confidence() -> None:
    low, high = reachable(torch.tensor([0.5, 0.975]), 0.5 / 0.25)
    np.testing.assert_allclose(low, [0.0227501319, 0.4840323], atol=1e-6)  # Φ(-2), Φ(1.959964 - 2)
    np.testing.assert_allclose(high, [0.9772498681, 0.9999625], atol=1e-6)
    low, high = reachable(torch.tensor([0.0, 1.0]), 1.0)
    ends = torch.cat((torch.zeros(2), low, high, torch.ones(2))).reshape(4, 2)
    assert (ends.diff(dim=0) > 0).all()


def by_hand(settings: AcceAdversary, epsilon: float, seed: int, late: bool) -> Tensor:
    """Algorithm 2, written out: inputs after all steps, moved by the assignment before (or after) its own update."""
    target, inputs, labels = small_target(seed)
    rows, chosen = torch.arange(len(labels)), target.log_probabilities(inputs).argmax(1)
    correct, x, admm = (chosen == labels).double(), inputs, None
    for _ in range(settings.steps):
        at = x.clone().requires_grad_(True)
        z = target.log_probabilities(at).exp()[rows, chosen]
        if admm is None:
            admm = begin_admm(settings, z.detach(), correct, torch.zeros(settings.bins, len(z), dtype=torch.bool))
        before = admm.state.a[0].clone()
        admm.advance(z.detach())
        a = admm.state.a[0] if late else before
        (slope,) = torch.autograd.grad((a @ (correct - z)).abs().sum(), at)
        change = x + 2 * epsilon / settings.steps * slope / slope.norm(dim=1, keepdim=True) - inputs
        x = inputs + change * (epsilon / change.norm(dim=1, keepdim=True)).clamp_max(1)
    return x


def test_inputs_move_by_the_assignment_of_the_step_before() -> None:
    settings, differ = AcceAdversary(4, bins=4, rho=0.3, assignment_rate=1.0), 0
    for seed in range(6):
        found = settings(*small_target(seed), Ball(0.3, box=None), keep="last").inputs
        torch.testing.assert_close(found, by_hand(settings, 0.3, seed, late=False), rtol=0, atol=1e-6)
        differ += not torch.allclose(found, by_hand(settings, 0.3, seed, late=True), atol=1e-3)
    assert differ > 1


def test_the_calibration_error_rises_on_a_trained_network(trained: Trained) -> None:
    for seed in range(3):
        target, inputs, labels = batch(trained, 256, seed)
        found = AcceAdversary(4, sigma=SIGMA)(target, inputs, labels, Ball(0.5))
        before, after, correct = judged(target, inputs, labels, found)
        assert ece(after, correct) > 1.5 * ece(before, correct)


def test_without_sigma_every_bin_is_accessible() -> None:
    target = Target(lambda x: x)
    inputs, labels = torch.tensor([[0.5, 0.25], [0.25, 0.75]]), torch.tensor([0, 0])
    loose = AcceAdversary(2, bins=4)(target, inputs, labels, Ball(0.1))
    wide = AcceAdversary(2, bins=4, sigma=1e-3)(target, inputs, labels, Ball(0.1))  # the certificate says nothing
    narrow = AcceAdversary(2, bins=4, sigma=10.0)(target, inputs, labels, Ball(0.1))
    assert torch.equal(loose.inputs, wide.inputs)
    errors = [found.calibration(inputs.log_softmax(1)) for found in (loose, wide, narrow) if found.calibration]
    assert errors[0] == errors[1] != errors[2]
