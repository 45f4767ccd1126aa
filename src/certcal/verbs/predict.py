"""What does a model say about each input? Its predictions beside what was true, for every verb about predictions."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from certcal._base.progress import ProgressLike, as_reporter
from certcal._base.signature import Option, Takes, verb
from certcal.data import Inputs
from certcal.data.sources import predictions_of
from certcal.data.units import warn_of_odd_units
from certcal.predictions import Predictions
from certcal.verbs.model_and_data import BATCH, COUNT, SIDE, DataSet, open_data, open_model

ENDINGS = (".parquet", ".csv")


@verb()
def predict(
    model: object,
    data: str | os.PathLike[str] | Inputs | DataSet,
    *,
    outputs: Annotated[Literal["logits", "probabilities"] | None, Option(metavar="KIND")] = None,
    weights: Annotated[str | os.PathLike[str] | None, Takes("file"), Option(metavar="FILE")] = None,
    split: Literal["train", "test"] | None = None,
    limit: Annotated[int | None, COUNT] = None,
    every: Annotated[int, COUNT] = 1,
    resize: Annotated[int | None, SIDE, Option(metavar="PIXELS")] = None,
    crop: Annotated[int | None, SIDE, Option(metavar="PIXELS")] = None,
    batch: Annotated[int, BATCH] = 500,
    device: Annotated[str, Takes("text"), Option(metavar="D")] = "auto",
    progress: ProgressLike = True,
) -> Predictions:
    """Predict every input of data with labels.

    Large data is read batch by batch; only what the model says is kept.

    Parameters
    ----------
    model
        A certcal model, a function or torch module, a fitted classifier, a file (.onnx .safetensors) or "module:name".
    data
        :class:`~certcal.data.Inputs`, a pair of inputs and labels, a file, a folder, "digits" or "fashion-mnist", a
        torch ``Dataset`` or ``DataLoader``, or "module:name" of one; see :func:`certcal.data.open_inputs`.
    outputs
        Model outputs: logits or probabilities. Default: as the model file says.

        Of a torch module logits, where its answers cannot be probabilities.
    weights
        Weights of the network: .safetensors, or a checkpoint (.pth .pth.tar .pt .ckpt .bin).
    split
        Split of the data. Default: test.
    limit
        Predict the first N inputs. Default: all.
    every
        Use samples 0, N, 2N, … of the data.
    resize
        Resize images of a folder: pixels of the shorter side. Needed if sizes differ.
    crop
        Crop the centre of images of a folder: pixels of both sides. Needed if shapes differ.
    batch
        Inputs per call of the model.
    device
        Where the model computes: auto (an accelerator if there is one), cpu, cuda, cuda:1, mps, … Default: auto.
    progress
        Whether to show how far the work is; or a function or an object that is told.

    Examples
    --------
    >>> import certcal
    >>> certcal.predict(lambda batch: batch, ([[2.0, 0.0], [0.0, 1.0]], [0, 0]), outputs="logits")
    Predictions(n=2, classes=2, kind='logits', accuracy=0.5)
    """
    progress = as_reporter(progress)
    asked = locals()
    inputs = open_data(data, asked).inputs
    warn_of_odd_units(inputs)
    network = open_model(model, asked, device, inputs)
    return predictions_of(network, inputs, batch=batch, progress=progress)


def prediction_columns(predictions: Predictions) -> Mapping[str, Any]:
    """The columns of a table that every verb about predictions reads without being told their names.

    Examples
    --------
    >>> made = Predictions.from_probabilities([[0.9, 0.1], [0.4, 0.6]], [0, 1])
    >>> list(prediction_columns(made))
    ['label', 'prob_0', 'prob_1']
    """
    if predictions.labels is None:
        names = ("score", "outcome") if predictions.kind == "score" else ("confidence", "correct")
        return dict(zip(names, (predictions.confidence, predictions.correct), strict=True))
    logits = predictions.logits
    stem, matrix = ("prob", predictions.probabilities) if logits is None else ("logit", logits)
    assert matrix is not None
    return {"label": predictions.labels, **{f"{stem}_{k}": each for k, each in enumerate(matrix.T)}}
