"""A batch in any number of pieces has the adversary and the loss of the whole batch."""

import threading
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch

from certcal import InputError
from certcal.data import Inputs, Rows
from certcal.lab.training import METHODS, Judged, View, recipe, train
from certcal.lab.training.parts import mean_cross_entropy
from certcal.lab.training.step import Place, StepWorker
from certcal.models.devices import torch_threads
from tests.training.digits import Modern, data, network, same_weights, small

TOGETHER = [name for name in METHODS if recipe(name, epochs=9).together]
SAMPLES = 120


def step(method, pieces, net=None, kind=torch.float32, **changes):
    some, mine = data(SAMPLES, method), (net or network(method=method)).to(kind)
    plan = small(method, batch=SAMPLES, pieces=pieces, **changes)
    worker = StepWorker(mine, "logits", plan, torch.tensor(some.inputs).to(kind), torch.tensor(some.labels))
    with torch_threads():
        return worker.step(Place(1, 3), torch.arange(SAMPLES).flip(0))


def furthest(one, other):
    """Largest difference of gradients, in parts of the largest gradient."""
    differences = [float((a - b).abs().max()) for a, b in zip(one.gradients, other.gradients, strict=True)]
    return max(differences) / max(float(a.abs().max()) for a in one.gradients)


def test_the_methods_that_look_at_a_whole_batch_are_these():
    large = [name for name in METHODS if METHODS[name].usual.get("batch") == 2048]
    assert [*large, "mmce", "perturbed"] == TOGETHER


@pytest.mark.parametrize("method", TOGETHER)
@pytest.mark.parametrize(("kind", "bound"), [(torch.float32, 1e-5), (torch.float64, 1e-12)])
def test_any_number_of_pieces_has_the_gradients_of_the_whole_batch(method, kind, bound):
    whole = step(method, 1, kind=kind)
    for pieces in (2, 5):
        cut = step(method, pieces, kind=kind)
        assert furthest(whole, cut) < bound
        assert (cut.loss, cut.correct) == (pytest.approx(whole.loss, rel=bound), whole.correct)


def test_pieces_would_change_them_if_each_had_its_own_adversary():
    whole, cut = (step("acce-act-star-sum", pieces, adversary=Unaware()) for pieces in (1, 5))
    assert furthest(whole, cut) > 0.01


@dataclass(frozen=True)
class Unaware:
    """The adversary of a batch, of which it is not known that it looks at all of it."""

    def __call__(self, target, inputs, labels, ball, keep="best"):
        from certcal.attacks import AcceAdversary

        return AcceAdversary(2)(target, inputs, labels, ball, keep)


@dataclass(frozen=True)
class Watching:
    """An objective that remembers what the adversary found."""

    seen: list = field(default_factory=list)

    def __call__(self, view: View) -> Judged:
        self.seen.append(view.found.inputs)
        return mean_cross_entropy(view)


@pytest.mark.parametrize("method", ["acce-act", "exact-act", "exact-act-ahead"])
def test_batch_normalisation_does_not_change_the_adversary_of_pieces(method):
    found = []
    for pieces in (1, 4):
        watching = Watching()
        step(method, pieces, Modern(), loss=watching)
        (inputs,) = watching.seen
        found.append(inputs)
    assert torch.allclose(found[0], found[1], atol=1e-5)


def test_running_means_are_those_that_the_pieces_make_on_average():
    plan = {"augment": "none", "epsilon": 0.0, "sigma": 0.0}
    together, apart = (step(method, 3, Modern(), **plan) for method in ("acce-act", "smoothadv"))
    for one, other in zip(together.buffers, apart.buffers, strict=True):
        assert torch.allclose(one, other, rtol=1e-5)
    assert furthest(together, apart) < 1e-5  # dropout and batch normalisation are those of each piece


def test_training_in_pieces_learns_in_any_precision():
    for precision in ("float32", "bfloat16"):
        plan = small("acce-act-star", batch=250, pieces=5, precision=precision)
        first, last = train(network(), data(), plan, device="cpu").history
        assert last["loss"] < first["loss"]


@dataclass
class Counted:
    """Inputs of which it is known where they were read."""

    array: np.ndarray
    name: str = ""
    portable: bool = False
    threads: list = field(default_factory=list)

    @property
    def shape(self):
        return self.array.shape

    def read(self, rows):
        self.threads.append((threading.current_thread().name, len(rows)))
        return self.array[rows]


@pytest.mark.parametrize("method", ["gaussian", "acce-act", "acr"])
def test_inputs_are_read_ahead_in_one_thread_and_are_the_same(method):
    some, plan = data(200), small(method, batch=50, pieces=2)
    source = Counted(np.asarray(some.inputs))
    lazy = Inputs(Rows(source), some.labels)
    before = threading.active_count()
    assert same_weights(train(network(), some, plan, device="cpu"), train(network(), lazy, plan, device="cpu"))
    ahead = [count for name, count in source.threads if name.startswith("reading ahead")]
    assert ahead == [25] * 16  # two epochs of four batches in two pieces
    assert threading.active_count() == before


def test_a_row_that_changed_is_told_of_where_training_was_called():
    class Changing(Counted):
        def read(self, rows):
            found = super().read(rows)
            return found + np.float32(0.5) if self.threads[-1][0].startswith("reading ahead") else found

    some = data(200)
    lazy = Inputs(Rows(Changing(np.asarray(some.inputs))), some.labels)
    assert lazy.fingerprint  # which reads all of them
    with pytest.raises(InputError, match="is not what it was when it was read first"):
        train(network(), lazy, small("gaussian", batch=50), device="cpu")


@dataclass(frozen=True)
class Looking:
    """An objective that calls the network several times."""

    times: int
    together: bool = True

    def __call__(self, view: View) -> Judged:
        found = [mean_cross_entropy(view) for _ in range(self.times)]
        return Judged(sum(each.loss for each in found) / self.times, found[0].log_probabilities)


def test_running_means_follow_every_call_of_the_network_and_not_the_last_alone():
    buffers = {}
    for times in (1, 2, 3):
        found = step("standard", 3, Modern(), loss=Looking(times))
        buffers[times] = [each for each in found.buffers if each.is_floating_point()]
    before = [each for each in Modern().buffers() if each.is_floating_point()]
    assert before
    keeps = 0.9  # of a running mean, in each call
    for zero, one, two, three in zip(before, *buffers.values(), strict=True):
        torch.testing.assert_close(two, one + keeps * (one - zero))
        torch.testing.assert_close(three, two + keeps**2 * (one - zero))
    counts = [each for each in step("standard", 3, Modern(), loss=Looking(2)).buffers if not each.is_floating_point()]
    assert {int(each) for each in counts} == {2}


@dataclass(frozen=True)
class Bending:
    """An objective with a derivative of a derivative."""

    together: bool = True

    def __call__(self, view: View) -> Judged:
        inputs = view.clean.detach().requires_grad_()
        found = view.target.draw_log_probabilities(inputs)[0]
        (slope,) = torch.autograd.grad(found.sum(), inputs, create_graph=True)
        return Judged(slope.square().mean(), found)


def test_second_derivatives_of_pieces_are_refused():
    assert step("standard", 1, loss=Bending()).gradients
    with pytest.raises(InputError, match=r"create_graph=True.*pass pieces=1"):
        step("standard", 2, loss=Bending())
