"""The parts of a training: losses by hand and by finite differences; an adversary and an objective of one's own."""

import json
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from certcal import InputError
from certcal.attacks import ADVERSARIES, AcceAdversary, Ball, BrierAdversary, ExactAdversary, Found
from certcal.data import Inputs
from certcal.lab.training import METHODS, Judged, Moment, Recipe, recipe, train
from certcal.lab.training.parts import LOSSES, MixedLoss, mean_cross_entropy, parts_of, smoothed_cross_entropy
from certcal.models.networks import MLP
from tests.training.digits import same_weights
from tests.training.views import LABELS, linear, seen, slopes

NOW = Moment(2, 0.3, 0.3, 0.1)


START = 3 * torch.randn((4, 3), generator=torch.Generator().manual_seed(1), dtype=torch.float64)
OBJECTIVES = {
    "smoothed": (smoothed_cross_entropy, None),
    "draws": (mean_cross_entropy, None),
    "mixed with acce": (MixedLoss(0.6), AcceAdversary(3, bins=4, sigma=0.5)),
    "mixed with exact": (MixedLoss(0.6), ExactAdversary(3, bins=4)),
    "mixed of draws": (MixedLoss(0.6, mean_cross_entropy), AcceAdversary(3, bins=4, sigma=0.5)),
}


@pytest.mark.parametrize("name", OBJECTIVES)
def test_gradients_are_those_of_finite_differences(name):
    objective, adversary = OBJECTIVES[name]
    # Sought once, for the weights at hand, and then held.
    find = adversary and (lambda target, inputs: adversary(target, inputs, LABELS, Ball(0.3), keep="last"))
    found = linear(START, NOW, find).found
    gradient = slopes(lambda w: objective(linear(w, NOW, lambda *_: found)).loss, START, 1e-5, 1e-8)
    assert gradient.abs().max() > 1e-3


def two_draws():
    """One sample, true class 0, of probabilities 0.9 and 0.3 under two draws."""
    return seen(torch.log(torch.tensor([[[0.9, 0.1]], [[0.3, 0.7]]])), [0], NOW)


def test_the_smoothed_loss_is_the_logarithm_of_the_mean_probability():
    judged = smoothed_cross_entropy(two_draws())
    assert judged.loss.item() == pytest.approx(-math.log(0.6), rel=1e-6)
    assert judged.log_probabilities.exp().tolist() == [pytest.approx([0.6, 0.4], rel=1e-6)]


def test_the_mean_loss_is_the_mean_of_the_logarithms():
    judged = mean_cross_entropy(two_draws())
    assert judged.loss.item() == pytest.approx(-(math.log(0.9) + math.log(0.3)) / 2, rel=1e-6)
    assert judged.log_probabilities.exp().tolist() == [pytest.approx([0.6, 0.4], rel=1e-6)]


def test_the_mixed_loss_weighs_cross_entropy_and_calibration():
    view = two_draws()
    found = Found(view.clean, lambda log_probabilities: 1 - log_probabilities[0, 0].exp())
    judged = MixedLoss(0.8)(replace(view, found=found))
    assert judged.loss.item() == pytest.approx(-0.8 * math.log(0.6) + 0.2 * 0.4, rel=1e-6)
    three = replace(view, found=found, labels=view.labels.repeat(3))
    summed = MixedLoss(0.8, lambda _: judged, sums=True)(three)
    assert summed.loss.item() == pytest.approx(0.8 * judged.loss.item() + 0.2 * 3 * 0.4, rel=1e-6)


def test_the_mixed_loss_is_the_cross_entropy_where_nothing_was_attacked():
    assert torch.equal(MixedLoss(0.8)(two_draws()).loss, smoothed_cross_entropy(two_draws()).loss)


# --- parts of one's own -----------------------------------------------------------------------------------------------

RNG = np.random.default_rng(3)
SIDES = RNG.integers(0, 2, 64)
DATA = Inputs.from_arrays((RNG.random((64, 4)) * 0.4 + 0.3 * SIDES[:, None]).clip(0, 1), SIDES)


@dataclass(frozen=True)
class OneSign:
    """One step along the sign of the gradient of the cross entropy."""

    share: float = 1.0

    def __call__(self, target: Any, inputs: Any, labels: Any, ball: Any, keep: str = "best") -> Found:
        at = inputs.detach().requires_grad_(True)
        loss = functional.nll_loss(target.log_probabilities(at), labels)
        (gradient,) = torch.autograd.grad(loss, at)
        return Found(ball.seal(inputs, inputs + ball.step(gradient, self.share * ball.epsilon)))


@dataclass(frozen=True)
class Label:
    """Cross entropy with smoothed labels."""

    smoothing: float = 0.1

    def __call__(self, view: Any) -> Judged:
        logarithms = view.target.log_probabilities(view.found.inputs)
        return Judged(functional.cross_entropy(logarithms, view.labels, label_smoothing=self.smoothing), logarithms)


def trained(method: str = "smoothadv", out: Any = None, **changes: Any) -> Any:
    given = {"epsilon": 0.2, "epochs": 4, "batch": 32, "fine_tune": True, "sigma": 0.1, **changes}
    return train(MLP(4, (8,), classes=2), DATA, recipe(method, **given), out=out)


def test_every_name_that_a_recipe_takes_stands_for_a_part() -> None:
    assert {each.adversary for each in METHODS.values()} == {None, *ADVERSARIES}
    for name, kind in ADVERSARIES.items():
        made = parts_of(Recipe("smoothadv", epsilon=0.1, attack_steps=7, adversary=name)).adversary
        assert type(made(NOW)) is kind
        assert made(NOW).steps == 7
    for name, objective in LOSSES.items():
        assert parts_of(Recipe("standard", loss=name)).objective is objective


def test_an_adversary_by_name_has_the_numbers_of_the_recipe_and_of_the_epoch() -> None:
    numbers: dict[str, Any] = {"attack_steps": 3, "attack_scale": 0.5, "bins": 7}
    made = parts_of(Recipe("acce-act", sigma=0.5, epsilon=0.1, rho=0.2, **numbers)).adversary
    assert made(NOW) == AcceAdversary(3, 0.5, bins=7, sigma=0.3, rho=0.2)
    assert made(Moment(0, 0.0, 0.1, 0.1)) == AcceAdversary(3, 0.5, bins=7, rho=0.2)
    assert parts_of(Recipe("brier-act", epsilon=0.1, rho=0.2, **numbers)).adversary(NOW) == BrierAdversary(3, 0.5)


def test_an_adversary_and_an_objective_of_ones_own_train_a_network_that_differs() -> None:
    runs = {
        "usual": trained(),
        "adversary": trained(adversary=OneSign()),
        "weaker": trained(adversary=OneSign(0.1)),
        "objective": trained(loss=Label()),
        "gaussian": trained("gaussian", epsilon=0.0, loss=Label()),
        "acr": trained("acr", epsilon=0.0, loss=Label(), begin=3, discard_below=0.0, weigh_every=0),
    }
    losses = {name: run.history[-1]["loss"] for name, run in runs.items()}
    assert len(set(losses.values())) == len(runs)
    assert losses["weaker"] < losses["adversary"]
    assert all(np.isfinite(each) for each in losses.values())


def test_an_objective_of_ones_own_that_is_a_built_in_one_gives_the_same_bits() -> None:
    ours, theirs = trained(loss=Label(0.0)), trained()
    assert [line["loss"] for line in ours.history] == pytest.approx([line["loss"] for line in theirs.history], rel=1e-5)
    assert same_weights(trained(loss=Label(0.0)), ours)


def test_parts_of_ones_own_are_written_down_resumed_and_told_apart(tmp_path: Any) -> None:
    first = trained(adversary=OneSign(0.5), loss=Label(), out=tmp_path / "run")
    written = json.loads((tmp_path / "run" / "recipe.json").read_text())["recipe"]
    assert written["adversary"] == {"class": f"{__name__}.OneSign", "share": 0.5}
    assert written["loss"]["smoothing"] == 0.1
    again = trained(adversary=OneSign(0.5), loss=Label(), out=tmp_path / "run")
    assert again.resumed == first.history[-1]["step"]
    with pytest.raises(InputError, match=r"share was 0.5 and is now 0.6"):
        trained(adversary=OneSign(0.6), loss=Label(), out=tmp_path / "run")


@pytest.mark.parametrize(
    ("found", "complaint"),
    [
        (lambda inputs: inputs, "returned a Tensor; return certcal.attacks.Found"),
        (lambda inputs: Found(inputs + 0.5), r"moved inputs\[\d+\] by .* further than epsilon"),
        (lambda inputs: Found(inputs - 0.1), r"took inputs\[\d+\] .* outside the box from 0 to 1"),
        (lambda inputs: Found(inputs * torch.nan), "not finite"),
        (lambda inputs: Found(inputs[:3]), "returned inputs of shape"),
    ],
)
def test_an_adversary_that_returns_what_it_may_not_is_refused(found: Any, complaint: str) -> None:
    def adversary(target: Any, inputs: Any, labels: Any, ball: Any, keep: str) -> Any:
        return found(inputs)

    with pytest.raises(InputError, match=complaint):
        trained(adversary=adversary, epsilon_warmup=0)


@pytest.mark.parametrize(
    ("judged", "complaint"),
    [
        (lambda p, y: p.mean(), "returned a Tensor; return certcal.lab.training.Judged"),
        (lambda p, y: Judged(p[:, 0], p), "returned a loss of shape"),
        (lambda p, y: Judged(p.detach().mean(), p), "one number with gradients"),
        (lambda p, y: Judged(p.mean(), p[:2]), "return a row per sample"),
    ],
)
def test_an_objective_that_returns_what_it_may_not_is_refused(judged: Any, complaint: str) -> None:
    def loss(view: Any) -> Any:
        return judged(view.target.log_probabilities(view.found.inputs), view.labels)

    with pytest.raises(InputError, match=complaint):
        trained(loss=loss)


@pytest.mark.parametrize(
    ("method", "changes", "complaint"),
    [
        ("smoothadv", {"adversary": "pgd"}, "adversary is 'pgd'"),
        ("smoothadv", {"adversary": OneSign}, "adversary is the class OneSign; pass one of smoothadv, brier"),
        ("smoothadv", {"adversary": 3}, "adversary is 3"),
        ("gaussian", {"adversary": OneSign(), "epsilon": 0.0}, "gaussian training has no adversary to replace"),
        ("macer", {"loss": Label(), "epsilon": 0.0}, "macer training has a loss of its own"),
        ("smoothadv", {"loss": "hinge"}, "loss is 'hinge'"),
        ("smoothadv", {"loss": Label}, "loss is the class Label"),
    ],
)
def test_what_does_not_fit_is_one_sentence(method: str, changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        trained(method, **changes)
