"""The torchmetrics classes give the values of the functions, whatever torchmetrics does with their states."""

import contextlib
import importlib
import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torchmetrics import Metric, MetricCollection
from torchmetrics.utilities.checks import check_forward_full_state_property
from torchmetrics.wrappers import MetricTracker

import certcal.torchmetrics as classes
from certcal import InputError, metrics
from certcal.predictions import Predictions
from certcal.torchmetrics import (
    ECE,
    KDEECE,
    MCE,
    NLL,
    BrierScore,
    ClasswiseECE,
    DebiasedECE,
    LpECE,
    SmoothECE,
    TopLabelBrierScore,
)

COLUMNS = 4
Make = Callable[..., Metric]
Function = Callable[[Predictions], float]


@dataclass(frozen=True)
class Case:
    """A class, the function whose values it gives, and how closely it gives them."""

    name: str
    kind: type[Metric]
    function: Function
    tolerance: float = 1e-12
    matrix: bool = False  # needs rows of class probabilities
    options: dict[str, Any] = field(default_factory=dict)

    def make(self, **more: Any) -> Metric:
        return self.kind(**self.options, **more)


def _top(function: Callable[..., float], **options: Any) -> Function:
    return lambda p: function(p.confidence, p.correct, **options)


def _rows(function: Callable[..., float], **options: Any) -> Function:
    return lambda p: function(p.probabilities, p.labels, **options)


def _nll(p: Predictions) -> float:
    return metrics.nll(p.probabilities if p.logits is None else p.logits, p.labels, from_logits=p.logits is not None)


CASES = [
    Case("ECE", ECE, _top(metrics.ece)),
    Case("ECE right", ECE, _top(metrics.ece, bins=10, closed="right"), options={"bins": 10, "closed": "right"}),
    Case("MCE", MCE, _top(metrics.mce)),
    Case("LpECE", LpECE, _top(metrics.lp_ece)),
    Case("LpECE inf", LpECE, _top(metrics.mce), options={"p": float("inf")}),
    Case("DebiasedECE", DebiasedECE, _top(metrics.debiased_ece, bins=20), options={"bins": 20}),
    Case("ClasswiseECE", ClasswiseECE, _rows(metrics.classwise_ece), matrix=True, options={"classes": COLUMNS}),
    Case("SmoothECE", SmoothECE, _top(metrics.smooth_ece), 1e-9),
    Case("SmoothECE 0.1", SmoothECE, _top(metrics.smooth_ece, bandwidth=0.1), 1e-9, options={"bandwidth": 0.1}),
    Case("KDEECE", KDEECE, _top(metrics.kde_ece), 1e-9),
    Case("TopLabelBrierScore", TopLabelBrierScore, _top(metrics.top_label_brier_score)),
    Case("BrierScore", BrierScore, _rows(metrics.brier_score), matrix=True),
    Case("NLL", NLL, _nll, matrix=True),
]
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
# One of every kind of state, for what does not depend on what is computed from it.
STATES = [case for case in CASES if case.name in ("ECE", "ClasswiseECE", "SmoothECE", "NLL")]
each_state = pytest.mark.parametrize("case", STATES, ids=lambda case: case.name)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def sample(n: int = 500, seed: int = 0, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    """Logits of an overconfident classifier and the true classes."""
    random = torch.Generator().manual_seed(seed)
    target = torch.randint(COLUMNS, (n,), generator=random)
    logits = 3 * torch.randn(n, COLUMNS, generator=random, dtype=torch.float64)
    logits[torch.arange(n), target] += 2
    return logits.to(dtype), target


def given(inputs: str, logits: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """The sample as the declared kind of input."""
    if inputs == "logits":
        return logits, target
    p = torch.softmax(logits, 1)
    if inputs == "probabilities":
        return p, target
    confidence, top = p.max(dim=1)
    return confidence, top == target


def batch(case: Case, n: int = 500, seed: int = 0) -> tuple[Tensor, Tensor]:
    return given(declared(case), *sample(n, seed))


def declared(case: Case) -> str:
    return "probabilities" if case.matrix else "confidence"


def pieces(pair: tuple[Tensor, Tensor], *cuts: int) -> list[tuple[Tensor, Tensor]]:
    preds, target = pair
    ends = (*cuts, len(target))
    return [(preds[a:b], target[a:b]) for a, b in zip((0, *cuts), ends, strict=True)]


def filled(case: Case, *pairs: tuple[Tensor, Tensor]) -> Metric:
    metric = case.make(inputs=declared(case))
    for pair in pairs:
        metric.update(*pair)
    return metric


def same_state(a: Metric, b: Metric) -> bool:
    left, right = a.metric_state, b.metric_state
    return left.keys() == right.keys() and all(torch.equal(left[key], right[key]) for key in left)


@pytest.mark.parametrize(
    ("inputs", "dtype"),
    [
        ("probabilities", torch.float32),
        ("logits", torch.float16),
        ("logits", torch.float64),
        ("confidence", torch.float16),
    ],
)
@each_case
def test_the_value_is_that_of_the_function(case: Case, inputs: str, dtype: torch.dtype) -> None:
    if case.matrix and inputs == "confidence":
        with pytest.raises(InputError, match=r"inputs is 'confidence'; pass one of 'probabilities', 'logits'"):
            case.make(inputs=inputs)
        return
    preds, target = given(inputs, *sample(dtype=dtype))
    metric = case.make(inputs=inputs)
    for pair in pieces((preds, target), 100, 101, 350):
        metric.update(*pair)
    value = metric.compute()
    expected = case.function(getattr(Predictions, f"from_{inputs}")(preds, target))
    assert (value.dtype, value.shape, value.device.type) == (torch.float64, (), "cpu")
    assert value.item() == pytest.approx(expected, rel=0, abs=case.tolerance)
    assert expected > 0.01


@each_state
def test_neither_order_nor_cuts_nor_forward_change_a_bit(case: Case) -> None:
    whole = batch(case)
    expected = filled(case, whole)
    order = torch.randperm(500, generator=torch.Generator().manual_seed(1))
    shuffled = (whole[0][order], whole[1][order])
    by_forward = case.make(inputs=declared(case))
    for pair in pieces(whole, 3, 200, 201):
        by_forward(*pair)
    for other in (filled(case, shuffled), filled(case, *pieces(shuffled, 1, 2, 77, 499)), by_forward):
        assert same_state(expected, other)
        assert expected.compute().item() == other.compute().item()


@each_state
def test_forward_returns_the_value_of_the_batch_alone(case: Case) -> None:
    metric = case.make(inputs=declared(case))
    for pair in pieces(batch(case), 200, 350):
        assert metric(*pair).item() == filled(case, pair).compute().item()
    assert metric.update_count == 3


@each_state
def test_torchmetrics_finds_that_forward_needs_no_full_state(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    preds, target = batch(case, 50)

    options = {**case.options, "inputs": declared(case)}
    check_forward_full_state_property(
        case.kind, options, {"preds": preds, "target": target}, num_update_to_compare=[2], reps=2
    )
    assert "Partial state for 2 steps took" in capsys.readouterr().out  # printed only when both ways agree


@each_state
def test_merging_in_any_tree_gives_the_same_bits(case: Case) -> None:
    whole = batch(case)
    expected = filled(case, whole)

    def merged(a: Metric, b: Metric) -> Metric:
        a.merge_state(b)
        return a

    def parts() -> list[Metric]:
        return [filled(case, pair) for pair in pieces(whole, 10, 100, 450)]

    a, b, c, d = parts()
    by_state = case.make(inputs=declared(case))
    for part in parts():
        by_state.merge_state(part.metric_state)
    trees = [reduce(merged, parts()), reduce(merged, parts()[::-1]), merged(merged(a, b), merged(c, d)), by_state]
    for tree in trees:
        assert same_state(tree, expected)
        assert tree.compute().item() == expected.compute().item()


@each_state
def test_a_trillion_merged_samples_do_not_overflow(case: Case) -> None:
    metric = filled(case, batch(case, 64))
    once = metric.compute().item()
    for _ in range(34):
        metric.merge_state(metric.clone())
    assert int(metric.samples) == 2**40
    assert metric.compute().item() == pytest.approx(once, rel=1e-12)


def test_a_merge_is_seen_by_the_next_compute_and_counts_as_an_update() -> None:
    one, other = filled(CASES[0], batch(CASES[0], 100, 1)), filled(CASES[0], batch(CASES[0], 100, 2))
    before = one.compute()
    one.merge_state(other)
    assert one.compute() != before
    fresh = ECE(inputs="confidence")
    fresh.merge_state(other)
    assert fresh.compute() == other.compute()  # torchmetrics would warn that there was no update


@pytest.mark.parametrize(
    "other",
    [
        ECE(14, inputs="confidence"),
        ECE(15, closed="right", inputs="confidence"),
        ECE(15, inputs="logits"),
        SmoothECE(inputs="confidence"),
        {"samples": torch.tensor(3)},
        {"samples": torch.tensor(3), "bin_sums_15_left_confidence": torch.zeros(15, 2, 3)},
        {"samples": torch.tensor(3), "bin_sums_15_left_confidence": torch.zeros(14, 2, 3, dtype=torch.int64)},
    ],
    ids=["bins", "closed", "inputs", "class", "missing", "type", "shape"],
)
def test_a_state_of_other_settings_is_neither_merged_nor_loaded(other: Any) -> None:
    metric = filled(CASES[0], batch(CASES[0]))
    before = metric.clone()
    with pytest.raises(InputError, match=r"has no 'bin_sums_15_left_confidence' like this metric's; use metrics of"):
        metric.merge_state(other)
    state = other.metric_state if isinstance(other, Metric) else other
    with pytest.raises(InputError, match=r"state_dict has no 'bin_sums_15_left_confidence'"):
        metric.load_state_dict(state, strict=False)
    assert same_state(metric, before)


def test_merging_another_class_over_the_same_state_is_refused_by_torchmetrics() -> None:
    with pytest.raises(ValueError, match="Expected incoming state to be an instance of ECE"):
        ECE(inputs="confidence").merge_state(MCE(inputs="confidence"))


@each_state
def test_reset_forgets_everything(case: Case) -> None:
    metric = filled(case, batch(case, seed=1))
    metric.reset()
    assert same_state(metric, case.make(inputs=declared(case)))
    metric.update(*batch(case, seed=2))
    assert metric.compute() == filled(case, batch(case, seed=2)).compute()


@each_state
def test_a_clone_lives_on_its_own(case: Case) -> None:
    metric = filled(case, batch(case, seed=1))
    value, twin = metric.compute().item(), metric.clone()
    twin.update(*batch(case, seed=2))
    assert metric.compute().item() == value
    assert twin.compute() == filled(case, batch(case, seed=1), batch(case, seed=2)).compute()


@each_state
def test_a_metric_survives_pickle_and_state_dict(case: Case) -> None:
    first, second = pieces(batch(case), 200)
    expected = filled(case, first, second)
    copied = pickle.loads(pickle.dumps(filled(case, first)))  # torchmetrics' own way between processes
    copied.update(*second)

    saved = filled(case, first)
    assert saved.state_dict() == {}
    saved.persistent(True)
    loaded = filled(case, second)
    loaded.compute()
    loaded.load_state_dict(saved.state_dict())
    assert loaded.compute() == saved.compute()
    loaded.update(*second)
    for metric in (copied, loaded):
        assert same_state(metric, expected)
        assert metric.compute() == expected.compute()

    fresh = case.make(inputs=declared(case))
    fresh.load_state_dict(saved.state_dict())
    assert fresh.compute() == saved.compute()


def test_metrics_of_the_same_bins_share_one_state_in_a_collection() -> None:
    pair = given("probabilities", *sample())
    kinds = [ECE, MCE, LpECE, DebiasedECE, SmoothECE, KDEECE, BrierScore, NLL, TopLabelBrierScore]
    members = [kind(inputs="probabilities") for kind in kinds] + [ClasswiseECE(COLUMNS, inputs="probabilities")]
    together = MetricCollection(members)
    for part in pieces(pair, 100, 300):
        together.update(*part)
    groups = sorted(sorted(group) for group in together.compute_groups.values())
    assert groups == [
        ["BrierScore"],
        ["ClasswiseECE"],
        ["DebiasedECE", "ECE", "LpECE", "MCE"],
        ["KDEECE", "SmoothECE"],
        ["NLL"],
        ["TopLabelBrierScore"],
    ]
    values = together.compute()
    for member in members:
        alone = member.clone()
        alone.reset()
        alone.update(*pair)
        assert values[type(member).__name__] == alone.compute()
    batch_values = together(*pieces(pair, 50)[0])
    assert batch_values["MCE"] == MCE(inputs="probabilities")(*pieces(pair, 50)[0])
    together.reset()
    together.update(*pair)
    assert together.compute()["LpECE"] == values["LpECE"]


@pytest.mark.filterwarnings("ignore:every row of the logits")  # the same numbers are read both ways
@pytest.mark.parametrize(
    ("first", "second"),
    [
        (ECE(10, inputs="confidence"), ECE(10, closed="right", inputs="confidence")),
        (ECE(10, inputs="confidence"), ECE(20, inputs="confidence")),
        (ECE(10, inputs="probabilities"), ECE(10, inputs="logits")),
    ],
    ids=["closed", "bins", "inputs"],
)
def test_metrics_of_other_settings_share_no_state_even_if_the_first_batch_looks_the_same(
    first: ECE, second: ECE
) -> None:
    matrix = first.inputs == "probabilities"
    alike = torch.full((4, 2), 0.5) if matrix else torch.full((4,), 0.55)
    unlike = torch.tensor([[0.9, 0.1]] * 4) if matrix else torch.tensor([0.5, 0.5, 0.55, 0.55])
    target = torch.tensor([0, 0, 0, 1])
    together = MetricCollection({"first": first, "second": second})
    together.update(alike, target)
    together.update(unlike, target)
    assert len(together.compute_groups) == 2
    second = second.clone()
    second.reset()
    for preds in (alike, unlike):
        second.update(preds, target)
    assert together.compute()["second"] == second.compute()


def test_a_tracker_finds_the_best_epoch() -> None:
    tracker = MetricTracker(MetricCollection([ECE(inputs="logits"), BrierScore(inputs="logits")]))
    values = []
    for scale in (1.0, 0.3, 2.0):
        tracker.increment()
        logits, target = sample()
        tracker.update(scale * logits, target)
        values.append(tracker.compute()["ECE"].item())
    best, step = tracker.best_metric(return_step=True)
    assert best["ECE"] == min(values)
    assert step["ECE"] == int(np.argmin(values))
    assert tracker.compute_all()["ECE"].dtype == torch.float64


@pytest.mark.parametrize(
    "cast",
    [
        lambda m: m.half(),
        lambda m: m.float(),
        lambda m: m.double(),
        lambda m: m.bfloat16(),
        lambda m: m.type(torch.float16),
        lambda m: m.to(torch.float16),
        lambda m: m.to("cpu", torch.bfloat16),
        lambda m: m.set_dtype(torch.float16),
        lambda m: nn.ModuleDict({"metric": m}).half()["metric"],
        lambda m: nn.ModuleDict({"metric": m}).to(torch.float16)["metric"],
        lambda m: MetricCollection({"metric": m}).set_dtype(torch.float16)["metric"],
    ],
    ids=["half", "float", "double", "bfloat16", "type", "to", "to cpu", "set_dtype", "in half", "in to", "collection"],
)
def test_no_cast_touches_the_state_or_the_value(cast: Callable[[Metric], Metric]) -> None:
    metric = filled(CASES[0], batch(CASES[0]))
    value, expected = metric.compute(), metric.clone()
    metric = cast(metric)
    assert same_state(metric, expected)
    assert metric.compute().dtype == torch.float64
    assert metric.compute() == value
    metric.reset()
    metric.update(*batch(CASES[0]))
    assert metric.compute() == value


@each_state
def test_the_size_of_the_state_does_not_depend_on_the_number_of_samples(case: Case) -> None:
    def elements(metric: Metric) -> int:
        assert all(state.dtype == torch.int64 for state in metric.metric_state.values())
        return sum(state.numel() for state in metric.metric_state.values())

    sizes = [elements(filled(case)), elements(filled(case, batch(case, 10))), elements(filled(case, batch(case, 5000)))]
    assert sizes[0] == sizes[1] == sizes[2]
    if case.name == "ECE":
        assert sizes[0] == 15 * 2 * 3 + 1


P = [[0.75, 0.25], [0.5, 0.5]]


@pytest.mark.parametrize(
    ("make", "preds", "target", "message"),
    [
        (
            ECE,
            [[0.75, 0.25], [1.5, -0.5]],
            [0, 1],
            r"probabilities\[1, \d\] is .*, outside \[0, 1\].*reads preds as prob",
        ),
        (ECE, [[0.75, 0.25], [float("nan"), 0.5]], [0, 1], r"probabilities\[1, 0\] is nan"),
        (ECE, [[0.75, 0.75], [0.5, 0.5]], [0, 1], r"probabilities\[0\] sums to 1.5"),
        (ECE, P, [0, 2], r"labels\[1\] is 2; labels are whole numbers from 0 to 1 .*target as labels"),
        (ECE, P, [0], r"lengths differ: probabilities has 2, labels has 1"),
        (ECE, [0.75, 0.5], [0, 1], r"probabilities has shape \(2,\)"),
        (ECE, np.zeros((0, 2)), [], r"probabilities is empty; pass at least one sample"),
        (BrierScore, [[0.5, 0.5], [2.0, 0.5]], [0, 1], r"probabilities\[1, 0\] is 2"),
        (SmoothECE, P, [0, -1], r"labels\[1\] is -1"),
        (lambda inputs: ClasswiseECE(3, inputs=inputs), P, [0, 1], r"preds has 2 columns; this metric was made for 3"),
        (lambda inputs: ECE(inputs="logits"), [[0.0, float("inf")]], [0], r"logits\[0, 1\] is inf"),
        (lambda inputs: ECE(inputs="confidence"), [0.5, 1.5], [0, 1], r"confidence\[1\] is 1.5.*target as correct"),
        (lambda inputs: ECE(inputs="confidence"), [0.5, 0.5], [0, 3], r"correct\[1\] is 3, neither 0 nor 1"),
        (lambda inputs: ECE(inputs="confidence"), [], [], r"confidence is empty; pass at least one sample"),
    ],
)
def test_a_refused_batch_leaves_everything_as_it_was(make: Make, preds: Any, target: Any, message: str) -> None:
    metric = make(inputs="probabilities")
    good = given(metric.inputs, *sample(50))
    if isinstance(metric, ClasswiseECE):
        good = (torch.tensor([[0.5, 0.25, 0.25]]), torch.tensor([0]))
    metric.update(*good)
    value, before = metric.compute(), metric.clone()
    bad = torch.as_tensor(preds), torch.as_tensor(target)
    for call in (metric.update, metric):
        with pytest.raises(InputError, match=message):
            call(*bad)
        assert same_state(metric, before)
        assert metric.compute() == value
    assert metric(*good) == value
    assert int(metric.samples) == 2 * int(before.samples)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ECE(inputs="scores"), r"inputs is 'scores'; pass one of 'probabilities', 'logits', 'confidence'"),
        (lambda: ECE(0, inputs="logits"), r"bins is 0"),
        (lambda: ECE(closed="both", inputs="logits"), r"closed is 'both'"),
        (lambda: LpECE(p=0.5, inputs="logits"), r"p is 0.5; pass an order of at least 1"),
        (lambda: LpECE(p="two", inputs="logits"), r"p is 'two'; pass an order of at least 1"),
        (lambda: LpECE(p=float("nan"), inputs="logits"), r"p is nan; pass an order of at least 1"),
        (lambda: ClasswiseECE(1, inputs="logits"), r"classes is 1; pass the number of columns of preds, 2 or more"),
        (lambda: SmoothECE(1e-4, inputs="logits"), r"bandwidth is 0.0001; this state resolves 0.00061 and more"),
        (lambda: KDEECE(-1, inputs="logits"), r"bandwidth is -1"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(make: Callable[[], Metric], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


def test_what_preds_holds_must_be_declared() -> None:
    with pytest.raises(TypeError, match="inputs"):
        ECE()  # type: ignore[call-arg]


@each_state
def test_computing_without_samples_is_refused(case: Case) -> None:
    metric = case.make(inputs=declared(case))
    with (
        pytest.warns(UserWarning, match="was called before the ``update`` method"),  # by torchmetrics
        pytest.raises(InputError, match="nothing was added yet; call update with at least one sample"),
    ):
        metric.compute()


def test_bfloat16_logits_and_confidences_are_widened_and_probabilities_refused() -> None:
    logits, target = sample(dtype=torch.bfloat16)
    for inputs in ("logits", "confidence"):
        preds, truth = given(inputs, logits, target)
        assert ECE(inputs=inputs)(preds, truth) == ECE(inputs=inputs)(preds.float(), truth)
    with pytest.raises(InputError, match=r"probabilities are bfloat16.*pass logits, or softmax\(logits.float\(\)\)"):
        ECE(inputs="probabilities").update(logits.softmax(1), target)


def test_logits_with_gradients_are_read_and_give_none() -> None:
    logits, target = sample()
    plain = ECE(inputs="logits")(logits, target)
    value = ECE(inputs="logits")(logits.requires_grad_(), target)
    assert value == plain
    assert not value.requires_grad


def test_updates_in_inference_mode_mix_with_others() -> None:
    first, second = pieces(given("logits", *sample()), 200)
    metric = ECE(inputs="logits")
    with torch.inference_mode():
        metric(*first)
    metric(*second)
    metric.update(*first)
    expected = ECE(inputs="logits")
    for pair in (first, second, first):
        expected.update(*pair)
    assert metric.compute() == expected.compute()


def test_a_device_without_float64_gets_its_value_on_the_cpu() -> None:
    metric = filled(CASES[0], batch(CASES[0]))
    expected = metric.clone().compute()
    metric._device = torch.device("mps")
    assert metric.compute().device.type == "cpu"
    assert metric.compute() == expected


def test_a_true_class_of_probability_zero_makes_the_log_loss_infinite() -> None:
    p = torch.tensor([[1.0, 0.0], [0.5, 0.5]])
    metric = NLL(inputs="probabilities")
    metric.update(p, torch.tensor([1, 0]))
    metric.update(p, torch.tensor([0, 0]))
    assert metric.compute().item() == float("inf")
    metric.reset()
    assert metric(p, torch.tensor([0, 0])).item() == pytest.approx(np.log(2) / 2)


@pytest.mark.parametrize(
    ("make", "spread", "correct"), [(SmoothECE, 0.0, torch.arange(1000) % 2), (KDEECE, 1e-5, torch.ones(1000))]
)
def test_a_kernel_value_that_the_state_does_not_resolve_comes_with_a_warning(
    make: Make, spread: float, correct: Tensor
) -> None:
    confidence = torch.linspace(0.5 - spread, 0.5, 1000, dtype=torch.float64)
    with pytest.warns(UserWarning, match=rf"{make.__name__} is known to .* only: its bandwidth is below the cells"):
        value = make(inputs="confidence")(confidence, correct)
    assert value.item() == pytest.approx(abs(correct.double().mean().item() - 0.5), abs=2.5e-4)


def test_a_metric_draws_itself_within_its_bounds() -> None:
    import matplotlib as mpl

    with mpl.rc_context({"backend": "agg"}):
        import matplotlib.pyplot as plt

        metric = filled(CASES[0], batch(CASES[0]))
        figure, axes = metric.plot([metric.compute(), metric.compute()])
        low, high = axes.get_ylim()
        plt.close(figure)
    assert low <= 0
    assert high >= 1


@each_case
def test_lower_is_better_and_bounds_are_known(case: Case) -> None:
    metric = case.make(inputs=declared(case))
    assert (metric.is_differentiable, metric.higher_is_better, metric.full_state_update) == (False, False, False)
    assert metric.plot_lower_bound == 0
    assert metric.plot_upper_bound == {"NLL": None, "BrierScore": 2}.get(case.name, 1)


def test_every_public_class_is_tested_here() -> None:
    assert {case.kind.__name__ for case in CASES} == set(classes.__all__)


# Loads everything once, then becomes two ranks. Rank 0 gets eleven batches and rank 1 one, of different sizes.
RANKS = """
import json, os, sys
import torch
import torch.distributed as dist
sys.path.insert(0, sys.argv[1])
from tests.interop.test_torchmetrics import STATES, InputError, batch, declared, pieces
torch.set_num_threads(1)
store, outputs = sys.argv[2], sys.argv[3:]
other = os.fork()
rank = 0 if other else 1
dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
found = {}
for case in STATES:
    parts = pieces(batch(case), *range(40, 480, 40))
    mine = parts[:11] if rank == 0 else parts[11:]
    metric = case.make(inputs=declared(case))
    for part in mine:
        metric.update(*part)
    first = metric.compute()
    local = int(metric.samples)
    for part in mine:
        metric(*part)  # the state is the rank's own again
    second = metric.compute()
    alone = case.make(inputs=declared(case))
    if rank == 0:
        alone.update(*parts[0])
    only_rank_0 = alone.compute()
    stepwise = case.make(inputs=declared(case), dist_sync_on_step=True)
    step = stepwise(*parts[rank])
    empty, refused, after = case.make(inputs=declared(case)), "", None
    try:
        empty.compute()
    except InputError as error:
        refused = str(error)
    empty.update(*parts[rank])
    after = empty.compute()
    values = first, second, only_rank_0, step, after
    found[case.name] = [value.item().hex() for value in values] + [local, refused]
with open(outputs[rank], "w") as file:
    json.dump(found, file)
dist.barrier()
dist.destroy_process_group()
if other:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(other, 0)[1]))
"""


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, list[Any]]]:
    """What two real processes, joined by gloo over loopback, compute."""
    folder = tmp_path_factory.mktemp("ranks")
    root = Path(__file__).parents[2]
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    outputs = [folder / f"rank{rank}.json" for rank in (0, 1)]
    command = [sys.executable, "-c", RANKS, str(root), str(folder / "store"), *map(str, outputs)]
    with subprocess.Popen(
        command, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            errors = process.communicate(timeout=300)[1]
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, errors
    return [json.loads(output.read_text()) for output in outputs]


@each_state
def test_two_processes_with_uneven_shares_agree_with_one_to_the_last_bit(
    case: Case, ranks: list[dict[str, list[Any]]]
) -> None:
    parts = pieces(batch(case), *range(40, 480, 40))
    whole = batch(case)
    first_two = tuple(torch.cat([parts[0][i], parts[1][i]]) for i in (0, 1))
    expected = [filled(case, *pairs) for pairs in ([whole], [whole, whole], [parts[0]], [first_two], [first_two])]
    values = [metric.compute().item().hex() for metric in expected]
    for rank, found in enumerate(ranks):
        assert found[case.name][:5] == values
        assert found[case.name][5] == (440, 60)[rank]
        assert found[case.name][6].startswith("nothing was added yet")


@pytest.mark.parametrize("missing", ["torch", "torchmetrics"])
def test_a_missing_library_is_named_with_what_to_install(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    for name in ("certcal.torchmetrics", "certcal.interop.torchmetrics"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(ImportError, match=r"needs torch and torchmetrics; .* pip install 'certcal\[torch\]'"):
        importlib.import_module("certcal.torchmetrics")


def test_binary_scores_are_read_with_their_outcomes():
    scores, outcomes = torch.tensor([0.2, 0.4, 0.9, 0.6]), torch.tensor([0, 1, 1, 0])
    metric = ECE(bins=5, inputs="score")
    metric.update(scores, outcomes)
    assert float(metric.compute()) == pytest.approx(metrics.ece(scores.numpy(), outcomes.numpy(), 5))
    with pytest.raises(InputError, match=r"reads preds as score and target as outcomes"):
        metric.update(scores, outcomes + 1)
