# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# The annotations of lightning and torchmetrics are incomplete.
"""Calibration after every epoch of a Lightning trainer, logged like any other metric.

Works with ``lightning`` and with ``pytorch_lightning``. Importing this module needs the extra ``certcal[lightning]``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

from certcal._base.checks import InputError, choice

try:
    import torch
    from torch import Tensor
    from torchmetrics import Metric, MetricCollection
    from torchmetrics.utilities.distributed import gather_all_tensors

    from certcal.interop.torchmetrics import BY_NAME, INPUTS, BinnedMetric, ClasswiseECE

    if TYPE_CHECKING or find_spec("lightning") is not None:
        from lightning.pytorch import Callback
    else:
        from pytorch_lightning import Callback
except ModuleNotFoundError as error:
    if error.name not in ("torch", "torchmetrics", "lightning", "pytorch_lightning"):
        raise
    raise ImportError(
        "certcal.interop.lightning needs torch and lightning; install them with: pip install 'certcal[lightning]'",
        name=error.name,
    ) from error

Pair = tuple[Tensor, Tensor]
CLASSWISE = ClasswiseECE.name


class CalibrationCallback(Callback):
    """Measures calibration on the validation batches of each epoch, and on the batches of a test.

    What is logged (``val_ece``, ``test_ece``, …) are estimates from all samples of all processes, the same bits for any
    batches and any number of processes; the state is of a fixed size, see :mod:`certcal.torchmetrics`. Samples that a
    distributed sampler repeats to make shares equal are counted as often as they come. Batches of the sanity check
    before training are ignored.

    Parameters
    ----------
    inputs
        What the predictions are, "logits", "probabilities", "confidence" or "score"; never guessed from the values.
    metrics
        Names of functions in :mod:`certcal.metrics`: "ece", "mce", "lp_ece", "debiased_ece", "classwise_ece",
        "smooth_ece", "kde_ece", "top_label_brier_score", "brier_score", "nll".
    bins, closed
        Of the binned metrics.
    classes
        Number of classes, for "classwise_ece".
    temperature
        Also log the temperature that fits the samples best (``val_temperature``; above 1, the network is too sure) and
        the metrics at it (``val_ece_scaled``). They are optimistic, since the temperature is fitted to the very samples
        that are measured. All logits and labels are kept in memory for this, in every process.
    keys
        Where predictions and targets are in the dictionary that ``validation_step`` and ``test_step`` return.
    predict
        A function of module, batch and what the step returned, for predictions and targets when the step returns no
        such dictionary.
    every_n_epochs
        Measure the validation of each n-th epoch only. Calls of ``trainer.validate`` are always measured.
    val_prefix, test_prefix
        Come before the names.
    log_options
        Further keyword arguments of ``LightningModule.log_dict``, such as ``{"prog_bar": True}``.

    Examples
    --------
    >>> callback = CalibrationCallback(inputs="logits", metrics=("ece", "nll"), bins=10)
    >>> CalibrationCallback(inputs="logits", metrics=("classwise_ece",))
    Traceback (most recent call last):
        ...
    certcal.InputError: classwise_ece needs the number of classes; pass classes=10, say

    ``Trainer(callbacks=[callback])`` does the rest, when ``validation_step`` returns
    ``{"loss": loss, "preds": logits, "target": labels}``.
    """

    def __init__(
        self,
        *,
        inputs: str,
        metrics: Sequence[str] = ("ece", "mce"),
        bins: int = 15,
        closed: str = "left",
        classes: int | None = None,
        temperature: bool = False,
        keys: tuple[str, str] = ("preds", "target"),
        predict: Callable[[Any, Any, Any], Pair] | None = None,
        every_n_epochs: int = 1,
        val_prefix: str = "val_",
        test_prefix: str = "test_",
        log_options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.inputs = choice(inputs, INPUTS, "inputs")
        names = tuple(choice(name, tuple(BY_NAME), "metrics") for name in metrics)
        if not names:
            raise InputError(f"metrics is empty; choose from {', '.join(BY_NAME)}")
        if CLASSWISE in names and classes is None:
            raise InputError("classwise_ece needs the number of classes; pass classes=10, say")
        if temperature and self.inputs in ("confidence", "score"):
            words = "confidences" if self.inputs == "confidence" else "binary scores"
            raise InputError(f"a temperature needs logits or probabilities of every class, not {words}")
        if every_n_epochs < 1:
            raise InputError(f"every_n_epochs is {every_n_epochs}; pass 1 or more")
        self.metrics, self.bins, self.closed, self.classes, self.temperature = names, bins, closed, classes, temperature
        self.collection(self.inputs)  # bins and closed are refused now, not after an epoch of training
        self.keys, self.predict, self.every_n_epochs = keys, predict, every_n_epochs
        self.prefixes = {"validation": val_prefix, "test": test_prefix}
        self.log_options = dict(log_options or {})
        self._loaders: list[LoaderBatches | None] = []

    def collection(self, inputs: str, **options: Any) -> MetricCollection:
        """The metrics, those with the same bins sharing a state."""
        made: dict[str, Metric | MetricCollection] = {}
        for name in self.metrics:
            cls: Any = BY_NAME[name]
            in_bins = name == CLASSWISE or issubclass(BY_NAME[name], BinnedMetric)
            settings: dict[str, Any] = {"bins": self.bins, "closed": self.closed} if in_bins else {}
            settings |= {"classes": self.classes} if name == CLASSWISE else {}
            made[name] = cls(inputs=inputs, **settings, **options)
        return MetricCollection(made)

    def on_validation_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Begin with empty states."""
        fits = str(getattr(trainer.state.fn, "value", trainer.state.fn)) == "fit"
        due = not fits or (trainer.current_epoch + 1) % self.every_n_epochs == 0
        self._start_loaders(pl_module, trainer.num_val_batches if due and not trainer.sanity_checking else [])

    def on_test_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Begin with empty states."""
        self._start_loaders(pl_module, trainer.num_test_batches)

    def on_validation_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        """Add a batch."""
        self._add("validation", pl_module, outputs, batch, batch_idx, dataloader_idx)

    def on_test_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        """Add a batch."""
        self._add("test", pl_module, outputs, batch, batch_idx, dataloader_idx)

    def on_validation_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Log what all processes have seen."""
        self._log("validation", pl_module)

    def on_test_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Log what all processes have seen."""
        self._log("test", pl_module)

    def _start_loaders(self, pl_module: Any, batches: Sequence[int | float]) -> None:
        self._loaders = [LoaderBatches(self, pl_module.device) if each else None for each in batches]

    def _add(self, what: str, pl_module: Any, outputs: Any, batch: Any, batch_idx: int, dataloader_idx: int) -> None:
        loader = self._loaders[dataloader_idx] if self._loaders else None
        if loader is None:
            return
        if self.predict is not None:
            preds, target = self.predict(pl_module, batch, outputs)
        else:
            preds, target = self._of_step(what, outputs)
        try:
            loader.add(preds.detach(), target.detach())
        except InputError as error:
            raise InputError(f"{what} batch {batch_idx}: {error}") from None

    def _of_step(self, what: str, outputs: Any) -> Pair:
        if isinstance(outputs, Mapping) and all(key in outputs for key in self.keys):
            found = cast("Mapping[str, Tensor]", outputs)
            return found[self.keys[0]], found[self.keys[1]]
        preds, target = self.keys
        raise InputError(
            f"{what}_step returned no dictionary with {preds!r} and {target!r}; return one, name other keys=, or pass "
            "predict="
        )

    def _log(self, what: str, pl_module: Any) -> None:
        several = len(self._loaders) > 1
        for index, loader in enumerate(self._loaders):
            if loader is None:
                continue
            suffix = f"/dataloader_idx_{index}" if several else ""
            values = {f"{self.prefixes[what]}{name}{suffix}": value for name, value in loader.values()}
            # Every process has the same values already. Of equal numbers the largest is exact, and a mean may not be.
            options = {"reduce_fx": "max", "sync_dist": True, "add_dataloader_idx": False, **self.log_options}
            pl_module.log_dict(values, **options)
        self._loaders = []


class LoaderBatches:
    """The batches that one loader gave this process; the values are those of all processes together."""

    def __init__(self, asked: CalibrationCallback, device: torch.device) -> None:
        self._asked, self._device = asked, device
        self._metrics = asked.collection(asked.inputs).to(device)
        self._kept: list[tuple[Tensor, Tensor]] = []

    def add(self, preds: Tensor, target: Tensor) -> None:
        """Add a batch."""
        self._metrics.update(preds, target)
        if self._asked.temperature:
            self._kept.append((preds.float().cpu(), target.long().cpu()))

    def values(self) -> Iterator[tuple[str, Tensor]]:
        """Names and values; every process has to ask for them."""
        yield from self._metrics.compute().items()
        if self._asked.temperature:
            yield from self._values_after_scaling()

    def _values_after_scaling(self) -> Iterator[tuple[str, Tensor]]:
        from certcal.calibrators import TemperatureScaling

        preds = self._gather_processes([pair[0] for pair in self._kept], torch.empty(0, 0))
        target = self._gather_processes([pair[1] for pair in self._kept], torch.empty(0, dtype=torch.int64))
        fitted = TemperatureScaling(self._asked.inputs).fit(preds.numpy(), target.numpy())
        yield "temperature", torch.tensor(fitted.temperature_, dtype=torch.float64).to(self._device)
        # All samples are here, so that the processes have nothing to tell each other.
        metrics = self._asked.collection("probabilities", sync_on_compute=False)
        metrics.update(torch.from_numpy(fitted.predict_proba(preds.numpy())), target)
        for name, value in metrics.compute().items():
            yield f"{name}_scaled", value.to(self._device)

    def _gather_processes(self, parts: list[Tensor], nothing: Tensor) -> Tensor:
        mine = torch.cat(parts) if parts else nothing
        if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
            return mine
        gathered = [part.cpu() for part in gather_all_tensors(mine.to(self._device))]
        return torch.cat([part for part in gathered if len(part)])
