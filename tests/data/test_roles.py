"""One table of names: every synonym of a role works wherever the role is looked for."""

from itertools import chain

import numpy as np
import pytest

import certcal
from certcal.data import open_inputs, read_inputs, read_intervals, read_predictions, read_split
from certcal.data.schema import LOG, ROLES
from certcal.lab.logs import read_log

CONFIDENCES = {"confidence": [0.25, 0.75], "correct": [0, 1], "weight": [1.0, 2.0]}
SCORES = {"score": [0.25, 0.75], "outcome": [0, 1]}
LABELLED = {"score": [0.25, 0.75], "label": [0, 1]}
COMPARED = {"confidence": [0.25, 0.75], "prediction": ["a", "b"], "label": ["b", "b"]}
CLASSES = {"prob_0": [0.25, 0.75], "prob_1": [0.75, 0.25], "label": [1, 1]}
LISTS = {"probabilities": np.array([[0.25, 0.75], [0.75, 0.25]]), "label": [1, 1]}
LOGITS = {"logits": np.array([[1.0, 2.0], [2.0, 1.0]]), "label": [1, 1]}
INTERVALS = {
    **{"lower": [0.25, 0.5], "upper": [0.75, 1.0], "correct": [0, 1], "certified": [1, 0], "radius": [0.5, 0.25]},
    **{"alpha": [0.1, 0.2], "by": ["x", "y"]},
}
OF_CLASSES = {"lower": [0.25, 0.5], "upper": [0.75, 1.0], "prediction": ["a", "b"], "label": ["b", "b"]}
SAMPLES = {
    "lower": [0.25, 0.5],
    "upper": [0.75, 1.0],
    "correct": [0, 1],
    "confidence": [0.5, 0.75],
    "sample": ["b", "a"],
}
FEATURES = {"height": [0.5, 1.5], "label": [1, 0]}
ROWS = {"idx": [0, 1], "label": [1, 1], "predict": [1, 0], "radius": [0.757, 0.757], "correct": [1, 0]}


def write(path, table, separator=","):
    rows = [table, *zip(*table.values(), strict=True)]
    path.write_text("".join(separator.join(map(str, row)) + "\n" for row in rows))
    return path


def predictions(table, _folder):
    return read_predictions(table)


def intervals(table, _folder):
    return read_intervals(table)


def samples(table, _folder):
    return read_intervals(table, samples=True)


def features(table, folder):
    return read_inputs(write(folder / "rows.csv", table))


def archive(table, folder):
    np.savez(folder / "arrays.npz", inputs=np.eye(2), **{name: table[name] for name in table if name != "height"})
    return read_inputs(folder / "arrays.npz")


def log(table, folder):
    return read_log(write(folder / "log.tsv", table, "\t"), sigma=1.0, n=100, alpha=0.001)


# What a name decides beside the values.
LEFT_OUT = ("layout", "path", "binary")


def numbers(found):
    """Every array of a result, but for the names of columns."""
    return {name: np.asarray(value).tolist() for name, value in vars(found).items() if name not in LEFT_OUT}


CASES = [
    (read, table, role, column)
    for read, table, roles in (
        (predictions, CONFIDENCES, {"confidence": "confidence"}),
        (predictions, SCORES, {"score": "score", "outcome": "outcome"}),
        (predictions, LABELLED, {"label": "label"}),
        (predictions, {**CONFIDENCES, "sample_weight": [1.0, 2.0]}, {"sample_weight": "weight"}),
        (predictions, COMPARED, {"prediction": "prediction", "label": "label"}),
        (predictions, CLASSES, {"label": "label"}),
        (predictions, LISTS, {"probabilities": "probabilities", "label": "label"}),
        (predictions, LOGITS, {"logits": "logits"}),
        (intervals, INTERVALS, {role: role for role in INTERVALS}),
        (intervals, OF_CLASSES, {"prediction": "prediction", "label": "label"}),
        (samples, SAMPLES, {role: role for role in SAMPLES}),
        (features, FEATURES, {"label": "label"}),
        (archive, FEATURES, {"label": "label"}),
        (log, ROWS, LOG),
    )
    for column, role in roles.items()
]


@pytest.mark.parametrize(
    ("read", "table", "role", "column"), CASES, ids=[f"{case[0].__name__}-{case[2]}" for case in CASES]
)
def test_every_name_of_a_role_is_found_in_every_kind_of_table(tmp_path, read, table, role, column):
    def found(name):
        return numbers(read({(name if each == column else each): values for each, values in table.items()}, tmp_path))

    expected = found(ROLES[role].names[0][0])
    for name in chain.from_iterable(ROLES[role].names):
        for spelled in (name, f" {name.replace('_', ' ').title()}", name.upper().replace("_", "-")):
            assert found(spelled) == expected, spelled


@pytest.mark.parametrize("name", ["y", "y_true", "target", "class"])
def test_a_column_of_another_name_beside_a_label_is_a_feature(tmp_path, name):
    data = read_inputs(write(tmp_path / "rows.csv", {name: [0.5, 1.5], "label": [1, 0]}))
    assert (data.inputs.tolist(), data.labels.tolist()) == ([[0.5], [1.5]], [1, 0])


def test_verbs_find_what_is_called_y_true(tmp_path):
    scores = {"score": np.linspace(0.01, 0.99, 40), "y_true": np.arange(40) % 2}
    assert certcal.measure(scores).source == "table"
    assert certcal.bound(scores).claims()
    assert certcal.recalibrate(scores, method="platt").to_dict()
    ends = {"lower": [0.25, 0.5], "upper": [0.75, 1.0], "y_pred": [1, 0], "y_true": [1, 1]}
    assert certcal.certify(ends).claims()
    path = write(tmp_path / "rows.csv", {"a": [0.5, 1.5], "y_true": [1, 0]})
    assert open_inputs(path).inputs.labels.tolist() == read_split(path).train.labels.tolist() == [1, 0]


def test_every_role_says_what_it_is_for_and_no_name_is_of_two_roles_of_a_table():
    assert all(role.help.endswith((".", "?")) for role in ROLES.values())
    for roles in (CONFIDENCES, COMPARED, INTERVALS, OF_CLASSES, SAMPLES):
        names = [name for role in roles for rank in ROLES[role].names for name in rank]
        assert len(names) == len(set(names))
