"""The loss of consistency regularisation by hand, its gradients, and where its terms vanish."""

import math

import pytest
import torch

from certcal.lab.training import Moment, recipe
from certcal.lab.training._consistency import Consistency
from certcal.lab.training.parts import mean_cross_entropy, parts_of, smoothed_cross_entropy
from tests.training.views import finite_slopes, linear, slopes
from tests.training.views import seen as view_of

NOW = Moment(0, 0.5, 0.0, 0.1)


def seen(logits, labels, outputs="logits"):
    return view_of(logits, labels, NOW, outputs)


# Two draws of two samples.
DRAWS = torch.log(torch.tensor([[[0.9, 0.1], [0.2, 0.8]], [[0.5, 0.5], [0.6, 0.4]]], dtype=torch.float64))


def test_a_batch_of_two_samples_and_two_draws_is_what_it_is_by_hand():
    # Averages .7 .3 and .4 .6; labels 0 and 0.
    cross_entropy = -(math.log(0.9) + math.log(0.5) + math.log(0.2) + math.log(0.6)) / 4
    one = 0.7 * math.log(0.7 / 0.9) + 0.3 * math.log(0.3 / 0.1)
    two = 0.7 * math.log(0.7 / 0.5) + 0.3 * math.log(0.3 / 0.5)
    three = 0.4 * math.log(0.4 / 0.2) + 0.6 * math.log(0.6 / 0.8)
    four = 0.4 * math.log(0.4 / 0.6) + 0.6 * math.log(0.6 / 0.4)
    entropy = -(0.7 * math.log(0.7) + 0.3 * math.log(0.3) + 0.4 * math.log(0.4) + 0.6 * math.log(0.6)) / 2
    judged = Consistency(weight=20.0, entropy=0.5)(seen(DRAWS, [0, 0]))
    expected = cross_entropy + 20 * (one + two + three + four) / 4 + 0.5 * entropy
    assert judged.loss.item() == pytest.approx(expected, rel=1e-12)
    assert judged.log_probabilities.exp().tolist() == [
        pytest.approx([0.7, 0.3], rel=1e-12),
        pytest.approx([0.4, 0.6], rel=1e-12),
    ]


def test_the_recipe_says_which_cross_entropy():
    usual = recipe("consistency", weight=0.0, entropy=0.0)
    assert usual.loss == "draws"
    assert parts_of(usual).objective(seen(DRAWS, [0, 1])).loss.item() == pytest.approx(
        mean_cross_entropy(seen(DRAWS, [0, 1])).loss.item(), rel=1e-12
    )
    smoothed = recipe("consistency", weight=0.0, entropy=0.0, loss="smoothed")
    assert parts_of(smoothed).objective(seen(DRAWS, [0, 1])).loss.item() == pytest.approx(
        smoothed_cross_entropy(seen(DRAWS, [0, 1])).loss.item(), rel=1e-12
    )


START = 3 * torch.randn((4, 3), generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@pytest.mark.parametrize(("weight", "entropy"), [(10.0, 0.0), (0.0, 3.0), (10.0, 0.5)])
def test_gradients_are_those_of_finite_differences(weight, entropy):
    objectives = (Consistency(weight, entropy), mean_cross_entropy)
    gradient, plain = (slopes(lambda w, of=of: of(linear(w, NOW)).loss, START) for of in objectives)
    assert (gradient - plain).abs().max() > 0.01


def test_draws_that_agree_have_no_divergence():
    same = DRAWS[:1].repeat(4, 1, 1)
    without = Consistency(0.0, 0.0)(seen(same, [0, 1])).loss.item()
    assert Consistency(1e3, 0.0)(seen(same, [0, 1])).loss.item() == pytest.approx(without, rel=1e-10)
    assert Consistency(1e3, 0.0)(seen(DRAWS, [0, 1])).loss.item() > without + 10


def test_a_single_draw_leaves_the_entropy_only():
    one = seen(DRAWS[:1], [0, 1])
    spread = -sum(p * math.log(p) for p in (0.9, 0.1, 0.2, 0.8)) / 2
    difference = Consistency(50.0, 2.0)(one).loss - mean_cross_entropy(one).loss
    assert difference.item() == pytest.approx(2 * spread, rel=1e-12)


def test_a_network_of_probabilities_has_the_same_loss():
    expected = Consistency()(seen(DRAWS, [0, 1])).loss.item()
    assert Consistency()(seen(DRAWS.exp(), [0, 1], "probabilities")).loss.item() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("size", [1.0, 50.0, 1e4])
def test_gradients_are_finite_however_certain_the_network_is(size):
    signs = torch.tensor([[[1.0, -1, -1], [1, -1, -1], [-1, 1, 1]], [[1, -1, -1], [-1, 1, -1], [-1, 1, 1]]])
    rows = (size * signs).requires_grad_(True)
    assert finite_slopes(Consistency()(seen(rows, [0, 0, 0])).loss, rows)
