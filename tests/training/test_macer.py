"""MACER's loss by hand, its gradients, and what adds nothing to it."""

import math
from statistics import NormalDist

import pytest
import torch

from certcal import InputError
from certcal.attacks import Found, Target
from certcal.lab.training import Moment, View, recipe
from certcal.lab.training._macer import Macer
from certcal.lab.training.parts import parts_of, smoothed_cross_entropy
from tests.training.views import LABELS, finite_slopes, linear, slopes
from tests.training.views import seen as view_of

NOW = Moment(3, 0.5, 0.0, 0.1)
quantile = NormalDist().inv_cdf


def seen(logits, labels, now=NOW, outputs="logits"):
    return view_of(logits, labels, now, outputs)


def second_term(macer, view):
    """What the loss has beyond the cross entropy."""
    return (macer(view).loss - smoothed_cross_entropy(view).loss).item()


# Two draws of two samples of three classes; sharpness 2 squares the probabilities and divides by their sum.
DRAWS = torch.log(
    torch.tensor([[[0.6, 0.3, 0.1], [0.2, 0.5, 0.3]], [[0.4, 0.4, 0.2], [0.5, 0.1, 0.4]]], dtype=torch.float64)
)


def test_a_batch_of_two_samples_and_two_draws_is_what_it_is_by_hand():
    cross_entropy = -(math.log((0.6 + 0.4) / 2) + math.log((0.3 + 0.4) / 2)) / 2
    # Sample 0, label 0: .36 .09 .01 of .46, and .16 .16 .04 of .36.
    first, second = (0.36 / 0.46 + 0.16 / 0.36) / 2, (0.09 / 0.46 + 0.16 / 0.36) / 2
    hinge = 8 - (quantile(first) - quantile(second))
    # Sample 1, label 2, is wrong: .04 .25 .09 of .38, and .25 .01 .16 of .42, so class 0 has the most.
    judged = Macer(weight=12.0, margin=8.0, sharpness=2.0)(seen(DRAWS, [0, 2]))
    assert judged.loss.item() == pytest.approx(cross_entropy + 12 * 0.5 / 2 * hinge / 2, rel=1e-12)
    assert judged.log_probabilities.exp().tolist() == [
        pytest.approx([0.5, 0.35, 0.15], rel=1e-12),
        pytest.approx([0.35, 0.3, 0.35], rel=1e-12),
    ]


def test_the_recipe_may_ask_for_the_mean_of_the_draws_cross_entropies():
    draws = parts_of(recipe("macer", loss="draws", weight=0.0)).objective(seen(DRAWS, [0, 2])).loss.item()
    assert draws == pytest.approx(-math.log(0.6 * 0.4 * 0.3 * 0.4) / 4, rel=1e-12)
    smoothed = parts_of(recipe("macer", weight=0.0)).objective(seen(DRAWS, [0, 2])).loss.item()
    assert smoothed == pytest.approx(-math.log(0.5 * 0.35) / 2, rel=1e-12)


START = torch.randn((4, 3), generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@pytest.mark.parametrize("sharpness", [1.0, 4.0])
def test_gradients_are_those_of_finite_differences(sharpness):
    macer = Macer(sharpness=sharpness, margin=4.0)
    gradient, plain = (
        slopes(lambda w, of=of: of(linear(w, NOW)).loss, START) for of in (macer, smoothed_cross_entropy)
    )
    assert (gradient - plain).abs().max() > 0.1


def test_wrong_predictions_add_nothing_but_count_among_the_samples():
    macer = Macer(sharpness=2.0)
    assert second_term(macer, seen(DRAWS, [1, 2])) == 0
    alone = second_term(macer, seen(DRAWS[:, :1], [0]))
    assert alone > 1
    assert second_term(macer, seen(DRAWS, [0, 2])) == pytest.approx(alone / 2, rel=1e-12)


def test_a_tie_counts_as_wrong():
    assert second_term(Macer(), seen(torch.zeros((2, 3, 4)), [0, 1, 3])) == 0


def test_the_second_term_ends_where_the_margin_is_reached():
    # Binary with one draw: Φ⁻¹(p) - Φ⁻¹(1 - p) is twice Φ⁻¹(p).
    apart = 2 * quantile(0.9)
    rows = torch.log(torch.tensor([[[0.9, 0.1]]], dtype=torch.float64)).requires_grad_(True)
    view = seen(rows, [0])
    assert second_term(Macer(sharpness=1.0, margin=apart * 0.999), view) == 0
    short = Macer(sharpness=1.0, margin=apart + 0.01)
    assert second_term(short, view) == pytest.approx(12 * 0.5 / 2 * 0.01, rel=1e-9)
    reached = torch.autograd.grad(Macer(sharpness=1.0, margin=apart * 0.999)(view).loss, rows)[0]
    assert torch.equal(reached, torch.autograd.grad(smoothed_cross_entropy(view).loss, rows)[0])


@pytest.mark.parametrize("outputs", ["logits", "probabilities"])
def test_sharpness_acts_on_logits_and_on_logarithms_of_probabilities_alike(outputs):
    rows = DRAWS + torch.tensor([[[1.0], [-2.0]]]) if outputs == "logits" else DRAWS.exp()
    expected = Macer()(seen(DRAWS, [0, 0])).loss.item()
    assert Macer()(seen(rows, [0, 0], outputs=outputs)).loss.item() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("size", [1.0, 30.0, 300.0, 1e4])
@pytest.mark.parametrize("margin", [8.0, 1e6])
def test_gradients_are_finite_however_certain_the_network_is(size, margin):
    signs = torch.tensor([[[1.0, -1, -1], [1, -1, -1], [-1, 1, 1]], [[1, -1, -1], [-1, 1, -1], [-1, 1, 1]]])
    rows = (size * signs).requires_grad_(True)
    assert finite_slopes(Macer(margin=margin)(seen(rows, [0, 0, 0])).loss, rows)


def test_saturated_samples_add_nothing():
    rows = torch.tensor([[[1e4, -1e4, -1e4]], [[1e4, -1e4, -1e4]]])
    assert second_term(Macer(), seen(rows, [0])) == 0


def test_certainty_that_rounds_to_one_is_still_told_apart():
    # 1 - 2e-18 is 1 even in double precision.
    rows = torch.tensor([[[0.0, math.log(2e-18)]]], dtype=torch.float64)
    missing = second_term(Macer(sharpness=1.0, margin=20.0), seen(rows, [0])) / (12 * 0.5 / 2)
    assert missing == pytest.approx(20 + 2 * quantile(2e-18), rel=1e-9)


def test_sigma_is_the_epochs():
    whole = second_term(Macer(sharpness=2.0), seen(DRAWS, [0, 0]))
    half = second_term(Macer(sharpness=2.0), seen(DRAWS, [0, 0], Moment(3, 0.25, 0.0, 0.1)))
    assert half == pytest.approx(whole / 2, rel=1e-12)


def test_the_second_term_comes_after_the_deferred_epochs():
    terms = [
        second_term(Macer(deferred=2), seen(DRAWS, [0, 0], Moment(epoch, 0.5, 0.0, 0.1))) for epoch in (0, 1, 2, 3)
    ]
    assert terms[:2] == [0, 0]
    assert terms[2] == terms[3] > 0


def test_the_loss_of_a_network_in_bfloat16_is_that_of_its_logits():
    weights = START.float().requires_grad_(True)
    inputs = torch.rand((8, 4), generator=torch.Generator().manual_seed(2))
    now = Moment(0, 0.5, 0.0, 0.1)
    view = View(Target(lambda batch: batch @ weights), inputs, LABELS, Found(inputs), now, torch.Generator())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = (inputs @ weights).detach()
        judged = Macer()(view)
        (gradient,) = torch.autograd.grad(judged.loss, weights)
    assert logits.dtype == torch.bfloat16
    assert judged.loss.item() == pytest.approx(
        Macer()(seen(logits.float()[None], LABELS.tolist())).loss.item(), rel=1e-6
    )
    assert torch.isfinite(gradient).all()


def test_deferring_for_all_epochs_is_refused():
    with pytest.raises(InputError, match=r"^deferred is 5 of 5 epochs, so that nothing is left of macer; shorten it"):
        recipe("macer", epochs=5, deferred=5)
    assert recipe("macer", epochs=5, deferred=4).own.deferred == 4
