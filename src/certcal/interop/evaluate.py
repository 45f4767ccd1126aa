# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportMissingTypeArgument=false
# pyright: reportUntypedBaseClass=false, reportUnknownArgumentType=false
# The annotations of evaluate and datasets are incomplete.
"""Calibration as a metric of Hugging Face's evaluate: ``compute``, ``add``, ``add_batch``, ``evaluate.combine``.

Importing this module needs the extra ``certcal[evaluate]``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from certcal._checks import bin_count, choice
from certcal.metrics import measure
from certcal.predictions import Predictions

try:
    import datasets
    import evaluate
except ModuleNotFoundError as error:
    if error.name not in ("evaluate", "datasets"):
        raise
    raise ImportError(
        "certcal.interop.evaluate needs evaluate; install it with: pip install 'certcal[evaluate]'", name=error.name
    ) from error

_CONFIGURATIONS = ("probabilities", "logits", "confidence", "score")
_DESCRIPTION = """\
Calibration of a classifier: how far its confidences are from the shares of predictions that are right.
The values are estimates from the samples at hand, not guarantees."""
_INPUTS = """\
predictions: per sample a row of probabilities or logits, or one confidence or binary score, as the configuration says.
references: true classes from 0; with confidences, whether the prediction was right; with binary scores, the outcome.
metrics: names of certcal.metrics; all that there are by default.
bins: number of bins of the binned metrics.
closed: "left" for bins [a, b), "right" for (a, b]."""


class Calibration(evaluate.Metric):
    """The metrics of :func:`certcal.measure` for ``evaluate``.

    Parameters
    ----------
    config_name
        What the predictions are: "probabilities", "logits", "confidence" or "score". Never guessed from the values.
    **options
        Of ``evaluate.Metric``, such as ``experiment_id``, ``cache_dir``, ``num_process`` and ``process_id``.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     calibration = Calibration("confidence", cache_dir=folder)
    ...     calibration.compute(predictions=[0.75, 0.25], references=[1, 1], metrics=["accuracy", "ece"], bins=2)
    {'accuracy': 1.0, 'ece': 0.5}
    """

    def __init__(self, config_name: str, **options: Any) -> None:
        super().__init__(config_name=choice(config_name, _CONFIGURATIONS, "config_name"), **options)

    def _info(self) -> evaluate.MetricInfo:
        number = datasets.Value("float64")
        rows = number if self.config_name in ("confidence", "score") else datasets.Sequence(number)
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation="",
            inputs_description=_INPUTS,
            features=datasets.Features({"predictions": rows, "references": datasets.Value("int64")}),
        )

    def _compute(  # pyright: ignore[reportIncompatibleMethodOverride]  # a misspelled option is an error
        self,
        *,
        predictions: Any = None,
        references: Any = None,
        metrics: Sequence[str] | None = None,
        bins: int = 15,
        closed: str = "left",
    ) -> dict[str, float]:
        kind = "scores" if self.config_name == "score" else self.config_name
        given = getattr(Predictions, f"from_{kind}")(predictions, references)
        return {
            row.name: row.value for row in measure(given, bins=bin_count(bins), closed=closed, metrics=metrics).rows
        }
