"""Attacks that keep labels: norm, box and label hold exactly, and confidences go where they are said to go."""

import json
import math
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

import certcal
from certcal import InputError
from certcal.attacks import Ace, Attacked, Ball, StoppingAce, Subject, Target
from certcal.attacks._ace import Schedule, ascend_within_label, backtrack, climb, cross_entropy, lead
from certcal.attacks._attacked import verify_attack
from certcal.attacks.ascent import odds_against
from certcal.attacks.ball import Norm
from certcal.metrics import ece, equal_mass_ece, top_label_brier_score
from certcal.models.networks import MLP
from tests.attacks.conftest import Trained
from tests.attacks.naive import one_ace, one_shortened, one_stopping
from tests.attacks.small import ace, one_step_ace

FOUR = [(1, "true"), (-1, "true"), (1, "predicted"), (-1, "predicted")]
BOXES: list[tuple[float, float] | None] = [(0.0, 1.0), None, (-0.3, 1.7)]


def random_network(rng: np.random.Generator, features: int, classes: int, sharpness: float) -> nn.Module:
    """A perceptron whose labels change often within a small ball."""
    network = MLP(features, hidden=(8,), classes=classes, seed=int(rng.integers(1000)))
    network.layers[-1].weight.data *= sharpness
    return network.eval().requires_grad_(False)


def labels_of(network: nn.Module, inputs: NDArray[Any]) -> NDArray[np.int64]:
    return network(torch.tensor(inputs)).argmax(1).numpy()


def objective(found: Attacked, clean: bool) -> NDArray[np.float64]:
    classes = found.labels if found.settings["omega"] == "true" else found.clean_predicted
    return found.settings["eta"] * cross_entropy(found.clean_predictions if clean else found.predictions, classes)


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize(("eta", "omega"), FOUR)
def test_thousands_of_random_attacks_keep_to_norm_box_and_label_and_lose_nothing(
    norm: Norm, eta: int, omega: Any
) -> None:
    rng = np.random.default_rng([eta + 1, omega == "true", norm == "l2"])
    moved = 0
    for _ in range(6):
        features, classes = int(rng.integers(1, 9)), int(rng.integers(2, 6))
        network = random_network(rng, features, classes, float(rng.choice([1.0, 10.0, 100.0])))
        box = BOXES[rng.integers(3)]
        low, high = (0.0, 1.0) if box is None else box
        inputs = rng.uniform(low, high, (120, features)).astype(np.float32).clip(np.float32(low), np.float32(high))
        labels, epsilon = rng.integers(0, classes, 120), float(rng.choice([1e-3, 0.1, 0.7]))
        found = ace(network, inputs, labels, eta=eta, omega=omega, epsilon=epsilon, norm=norm, box=box, steps=12)

        change = found.inputs.astype(np.float64) - inputs.astype(np.float64)
        lengths = np.abs(change).max(axis=1) if norm == "linf" else np.linalg.norm(change, axis=1)
        assert (lengths <= epsilon).all()
        assert np.array_equal(found.lengths > 0, lengths > 0)
        if box is not None:
            assert found.inputs.min() >= np.float32(low)
            assert found.inputs.max() <= np.float32(high)
        assert np.array_equal(labels_of(network, found.inputs), labels_of(network, inputs))
        assert np.array_equal(found.predicted, found.clean_predicted)
        assert np.array_equal(found.probabilities.argmax(axis=1), found.clean_probabilities.argmax(axis=1))
        assert np.array_equal(found.predictions.correct, found.clean_predictions.correct)
        assert (objective(found, clean=False) >= objective(found, clean=True)).all()
        moved += found.moved
    assert moved > 500


@pytest.mark.parametrize(("eta", "omega"), FOUR)
def test_labels_are_kept_on_the_way_already(eta: int, omega: str, trained: Trained) -> None:
    """What the final check finds to put back is next to nothing, so little is lost by it."""
    clean, labels = torch.tensor(trained.inputs[:200]), torch.tensor(trained.labels[:200])
    target = Target(trained.network)
    kept = target.log_probabilities(clean).argmax(1)
    classes = labels if omega == "true" else kept
    signs = torch.full((200,), float(eta))
    found = climb(target, clean, kept, classes, signs, Ball(0.2, "linf"), Schedule(20, 0.05, 2e-4))
    assert torch.equal(target.log_probabilities(found).argmax(1), kept)
    assert (found != clean).flatten(1).any(1).float().mean() > 0.95


def test_following_the_border_where_labels_change_reaches_more_than_stopping_there(trained: Trained) -> None:
    clean, labels = torch.tensor(trained.inputs[:200]), torch.tensor(trained.labels[:200])
    target = Target(trained.network)
    kept = target.log_probabilities(clean).argmax(1)
    reached: list[float] = []
    for barrier in (0.0, 1.0):
        schedule = Schedule(50, 0.025, 1e-4, barrier=barrier)
        found = climb(target, clean, kept, labels, torch.ones(200), Ball(0.1, "linf"), schedule)
        reached.append(functional.nll_loss(target.log_probabilities(found), labels).item())
    assert reached[1] > 1.05 * reached[0]


def test_ace_on_the_true_label_multiplies_the_calibration_error_at_the_same_accuracy(trained: Trained) -> None:
    found = ace(trained.network, trained.inputs[:400], trained.labels[:400], epsilon=0.1, steps=50)
    before, after = found.clean_predictions, found.predictions
    assert found.accuracy == found.clean_accuracy > 0.9
    assert found.changed == 0
    assert ece(after.confidence, after.correct) > 5 * ece(before.confidence, before.correct)
    assert equal_mass_ece(after.confidence, after.correct) > 5 * equal_mass_ece(before.confidence, before.correct)


def test_each_of_the_four_moves_confidences_as_it_says(trained: Trained) -> None:
    inputs, labels = trained.inputs[:300], trained.labels[:300]
    for eta, omega in FOUR:
        found = ace(trained.network, inputs, labels, eta=eta, omega=omega, epsilon=0.1, steps=20)
        before, after = found.clean_predictions.confidence, found.predictions.confidence
        right = found.predictions.correct == 1
        lower = right if omega == "true" else np.ones_like(right)
        assert (eta * (before - after)[lower]).min() >= -1e-6
        assert (eta * (before - after)[lower]).mean() > (0.3 if eta == 1 else 0.005)
        true_before, true_after = (p[np.arange(300), labels] for p in (found.clean_probabilities, found.probabilities))
        if omega == "true":
            assert (eta * (true_before - true_after)[~right]).mean() > 0.01


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize(("eta", "omega"), FOUR)
def test_ace_agrees_with_its_naive_twin(norm: Norm, eta: int, omega: str) -> None:
    rng = np.random.default_rng(1)
    network = random_network(rng, 5, 4, 5.0).double()
    clean, labels = torch.tensor(rng.random((12, 5))), torch.tensor(rng.integers(0, 4, 12))
    kept = network(clean).argmax(1)
    classes = labels if omega == "true" else kept
    signs = torch.full((12,), float(eta), dtype=torch.float64)
    found = climb(Target(network), clean, kept, classes, signs, Ball(0.3, norm), Schedule(15, 0.3 / 4, 0.3e-3))
    twin = [
        one_ace(network, clean[i], int(kept[i]), int(classes[i]), eta, 0.3, norm, (0.0, 1.0), 15) for i in range(12)
    ]
    # Steps of linf lead back to points that were there before, up to the rounding of one machine's products: whether
    # such a point is better is then a tie, after which two ways part. They end equally high.
    same = (found - torch.stack(twin)).abs().amax(1) < 1e-7
    assert same.sum() >= 11
    reached, known = (odds_against(Target(network).log_probabilities(at), classes) for at in (found, torch.stack(twin)))
    assert torch.allclose(reached, known, atol=1e-5)
    assert (found != clean).any(1).sum() > 6


def test_what_is_climbed_has_the_gradient_of_finite_differences_and_the_direction_of_the_cross_entropy() -> None:
    rng = np.random.default_rng(2)
    network = random_network(rng, 5, 4, 3.0).double()
    noise = torch.tensor(0.3 * rng.standard_normal((3, 6, 5)))
    point = torch.tensor(rng.random((6, 5))).requires_grad_(True)
    classes = torch.tensor(rng.integers(0, 4, 6))
    for target in (Target(network), Target(network, noise=noise)):

        def odds(x: Tensor, target: Target = target) -> Tensor:
            return odds_against(target.log_probabilities(x), classes)

        def leads(x: Tensor, target: Target = target) -> Tensor:
            return lead(target.log_probabilities(x), classes)

        assert torch.autograd.gradcheck(odds, (point,))
        assert torch.autograd.gradcheck(leads, (point,))
        loss = functional.nll_loss(target.log_probabilities(point), classes, reduction="none")
        assert torch.allclose(functional.softplus(odds(point)), loss)
        (ours,) = torch.autograd.grad(odds(point).sum(), point)
        (theirs,) = torch.autograd.grad(loss.sum(), point)
        assert torch.allclose(functional.normalize(ours), functional.normalize(theirs))


def test_a_network_that_is_certain_in_single_precision_is_attacked_all_the_same() -> None:
    """Its cross entropy is exactly 0, and so is the gradient of that."""
    inputs = np.array([[0.9, 0.1], [0.2, 0.8]], np.float32)

    class Sure(nn.Module):
        outputs = "logits"

        def forward(self, inputs: Tensor) -> Tensor:
            return 300 * inputs

    found = ace(Sure().eval(), inputs, [0, 1], epsilon=0.5)
    assert (found.clean_predictions.confidence == 1).all()
    assert (found.predictions.confidence < 0.6).all()
    assert found.changed == 0


def test_networks_that_return_probabilities_are_attacked_as_those_that_return_logits(trained: Trained) -> None:
    inputs, labels = trained.inputs[:50], trained.labels[:50]
    rows = ace(nn.Sequential(trained.network, nn.Softmax(1)).eval(), inputs, labels, epsilon=0.05, steps=5,
               outputs="probabilities")  # fmt: skip
    logits = ace(trained.network, inputs, labels, epsilon=0.05, steps=5)
    assert rows.predictions.kind == "probabilities"
    assert rows.changed == logits.changed == 0
    assert np.allclose(rows.probabilities, logits.probabilities, atol=1e-2)
    assert rows.predictions.confidence.mean() < rows.clean_predictions.confidence.mean() - 0.05


def test_a_perceptron_of_scikit_learn_is_attacked_and_judged_by_its_own_predictions(trained: Trained) -> None:
    from sklearn.neural_network import MLPClassifier

    network = MLPClassifier((16,), max_iter=1, random_state=0)
    for _ in range(3):
        network.partial_fit(trained.inputs.reshape(-1, 64), trained.labels, classes=np.arange(10))
    inputs, labels = trained.inputs[:50], trained.labels[:50]
    found = ace(network, inputs, labels, epsilon=0.05, steps=5)
    for points, probabilities in ((inputs, found.clean_probabilities), (found.inputs, found.probabilities)):
        assert np.array_equal(probabilities, network.predict_proba(points.reshape(-1, 64)))
    assert found.changed == 0
    assert found.moved == 50
    assert (objective(found, clean=False) > objective(found, clean=True)).mean() > 0.9


def test_the_final_check_gives_clean_inputs_back_where_labels_changed_or_the_objective_fell(trained: Trained) -> None:
    inputs, labels = trained.inputs[:100], trained.labels[:100]
    about = Subject.of(trained.network, inputs, labels, box=None, batch=30)
    clean = about.predict(about.inputs)
    other = np.roll(inputs, 1, axis=0)
    found = verify_attack(Ace(), about, about.ball(1.0), clean, other)
    kept = labels_of(trained.network, other) == labels_of(trained.network, inputs)
    assert not kept.all()
    assert found.changed == 0
    assert np.array_equal(found.inputs[~kept], inputs[~kept])
    assert (objective(found, clean=False) >= objective(found, clean=True)).all()
    assert found.moved < kept.sum()


def test_a_model_that_changes_its_mind_cannot_be_verified() -> None:
    class Fickle(nn.Module):
        outputs = "logits"

        def __init__(self) -> None:
            super().__init__()
            self.calls = 0

        def forward(self, inputs: Tensor) -> Tensor:
            self.calls += 1
            return inputs if self.calls == 1 else -inputs

    with pytest.raises(InputError, match="same label twice"):
        ace(Fickle().eval(), np.array([[0.9, 0.2]] * 3, np.float32), [0, 0, 0], epsilon=0.01, steps=2)


def test_ties_go_to_the_first_class_and_stay_there() -> None:
    class Equal(nn.Module):
        outputs = "logits"

        def forward(self, inputs: Tensor) -> Tensor:
            return torch.stack((inputs[:, 0], inputs[:, 0], inputs[:, 1]), 1)

    inputs = np.array([[0.5, 0.25], [0.5, 0.5], [0.25, 0.5]], np.float32)
    found = ace(Equal().eval(), inputs, [0, 1, 2], epsilon=0.5, steps=10)
    assert found.clean_predicted.tolist() == found.predicted.tolist() == [0, 0, 2]


def test_the_same_seed_gives_the_same_bits_and_batches_make_no_difference(trained: Trained) -> None:
    inputs, labels = trained.inputs[:40], trained.labels[:40]

    def run(**options: Any) -> Attacked:
        return ace(trained.network, inputs, labels, epsilon=0.3, norm="l2", steps=5, sigma=0.3, draws=4, **options)

    first, again, other, parts = run(seed=1), run(seed=1), run(seed=2), run(seed=1, batch=50)
    assert np.array_equal(first.inputs, again.inputs)
    assert np.array_equal(first.probabilities, again.probabilities)
    assert not np.array_equal(first.inputs, other.inputs)
    assert np.allclose(first.probabilities, parts.probabilities, atol=1e-3)


def test_the_label_of_a_smoothed_classifier_is_that_of_the_average_over_its_noise(trained: Trained) -> None:
    inputs, labels = trained.inputs[:50], trained.labels[:50]
    found = ace(trained.network, inputs, labels, epsilon=0.4, norm="l2", steps=8, sigma=0.4, draws=5, seed=3)
    about = Subject.of(trained.network, inputs, labels, norm="l2", sigma=0.4, draws=5, seed=3)
    noise = about.model_for(slice(0, 50), torch.zeros(50)).noise
    assert noise is not None
    assert noise.shape == (5, 50, 1, 8, 8)
    assert noise.std().item() == pytest.approx(0.4, rel=0.02)
    for points, expected in ((inputs, found.clean_probabilities), (found.inputs, found.probabilities)):
        mean = torch.stack([torch.softmax(trained.network(torch.tensor(points) + each), 1) for each in noise]).mean(0)
        assert np.allclose(mean.numpy(), expected, atol=1e-5)
    assert found.changed == 0
    assert found.settings["sigma"] == 0.4
    assert (found.predictions.confidence - found.clean_predictions.confidence)[
        found.predictions.correct == 1
    ].mean() < 0


def test_nothing_moves_when_epsilon_is_zero(trained: Trained) -> None:
    for norm in ("l2", "linf"):
        found = ace(trained.network, trained.inputs[:20], trained.labels[:20], epsilon=0.0, norm=norm, steps=3)
        assert found.moved == 0
        assert np.array_equal(found.inputs, trained.inputs[:20])


def test_the_result_says_what_was_found_and_can_be_written_as_json(trained: Trained) -> None:
    told: list[tuple[int, int]] = []
    found = ace(
        trained.network, trained.inputs[:60], trained.labels[:60], epsilon=0.1, steps=10, batch=25,
        progress=lambda done, total: told.append((done, total)),
    )  # fmt: skip
    assert told == [(25, 60), (50, 60), (60, 60)]
    assert found.name == "(+1, y)-ACE"
    document = json.loads(json.dumps(found.to_dict()))
    assert document["labels_changed"] == 0
    assert document["settings"]["norm"] == "linf"
    assert "no label changed (verified)" in found.sentence
    assert "at least" in found.sentence
    with pytest.raises(TypeError):
        found.settings["norm"] = "l2"  # pyright: ignore[reportIndexIssue]
    with pytest.raises(ValueError, match="read-only"):
        found.inputs[0] = 0


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"inputs": np.full((4, 3), 1.5)}, r"inputs\[0, 0\] is 1.5, outside of 0 to 1"),
        ({"inputs": np.full((4, 3), math.nan)}, r"inputs\[0, 0\] is nan"),
        ({"inputs": np.full((4, 2), 0.5)}, "failed on a batch of shape"),
        ({"inputs": np.full(4, 0.5)}, "inputs has shape"),
        ({"labels": [0, 1, 5, 0]}, r"labels\[2\] is 5; labels are whole numbers from 0 to 2"),
        ({"labels": [0, 1]}, "lengths differ"),
        ({"epsilon": -1.0}, "epsilon is -1.0"),
        ({"epsilon": math.nan}, "epsilon is nan"),
        ({"epsilon": None}, "epsilon is None"),
        ({"norm": "l1"}, "norm is 'l1'"),
        ({"eta": 2}, "eta is 2"),
        ({"omega": "y"}, "omega is 'y'"),
        ({"steps": 0}, "steps is 0"),
        ({"step": -1.0}, "step is -1.0"),
        ({"sigma": 0.0}, "sigma is 0.0"),
        ({"sigma": 0.5, "draws": 0}, "draws is 0"),
        ({"batch": 0}, "batch is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"box": (1.0, 0.0)}, "box is"),
        ({"box": (1.0,)}, "box is"),
        ({"box": 1.0}, "box is 1.0"),
        ({"model": lambda batch: batch, "outputs": "logits"}, "gives no gradients"),
        ({"model": MLP(3, hidden=(4,), classes=3)}, "training mode"),
        ({"model": "nowhere.safetensors"}, "no such file"),
    ],
)
def test_bad_input_is_one_sentence(change: dict[str, Any], complaint: str) -> None:
    given: dict[str, Any] = {
        "model": MLP(3, hidden=(4,), classes=3).eval(),
        "inputs": np.full((4, 3), 0.5),
        "labels": [0, 1, 2, 0],
        "epsilon": 0.1,
        "steps": 2,
    }
    with pytest.raises(InputError, match=complaint):
        ace(**given | change)


def test_outputs_that_are_not_numbers_are_named() -> None:
    class Broken(nn.Module):
        outputs = "logits"

        def forward(self, inputs: Tensor) -> Tensor:
            return inputs / (inputs != 0.25)

    inputs = np.array([[0.5, 0.75], [0.25, 0.5]], np.float32)
    with pytest.raises(InputError, match=r"logits\[1, 0\] is"):
        ace(Broken().eval(), inputs, [0, 1], epsilon=0.1)


def test_outputs_that_become_nan_on_the_way_end_nothing() -> None:
    class Cliff(nn.Module):
        outputs = "logits"

        def forward(self, inputs: Tensor) -> Tensor:
            return torch.where(inputs > 0.6, torch.nan, inputs)

    found = ace(Cliff().eval(), np.array([[0.5, 0.25]], np.float32), [0], eta=-1, epsilon=0.3)
    assert found.clean_predictions.confidence[0] < found.predictions.confidence[0]
    assert found.inputs[0, 0] <= 0.6


# --- one step ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_random_steps_keep_to_norm_box_and_label(norm: Norm) -> None:
    rng = np.random.default_rng(7)
    for _ in range(10):
        features, classes = int(rng.integers(1, 9)), int(rng.integers(2, 6))
        network = random_network(rng, features, classes, float(rng.choice([1.0, 30.0])))
        inputs, labels = rng.random((100, features), np.float32), rng.integers(0, classes, 100)
        epsilon = float(rng.choice([0.01, 0.2, 0.9]))
        found = one_step_ace(network, inputs, labels, epsilon=epsilon, norm=norm)
        change = found.inputs.astype(np.float64) - inputs
        assert ((np.abs(change).max(1) if norm == "linf" else np.linalg.norm(change, axis=1)) <= epsilon).all()
        assert found.inputs.min() >= 0
        assert found.inputs.max() <= 1
        assert np.array_equal(labels_of(network, found.inputs), labels_of(network, inputs))
        right = found.predictions.correct == 1
        rise = found.predictions.confidence.astype(np.float64) - found.clean_predictions.confidence
        assert rise[right].max(initial=0) <= 1e-6
        assert rise[~right].min(initial=0) >= -1e-6


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_one_step_agrees_with_its_naive_twin(norm: Norm) -> None:
    rng = np.random.default_rng(3)
    network = random_network(rng, 5, 4, 5.0).double()
    clean = torch.tensor(rng.random((30, 5)))
    kept, right = network(clean).argmax(1), torch.tensor(rng.random(30) < 0.7)
    signs = torch.where(right, 1.0, -1.0).double()
    found = backtrack(Target(network), clean, kept, signs, Ball(0.4, norm), 0.5, 15)
    twin = [one_shortened(network, clean[i], int(kept[i]), bool(right[i]), 0.4, norm, (0.0, 1.0)) for i in range(30)]
    assert torch.allclose(found, torch.stack(twin), atol=1e-9)
    full = found - clean
    size = full.abs().amax(1) if norm == "linf" else full.norm(dim=1)
    assert (size < 0.19).any()  # some had to be shortened


def test_it_raises_the_brier_score_and_many_steps_raise_the_objective_more(trained: Trained) -> None:
    inputs, labels = trained.inputs[:300], trained.labels[:300]
    one = one_step_ace(trained.network, inputs, labels, epsilon=0.1)
    many = ace(trained.network, inputs, labels, epsilon=0.1, steps=30)

    def brier(predictions: Any) -> float:
        return top_label_brier_score(predictions.confidence, predictions.correct)

    assert one.accuracy == one.clean_accuracy
    assert brier(one.predictions) > 2 * brier(one.clean_predictions)
    right = one.predictions.correct == 1
    assert many.predictions.confidence[right].mean() < one.predictions.confidence[right].mean()


def test_a_sample_for_which_no_length_keeps_the_label_stays(trained: Trained) -> None:
    inputs, labels = trained.inputs[:100], trained.labels[:100]
    once = one_step_ace(trained.network, inputs, labels, epsilon=0.3, attempts=1)
    often = one_step_ace(trained.network, inputs, labels, epsilon=0.3)
    assert once.moved < often.moved == 100
    assert once.changed == often.changed == 0


@pytest.mark.parametrize(
    ("options", "complaint"), [({"decay": 1.0}, "decay is 1.0"), ({"attempts": 0}, "attempts is 0")]
)
def test_bad_settings_of_one_step_are_one_sentence(trained: Trained, options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        one_step_ace(trained.network, trained.inputs[:3], trained.labels[:3], epsilon=0.1, **options)


@pytest.mark.parametrize(("eta", "omega"), FOUR[:2])
def test_the_published_attack_stops_where_the_label_would_change(eta: int, omega: str) -> None:
    rng = np.random.default_rng(5)
    network = random_network(rng, 5, 4, 6.0).double()
    clean = torch.tensor(rng.random((12, 5)))
    kept = network(clean).argmax(1)
    classes = torch.tensor(rng.integers(0, 4, 12))
    found = ascend_within_label(Target(network), clean, kept, classes, torch.full((12,), eta), Ball(0.3, "l2"), 20, 0.5)
    twin = [
        one_stopping(network, clean[i], int(kept[i]), int(classes[i]), eta, 0.3, "l2", (0.0, 1.0), 20, 0.5)
        for i in range(12)
    ]
    assert torch.allclose(found, torch.stack(twin), atol=1e-7)
    assert torch.equal(network(found).argmax(1), kept)
    assert (found != clean).any(1).sum() > 4
    data = rng.random((40, 5)).astype(np.float32), rng.integers(0, 4, 40)
    single = network.float()
    ours, theirs = (
        certcal.attack(single, data, epsilon=0.3, attacks=[name], steps=30, box=None)[name]
        for name in ("plus-true", "stopping-plus-true")
    )
    assert theirs.changed == 0
    assert theirs["nll"].value <= ours["nll"].value
    with pytest.raises(InputError, match="learning rate and no length"):
        StoppingAce(step=0.1)
