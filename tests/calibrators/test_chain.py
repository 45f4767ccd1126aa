from __future__ import annotations

import numpy as np
import pytest

from certcal import InputError
from certcal.calibrators import (
    BetaCalibration,
    Calibrator,
    CertifiedIsotonic,
    CertifiedSamples,
    Chain,
    ConfidenceChain,
    EqualMassBinning,
    HistogramBinning,
    IsotonicCalibration,
    OneVsRest,
    PlattScaling,
    TopLabel,
)
from tests.calibrators.naive_maps import scored


def drawn(seed=0, n=80):
    rng = np.random.default_rng([seed, 17])
    z = rng.random(n)
    return z, rng.random(n) < z**2


def test_each_map_is_fitted_to_what_the_one_before_makes_of_the_samples():
    z, c = drawn()
    fitted = ConfidenceChain([PlattScaling(), EqualMassBinning(bins=5)]).fit(z, c)
    first = PlattScaling().fit(z, c)
    second = EqualMassBinning(bins=5).fit(first.transform(z), c)
    assert np.array_equal(fitted.transform(z), second.transform(first.transform(z)))


def test_intervals_go_through_all_maps():
    z, c = drawn(1)
    fitted = ConfidenceChain([BetaCalibration(), HistogramBinning(bins=6), IsotonicCalibration()]).fit(z, c)
    low, high = z / 2, (1 + z) / 2
    ends = low, high
    for step in fitted.steps_:
        ends = step.intervals(*ends)
    assert np.array_equal(fitted.intervals(low, high), ends)


def test_a_chain_recalibrates_certified_samples():
    z, c = drawn(2)
    samples = CertifiedSamples.from_intervals(z / 2, (1 + z) / 2, c, z)
    fitted = ConfidenceChain([PlattScaling(), HistogramBinning(bins=6)]).fit(z, c)
    mapped = samples.mapped(fitted)
    assert ((mapped.lower[:, 0] <= mapped.confidence) & (mapped.confidence <= mapped.upper[:, 0])).all()


def test_a_chain_is_monotone_when_its_maps_are():
    z, c = drawn(3)
    assert not ConfidenceChain([PlattScaling()]).monotone
    assert ConfidenceChain([PlattScaling(), IsotonicCalibration()]).fit(z, c).monotone
    up_and_down = ConfidenceChain([HistogramBinning(bins=2)]).fit([0.1, 0.9], [1, 0])
    assert not up_and_down.monotone


@pytest.mark.parametrize("second", ["logits", "probabilities"])
def test_each_map_of_scores_gets_what_it_takes(second):
    logits, y = scored(5)
    last = OneVsRest(HistogramBinning(bins=5), inputs=second)
    fitted = Chain([TopLabel(PlattScaling()), last]).fit(logits, y)
    first = TopLabel(PlattScaling()).fit(logits, y)
    between = first.predict_proba(logits) if second == "probabilities" else first.transform(logits)
    alone = last.unfitted().fit(between, y)
    assert np.array_equal(fitted.predict_proba(logits), alone.predict_proba(between))
    assert np.array_equal(fitted.predict(logits), alone.predict(between))
    assert fitted.inputs == "logits"
    assert fitted.classes_.tolist() == [0, 1, 2, 3]


def test_a_last_step_that_keeps_predictions_keeps_them_in_a_chain():
    logits, y = scored(6)
    fitted = Chain([TopLabel(PlattScaling()), TopLabel(HistogramBinning(bins=1))]).fit(logits, y)
    assert np.array_equal(fitted.predict(logits), fitted.steps_[0].predict_proba(logits).argmax(axis=1))


def test_parameters_of_steps_go_by_place():
    chain = ConfidenceChain([PlattScaling(), HistogramBinning(bins=4)])
    assert chain.get_params()["1__bins"] == 4
    chain.set_params(**{"1__bins": 9, "0__targets": "outcomes"})
    assert repr(chain) == "ConfidenceChain(steps=[PlattScaling(targets='outcomes'), HistogramBinning(bins=9)])"
    assert repr(chain.set_params(steps=[IsotonicCalibration()])) == "ConfidenceChain(steps=[IsotonicCalibration()])"
    for name in ("bins", "1__bins", "0", "x__bins"):
        with pytest.raises(InputError, match="has no parameter"):
            chain.set_params(**{name: 1})


@pytest.mark.parametrize(
    ("chain", "sentence"),
    [
        (ConfidenceChain([]), r"steps is \[\]; pass a list of at least one calibrator"),
        (ConfidenceChain(PlattScaling()), r"steps is PlattScaling\(\); pass a list"),
        (ConfidenceChain([PlattScaling(), CertifiedIsotonic()]), r"steps\[1\] is CertifiedIsotonic\(\); Confidence"),
        (ConfidenceChain([TopLabel(PlattScaling())]), r"steps\[0\] is TopLabel"),
    ],
)
def test_steps_that_are_no_maps_of_outcomes_are_refused(chain, sentence):
    with pytest.raises(InputError, match=sentence):
        chain.fit(*drawn())


def test_maps_of_confidences_in_a_chain_of_scores_are_sent_elsewhere():
    with pytest.raises(InputError, match=r"steps\[0\] is PlattScaling\(\); Chain takes maps of scores \(TopLabel"):
        Chain([PlattScaling()]).fit(*scored(8))


def test_parameters_that_are_missing_from_a_document_are_named():
    with pytest.raises(InputError, match="steps is missing"):
        Calibrator.from_dict({"type": "Chain", "params": {}, "fitted": None})
