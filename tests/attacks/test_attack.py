"""``certcal.attack``: attacks by name and of one's own, measured, saved and shown."""

import json
import tracemalloc
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import certcal
from certcal import InputError
from certcal._base.signature import specs_of
from certcal.attacks import Ace, AttackMethod, OneStepAce, Pgd, StoppingAce, perturb
from certcal.claims import Estimate
from certcal.data import PartsMissingError, read_inputs
from certcal.metrics import ece, equal_mass_ece, nll
from certcal.models.networks import MLP
from certcal.report.document import Heading
from certcal.report.numbers import number
from certcal.verbs.attack import ATTACKS, Attack, _method_of_name
from tests.attacks.conftest import Trained
from tests.attacks.small import ace
from tests.report.attacked import attack_result

OWN = tuple(name for name in ATTACKS if not name.startswith("stopping-"))


@pytest.fixture(scope="module")
def found(trained: Trained) -> Attack:
    data = trained.inputs[:200], trained.labels[:200]
    return certcal.attack(trained.network, data, epsilon=(0.1, 0.05), attacks=OWN, steps=15, keep_inputs=True)


def value(row: Any, name: str) -> float:
    return row[name].value


def test_there_is_a_row_for_every_attack_and_distance_smallest_first(found: Attack) -> None:
    assert [(row.attack, row.epsilon) for row in found] == [(a, e) for e in (0.05, 0.1) for a in OWN]
    assert found.epsilons == (0.05, 0.1)
    assert (found.clean.attack, found.clean.epsilon, len(found), found.n) == ("", 0, 10, 200)


def test_every_name_stands_for_the_attack_that_is_called_so() -> None:
    made = [_method_of_name(name, 7) for name in ATTACKS]
    assert [each.key for each in made] == list(ATTACKS)
    aims = [(eta, omega) for omega in ("true", "predicted") for eta in (-1, 1)]
    stopping = [StoppingAce(eta, omega, 7) for eta, omega in aims]
    assert made == [*(Ace(eta, omega, 7) for eta, omega in aims), OneStepAce(), *stopping]
    assert all(isinstance(each, AttackMethod) for each in (*made, Pgd()))


def test_the_signature_names_every_attack_and_its_help_says_what_each_does() -> None:
    spec = specs_of(certcal.attack)["attacks"]
    assert spec.choices == tuple(ATTACKS)
    assert all(f"{name} ({entry.help})" in spec.help for name, entry in ATTACKS.items())


def test_no_attack_changes_a_label_or_the_accuracy(found: Attack) -> None:
    assert all(row.changed == 0 for row in found)
    assert {value(row, "accuracy") for row in found} == {value(found.clean, "accuracy")}
    clean = found.rows[0].attacked.clean_predictions
    assert all(np.array_equal(row.attacked.predictions.correct, clean.correct) for row in found)


def test_rows_are_what_the_attacks_find_alone_and_what_the_metrics_say(found: Attack, trained: Trained) -> None:
    alone = ace(trained.network, trained.inputs[:200], trained.labels[:200], eta=-1, epsilon=0.1, steps=15, box=None)
    row = found["minus-true", 0.1]
    assert np.array_equal(alone.inputs, row.attacked.inputs)
    after = alone.predictions
    assert value(row, "ece") == ece(after.confidence, after.correct, 15)
    assert value(row, "equal_mass_ece") == equal_mass_ece(after.confidence, after.correct, 15)
    assert value(row, "nll") == nll(after.logits, after.labels, from_logits=True)
    assert value(row, "mean_confidence") == pytest.approx(after.confidence.mean(dtype=np.float64))
    assert row.measured.reliability.ece == value(row, "ece")


def test_attacks_do_to_likelihood_and_confidence_what_they_say(found: Attack) -> None:
    clean = found.clean
    for epsilon in found.epsilons:
        losses = [value(row, "nll") for row in (found["plus-true", epsilon], clean, found["minus-true", epsilon])]
        assert losses == sorted(losses, reverse=True)
        up, down = found["minus-predicted", epsilon], found["plus-predicted", epsilon]
        assert value(down, "mean_confidence") < value(clean, "mean_confidence") < value(up, "mean_confidence")
        assert value(found["one-step", epsilon], "top_label_brier_score") > value(clean, "top_label_brier_score")
    assert value(found["plus-true", 0.1], "nll") > value(found["plus-true", 0.05], "nll")
    assert value(found["plus-true", 0.1], "equal_mass_ece") > 4 * value(clean, "equal_mass_ece")


def test_claims_are_estimates_that_name_their_attack_and_the_sentence_says_at_least(found: Attack) -> None:
    first, *rest = found.claims()
    assert found.strongest is found["plus-true", 0.1]
    assert first.value == max(value(row, "equal_mass_ece") for row in found)
    assert first.settings["epsilon"] == 0.1
    assert "(+1, y)-ACE" in first.sentence
    assert all(isinstance(each, Estimate) for each in (first, *rest))
    assert len(rest) == 11 * 7 - 1
    assert "at least" in found.sentences[0]
    assert "not the worst case" in found.sentences[2]
    assert "(+1, y)-ACE" in repr(found)


def test_numbers_of_a_smoothed_classifier_say_that_they_are_of_the_draws(trained: Trained, found: Attack) -> None:
    data = trained.inputs[:20], trained.labels[:20]
    options: Any = {"epsilon": 0.05, "attacks": "plus-true", "steps": 2, "sigma": 0.25, "draws": 3, "seed": 5}
    smoothed = certcal.attack(trained.network, data, **options)
    for sentence in (smoothed.sentences[0], smoothed["plus-true"].attacked.sentence):
        assert "of the mean over 3 fixed draws of noise" in sentence
    assert "draws" not in found.sentences[0]
    assert (smoothed.seeds, found.seeds) == ({"noise of the smoothed classifier": 5}, {})


def test_an_attack_that_gains_nothing_says_that_this_proves_nothing(trained: Trained) -> None:
    nothing = certcal.attack(trained.network, (trained.inputs[:20], trained.labels[:20]), epsilon=0.0, steps=1)
    assert "no attack raised it" in nothing.sentences[0]


def test_a_row_that_is_not_there_or_not_the_only_one_is_named(found: Attack) -> None:
    with pytest.raises(KeyError, match="names 2 rows"):
        found["plus-true"]
    with pytest.raises(KeyError, match="names no rows"):
        found["plus-true", 0.2]


def test_json_and_table_hold_every_number(found: Attack) -> None:
    document = json.loads(found.to_json())
    assert (document["n"], document["conventions"]["box"], len(document["attacks"])) == (200, None, 10)
    table = found.to_arrow().to_pylist()
    assert [line["value"] for line in table] == [
        each.value for row in (found.clean, *found) for each in row.measured.rows
    ]
    assert table[0]["attack"] is None
    assert {line["attack"] for line in table[7:]} == set(OWN)


def test_saved_predictions_and_inputs_are_read_back(tmp_path: Path) -> None:
    expected = attack_result(attacks=["plus-true"], keep_inputs=True)
    kept = tmp_path / "kept"
    made = attack_result(attacks=["plus-true"], save=kept, save_inputs=True)
    again = certcal.measure(kept / "plus-true-32-255.parquet", metrics="ece")
    assert (
        again["ece"].value == made["plus-true", 32 / 255]["ece"].value == expected["plus-true", 32 / 255]["ece"].value
    )
    moved = read_inputs(kept / "plus-true-32-255")
    assert np.array_equal(moved.inputs, expected["plus-true", 32 / 255].attacked.inputs)
    assert np.array_equal(moved.labels, made.rows[0].attacked.labels)
    assert made.rows[0].attacked.inputs.size == 0  # on the disk, and not in memory
    written = expected.save_predictions(tmp_path)
    assert [path.name for path in written] == ["clean.parquet", *(f"plus-true-{k}-255.parquet" for k in (2, 32))]
    with pytest.raises(InputError, match="is not overwritten"):
        expected.save_predictions(tmp_path)
    assert expected.save_predictions(tmp_path, force=True) == written


# --- in pieces and parts: 2,500 samples are three pieces --------------------------------------------------------------

ASKED: dict[str, Any] = {"n": 2500, "attacks": ["plus-true"], "epsilon": 0.1, "steps": 2, "restarts": 2}


@pytest.fixture(scope="module")
def whole() -> Attack:
    return attack_result(**ASKED, sigma=0.1, draws=2)


def same(one: Attack, two: Attack) -> bool:
    rows = zip(one.rows, two.rows, strict=True)
    return all(
        np.array_equal(a.attacked.probabilities, b.attacked.probabilities) and a.restarts_won == b.restarts_won
        for a, b in rows
    )


def test_pieces_find_what_all_samples_at_once_find() -> None:
    rng, network = np.random.default_rng(0), MLP(4, hidden=(8,), classes=3).eval()
    data = rng.random((1300, 4), np.float32), rng.integers(0, 3, 1300)
    how: dict[str, Any] = {"sigma": 0.1, "draws": 2, "box": (0, 1), "epsilon": 0.1, "restarts": 2}
    at_once = perturb(network, *data, Ace(1, "true", 2), **how)
    found = certcal.attack(network, data, attacks="plus-true", steps=2, keep_inputs=True, **how).rows[0].attacked
    assert np.array_equal(found.inputs, at_once.inputs)
    assert np.array_equal(found.probabilities, at_once.probabilities)
    assert found.settings == at_once.settings


def test_parts_in_any_order_find_what_one_process_finds(tmp_path: Path, whole: Attack) -> None:
    given = {**ASKED, "sigma": 0.1, "draws": 2, "save": tmp_path / "kept", "save_inputs": True}
    with pytest.raises(PartsMissingError, match=r"part 2 of 2 is done, and part 1 of 2 is missing; .* for part 1/2$"):
        attack_result(**given, part="2/2")
    assert same(attack_result(**given, part="1/2"), whole)
    assert same(attack_result(**given), whole)  # nothing is left to do
    for change, sentence in (
        ({"steps": 3}, "it was begun with steps = 2, and 3 is asked for"),
        ({"part": "1/3"}, "was begun in 2 parts, and 1/3 is asked for"),
        ({"n": 2400}, "it was begun with .* = .*, and .* is asked for"),
    ):
        with pytest.raises(InputError, match=sentence):
            attack_result(**{**given, **change})


def test_an_attack_that_stops_in_the_middle_resumes_and_a_damaged_piece_is_done_again(
    tmp_path: Path, whole: Attack
) -> None:
    given = {**ASKED, "sigma": 0.1, "draws": 2, "save": tmp_path / "kept"}

    class StoppedError(Exception):
        pass

    def stop(stage: str, done: int, total: int | None) -> None:
        if done > 1500:
            raise StoppedError

    with pytest.raises(StoppedError):
        attack_result(**given, progress=stop)
    pieces = sorted((tmp_path / "kept" / "work").glob("*.npz"))
    assert [path.name for path in pieces] == ["samples-0-1000.npz"]
    written = pieces[0].stat().st_mtime_ns
    steps: list[int | None] = []
    assert same(attack_result(**given, progress=lambda stage, done, total: steps.append(total)), whole)
    assert (pieces[0].stat().st_mtime_ns, steps[-1]) == (written, 1500)  # of the other two pieces
    content = bytearray(pieces[0].read_bytes())
    content[len(content) // 2] ^= 1
    pieces[0].write_bytes(bytes(content))
    assert same(attack_result(**given), whole)


class Fade:
    """An attack of one's own with a parameter."""

    name = "fade"

    def __init__(self, share: float) -> None:
        self.share = share

    def run(self, model: Any, inputs: Any, labels: Any, epsilon: float) -> Any:
        return model.ball(epsilon).seal(inputs, inputs - self.share * epsilon)


def test_an_attack_with_other_parameters_or_outputs_does_not_resume(tmp_path: Path) -> None:
    network, data = MLP(2, hidden=(4,), classes=2).eval(), ([[0.5, 0.9], [0.7, 0.1]], [1, 0])
    given: dict[str, Any] = {"epsilon": 0.1, "save": tmp_path / "kept"}
    certcal.attack(network, data, **given, outputs="logits", attacks=[Fade(0.5)])
    certcal.attack(network, data, **given, outputs="logits", attacks=[Fade(0.5)])
    with pytest.raises(InputError, match=r"begun with attacks = \['fade\(share=0.5\)'\], and \['fade\(share=1.0\)'\]"):
        certcal.attack(network, data, **given, outputs="logits", attacks=[Fade(1.0)])
    softmax = torch.nn.Sequential(network, torch.nn.Softmax(1)).eval()
    certcal.attack(softmax, data, epsilon=0.1, save=tmp_path / "other", outputs="probabilities", attacks=[Fade(0.5)])
    with pytest.raises(InputError, match="begun with outputs = probabilities, and logits is asked for"):
        certcal.attack(softmax, data, epsilon=0.1, save=tmp_path / "other", outputs="logits", attacks=[Fade(0.5)])


def test_saved_inputs_are_of_one_attack(tmp_path: Path) -> None:
    given: dict[str, Any] = {"attacks": ["plus-true"], "epsilon": 0.1, "save": tmp_path, "save_inputs": True}
    attack_result(**given, n=20)
    moved = tmp_path / "plus-true-0.1" / "inputs.npy"
    for path in (*(tmp_path / "work").iterdir(), *tmp_path.glob("*.parquet")):
        path.unlink()
    with pytest.raises(InputError, match=r"inputs.npy.* is not overwritten"):
        attack_result(**given, n=10)
    attack_result(**given, n=10, force=True)
    assert len(read_inputs(moved.parent)) == len(np.load(moved)) == 10
    moved.unlink()
    with pytest.raises(InputError, match=r"inputs.npy is gone, and inputs were written to it before"):
        attack_result(**given, n=10)


def test_pieces_keep_one_attacks_inputs_in_memory_and_no_more() -> None:
    def peak(n: int) -> int:
        tracemalloc.start()
        rng = np.random.default_rng(0)
        images = rng.random((n, 3000), np.float32)
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        network = MLP(3000, hidden=(2,), classes=2).eval()
        certcal.attack(network, (images, rng.integers(0, 2, n)), epsilon=[0.1, 0.2], steps=1, attacks=["one-step"])
        found = tracemalloc.get_traced_memory()[1] - before
        tracemalloc.stop()
        return found

    few, many = peak(1000), peak(4000)
    assert many - few < 2 * 3000 * 3000 * 4  # a copy of the inputs, what is read at a time, and none for the attacks


def test_the_report_holds_every_number_of_every_attack_and_the_strongest_is_drawn() -> None:
    made = attack_result()
    report = made.report()
    claim = report.headline[0]
    assert claim.sentence == made.sentences[0]
    (table,) = next(section.blocks for section in report.sections if section.title == "Attacks")
    lines = [line for line in table.texts() if not isinstance(line, Heading)]
    names = ("equal_mass_ece", "ece", "mean_confidence", "accuracy", "top_label_brier_score", "nll")
    for line, row in zip(lines, (made.clean, *made), strict=True):
        assert [line[0], *line[2:]] == [row.name, *(number(value(row, name)) for name in names)]
    assert [line.text for line in table.texts() if isinstance(line, Heading)] == [
        "Within ε = 2/255 (ℓ∞)",
        "Within ε = 32/255 (ℓ∞)",
    ]
    drawn = report.charts()
    assert [chart.title for chart in drawn[:2]] == ["unattacked", f"{made.strongest.name}, ε = 32/255 (ℓ∞)"]
    assert len(drawn) == 9
    assert [str(made).count(sign) for sign in ("mean confidence ┃", "accuracy ███")] == [2, 2]
    assert "No predicted label changed (verified)" in str(made)


# --- attacks of one's own ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entropy:
    """Raises the entropy by sign steps."""

    steps: int = 4
    name: str = "entropy"

    def run(self, model: Any, inputs: Any, labels: Any, epsilon: float) -> Any:
        moved = inputs
        for _ in range(self.steps):
            at = moved.detach().requires_grad_(True)
            logarithms = model(at)
            (gradient,) = torch.autograd.grad(-(logarithms.exp() * logarithms).sum(), at)
            moved = model.ball(epsilon).project(inputs, moved + epsilon / 2 * gradient.sign())
        return moved


class Returning:
    """Returns what a function makes of the clean inputs."""

    name = "returning"

    def __init__(self, make: Any) -> None:
        self.make = make

    def run(self, model: Any, inputs: Any, labels: Any, epsilon: float) -> Any:
        return self.make(inputs)


def run_own(trained: Trained, *attacks: Any, **more: Any) -> Attack:
    data = trained.inputs[:40], trained.labels[:40]
    given = {"epsilon": 0.05, "attacks": attacks, "box": (0, 1), "keep_inputs": True, **more}
    return certcal.attack(trained.network, data, **given)


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_an_attack_of_ones_own_runs_beside_the_built_in_ones(trained: Trained, norm: str) -> None:
    found = run_own(trained, Entropy(), "plus-predicted", norm=norm, steps=4, epsilon=[0.05, 0.1])
    row = found["entropy", 0.1]
    assert (row.attacked.lengths <= 0.1).all()
    assert (row.attacked.inputs.min() >= 0, row.attacked.inputs.max() <= 1) == (True, True)
    assert row.changed == 0
    assert value(row, "mean_confidence") < value(found.clean, "mean_confidence")
    assert row.attacked.settings["steps"] == 4
    assert [each.attack for each in found] == ["entropy", "plus-predicted"] * 2


def test_a_sample_whose_label_an_attack_changes_gets_its_clean_input_back(trained: Trained) -> None:
    swapped = run_own(trained, Returning(lambda inputs: inputs.flip(0)), epsilon=1.0, batch=40)
    row = swapped["returning"]
    back = row.attacked.lengths == 0
    assert row.changed == 0
    assert 0 < back.sum() < 40
    assert np.array_equal(row.attacked.inputs[back], trained.inputs[:40][back])


def test_an_attack_that_says_so_may_change_labels_and_that_is_counted(trained: Trained) -> None:
    found = run_own(trained, Pgd(10), epsilon=0.5, norm="l2")
    assert found["pgd"].changed > 0
    assert value(found["pgd"], "accuracy") < value(found.clean, "accuracy")
    assert f"{found.changed} predicted labels changed" in found.sentences[1]


def test_what_rounding_puts_outside_is_brought_back(trained: Trained) -> None:
    for epsilon in (0.05, 0.3):
        plain = Returning(lambda inputs, epsilon=epsilon: (inputs + epsilon * (0.5 - inputs).sign()).clamp(0, 1))
        lengths = run_own(trained, plain, epsilon=epsilon)["returning"].attacked.lengths
        assert (0.99 * epsilon < lengths.max(), (lengths <= epsilon).all()) == (True, True)


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda inputs: inputs + 0.06, r"returning moved inputs\[0\] by 0.06.* further than epsilon, 0.05"),
        (lambda inputs: inputs - 0.04, r"returning took inputs\[0\] 0.04 outside the box from 0 to 1"),
        (lambda inputs: inputs * torch.nan, r"returning returned inputs\[0\] with values that are not finite"),
        (lambda inputs: inputs[:, :, 1:], r"returning returned inputs of shape \(40, 1, 7, 8\) for \(40, 1, 8, 8\)"),
        (lambda inputs: None, "returning returned a NoneType; return a tensor"),
    ],
)
def test_an_attack_that_returns_what_it_may_not_is_refused(trained: Trained, make: Any, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        run_own(trained, Returning(make))


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"epsilon": ()}, "epsilon: "),
        ({"epsilon": (0.1, -0.1)}, "epsilon: "),
        ({"epsilon": "8/255"}, "epsilon: '8/255' is not a number"),
        ({"attacks": ()}, "attacks: there is none"),
        ({"attacks": "+1"}, r"attacks: '\+1' is not one of 'minus-true'"),
        ({"attacks": [Entropy]}, "an attack is the class Entropy; pass an object with a name and run"),
        ({"attacks": [3]}, "an attack is of type int"),
        ({"attacks": [Entropy(1), Entropy(2)]}, "attacks: two are called 'entropy'"),
        ({"bins": 0}, "bins: 0 is not a whole number from 1"),
        ({"box": (1, 0)}, "box: "),
        ({"draws": 3}, "draws: it is for the smoothed classifier; give sigma as well"),
        ({"epsilons": 0.1}, "unexpected argument 'epsilons'"),
    ],
)
def test_bad_input_is_one_sentence(trained: Trained, options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        run_own(trained, "one-step", **options)


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_restarts_keep_the_best_per_sample_and_every_promise(trained: Trained, norm: str) -> None:
    data, steps = (trained.inputs[:60], trained.labels[:60]), 4
    epsilon = 0.1 if norm == "linf" else 1.0
    options: Any = {"epsilon": epsilon, "norm": norm, "steps": steps, "attacks": ["plus-true", Pgd(steps)]}
    once, thrice = (certcal.attack(trained.network, data, **options, restarts=times) for times in (1, 3))
    batches = certcal.attack(trained.network, data, **options, restarts=3, batch=7)
    for before, row, other in zip(once, thrice, batches, strict=True):
        assert before.attacked is not None
        assert row.attacked is not None
        method = Ace(steps=steps) if row.attack == "plus-true" else Pgd(steps)
        values = [
            method.objective(each.attacked.predictions, before.attacked.clean_predicted) for each in (before, row)
        ]
        assert np.all(values[1] >= values[0] - 1e-6)
        assert row.restarts_won == int((values[1] > values[0]).sum()) > 0
        assert (before.restarts_won, other.restarts_won) == (None, row.restarts_won)  # a stream per sample
        assert row.attacked.lengths.max() <= epsilon
        assert row.attack != "plus-true" or row.changed == 0
    assert json.loads(thrice.to_json())["conventions"]["restarts"] == 3
    assert "restarts" not in json.loads(once.to_json())["conventions"]
    assert thrice.seeds == {"random starts": 0}
    assert "ran 3 times" in str(thrice.report().to_html() if hasattr(thrice.report(), "to_html") else thrice)


def test_an_attack_that_begins_at_the_clean_input_runs_once(trained: Trained) -> None:
    data = trained.inputs[:20], trained.labels[:20]
    found = certcal.attack(trained.network, data, epsilon=0.1, attacks=["one-step"], restarts=4)
    assert found["one-step"].restarts_won is None
    with pytest.raises(InputError, match="restarts"):
        certcal.attack(trained.network, data, epsilon=0.1, restarts=0)
