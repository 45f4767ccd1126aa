"""The focal loss, the MMCE and the loss of perturbed scores: by hand, by other code here, and in training."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional

import certcal
from certcal import InputError
from certcal.lab.training import Moment, PerturbedLoss, Recipe, constants_of, recipe, train
from certcal.lab.training._calibrated import FocalLoss, MmceLoss, PerturbedScoreLoss
from certcal.lab.training.parts import parts_of
from certcal.metrics import mmce
from certcal.models.networks import MLP
from tests.training.digits import data, network
from tests.training.views import finite_slopes, linear, seen, slopes

NOW = Moment(0, 0.0, 0.0, 0.1)
# One draw of five samples of three classes; two of the labels are not the largest.
DRAWS = torch.log(
    torch.tensor([[[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.1, 0.8], [0.9, 0.05, 0.05], [0.4, 0.3, 0.3]]])
)
DRAWS = DRAWS.double()
LABELS = [0, 2, 2, 0, 1]
START = torch.randn((4, 3), generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def test_the_focal_loss_is_what_it_is_by_hand_and_the_cross_entropy_without_gamma():
    right = [0.6, 0.3, 0.8, 0.9, 0.3]
    expected = -sum((1 - p) ** 2 * math.log(p) for p in right) / 5
    assert FocalLoss(2.0)(seen(DRAWS, LABELS, NOW)).loss.item() == pytest.approx(expected, rel=1e-6)
    entropy = -sum(map(math.log, right)) / 5
    assert FocalLoss(0.0)(seen(DRAWS, LABELS, NOW)).loss.item() == pytest.approx(entropy, rel=1e-6)


def test_the_second_term_of_the_mmce_is_that_of_the_metric_or_weighs_right_and_wrong_alike():
    view, entropy = seen(DRAWS, LABELS, NOW), functional.nll_loss(DRAWS[0], torch.tensor(LABELS)).item()
    z, c = [0.6, 0.5, 0.8, 0.9, 0.4], [1, 0, 1, 1, 0]
    plain = MmceLoss(3.0)(view).loss.item() - entropy
    assert plain == pytest.approx(3 * mmce(z, c), rel=1e-5)
    parts = [(k, r, 1 / 3 if k else 1 / 2) for k, r in zip(c, z, strict=True)]
    square = sum((a - r) * u * (b - s) * v * math.exp(-abs(r - s) / 0.4) for a, r, u in parts for b, s, v in parts)
    assert MmceLoss(3.0, weighted=True)(view).loss.item() - entropy == pytest.approx(3 * math.sqrt(square), rel=1e-5)
    assert MmceLoss(3.0, weighted=True)(seen(DRAWS, [0, 1, 2, 0, 0], NOW)).loss.isfinite()  # none is wrong


def test_the_loss_of_perturbed_scores_is_that_of_the_module_and_of_two_classes(tmp_path):
    two = DRAWS[:, :, :2].clone()
    view = seen(two, [0, 1, 1, 0, 1], NOW)
    expected = PerturbedLoss(0.1, margin=2.0)(two[0], torch.tensor([0, 1, 1, 0, 1])).item()
    assert PerturbedScoreLoss(0.1, 2.0)(view).loss.item() == pytest.approx(expected, rel=1e-9)
    with pytest.raises(InputError, match="there are 10 classes; perturbed training is for scores of two"):
        train(network(), data(300), recipe("perturbed", epochs=1), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("loss", [FocalLoss(), FocalLoss(0.5), MmceLoss(), MmceLoss(weighted=True)])
def test_gradients_are_right_and_finite_where_the_network_is_certain(loss):
    slopes(lambda weights: loss(linear(weights, NOW)).loss, START)
    certain = (1e3 * START).requires_grad_(True)
    assert finite_slopes(loss(linear(certain, NOW)).loss, certain)


def test_they_are_methods_with_constants_of_their_own():
    assert constants_of("focal") == {"gamma": 3.0}
    assert constants_of("mmce") == {"penalty": 2.0, "width": 0.4, "weighted": False}
    assert constants_of("perturbed") == {"bandwidth": 2**-6, "margin": 1.0, "nodes": 32}
    made = recipe("mmce", penalty=1.0, epochs=2)
    assert (made.sigma, made.own, made.together) == (0.0, MmceLoss(1.0), True)
    assert Recipe.from_dict(made.to_dict()) == made
    assert parts_of(recipe("focal", epochs=2)).noise is None
    for method, changes, sentence in (
        ("focal", {"sigma": 0.5}, "focal training has no noise"),
        ("focal", {"gamma": -1}, "gamma is -1; pass a finite number from 0"),
        ("mmce", {"weighted": 2}, "weighted is 2; pass True or False"),
        ("perturbed", {"bandwidth": 0}, "bandwidth is 0"),
    ):
        with pytest.raises(InputError, match=sentence):
            recipe(method, **changes)


@pytest.mark.parametrize("method", ["focal", "mmce", "perturbed"])
def test_each_trains_a_network(method):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3)).astype(np.float32)
    made = certcal.train(MLP(3, (8,), classes=2), (x, (x[:, 0] > 0).astype(int)), method, epochs=6, batch=20)
    assert made.log[-1]["loss"] < made.log[0]["loss"]
    assert made.log[-1]["accuracy"] > 0.9
