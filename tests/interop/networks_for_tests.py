"""A small classifier for a Lightning trainer, and a record of what was logged."""

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

QUIET = {
    "accelerator": "cpu",
    "logger": False,
    "enable_checkpointing": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
}


def samples(n: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(seed)
    labels = torch.randint(3, (n,), generator=random)
    inputs = torch.randn(n, 4, generator=random)
    inputs[torch.arange(n), labels] += 1.5
    return inputs, labels


def loader(data: tuple[Tensor, Tensor], batch: int = 32) -> DataLoader[Any]:
    return DataLoader(TensorDataset(*data), batch_size=batch)


def linear() -> torch.nn.Linear:
    """Always the same one: right more often than not, and too sure."""
    layer = torch.nn.Linear(4, 3)
    layer.load_state_dict({"weight": 4 * torch.eye(3, 4), "bias": torch.zeros(3)})
    return layer


def classifier(library: Any, returns: Any = None) -> Any:
    """A LightningModule of that library; ``returns`` makes what a step returns of logits and labels."""
    made = returns or (lambda logits, labels: {"preds": logits, "target": labels})

    class Classifier(library.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layer = linear()

        def training_step(self, batch: Any, _: int) -> Tensor:
            return torch.nn.functional.cross_entropy(self.layer(batch[0]), batch[1])

        def validation_step(self, batch: Any, _: int, dataloader_idx: int = 0) -> Any:
            return made(self.layer(batch[0]), batch[1])

        test_step = validation_step

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), 0.5)

    return Classifier()


def recorder(library: Any) -> Any:
    """Keeps, for each validation, its epoch, the weights and what was logged."""

    class Recorder(library.Callback):
        def __init__(self) -> None:
            self.seen: list[tuple[int, Any, dict[str, float]]] = []
            self.sanity: list[dict[str, float]] = []

        def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
            values = {name: value.item() for name, value in trainer.callback_metrics.items()}
            if trainer.sanity_checking:
                self.sanity.append(values)
            else:
                weights = {name: value.clone() for name, value in pl_module.layer.state_dict().items()}
                self.seen.append((trainer.current_epoch, weights, values))

    return Recorder()


def validate_in_two_processes(folder: Path) -> None:
    """Validate with unequal shares, and write what each process has logged."""
    import lightning.pytorch as library
    import numba  # once, rather than in either process  # noqa: F401

    from certcal.interop.lightning import CalibrationCallback

    inputs, labels = samples(200)
    shares = (slice(0, 150), slice(150, 200))

    class Shared(library.LightningDataModule):
        def val_dataloader(self) -> Any:
            mine = shares[self.trainer.global_rank]
            return loader((inputs[mine], labels[mine]))

    class Writer(library.Callback):
        def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
            values = {name: value.item() for name, value in trainer.callback_metrics.items()}
            (folder / f"rank{trainer.global_rank}.json").write_text(json.dumps(values))

    callback = CalibrationCallback(inputs="logits", metrics=("ece", "smooth_ece", "nll"), temperature=True)
    trainer = library.Trainer(
        strategy="ddp_fork", devices=2, use_distributed_sampler=False, callbacks=[callback, Writer()], **QUIET
    )
    trainer.validate(classifier(library), datamodule=Shared(), verbose=False)
