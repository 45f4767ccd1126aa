import math

import numpy as np
import pytest
import torch
from torch import Tensor

from certcal import InputError
from certcal.attacks import Ball
from certcal.attacks.ball import Norm

BOXES = [None, (0.0, 1.0), (0.1, 0.7), (-1e-3, 2.5e4)]


def cases(seed: int, n: int, dimension: int, box: tuple[float, float] | None) -> tuple[Tensor, Tensor]:
    """Clean inputs inside the box, some on its sides, and points anywhere, of very different sizes."""
    rng = np.random.default_rng(seed)
    low, high = (-2.0, 3.0) if box is None else box
    clean = rng.uniform(low, high, (n, dimension))
    clean[rng.random(clean.shape) < 0.1] = low
    clean[rng.random(clean.shape) < 0.1] = high
    rounded = clean.astype(np.float32)
    # Rounding may have gone out of the box.
    wide = rounded.astype(np.float64)
    rounded = np.where(wide < low, np.nextafter(rounded, np.float32(high)), rounded)
    rounded = np.where(wide > high, np.nextafter(rounded, np.float32(low)), rounded)
    sizes = 10.0 ** rng.uniform(-9, 3, (n, 1))
    moved = (rounded + sizes * rng.standard_normal(clean.shape)).astype(np.float32)
    return torch.tensor(rounded), torch.tensor(moved)


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("box", BOXES)
@pytest.mark.parametrize("epsilon", [0.0, 1e-12, 3e-8, 8 / 255, 0.1, 0.5, 7.3])
def test_sealed_inputs_are_in_ball_and_box_without_any_tolerance(
    norm: Norm, box: tuple[float, float] | None, epsilon: float
) -> None:
    for dimension in (1, 7, 100):
        clean, moved = cases(dimension, 300, dimension, box)
        sealed = Ball(epsilon, norm, box).seal(clean, moved)
        assert sealed.dtype == torch.float32
        found, start = sealed.numpy().astype(np.float64), clean.numpy().astype(np.float64)
        if box is not None:
            assert found.min() >= box[0]
            assert found.max() <= box[1]
        change = found - start
        if norm == "linf":
            assert np.abs(change).max() <= epsilon
            continue
        assert (np.sqrt((change**2).sum(axis=1)) <= epsilon).all()
        assert (np.linalg.norm(change[:, ::-1], axis=1) <= epsilon).all()
        assert all(math.sqrt(math.fsum(each * each for each in row)) <= epsilon for row in change)


def test_the_order_in_which_squares_are_added_does_not_matter() -> None:
    """Distances are set to what torch measures: other ways to add may round up from there."""
    rng = np.random.default_rng(0)
    for dimension in (2, 3, 10, 40) * 100:
        moved = torch.tensor(rng.standard_normal((1, dimension)), dtype=torch.float32)
        clean = torch.zeros_like(moved)
        epsilon = Ball(1.0, box=None).lengths(clean, moved).item()
        sealed = Ball(epsilon, box=None).seal(clean, moved)[0].double().tolist()
        assert math.sqrt(math.fsum(each * each for each in sealed)) <= epsilon
        assert math.hypot(*sealed) <= epsilon


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_sealing_gives_away_next_to_nothing(norm: Norm) -> None:
    clean, moved = cases(3, 2000, 50, (0.0, 1.0))
    ball = Ball(0.25, norm)
    sealed, projected = ball.seal(clean, moved), ball.project(clean, moved)
    assert (sealed - projected).abs().max() < 1e-6
    inside = ball.lengths(clean, moved.clamp(0, 1)) < 0.2499
    assert inside.any()
    assert torch.equal(sealed[inside], moved.clamp(0, 1)[inside])
    if norm == "l2":
        far = ball.lengths(clean, moved.clamp(0, 1)) > 0.26
        assert ball.lengths(clean, sealed)[far].min() > 0.25 * (1 - 1e-5)


def test_a_point_exactly_at_the_distance_stays() -> None:
    clean, moved = torch.tensor([[0.5, 0.75]]), torch.tensor([[0.25, 0.75]])
    assert torch.equal(Ball(0.25).seal(clean, moved), moved)


def test_projecting_goes_straight_to_the_clean_input_in_l2_and_by_coordinates_in_linf() -> None:
    clean, moved = torch.zeros(1, 2), torch.tensor([[3.0, -4.0]])
    assert torch.allclose(Ball(1.0, "l2", None).project(clean, moved), torch.tensor([[0.6, -0.8]]))
    assert torch.equal(Ball(1.0, "linf", None).project(clean, moved), torch.tensor([[1.0, -1.0]]))
    assert torch.equal(Ball(1.0, "linf", (-0.5, 0.5)).project(clean, moved), torch.tensor([[0.5, -0.5]]))


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("box", [None, (0.0, 1.0)])
@pytest.mark.parametrize("epsilon", [0.0, 1e-46, 0.25, 1e18])
def test_points_that_are_not_finite_are_sealed_too(norm: Norm, box: tuple[float, float] | None, epsilon: float) -> None:
    inf, ball = math.inf, Ball(epsilon, norm, box)
    clean = torch.tensor([[0.5, 0.25]] * 5 + [[1e-40, 1.0]])
    moved = torch.tensor([[inf, 0.3], [math.nan, 0.3], [-inf, inf], [math.nan] * 2, [3e38, -3e38], [3e-40, 2.0]])
    sealed = ball.seal(clean, moved)
    assert (ball.lengths(clean, sealed) <= epsilon).all()
    assert (ball.lengths(clean, sealed) >= 0).all()  # numbers
    assert torch.equal(sealed[3], clean[3])
    assert box is None or ((sealed >= 0) & (sealed <= 1)).all()


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("size", [1e-40, 1e-20, 1.0, 1e30])
def test_a_step_has_its_length_however_small_or_large_the_gradient(norm: Norm, size: float) -> None:
    gradient = size * torch.tensor([[1.0, -2.0, 2.0], [0.0, 0.0, 3.0]])
    step = Ball(1.0, norm).step(gradient, torch.tensor([0.5, 0.125]))
    expected = (
        torch.tensor([[0.5, -0.5, 0.5], [0, 0, 0.125]])
        if norm == "linf"
        else torch.tensor([[0.5 / 3, -1 / 3, 1 / 3], [0.0, 0.0, 0.125]])
    )
    assert torch.allclose(step, expected, rtol=1e-4 if size < 1e-38 else 1e-6)


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_no_step_is_taken_along_a_gradient_that_is_zero_or_not_finite(norm: Norm) -> None:
    gradient = torch.tensor([[0.0, 0.0], [math.nan, math.inf]])
    assert torch.equal(Ball(1.0, norm).step(gradient, 1.0), torch.zeros(2, 2))


@pytest.mark.parametrize(
    ("epsilon", "norm", "box", "complaint"),
    [
        (-0.1, "l2", None, "epsilon is -0.1"),
        (math.nan, "l2", None, "epsilon is nan"),
        (math.inf, "linf", None, "epsilon is inf"),
        (1e39, "l2", None, "epsilon is 1e[+]39; pass a distance from 0 to 1e[+]18"),
        (1.0, "l1", None, "norm is 'l1'"),
        (1.0, "l2", (1.0, 0.0), "box is"),
        (1.0, "l2", (0.0, math.nan), "box is"),
    ],
)
def test_a_ball_that_is_none_is_refused(epsilon: float, norm: Norm, box: tuple[float, float], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        Ball(epsilon, norm, box)
