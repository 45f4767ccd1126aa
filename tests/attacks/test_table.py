from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from certcal import InputError
from certcal.attacks import ATTACKS, AttackTable, ace, attack_table
from certcal.metrics import ece, equal_mass_ece, nll
from tests.attacks.conftest import Trained


@pytest.fixture(scope="module")
def table(trained: Trained) -> AttackTable:
    return attack_table(
        trained.network, trained.inputs[:200], trained.labels[:200], epsilons=(0.05, 0.1), attacks=ATTACKS, steps=15
    )


def test_there_is_a_row_for_every_attack_and_distance_in_order(table: AttackTable) -> None:
    assert [(row.attack, row.epsilon) for row in table] == [(a, e) for e in (0.05, 0.1) for a in ATTACKS]
    assert len(table) == 10
    assert table.epsilons == (0.05, 0.1)
    assert table.clean.attack is None
    assert table.clean.epsilon == 0


def test_no_attack_of_the_table_changes_a_label_or_the_accuracy(table: AttackTable) -> None:
    assert all(row.changed == 0 for row in table)
    assert all(row.accuracy == table.clean.accuracy for row in table)
    assert all(np.array_equal(row.predictions.correct, table.clean.predictions.correct) for row in table)


def test_rows_are_what_the_attacks_find_alone_and_what_the_metrics_say(table: AttackTable, trained: Trained) -> None:
    alone = ace(trained.network, trained.inputs[:200], trained.labels[:200], eta=-1, epsilon=0.1, steps=15)
    row = table["-1,y", 0.1]
    assert row.attacked is not None
    assert np.array_equal(alone.inputs, row.attacked.inputs)
    found = alone.predictions
    assert row.ece == ece(found.confidence, found.correct, 15)
    assert row.adaptive_ece == equal_mass_ece(found.confidence, found.correct, 15)
    assert row.nll == nll(found.logits, found.labels, from_logits=True)
    assert row.confidence == pytest.approx(found.confidence.mean(dtype=np.float64))


def test_attacks_do_to_likelihood_and_confidence_what_they_say(table: AttackTable) -> None:
    for epsilon in table.epsilons:
        assert table["+1,y", epsilon].nll > table.clean.nll > table["-1,y", epsilon].nll
        assert table["+1,pred", epsilon].confidence < table.clean.confidence < table["-1,pred", epsilon].confidence
        assert table["one-step", epsilon].brier > table.clean.brier
    assert table["+1,y", 0.1].nll > table["+1,y", 0.05].nll
    assert table["+1,y", 0.1].adaptive_ece > 4 * table.clean.adaptive_ece


def test_numbers_of_a_smoothed_classifier_say_that_they_are_of_the_draws(trained: Trained, table: AttackTable) -> None:
    options: Any = {"epsilons": 0.05, "attacks": "+1,y", "steps": 2, "sigma": 0.25, "draws": 3}
    found = attack_table(trained.network, trained.inputs[:20], trained.labels[:20], **options)
    attacked = found["+1,y"].attacked
    assert attacked is not None
    for sentence in (found.sentence, attacked.sentence):
        assert "of the mean over 3 fixed draws of noise" in sentence
    assert "draws" not in table.sentence


def test_the_table_says_that_what_was_found_is_a_lower_bound(table: AttackTable) -> None:
    assert table.worst.attack == "+1,y"
    assert "at least" in table.sentence
    assert "not the worst case" in table.sentence
    shown = repr(table)
    assert "unattacked" in shown
    assert "(+1, y)-ACE" in shown
    assert "one-step ACE" in shown


def test_the_table_can_be_written_as_json(table: AttackTable) -> None:
    document = json.loads(json.dumps(table.to_dict()))
    assert document["n"] == 200
    assert document["settings"] == {"norm": "linf", "box": [0.0, 1.0], "steps": 15, "bins": 15}
    assert len(document["rows"]) == 10
    assert document["rows"][0]["labels_changed"] == 0


def test_a_row_that_is_not_there_or_not_the_only_one_is_named(table: AttackTable) -> None:
    with pytest.raises(KeyError, match="names 2 rows"):
        table["+1,y"]
    with pytest.raises(KeyError, match="names no rows"):
        table["+1,y", 0.2]


def test_progress_runs_over_all_attacks(trained: Trained) -> None:
    told: list[tuple[int, int]] = []
    attack_table(
        trained.network,
        trained.inputs[:20],
        trained.labels[:20],
        epsilons=0.1,
        norm="l2",
        attacks=("+1,y", "one-step"),
        steps=2,
        batch=10,
        progress=lambda done, total: told.append((done, total)),
    )
    assert told == [(10, 40), (20, 40), (30, 40), (40, 40)]


def test_a_table_without_any_gain_says_so(trained: Trained) -> None:
    found = attack_table(trained.network, trained.inputs[:20], trained.labels[:20], epsilons=0.0, steps=1)
    assert "no attack raised it" in found.sentence


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"epsilons": ()}, "epsilons is empty"),
        ({"attacks": ()}, "attacks is empty"),
        ({"attacks": ("+2,y",)}, r"attacks is '\+2,y'"),
        ({"attacks": "+1"}, r"attacks is '\+1'"),
        ({"epsilons": (0.1, -0.1)}, "epsilon is -0.1"),
        ({"epsilons": "much"}, "epsilons"),
        ({"bins": 0}, "bins"),
    ],
)
def test_bad_input_is_one_sentence(trained: Trained, options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        attack_table(trained.network, trained.inputs[:3], trained.labels[:3], **{"epsilons": 0.1, "steps": 1} | options)
