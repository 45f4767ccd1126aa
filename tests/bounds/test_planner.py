"""How many samples are enough: what is planned is what other draws then show."""

import numpy as np
import pytest

from certcal import InputError
from certcal.bounds import PlannedSize, binned, hoeffding, ks, plan


@pytest.mark.parametrize(
    ("method", "target", "error"), [("binned", 0.1, 0.0), ("binned", 0.1, 0.04), ("ks", 0.08, 0.02)]
)
def test_other_draws_of_the_planned_size_reach_the_target_about_as_often(
    method: str, target: float, error: float
) -> None:
    found = plan(target, 0.1, method=method, error=error, power=0.8, bins=10)
    bound = {"binned": lambda z, c: binned(z, c, 10, 0.1), "ks": lambda z, c: ks(z, c, 0.1)}[method]
    rng = np.random.default_rng(99)

    def rate(n: int) -> float:
        z = rng.random((150, n))
        c = rng.random((150, n)) < z * (1 - 2 * error)  # a mean score of ½ is too high by the error
        return float(np.mean([bound(*row).value <= target for row in zip(z, c, strict=True)]))

    assert rate(found.n) > 0.65
    assert rate(found.n // 2) < 0.5


def test_what_was_tried_is_told_and_the_same_seed_gives_the_same_numbers() -> None:
    found = plan(0.15, repetitions=20, seed=3)
    assert found == plan(0.15, repetitions=20, seed=3)
    assert found != plan(0.15, repetitions=20, seed=4)
    sizes = [each.n for each in found.curve]
    assert sizes == sorted(set(sizes))
    enough = next(each for each in found.curve if each.chance >= 0.9)
    assert isinstance(enough, PlannedSize)
    assert enough.n <= found.n < 1.15 * enough.n
    bounds = [each.bound for each in found.curve]
    assert bounds == sorted(bounds, reverse=True)
    assert found.settings == {
        "method": "binned",
        "bins": 15,
        "scores": "evenly from 0 to 1",
        "repetitions": 20,
        "seed": 3,
    }
    assert found.sentence.endswith("if it is 0; an estimate by simulation.")
    assert len(found.sentence.split()) <= 30
    assert found.to_dict()["curve"][0] == found.curve[0]._asdict()


def test_a_smaller_target_a_larger_error_and_more_power_take_more_samples() -> None:
    least = plan(0.2).n
    assert least < plan(0.12).n
    assert least < plan(0.2, error=0.1).n
    assert least < plan(0.2, power=0.99).n
    assert least < plan(0.2, 0.001).n


def test_scores_of_rare_events_take_fewer_samples_and_a_function_of_ones_own_is_taken() -> None:
    rare = np.random.default_rng(0).beta(1, 30, 500)
    assert plan(0.1, scores=rare).n < 0.6 * plan(0.1).n
    assert plan(0.1, scores=rare, error=0.05).error == 0.05  # above what these can be too high by

    def brier(z, c, delta):
        upper = hoeffding(np.mean((z - c) ** 2), z.size, delta, side="upper").upper
        return type("Found", (), {"value": upper, "name": "Brier score"})()

    found = plan(0.25, method=brier)
    assert found.settings["method"] == "brier"
    assert "bound the Brier score by 0.25" in found.sentence


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"target": 2}, "target is 2; pass an error between 0 and 1"),
        ({"target": 0.1, "error": 0.1}, "pass an error from 0 to below the target 0.1"),
        ({"target": 0.1, "delta": 0.95}, "delta is 0.95"),
        ({"target": 0.1, "power": 1.0}, "power is 1"),
        ({"target": 0.1, "method": "smooth"}, "method is 'smooth'; pass one of binned, ks, kuiper"),
        ({"target": 0.1, "scores": [0.2, 3.0]}, r"scores\[1\] is 3, outside"),
        ({"target": 0.9, "error": 0.8}, "more than scores with a mean of 0.5 can have"),
        ({"target": 0.1, "repetitions": 1}, "repetitions is 1"),
    ],
)
def test_what_cannot_be_planned_is_named(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        plan(**arguments)


def test_a_target_out_of_reach_is_said_to_be() -> None:
    never = type("Never", (), {"value": 1.0, "name": "error"})()
    with pytest.raises(InputError, match=r"samples are not enough for a target of 0\.1"):
        plan(0.1, method=lambda z, c, delta: never, repetitions=5)
