"""A model from a file or a name."""

from __future__ import annotations

import os
from pathlib import Path

from certcal._checks import InputError
from certcal.models._callable import NAME, find_named
from certcal.models._wrap import adapt
from certcal.models.protocol import Model, Outputs

FORMATS = "ONNX (.onnx), or weights of a reference network (.safetensors)"
_PICKLES = (".pt", ".pth", ".pkl", ".pickle", ".joblib", ".ckpt", ".bin")


def load(
    path_or_name: str | os.PathLike[str],
    outputs: Outputs | None = None,
    *,
    weights: str | os.PathLike[str] | None = None,
    threads: int = 1,
) -> Model:
    """Load a model from a file, or by the name of a Python object.

    Files are treated as hostile: nothing is unpickled, no code in them is run beyond the operators of the network,
    and whatever is wrong with one is reported as an :class:`certcal.InputError` of one sentence.

    Parameters
    ----------
    path_or_name
        An ONNX file (``.onnx``, run by onnxruntime), weights of a reference network (``.safetensors``, written by
        ``certcal.models.networks.save_weights``), or ``"package.module:name"`` for anything that
        :func:`certcal.models.wrap` takes. Naming a module runs it.
    outputs
        What the model returns: ``"probabilities"`` or ``"logits"``. Needed unless the file or object says so, as those
        written by certcal do.
    weights
        Of a network of your own: a ``.safetensors`` file with exactly the tensors of its ``state_dict()``, such as
        ``weights.safetensors`` of a training. Then ``path_or_name`` names a torch module, or a class or function that
        makes one; it is called with those of ``sample_shape``, ``classes`` and ``seed`` for which it has a parameter,
        as the file of a training says them.
    threads
        Of onnxruntime.

    Examples
    --------
    >>> load("operator:neg", outputs="logits")([[0.5, 2.0]])
    array([[-0.5, -2. ]], dtype=float32)
    >>> load("weights.pth", outputs="logits")
    Traceback (most recent call last):
        ...
    certcal._checks.InputError: weights.pth: .pth files are pickles, which can run code and are never loaded;
    export the model with certcal.models.export_onnx, or load it yourself and pass it to certcal.models.wrap
    """
    text = os.fspath(path_or_name)
    path = Path(text)
    suffix = path.suffix.lower()
    if text and ":" not in text and path.is_dir():
        raise InputError(f"{text}: this is a folder", argument="model", remedy=f"give {_inside(path)}")
    if weights is not None:
        from certcal.models._weights import load_named_network

        if not (isinstance(path_or_name, str) and NAME.fullmatch(path_or_name)):
            raise InputError(
                f"weights is for a network by name, 'package.module:name', and {text!r} is none; leave it out, or name "
                "the network"
            )
        _refuse_pickle(Path(weights), "save its state_dict() with safetensors.torch.save_file")
        return load_named_network(path_or_name, Path(weights), outputs)
    if suffix == ".onnx":
        from certcal.models._onnx import load_onnx

        return load_onnx(path, outputs, threads)
    if suffix == ".pt2":
        raise InputError(
            f"{path}: .pt2 files are not loaded, for they run torch's native operators on whatever they say; export "
            "the model as ONNX, or, for gradients, name the network as 'package.module:name' and give its weights as "
            ".safetensors (weights)"
        )
    if suffix == ".safetensors":
        from certcal.models._weights import load_network

        return load_network(path, outputs)
    if isinstance(path_or_name, str) and NAME.fullmatch(path_or_name):
        return adapt(find_named(path_or_name), outputs, path_or_name)
    _refuse_pickle(
        path,
        "export the model with certcal.models.export_onnx, or load it yourself and pass it to certcal.models.wrap",
    )
    raise InputError(f"{text!r} is no model; give a file, {FORMATS}, or a name, 'package.module:name'")


def _inside(folder: Path) -> str:
    """What to give instead of the folder of a training."""
    if (folder / "model.safetensors").is_file():
        return f"the model in it, {folder / 'model.safetensors'}"
    if (folder / "weights.safetensors").is_file():
        return f"the network as module:name, with the weights {folder / 'weights.safetensors'}"
    return f"a file, {FORMATS}, or a name, 'package.module:name'"


def _refuse_pickle(path: Path, remedy: str) -> None:
    suffix = path.suffix.lower()
    if suffix in _PICKLES:
        raise InputError(f"{path}: {suffix} files are pickles, which can run code and are never loaded; {remedy}")
