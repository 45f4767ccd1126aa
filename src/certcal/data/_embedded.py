"""Data that is always at hand: scikit-learn's handwritten digits, and models that learn them in seconds."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from certcal.data._inputs import Inputs
from certcal.data._split import Split
from certcal.data._trained import Embedded, EmbeddedNetwork, naive_bayes_of, needing_scikit_learn, noisy_network

_NAME, _TITLE = "digits", "scikit-learn's handwritten digits"


def embedded(seed: int = 0) -> Embedded:
    """Train Gaussian naive Bayes on half of scikit-learn's digits and predict the other half.

    Naive Bayes counts 64 correlated pixels as independent evidence, so it is far too sure of itself: a real model
    whose miscalibration is easy to see. Takes a fraction of a second, reads nothing but scikit-learn's own files and
    writes nothing.

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
    return naive_bayes_of(_NAME, _TITLE, train, train_digits, test, test_digits)


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
    """Train a small network on half of scikit-learn's digits with Gaussian noise, new in every epoch.

    It is that of :func:`noisy_network`, and sees each image eight times in an epoch. Takes a few seconds on one core,
    always with the same result on the same machine.

    Parameters
    ----------
    sigma
        Standard deviation of the noise, where pixels are from 0 to 1.
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
    return noisy_network(digits_images(), sigma, epochs, seed, copies=8, progress=progress)


def _halves(seed: int) -> Any:
    """Pixels (0 to 16) and digits of both halves: train, test, digits of train, digits of test."""
    with needing_scikit_learn():
        datasets: Any = import_module("sklearn.datasets")
        selection: Any = import_module("sklearn.model_selection")
    pixels, digits = datasets.load_digits(return_X_y=True)
    return selection.train_test_split(pixels, digits, test_size=0.5, random_state=seed, stratify=digits)
