import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import softmax

from certcal import InputError
from certcal.calibrators import (
    MatrixScaling,
    StructuredMatrixScaling,
    StructuredVectorScaling,
    TemperatureScaling,
    VectorScaling,
)
from certcal.calibrators._affine import AffineLoss
from tests.calibrators import naive

BOTH = pytest.mark.parametrize("kind", [VectorScaling, MatrixScaling])


def some_logits(seed=0, rows=300, classes=4, bias=1.0):
    """Logits whose classes are over- and underconfident by different amounts."""
    rng = np.random.default_rng(seed)
    logits = 3 * rng.normal(size=(rows, classes))
    mixed = logits * np.linspace(0.2, 0.8, classes) + bias * np.arange(classes) / classes + 0.2 * logits[:, ::-1]
    return logits, (mixed + rng.gumbel(size=logits.shape)).argmax(axis=1)


def as_matrix(fitted):
    return (np.diag(fitted.scale_) if isinstance(fitted, VectorScaling) else fitted.matrix_), fitted.intercept_


def objective(fitted, logits, labels, weights=None):
    """What the calibrators minimise, from its definition."""
    matrix, intercept = as_matrix(fitted)
    w = np.ones(len(labels)) if weights is None else np.asarray(weights, float)
    away, off = matrix - np.eye(len(matrix)), np.eye(len(matrix)) == 0
    ridge = fitted.penalty * ((np.diag(away) ** 2).sum() + (intercept**2).sum()) / 2
    if isinstance(fitted, MatrixScaling):
        ridge += fitted.off_diagonal_penalty * (away[off] ** 2).sum() / 2
    return naive.loss(np.asarray(logits, float) @ matrix.T + intercept, labels, w) + ridge / w.sum()


@pytest.mark.parametrize(("size", "rows"), [(8, 20_000), (20, 60)], ids=["vector", "matrix"])
def test_gradient_and_products_with_the_hessian_are_finite_differences(size, rows):
    logits, labels = some_logits(rows=rows)  # several blocks of rows, and one
    rng = np.random.default_rng(1)
    made = AffineLoss(logits, labels, rng.random(labels.size), rng.random(size) + 1, rng.normal(size=size))
    here, h = 0.3 * rng.normal(size=size), 1e-5
    steps = h * np.eye(size)
    gradients = [(made.at(here + step), made.at(here - step)) for step in steps]
    slopes = [(up[0] - down[0]) / (2 * h) for up, down in gradients]
    hessian = np.array([(up[1] - down[1]) / (2 * h) for up, down in gradients])
    _, gradient = made.at(here)
    assert gradient == pytest.approx(slopes, abs=1e-8)
    assert np.array([made.product(row) for row in np.eye(size)]) == pytest.approx(hessian, abs=1e-8)
    assert made.diagonal() == pytest.approx(np.diag(hessian), abs=1e-8)


@settings(max_examples=8, deadline=None, derandomize=True)
@given(st.integers(0, 10_000), st.integers(2, 5), st.integers(1, 40), st.sampled_from([0.5, 1.0, 20.0]), st.booleans())
def test_the_minimum_is_that_of_a_general_optimiser(seed, classes, rows, penalty, weighted):
    logits, labels = some_logits(seed, rows, classes)
    weights = np.random.default_rng(seed).random(rows) + 0.1 if weighted else None
    for fitted in (VectorScaling(penalty), MatrixScaling(penalty, 3 * penalty)):
        fitted.fit(logits, labels, weights)
        diagonal = isinstance(fitted, VectorScaling)
        matrix, intercept, least = naive.affine(logits, labels, (penalty, 3 * penalty), diagonal, weights)
        found = objective(fitted, logits, labels, weights)
        assert found <= least * rows / (rows if weights is None else weights.sum()) + 1e-12
        assert as_matrix(fitted)[0] == pytest.approx(matrix, abs=1e-5)
        assert as_matrix(fitted)[1] == pytest.approx(intercept, abs=1e-5)


@BOTH
@pytest.mark.parametrize("case", ["one class", "two classes", "one sample", "equal", "huge", "constant", "separable"])
def test_degenerate_data_have_a_minimum_where_the_gradient_is_zero(kind, case):
    logits, labels = some_logits(2, 60, 3)
    if case == "one class":
        labels[:] = 1
    elif case == "two classes":
        logits, labels = some_logits(2, 60, 2)
    elif case == "one sample":
        logits, labels = logits[:1], labels[:1]
    elif case == "equal":
        logits[:] = 5.0
    elif case == "huge":
        logits *= 1e4
    elif case == "constant":
        logits[:, 0] = -7.0
    elif case == "separable":
        labels = logits.argmax(axis=1)
    fitted = kind().fit(logits, labels)
    matrix, intercept = as_matrix(fitted)
    k = len(intercept)
    residual = softmax(logits @ matrix.T + intercept, axis=1) - np.eye(k)[labels]
    off = fitted.off_diagonal_penalty if kind is MatrixScaling else 0.0
    slope = residual.T @ logits + np.where(np.eye(k) == 1, fitted.penalty, off) * (matrix - np.eye(k))
    if kind is VectorScaling:
        slope = np.diag(slope)
    size = np.abs(logits).max() * len(labels)
    assert np.abs(slope).max() <= 1e-9 * size
    assert np.abs(residual.sum(axis=0) + intercept).max() <= 1e-9 * len(labels)
    assert fitted.predict_proba(logits).sum(axis=1) == pytest.approx(1)


@BOTH
def test_a_size_of_the_logits_far_from_one_is_no_obstacle(kind):
    logits, labels = some_logits(3, 500, 3)
    fitted = kind().fit(1e30 * logits, labels)
    free = kind(penalty=1e-9, **({"off_diagonal_penalty": 1e-9} if kind is MatrixScaling else {})).fit(logits, labels)
    best = naive.loss(np.log(free.predict_proba(logits)), labels)
    assert naive.loss(np.log(fitted.predict_proba(1e30 * logits)), labels) <= best + 0.01


@BOTH
def test_a_calibrated_model_is_left_as_it_is(kind):
    rng = np.random.default_rng(4)
    logits = 2 * rng.normal(size=(50_000, 3))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    matrix, intercept = as_matrix(kind().fit(logits, labels))
    assert matrix == pytest.approx(np.eye(3), abs=0.03)
    assert intercept == pytest.approx(0, abs=0.03)


@BOTH
def test_a_bias_that_no_temperature_repairs_is_repaired(kind):
    logits, labels = some_logits(5, 5000, 4, bias=3.0)
    held_out, answers = some_logits(6, 5000, 4, bias=3.0)
    by = [each.fit(logits, labels).predict_proba(held_out) for each in (TemperatureScaling(), kind())]
    one, other = (naive.loss(np.log(p), answers) for p in by)
    assert other < one - 0.05


def test_only_the_matrix_repairs_what_is_mixed_between_classes():
    logits, labels = some_logits(7, 5000, 4)
    held_out, answers = some_logits(8, 5000, 4)
    by = [each.fit(logits, labels).predict_proba(held_out) for each in (VectorScaling(), MatrixScaling())]
    one, other = (naive.loss(np.log(p), answers) for p in by)
    assert other < one - 0.02


def test_a_matrix_with_a_heavy_penalty_off_the_diagonal_is_a_vector():
    logits, labels = some_logits(9)
    vector = VectorScaling(2.0).fit(logits, labels)
    matrix = MatrixScaling(2.0, off_diagonal_penalty=1e10).fit(logits, labels)
    assert matrix.matrix_ == pytest.approx(np.diag(vector.scale_), abs=1e-6)
    assert matrix.intercept_ == pytest.approx(vector.intercept_, abs=1e-6)


@BOTH
def test_a_heavy_penalty_leaves_the_logits_as_they_are(kind):
    logits, labels = some_logits(10)
    matrix, intercept = as_matrix(kind(penalty=1e12).fit(logits, labels))
    assert np.diag(matrix) == pytest.approx(1, abs=1e-8)
    assert intercept == pytest.approx(0, abs=1e-8)


@settings(max_examples=10, deadline=None, derandomize=True)
@given(st.integers(0, 10_000), st.permutations(range(4)))
def test_renaming_the_classes_renames_the_parameters(seed, order):
    logits, labels = some_logits(seed, 50)
    place = np.argsort(order)
    for kind in (VectorScaling, MatrixScaling):
        matrix, intercept = as_matrix(kind().fit(logits, labels))
        renamed, moved = as_matrix(kind().fit(logits[:, order], place[labels]))
        assert renamed == pytest.approx(matrix[np.ix_(order, order)], abs=1e-6)
        assert moved == pytest.approx(intercept[order], abs=1e-6)


@BOTH
def test_whole_number_weights_count_like_repeated_rows(kind):
    logits, labels = some_logits(11, 80, 3)
    times = np.random.default_rng(11).integers(0, 4, 80)
    weighted = as_matrix(kind().fit(logits, labels, times))
    repeated = as_matrix(kind().fit(np.repeat(logits, times, axis=0), np.repeat(labels, times)))
    assert weighted[0] == pytest.approx(repeated[0], abs=1e-7)
    assert weighted[1] == pytest.approx(repeated[1], abs=1e-7)


@BOTH
def test_probabilities_are_fitted_through_their_logarithms(kind):
    logits, labels = some_logits(12)
    p = softmax(logits, axis=1)
    p[0] = [1.0, 0.0, 0.0, 0.0]
    clipped = np.log(np.maximum(p, p[p > 0].min() / 2))
    of_probabilities, of_logits = kind(inputs="probabilities").fit(p, labels), kind().fit(clipped, labels)
    assert of_probabilities.predict_proba(p).tolist() == of_logits.predict_proba(clipped).tolist()


@BOTH
def test_single_precision_is_read_exactly_and_the_fit_is_not_random(kind):
    logits, labels = some_logits(13)
    single = logits.astype(np.float32)
    one, other = kind().fit(single, labels), kind().fit(single.astype(np.float64), labels)
    assert as_matrix(one)[0].tolist() == as_matrix(other)[0].tolist()
    assert as_matrix(one)[1].tolist() == as_matrix(other)[1].tolist()


@BOTH
def test_what_is_too_large_or_not_positive_is_refused_in_one_sentence(kind):
    with pytest.raises(InputError, match=r"scores\[0, 1\] is 1e\+200; rescale"):
        kind().fit([[0.0, 1e200]], [0])
    with pytest.raises(InputError, match=r"penalty is 0\.0; pass a positive finite number"):
        kind(penalty=0).fit([[0.0, 1.0]], [0])
    with pytest.raises(InputError, match="too many for a matrix"):
        MatrixScaling().fit(np.zeros((1, 1001)), [0])
    with pytest.raises(InputError, match=r"off_diagonal_penalty is -1\.0"):
        MatrixScaling(off_diagonal_penalty=-1).fit(np.zeros((1, 2)), [0])


STRUCTURED = pytest.mark.parametrize("kind", [StructuredVectorScaling, StructuredMatrixScaling])


@STRUCTURED
@pytest.mark.parametrize("seed", range(3))
def test_structured_scaling_is_the_least_penalised_loss_around_the_best_temperature(kind, seed):
    logits, labels = some_logits(seed, 120, 3)
    inverse = 1 / TemperatureScaling().fit(logits, labels).temperature_

    def parts(theta):
        return np.eye(3) + (np.diag(theta[:3]) if kind is StructuredVectorScaling else theta[:-3].reshape(3, 3))

    def objective(theta):
        v, b = parts(theta) - np.eye(3), theta[-3:]
        z = inverse * logits @ parts(theta).T + b
        loss = np.log(np.exp(z).sum(axis=1)) - z[np.arange(120), labels]
        off = (v**2).sum() - (np.diag(v) ** 2).sum()
        return loss.sum() + 3 / 2 * ((np.diag(v) ** 2).sum() + b @ b) + 6 / 2 * off

    start = np.zeros(6 if kind is StructuredVectorScaling else 12)
    other = minimize(objective, start, method="BFGS", options={"gtol": 1e-8}).x
    fitted = kind().fit(logits, labels)
    np.testing.assert_allclose(as_matrix(fitted)[0], inverse * parts(other), atol=1e-5)
    np.testing.assert_allclose(fitted.intercept_, other[-3:], atol=1e-5)


@STRUCTURED
def test_structured_scaling_has_no_unit_and_is_a_temperature_when_samples_are_few(kind):
    logits, labels = some_logits(5, 400)
    one, other = kind().fit(logits, labels), kind().fit(1000 * logits, labels)
    np.testing.assert_allclose(one.predict_proba(logits), other.predict_proba(1000 * logits), atol=1e-6)
    few = logits[:6], labels[:6]
    away = [
        np.abs(each().fit(*few).predict_proba(logits) - TemperatureScaling().fit(*few).predict_proba(logits)).mean()
        for each in (kind, VectorScaling)
    ]
    assert away[0] < away[1]
