# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# The annotations of torchmetrics are incomplete.
"""Calibration of what a loader gives, batch by batch, in one process or several."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torchmetrics import Metric, MetricCollection
from torchmetrics.utilities.distributed import gather_all_tensors

from certcal import torchmetrics as classes_of

BINNED = {
    "ece": classes_of.ECE,
    "mce": classes_of.MCE,
    "lp_ece": classes_of.LpECE,
    "debiased_ece": classes_of.DebiasedECE,
}
PLAIN = {
    "smooth_ece": classes_of.SmoothECE,
    "kde_ece": classes_of.KDEECE,
    "top_label_brier_score": classes_of.TopLabelBrierScore,
    "brier_score": classes_of.BrierScore,
    "nll": classes_of.NLL,
}
CLASSWISE = "classwise_ece"
METRICS = (*BINNED, CLASSWISE, *PLAIN)
INPUTS = ("logits", "probabilities", "confidence")


@dataclass(frozen=True)
class Questions:
    """What is asked of batches."""

    metrics: tuple[str, ...]
    bins: int
    closed: str
    classes: int | None
    temperature: bool

    def collection(self, inputs: Any, **options: Any) -> MetricCollection:
        """The metrics, those with the same bins sharing a state."""
        made: dict[str, Metric | MetricCollection] = {}
        for name in self.metrics:
            if name in BINNED:
                made[name] = BINNED[name](self.bins, inputs=inputs, closed=self.closed, **options)
            elif name in PLAIN:
                made[name] = PLAIN[name](inputs=inputs, **options)
            else:
                assert self.classes is not None  # checked where it was given
                made[name] = classes_of.ClasswiseECE(
                    self.classes, self.bins, inputs=inputs, closed=self.closed, **options
                )
        return MetricCollection(made)


class Batches:
    """The batches that one loader gave this process; the values are those of all processes together."""

    def __init__(self, questions: Questions, inputs: str, device: torch.device) -> None:
        self._questions, self._inputs, self._device = questions, inputs, device
        self._metrics = questions.collection(inputs).to(device)
        self._kept: list[tuple[Tensor, Tensor]] = []

    def add(self, preds: Tensor, target: Tensor) -> None:
        """Add a batch."""
        self._metrics.update(preds, target)
        if self._questions.temperature:
            self._kept.append((preds.float().cpu(), target.long().cpu()))

    def values(self) -> Iterator[tuple[str, Tensor]]:
        """Names and values; every process has to ask for them."""
        yield from self._metrics.compute().items()
        if self._questions.temperature:
            yield from self._scaled()

    def _scaled(self) -> Iterator[tuple[str, Tensor]]:
        from certcal.calibrators import TemperatureScaling

        preds = self._everywhere([pair[0] for pair in self._kept], torch.empty(0, 0))
        target = self._everywhere([pair[1] for pair in self._kept], torch.empty(0, dtype=torch.int64))
        fitted = TemperatureScaling(self._inputs).fit(preds.numpy(), target.numpy())
        yield "temperature", torch.tensor(fitted.temperature_, dtype=torch.float64).to(self._device)
        # All samples are here, so that the processes have nothing to tell each other.
        metrics = self._questions.collection("probabilities", sync_on_compute=False)
        metrics.update(torch.from_numpy(fitted.predict_proba(preds.numpy())), target)
        for name, value in metrics.compute().items():
            yield f"{name}_scaled", value.to(self._device)

    def _everywhere(self, parts: list[Tensor], nothing: Tensor) -> Tensor:
        """The parts of all processes, one after the other."""
        mine = torch.cat(parts) if parts else nothing
        if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
            return mine
        gathered = [part.cpu() for part in gather_all_tensors(mine.to(self._device))]
        return torch.cat([part for part in gathered if len(part)])
