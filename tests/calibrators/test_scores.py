"""What every map of the scores of all classes must do."""

import numpy as np
import pytest

from certcal import InputError
from certcal.calibrators import (
    HistogramBinning,
    IsotonicCalibration,
    MatrixScaling,
    NotFittedError,
    OneVsRest,
    PlattScaling,
    TemperatureScaling,
    TopLabel,
    VectorScaling,
)
from tests.calibrators.naive_maps import scored

MAPS = [
    TemperatureScaling(),
    VectorScaling(),
    MatrixScaling(),
    TopLabel(HistogramBinning(bins=5)),
    TopLabel(PlattScaling(), per_class=True),
    OneVsRest(IsotonicCalibration()),
]
every_map = pytest.mark.parametrize("one", MAPS, ids=repr)


@every_map
@pytest.mark.parametrize(
    ("scores", "labels", "weights", "message"),
    [
        ([[0.0, np.nan]], [0], None, r"scores\[0, 1\] is nan"),
        ([[0.0, 1.0]], [2], None, r"labels\[0\] is 2; .* from 0 to 1"),
        ([[0.0, 1.0]], [0, 1], None, "lengths differ: scores has 1, labels has 2"),
        ([[0.0, 1.0]], [0], [1.0, 2.0], "lengths differ: labels has 1, sample_weight has 2"),
        ([[0.0, 1.0]], [0], [0.0], "sample_weight is zero for every sample"),
        ([0.0, 1.0], [0, 1], None, "one row per sample"),
    ],
)
def test_bad_samples_are_refused_in_one_sentence(one, scores, labels, weights, message):
    with pytest.raises(InputError, match=message):
        one.unfitted().fit(scores, labels, weights)


@every_map
def test_wrong_use_is_refused_in_one_sentence(one):
    logits, y = scored(2)
    with pytest.raises(NotFittedError, match="is not fitted; call fit first"):
        one.unfitted().predict_proba(logits)
    fitted = one.unfitted().fit(logits, y)
    with pytest.raises(InputError, match=r"scores have 2 columns; this .* was fitted to 4 classes"):
        fitted.predict_proba(logits[:, :2])
    with pytest.raises(InputError, match=r"scores\[0, 1\] is nan"):
        fitted.predict_proba([[0.0, np.nan, 0.0, 0.0]])


@pytest.mark.parametrize("one", MAPS[:-1], ids=repr)
def test_what_scores_are_is_said_and_never_guessed(one):
    with pytest.raises(InputError, match="inputs is 'guess'; pass one of 'logits', 'probabilities'"):
        one.unfitted().set_params(inputs="guess").fit(*scored(2))
    taking = one.unfitted().set_params(inputs="probabilities")
    with pytest.raises(InputError, match=r"scores\[0, 0\] is 2, outside \[0, 1\].*inputs='logits'"):
        taking.fit([[2.0, -1.0]], [0])
    with pytest.raises(InputError, match=r"scores\[0\] sums to 0.9, .*inputs='logits' for logits"):
        taking.fit([[0.5, 0.4]], [0])


@every_map
def test_huge_logits_and_two_samples_are_served(one):
    huge = 1e30 if isinstance(one, VectorScaling | MatrixScaling) else 1e308  # squares must be finite
    found = one.unfitted().fit([[1e4, -1e4], [huge, -huge]], [0, 1]).predict_proba([[huge, -huge], [0.0, 0.0]])
    assert found.sum(axis=1) == pytest.approx([1.0, 1.0])


@every_map
def test_given_calibrators_are_not_touched(one):
    made = one.unfitted()
    made.fit(*scored(0))
    assert not any(each.__sklearn_is_fitted__() for each in made._inner().values())
