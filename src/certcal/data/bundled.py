"""Data that is always at hand, and models that learn it in seconds: something to measure and to certify."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from certcal._base.checks import InputError, positive, whole_number
from certcal._base.threads import one_blas_thread
from certcal.data.inputs import Inputs, Split
from certcal.predictions import Predictions

_COPIES = 8  # of each digit in an epoch, each with other noise
_NAME, _TITLE = "digits", "scikit-learn's handwritten digits"


def example() -> Predictions:
    """A small table of real scores that comes with certcal and needs no other package.

    XGBoost with its default settings, trained on 18,000 customers of a bank, gives 2,000 others a probability that they
    default on their credit; the outcomes are known. The scores are too extreme. The customers are those of Yeh and Lien
    (2009), UCI's "default of credit card clients".

    Examples
    --------
    >>> example()
    Predictions(n=2000, kind='score', base_rate=0.218)
    """
    score, outcome = np.loadtxt(Path(__file__).with_name("example.csv"), delimiter=",", skiprows=1).T
    return Predictions.from_scores(score, outcome)


def embedded(seed: int = 0) -> Embedded:
    """Train Gaussian naive Bayes on half of scikit-learn's digits and predict the other half.

    Naive Bayes counts correlated pixels as independent evidence, so it is far too sure of itself: a real model whose
    miscalibration is easy to see. Takes a fraction of a second, reads nothing but scikit-learn's own files and writes
    nothing.

    Parameters
    ----------
    seed
        Of the split.

    Examples
    --------
    >>> digits = embedded()
    >>> len(digits.predictions), digits.predictions.classes
    (899, 10)
    """
    train, test, train_digits, test_digits = _halves(seed)
    bayes: Any = import_module("sklearn.naive_bayes")
    model = bayes.GaussianNB().fit(train, train_digits)
    text = f"{_TITLE}: Gaussian naive Bayes trained on {len(train):,} images, measured on {len(test):,} others"
    return Embedded(_NAME, text, Predictions.from_probabilities(model.predict_proba(test), test_digits))


def digits_images() -> Split:
    """scikit-learn's handwritten digits as images of shape (1, 8, 8) in [0, 1], split in halves, always the same.

    Pixels are k/16 for k from 0 to 16, exactly. Both halves have each digit about equally often, and the second is the
    one that :func:`embedded` predicts by default.

    Examples
    --------
    >>> digits = digits_images()
    >>> digits.train.inputs.shape, digits.test.inputs.shape, float(digits.test.inputs.max())
    ((898, 1, 8, 8), (899, 1, 8, 8), 1.0)
    """
    train, test, train_digits, test_digits = _halves(seed=0)
    parts = [
        Inputs.from_arrays((pixels / 16).reshape(-1, 1, 8, 8), digits)
        for pixels, digits in ((train, train_digits), (test, test_digits))
    ]
    return Split(_NAME, _TITLE, *parts)


def embedded_network(
    sigma: float = 0.25, epochs: int = 30, seed: int = 0, progress: Callable[[int], None] | None = None
) -> EmbeddedNetwork:
    """Train a network of one hidden layer, of 128 units, on half of scikit-learn's digits with Gaussian noise.

    The noise is new in every epoch, in which each digit is seen eight times: noise in training is what makes
    certificates of the smoothed classifier worth having. Takes a few seconds on one core; the result is always the same
    on the same machine. Pixels are from 0 to 1.

    Parameters
    ----------
    sigma
        Standard deviation of the noise.
    epochs
        How long to train.
    seed
        Of the weights and the noise.
    progress
        Called after each epoch with how many are done.

    Examples
    --------
    >>> network = embedded_network(epochs=1)
    >>> network.classifier.predict_proba(network.test.inputs.reshape(-1, 64)).shape
    (899, 10)
    """
    noise = positive(sigma, "sigma")
    rounds = whole_number(epochs, 1, 1_000_000, "epochs", "pass how long to train, at least 1")
    split = digits_images()
    pixels = np.repeat(np.asarray(split.train.inputs).reshape(len(split.train), -1), _COPIES, axis=0)
    labels = np.repeat(split.train.labels, _COPIES)
    rng = np.random.default_rng(seed)
    neural: Any = import_module("sklearn.neural_network")
    network = neural.MLPClassifier((128,), batch_size=128, learning_rate_init=0.002, random_state=seed)
    with one_blas_thread():
        for epoch in range(rounds):
            noisy = np.float32(noise) * rng.standard_normal(pixels.shape, dtype=np.float32)
            network.partial_fit(noisy + pixels, labels, classes=np.arange(10))
            if progress is not None:
                progress(epoch + 1)
    text = (
        f"{split.title}: a network of one hidden layer, trained on {len(split.train):,} images with Gaussian noise of "
        f"{noise:g}"
    )
    return EmbeddedNetwork(split.name, text, network, split.test, noise)


def _halves(seed: int) -> Any:
    """Pixels (0 to 16) and digits of both halves: train, test, digits of train, digits of test."""
    try:
        datasets: Any = import_module("sklearn.datasets")
        selection: Any = import_module("sklearn.model_selection")
    except ImportError as error:
        raise InputError("the embedded data needs scikit-learn; run: pip install 'certcal[sklearn]'") from error
    pixels, digits = _read_digits(datasets.load_digits)
    return selection.train_test_split(pixels, digits, test_size=0.5, random_state=seed, stratify=digits)


@cache  # reading the text takes longer than training on it; the halves are copies
def _read_digits(load: Any) -> Any:
    return load(return_X_y=True)


@dataclass(frozen=True, eq=False)
class Embedded:
    """Predictions of inputs that a model has not seen, with a short name and one sentence on data, model and split."""

    name: str
    description: str
    predictions: Predictions


@dataclass(frozen=True, eq=False)
class EmbeddedNetwork:
    """A network trained with noise of ``sigma``: a scikit-learn classifier that :func:`certcal.models.wrap` takes.

    ``test`` has images that it has not seen; ``name`` is that of the data, ``description`` one sentence on all of it.
    """

    name: str
    description: str
    classifier: Any
    test: Inputs
    sigma: float
