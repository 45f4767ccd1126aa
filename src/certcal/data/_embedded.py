"""Data that is always at hand: scikit-learn's handwritten digits and a model that is sure of itself."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from certcal._checks import InputError
from certcal.predictions import Predictions


@dataclass(frozen=True, eq=False)
class Embedded:
    """Predictions made on the spot, with what they are.

    Attributes
    ----------
    name
        A short name.
    description
        One sentence: the data, the model, the split.
    predictions
        Of the held-out half.
    """

    name: str
    description: str
    predictions: Predictions


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
    try:
        datasets: Any = import_module("sklearn.datasets")
        naive_bayes: Any = import_module("sklearn.naive_bayes")
        selection: Any = import_module("sklearn.model_selection")
    except ImportError as error:
        raise InputError("the embedded data needs scikit-learn; run: pip install 'certcal[sklearn]'") from error
    pixels, digits = datasets.load_digits(return_X_y=True)
    train, test, train_digits, test_digits = selection.train_test_split(
        pixels, digits, test_size=0.5, random_state=seed, stratify=digits
    )
    model = naive_bayes.GaussianNB().fit(train, train_digits)
    return Embedded(
        name="digits",
        description=(
            f"scikit-learn's handwritten digits: Gaussian naive Bayes trained on {len(train)} images, "
            f"measured on the {len(test)} others"
        ),
        predictions=Predictions.from_probabilities(model.predict_proba(test), test_digits),
    )
