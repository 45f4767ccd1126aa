"""Bounds of networks hold for exact arithmetic, for float32 and for whatever an attack finds; and they are tight."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import certcal
from certcal import InputError
from certcal.models import wrap
from certcal.models.networks import MLP, LeNet
from certcal.verification.boxes import BoxedRows, InputBox
from certcal.verification.kinds import KINDS, verifier_of
from certcal.verification.networks import MarginBounds, NetworkVerifier, _Propagation, _Set, layers_of
from tests import naive

ALL = 1 << 30
ROWS, ROW, FOUR = torch.ones(2, 1), torch.ones(1, 3), torch.arange(4.0)


def perceptron() -> nn.Module:
    return MLP(6, hidden=(8, 8), classes=3, mean=0.4, std=0.3, seed=1).eval()


def normalized() -> nn.Module:
    torch.manual_seed(2)
    parts = (nn.Flatten(), nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(inplace=True), nn.Dropout(0.5))
    network = nn.Sequential(*parts, nn.Linear(8, 12), nn.ReLU(), nn.Linear(12, 3), nn.LogSoftmax(1))
    network[2].running_mean.uniform_(-0.3, 0.3)
    network[2].running_var.uniform_(0.05, 0.2)
    return network.eval()


KIND: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "perceptron": (perceptron, (6,)),
    "normalized": (normalized, (2, 3)),
}


def margins_of(network: nn.Module, inputs: Tensor, predicted: Tensor) -> Tensor:
    with torch.no_grad():
        answers = network(inputs).double()
    return answers - answers.gather(1, predicted[:, None])


def points(clean: Tensor, lower: Tensor, upper: Tensor, radius: float | None, count: int) -> Tensor:
    """Random inputs of a region: inside, and at the ends of the box or of the ball."""
    shape = (count, *clean.shape)
    drawn = lower + (upper - lower) * torch.rand(shape).round(decimals=0 if radius is None else 6)
    drawn[: count // 2] = lower + (upper - lower) * torch.rand(shape)[: count // 2]
    if radius is not None:
        change = torch.randn(shape)
        change *= radius / change.flatten(2).norm(dim=2).reshape(count, -1, *(1,) * (clean.ndim - 1)) * (1 - 1e-6)
        drawn = (clean + change).clamp(lower, upper)
    return drawn.clamp(lower, upper)


@pytest.mark.parametrize("norm", ["linf", "l2"])
@pytest.mark.parametrize("kind", list(KIND))
def test_no_input_of_a_region_leaves_its_bounds(kind: str, norm: str) -> None:
    make, shape = KIND[kind]
    network, epsilon = make(), 0.05 if norm == "linf" else 0.15
    torch.manual_seed(3)
    clean = torch.rand(5, *shape)
    region = InputBox(epsilon, limits=(0, 1), norm=norm).on(clean.numpy()).region(0, 5)
    lower, upper = torch.tensor(region.lower), torch.tensor(region.upper)
    predicted = network(clean).argmax(1)
    drawn = points(clean, lower, upper, region.l2, 10_000).flatten(0, 1)  # 10⁵ with both norms
    found = margins_of(network, drawn, predicted.repeat(10_000)).reshape(10_000, 5, 3)
    bounds, widths = MarginBounds(network, shape), list[Tensor]()
    for budget in (0, 1, ALL):
        low, high = bounds.margins(lower, upper, predicted, centre=clean, radius=region.l2, budget=budget)
        assert bool((low <= found.amin(0)).all())
        assert bool((high >= found.amax(0)).all())
        widths.append(high - low)
    answer = verifier_of(wrap(network, "logits")).verify(region, predicted.numpy(), budget=ALL, attack=True)
    assert (answer.lower <= answer.reached_lower).all()
    assert (answer.reached_upper <= answer.upper).all()
    assert not (answer.certified & answer.flipped).any()
    # Lines of neurons help on the whole; random points come within a factor.
    assert float(widths[2].sum()) < 0.9 * float(widths[0].sum())
    reach = (found.amax(0) - found.amin(0)).sum()
    assert float(widths[2].sum()) < 4 * float(reach)


@given(st.integers(0, 10**6), st.sampled_from([0.02, 0.3]))
@settings(max_examples=4)
def test_bounds_hold_the_exact_range_of_a_perceptron(seed: int, epsilon: float) -> None:
    network = MLP(2, hidden=(3, 2), classes=2, mean=0.3, std=0.7, seed=seed).eval()
    clean = torch.rand(1, 2, generator=torch.Generator().manual_seed(seed)) - 0.5
    layers: list[Any] = [(np.eye(2) / 0.7, np.full(2, -0.3 / 0.7))]
    for layer in network.layers:
        layers.append(
            "relu"
            if isinstance(layer, nn.ReLU)
            else (layer.weight.detach().double().numpy(), layer.bias.detach().double().numpy())
        )
    ends = clean - epsilon, clean + epsilon
    exact = naive.network_range(layers, *(each[0].double().numpy() for each in ends), np.array([-1.0, 1.0]))
    bounds = MarginBounds(network, (2,))
    for budget in (0, ALL):
        low, high = bounds.margins(*ends, torch.zeros(1, dtype=torch.int64), budget=budget)
        assert float(low[0, 1]) <= exact[0] + 1e-9
        assert exact[1] - 1e-9 <= float(high[0, 1])
        if budget and epsilon < 0.1:  # few neurons change their sign, so lines lose little
            assert float((high - low)[0, 1]) <= 1.5 * (exact[1] - exact[0]) + 1e-4


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_bounds_of_an_affine_network_are_exact(norm: str) -> None:
    torch.manual_seed(4)
    network = nn.Sequential(nn.Flatten(), nn.Linear(9, 5), nn.BatchNorm1d(5), nn.Linear(5, 3)).eval()
    clean, epsilon = torch.rand(2, 3, 3), 0.1
    lower, upper = clean - epsilon, clean + epsilon
    lower[1, 0], upper[1, 0] = clean[1, 0], clean[1, 0]  # features that stay
    predicted = network(clean).argmax(1)
    low, high = MarginBounds(network, (3, 3)).margins(
        lower, upper, predicted, centre=clean, radius=epsilon if norm == "l2" else None
    )
    with torch.no_grad():
        slopes = torch.stack([network(row.reshape(1, 3, 3))[0] for row in torch.eye(9)]) - network(torch.zeros(1, 3, 3))
    slopes = (slopes.T.double()[None] - slopes.T.double()[predicted][:, None]) * (lower < upper).flatten(1)[:, None]
    reach = epsilon * (slopes.abs().sum(2) if norm == "linf" else slopes.square().sum(2).sqrt())
    middle = margins_of(network, clean, predicted)
    assert torch.allclose(high, middle + reach, rtol=0, atol=2e-5)
    assert torch.allclose(low, middle - reach, rtol=0, atol=2e-5)
    assert float(reach.max()) > 0.01


def test_the_line_above_a_neuron_is_touched() -> None:
    """The line above max(x, 0) is met at both ends."""
    last = nn.Linear(1, 2)
    last.weight.data, last.bias.data = torch.tensor([[0.0], [1.0]]), torch.zeros(2)
    ends = torch.tensor([[-1.0]]), torch.tensor([[3.0]])
    predicted = torch.zeros(1, dtype=torch.int64)
    bounds = MarginBounds(nn.Sequential(nn.ReLU(), last).eval(), (1,))
    found = bounds.margins(*ends, predicted)
    propagation = _Propagation(bounds, _Set(*(end.double() for end in ends), ends[0], None), 1)
    propagation.margins(predicted)
    (lines,) = propagation.lines.values()
    corners = torch.cat(ends).double()
    above = corners * lines.above + lines.shift - corners.clamp_min(0)
    assert bool((above >= -1e-12).all())
    assert float(above.max()) < 1e-6
    assert 3.0 <= float(found[1][0, 1]) < 3.0 + 1e-3


def exact_margin(network: MLP, inputs: Any) -> Fraction:
    """l_1 − l_0 in exact arithmetic."""
    values = [(Fraction(float(x)) - Fraction(float(network.normalize.mean))) for x in inputs]
    values = [each / Fraction(float(network.normalize.std)) for each in values]
    for layer in network.layers:
        if isinstance(layer, nn.ReLU):
            values = [max(each, Fraction(0)) for each in values]
        else:
            rows = zip(layer.weight.tolist(), layer.bias.tolist(), strict=True)
            values = [
                sum((Fraction(w) * v for w, v in zip(row, values, strict=True)), Fraction(bias)) for row, bias in rows
            ]
    return values[1] - values[0]


def test_the_bounds_of_a_point_hold_exact_arithmetic_and_float32_in_any_order() -> None:
    network = MLP(40, hidden=(40, 40), classes=2, mean=0.3, std=0.001, seed=5).eval()
    clean = torch.rand(3, 40, generator=torch.Generator().manual_seed(1))
    predicted = torch.zeros(3, dtype=torch.int64)
    low, high = MarginBounds(network, (40,)).margins(clean, clean, predicted)
    exact = [exact_margin(network, row) for row in clean]
    single = margins_of(network, clean, predicted)[:, 1]
    for k in range(3):
        assert Fraction(float(low[k, 1])) <= exact[k] <= Fraction(float(high[k, 1]))
        assert float(low[k, 1]) <= float(single[k]) <= float(high[k, 1])
        # The rounding that is allowed for is some of what rounding may do, and no more than that.
        assert abs(float(exact[k]) - float(single[k])) < float((high - low)[k, 1]) < 0.01 * abs(float(single[k])) + 1
    # Summands that cancel, added in another order: 1e8 + 1 − 1e8 is 0 or 1. The input is zero, and not rounded.
    first, last = nn.Linear(1, 3), nn.Linear(3, 2)
    first.bias.data = torch.tensor([1e8, 1.0, -1e8])
    last.weight.data, last.bias.data = torch.tensor([[0.0, 0, 0], [1.0, 1, 1]]), torch.zeros(2)
    ends = MarginBounds(nn.Sequential(first, last).eval(), (1,)).margins(*(torch.zeros(1, 1),) * 2, predicted[:1])
    assert float(ends[0][0, 1]) <= 0
    assert float(ends[1][0, 1]) >= 1


def test_intervals_of_large_or_broken_values_claim_nothing() -> None:
    network = nn.Sequential(nn.Linear(2, 2)).eval()
    network[0].weight.data.fill_(torch.inf)
    low, high = MarginBounds(network, (2,)).margins(
        torch.ones(1, 2), torch.ones(1, 2), torch.zeros(1, dtype=torch.int64)
    )
    assert (float(low[0, 1]), float(high[0, 1])) == (-np.inf, np.inf)


class Calls(nn.Module):
    """A network by its forward."""

    def __init__(self, forward: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.forward = forward
        self.layer = nn.Linear(2, 2)


def read_again(x: Tensor) -> Tensor:
    doubled = x * 2.0
    torch.relu_(doubled.reshape(-1, 2))
    return doubled


@pytest.mark.parametrize(
    ("network", "shape", "complaint"),
    [
        (nn.Sequential(nn.Linear(2, 2), nn.Sigmoid()), (2,), "sigmoid has no bounds here; verify takes Linear"),
        (nn.Sequential(nn.Linear(2, 2), nn.Softmax(1), nn.ReLU()), (2,), "softmax inside the network has no bounds"),
        (nn.Sequential(nn.Linear(2, 2), nn.Softmax(1)), (2,), "returns logits, and its layers end with softmax"),
        (nn.Sequential(nn.Conv2d(1, 2, 1)), (1, 4, 4), "conv2d has no bounds here"),
        (nn.Sequential(nn.Linear(2, 2)), (3, 2), "linear of anything but rows of features"),
        (Calls(lambda x: torch.relu(x) + x), (2,), "not the one before it, as residual networks do"),
        (Calls(read_again), (2,), "of its last layer"),
        (Calls(lambda x: torch.relu_(x)), (2,), "relu overwrites its input or a constant"),
        (Calls(lambda x: x - x.mean(0)), (2,), "mean has no bounds here"),
        (Calls(lambda x: x.half().float() * 2.0), (2,), "or the type of numbers"),
        (Calls(lambda x: x * ROWS), (2,), "constant with rows of its own"),
        (Calls(lambda x: x * ROW), (1,), "mul repeats values"),
        (Calls(lambda x: 1.0 / x), (2,), "has no bounds here"),
        (nn.Sequential(nn.Linear(2, 1)), (2,), "returns shape (1,) for a sample"),
        (nn.Sequential(nn.Linear(3, 2)), (2,), "cannot be traced for samples of shape (2,)"),
        (nn.Linear(2, 2).to(torch.bfloat16), (2,), "bfloat16"),
    ],
)
def test_what_has_no_bounds_is_refused_by_name(network: nn.Module, shape: tuple[int, ...], complaint: str) -> None:
    with pytest.raises(InputError) as caught:
        layers_of(network.eval(), shape)
    assert complaint in str(caught.value)


def test_constants_and_changes_of_shape_are_read() -> None:
    network = Calls(lambda x: FOUR - (2.0 * x.float().reshape(-1, 4) - FOUR) / (FOUR + 3.0)).eval()
    clean = torch.rand(3, 2, 2)
    predicted = network(clean).argmax(1)
    low, high = MarginBounds(network, (2, 2)).margins(clean, clean, predicted)
    found = margins_of(network, clean, predicted)
    assert bool(((low <= found) & (found <= high)).all())
    assert float((high - low).max()) < 1e-4


@pytest.mark.parametrize("network", [LeNet(pixels=12), nn.Sequential(nn.Conv2d(1, 2, 12), nn.Flatten())])
def test_a_network_with_convolutions_is_sent_to_another_tool(network: nn.Module) -> None:
    data = np.zeros((2, 1, 12, 12), np.float32), np.zeros(2, int)
    with pytest.raises(InputError, match=r"has convolutions, which have no bounds here; .* with auto_LiRPA"):
        certcal.verify(network.eval(), data, 0.1, outputs="logits")


class TwoFaced(nn.Module):
    """Answers batches of two, which are traced, in another way than others."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.layer(inputs) * (1.0 if inputs.shape[0] == 2 else -1.0)


def region_of(rows: Any, **more: Any) -> BoxedRows:
    return BoxedRows(rows, rows, rows, **more)


def test_a_verifier_refuses_what_it_cannot_bound() -> None:
    rows = np.random.default_rng(0).random((3, 2), np.float32)
    predicted = np.zeros(3, np.int64)
    with pytest.raises(InputError, match="answers sample 0 outside of what its layers can make of it"):
        verifier_of(wrap(TwoFaced().eval(), "logits")).verify(region_of(rows), predicted, budget=0, attack=False)
    whole = verifier_of(MLP(2, hidden=(), classes=2).eval())
    with pytest.raises(InputError, match="for tree ensembles"):
        whole.verify(region_of(rows, at_most=1), predicted, budget=0, attack=False)
    with pytest.raises(InputError, match="not finite"):
        whole.verify(region_of(np.full_like(rows, np.nan)), predicted, budget=0, attack=False)
    assert next(iter(KINDS)) == "networks"


@pytest.mark.parametrize("size", [88.0, 99.0, 120.0])  # the smaller probability is denormal, has one digit, is 0
def test_a_softmax_that_underflows_is_accepted_and_its_answers_are_inside(size: float) -> None:
    network = nn.Sequential(nn.Linear(2, 2), nn.Softmax(1)).eval()
    network[0].weight.data, network[0].bias.data = torch.eye(2), torch.tensor([size, 0.0])
    rows = np.random.default_rng(0).random((20, 2), np.float32)
    verifier = verifier_of(wrap(network, "probabilities"))
    clean = verifier.predict(rows)
    assert clean.min() < 1e-37
    found = verifier.verify(InputBox(0.2).on(rows).region(0, 20), clean.argmax(1), budget=10, attack=True)
    assert (found.lower <= found.reached_lower).all()
    assert (found.reached_upper <= found.upper).all()
    assert found.upper.max() < 1e-36
    other = wrap(lambda inputs: np.full((len(inputs), 2), [1.0, 0.0], np.float32), "probabilities")
    with pytest.raises(InputError, match="answers sample 0 outside"):  # a 0 is no answer of every network
        NetworkVerifier(other, nn.Sequential(nn.Linear(2, 2), nn.Softmax(1)).eval()).verify(
            region_of(rows), clean.argmax(1), budget=0, attack=False
        )


def test_a_network_of_two_classes_has_intervals_of_its_score() -> None:
    network = MLP(2, hidden=(4,), classes=2, seed=3).eval()
    rows = np.random.default_rng(0).random((70, 2), np.float32)  # more than are bounded at a time
    verifier = verifier_of(network)
    predicted = verifier.predict(rows).argmax(1)
    region = InputBox(0.2).on(rows).region(0, 70)
    found = verifier.verify(region, predicted, budget=ALL, attack=True)
    assert found.certified.all()
    assert not found.flipped.any()
    grid = np.stack(np.meshgrid(*(np.linspace(-0.2, 0.2, 21),) * 2), -1).reshape(-1, 2).astype(np.float32)
    moved = np.clip(rows[:, None] + grid, region.lower[:, None], region.upper[:, None])
    scores = verifier.predict(moved.reshape(-1, 2))[:, 1].reshape(70, -1)
    assert (found.lower <= scores.min(1)).all()
    assert (scores.max(1) <= found.upper).all()
    # The attack finds nearly all that the grid does.
    assert (found.reached_upper - found.reached_lower).sum() > 0.8 * np.ptp(scores, axis=1).sum()
    softmax = nn.Sequential(network, nn.Softmax(1)).eval()
    again = verifier_of(wrap(softmax, "probabilities")).verify(region, predicted, budget=ALL, attack=True)
    assert np.abs(again.lower - found.lower).max() < 1e-5
    assert (again.lower <= again.reached_lower).all()


def test_a_network_with_its_own_float32_softmax_is_inside_its_interval_and_ties_are_not_certified():
    torch.manual_seed(0)
    for classes in (2, 3):
        small = nn.Sequential(nn.Linear(4, classes), nn.Softmax(1)).eval()
        with torch.no_grad():
            for weights in small.parameters():
                weights.mul_(1e-3)
        rows = np.random.default_rng(0).normal(size=(100, 4)).astype(np.float32)
        with torch.no_grad():
            answers = small(torch.tensor(rows)).numpy().astype(np.float64)
        found = certcal.verify(small, (rows, answers.argmax(1)), 0.0, outputs="probabilities").at().verified
        own = answers[:, 1] if classes == 2 else answers.max(axis=1)
        assert ((found.lower <= own) & (own <= found.upper)).all()
    flat = nn.Sequential(nn.Linear(1, 3), nn.Softmax(1)).eval()
    with torch.no_grad():
        flat[0].weight[:] = torch.tensor([[0.0], [1.0], [-1.0]])
        flat[0].bias[:] = 0
    rows = np.full((5, 1), 1e-6, np.float32)
    near = certcal.verify(flat, (rows, np.ones(5, int)), InputBox("-0.00000099"), outputs="probabilities")
    with torch.no_grad():
        assert int(flat(torch.full((1, 1), 1.2e-8)).argmax()) != 1  # inside the box the probabilities tie
    assert not near.at().verified.certified.any()
