"""``certcal predict``: what a model says about each input, as a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from certcal.cli.app import command
from certcal.cli.emit import Output, force_option, output_option, quiet_option
from certcal.cli.options import model_options, verb_options
from certcal.cli.progress import tell
from certcal.verbs.predict import ENDINGS, prediction_columns
from certcal.verbs.predict import predict as verb

_WHAT, _RUNNING = "Model and data", "Running"


@command(
    ("certcal predict --model net.onnx --data test.npz -o predictions.parquet", "then measure, bound, recalibrate"),
    ("certcal predict --model mine:f --outputs logits --data t.npz -o p.parquet", "a Python function"),
    ("certcal predict --model net.onnx --data images --device cuda -o p.parquet", "on a GPU"),
)
@model_options(verb, _WHAT)
@verb_options(verb, _RUNNING, only=("batch", "device"))
@output_option("FILE", "Table to write (.parquet .csv).")
@force_option
@quiet_option
def predict(model: str, data: str, out: str, force: bool, **options: Any) -> None:
    """Predict every input of DATA with MODEL and write a table that other commands read.

    The table has the label and a probability or logit for each class, as the model gives them.
    """
    from certcal._base.files import write_bytes
    from certcal.cli.sources import existing_files
    from certcal.data.columns import columns_as_bytes

    path = Path(out)
    Output(ENDINGS, as_json=False, files=(out,), force=force).check(*existing_files(model, data))
    found = verb(model, data, **options)
    write_bytes(path, columns_as_bytes(prediction_columns(found), path.suffix.lower()), force=force)
    tell(f"wrote {out}: {found!r}; next: certcal measure {out}")
