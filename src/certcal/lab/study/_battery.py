"""The measurements of the benchmark study (Tao et al. 2024): one model's row in a table of many."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.arguments import names_wrong_types
from certcal._base.checks import InputError, choice, random_seed
from certcal._base.threads import map_blocks
from certcal.calibrators import fit_temperature
from certcal.calibrators.scores import as_logits
from certcal.claims import Estimate
from certcal.metrics import STUDY_BINS, Measurements, auroc, kde_ece, measure
from certcal.metrics.kernel import KERNELS
from certcal.predictions import Predictions

BINNED = ("ece", "equal_mass_ece", "classwise_ece", "classwise_equal_mass_ece", "mce")
UNBINNED = ("ks_error", "kde_ece", "mmce", "nll", "brier_score")


@dataclass(frozen=True, eq=False)
class Battery:
    """Measurements of one model before and after temperature scaling, on the same test split.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> logits = rng.normal(size=(500, 3))
    >>> labels = logits.argmax(axis=1)
    >>> labels[:150] = rng.integers(0, 3, 150)
    >>> result = battery(Predictions.from_logits(3 * logits, labels))
    >>> len(result.before), len(result.after)  # accuracy and fifty others each
    (51, 51)
    """

    before: Measurements
    after: Measurements
    """The measurements."""
    temperature: float
    """Fitted on the validation split, which the measurements do not use."""
    out_of_distribution: tuple[Estimate, ...] = ()
    """One AUROC per data set that was given."""

    def to_row(self) -> dict[str, float]:
        """Flat names such as ``pre_ece_15`` and ``post_ks_error``, accuracy and temperature included."""
        row = {"accuracy": self.before["accuracy"].value, "temperature": self.temperature}
        for prefix, table in (("pre", self.before), ("post", self.after)):
            for estimate in table:
                if estimate.name != "accuracy":
                    bins = estimate.settings.get("bins")
                    row[f"{prefix}_{estimate.name}" + (f"_{bins}" if bins else "")] = estimate.value
        for estimate in self.out_of_distribution:
            row[estimate.name] = estimate.value
        return row

    def __iter__(self) -> Iterator[Estimate]:
        yield from self.before
        yield from self.after
        yield from self.out_of_distribution


@names_wrong_types
def battery(
    predictions: Predictions,
    *,
    bins: Sequence[int] = STUDY_BINS,
    validation: float = 0.2,
    seed: int = 0,
    kde: str = "gaussian",
    out_of_distribution: Mapping[str, Any] | None = None,
) -> Battery:
    """Five binned metrics at nine bin counts and five others, before and after temperature scaling.

    The samples are split at random into a validation part, on which the temperature is fitted, and a test part,
    on which everything is measured. With two out-of-distribution sets these are the study's 102 measurements.

    Parameters
    ----------
    predictions
        Made with :meth:`Predictions.from_logits`, or with :meth:`Predictions.from_probabilities`: logarithms of
        probabilities are logits, and have the same temperature as those that the probabilities came from. A
        probability of 0 has none; it is scaled as if it were 1.2e-38, the smallest normal number of float32.
    bins
        Bin counts of the binned metrics.
    validation
        Share of the samples on which the temperature is fitted.
    seed
        Random seed of the split.
    kde
        Kernel of ``kde_ece``, see :func:`certcal.metrics.kde_ece`; the benchmark study's is "triweight".
    out_of_distribution
        Confidences of the model on other data sets, by name; each gives the AUROC of telling the two apart.

    Examples
    --------
    >>> import numpy as np
    >>> logits = np.tile([[4.0, 0.0], [0.0, 4.0]], (50, 1))
    >>> labels = np.tile([0, 1, 0, 0], 25)
    >>> battery(Predictions.from_logits(logits, labels), bins=[10]).temperature > 1
    True
    """
    if predictions.probabilities is None:
        raise InputError(
            "predictions have no logits and no probabilities of all classes, one of which temperature scaling needs; "
            "use Predictions.from_logits or Predictions.from_probabilities"
        )
    if not 0 < validation < 1:
        raise InputError(f"validation is {validation}; pass a share between 0 and 1, such as 0.2")
    n = len(predictions)
    held = round(n * validation)
    if not 0 < held < n:
        count = f"{n} sample" if n == 1 else f"{n} samples"
        raise InputError(f"predictions has {count}, too few to split off {validation:g} for validation; pass more")
    order = np.random.default_rng(random_seed(seed)).permutation(n)
    fitted, test = predictions.select(np.sort(order[:held])), predictions.select(np.sort(order[held:]))
    names = ("accuracy", *BINNED, *UNBINNED)
    choice(kde, KERNELS, "kde")

    def measured(samples: Predictions) -> Measurements:
        found = measure(samples, bins=bins, metrics=names)
        return found if kde == "gaussian" else _with_kernel(found, samples, kde)

    def unscaled() -> tuple[Measurements, float]:
        return measured(test), 1.0

    def scaled() -> tuple[Measurements, float]:
        temperature = fit_temperature(_logits(fitted), fitted.labels, fitted.sample_weight)
        after = Predictions.from_logits(_logits(test) / temperature, test.labels, test.sample_weight)
        return measured(after), temperature

    stages = (unscaled, scaled)
    found = map_blocks(lambda start, stop: [stage() for stage in stages[start:stop]], len(stages), small=1)
    (before, _), (after, temperature) = chain.from_iterable(found)
    apart: list[Estimate] = []
    for name, others in (out_of_distribution or {}).items():
        both = np.concatenate((test.confidence.astype(np.float64), np.asarray(others, np.float64)))
        inside = np.arange(both.size) < len(test)
        apart.append(Estimate(f"auroc_{name}", auroc(both, inside), both.size))
    return Battery(before, after, temperature, tuple(apart))


def _with_kernel(table: Measurements, samples: Predictions, kernel: str) -> Measurements:
    """The table with the density estimate of another kernel."""

    def row(each: Estimate) -> Estimate:
        if each.name != "kde_ece":
            return each
        value = kde_ece(samples.confidence, samples.correct, kernel=kernel, sample_weight=samples.sample_weight)
        return replace(each, value=value, settings={**each.settings, "kernel": kernel})

    return replace(table, rows=tuple(map(row, table.rows)))


def _logits(predictions: Predictions) -> NDArray[Any]:
    """The logits, or else the logarithms of the probabilities, in float64 so that none that differ become equal."""
    if predictions.logits is not None:
        return predictions.logits
    assert predictions.probabilities is not None
    return as_logits(predictions.probabilities, "probabilities")
