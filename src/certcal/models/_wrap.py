"""One adapter for each kind of object."""

from __future__ import annotations

from typing import Any

from certcal._checks import InputError
from certcal.models.fingerprint import is_instance
from certcal.models.protocol import Model, Outputs, Source, declared


def wrap(model: object, outputs: Outputs | None = None) -> Model:
    """Make a model from an object: torch module, onnxruntime session, scikit-learn classifier or callable.

    Parameters
    ----------
    model
        The object. A torch module (TorchScript is one) must be in evaluation mode and is copied. A scikit-learn
        classifier must have ``predict_proba`` and classes 0, 1, 2, …; inputs are flattened for it. A callable gets a
        float32 array with the samples along the first axis, which it must not keep, and returns a row per sample and a
        column per class.
    outputs
        What it returns: ``"probabilities"`` or ``"logits"``. Needed unless the object itself says so: by an attribute
        ``outputs`` (the networks in ``certcal.models.networks`` have one) or by being a scikit-learn classifier.

    Returns
    -------
    Model
        Which also accepts lists and tensors, and whose failures are :class:`certcal.InputError` of one sentence.

    Examples
    --------
    >>> import numpy as np
    >>> def sign(batch):
    ...     total = batch.sum(axis=1)
    ...     return np.stack([-total, total], axis=1)
    >>> model = wrap(sign, outputs="logits")
    >>> model(np.array([[1.0, 2.0], [-3.0, 1.0]], np.float32))
    array([[-3.,  3.],
           [ 2., -2.]], dtype=float32)
    >>> wrap(sign)
    Traceback (most recent call last):
        ...
    certcal._checks.InputError: outputs: it is needed for a callable, and never guessed; give 'probabilities' or
    'logits'
    """
    return adapt(model, outputs)


def adapt(model: object, outputs: Outputs | None, name: str | None = None) -> Model:
    """As :func:`wrap`, for an object that was found under a name and can be found there again."""
    if isinstance(model, type):
        weights = "" if name is None else ", or weights for the network that it makes"
        raise InputError(f"{name or model.__name__} is a class; pass an object or function made from it{weights}")
    if isinstance(model, Model):
        declared(outputs, model.outputs, "the model")
        return model
    own = getattr(model, "outputs", None)
    known = own if isinstance(own, str) else None
    if is_instance(model, "torch.nn", "Module"):
        from certcal.models._torch import TorchModel

        returns = declared(outputs, known, "a torch module")
        about = None if name is None else f"{name} (torch module)"
        return TorchModel(_any(model), returns, about, _source(name, returns))
    if is_instance(model, "onnxruntime", "InferenceSession"):
        from certcal.models._onnx import OnnxModel

        return OnnxModel(model, declared(outputs, known, "an onnxruntime session"), "an onnxruntime session")
    if hasattr(model, "predict_proba"):
        from certcal.models._sklearn import EstimatorModel

        estimator = EstimatorModel(model, outputs)
        estimator.source = _source(name, estimator.outputs)
        return estimator
    if callable(model):
        from certcal.models._callable import CallableModel

        returns = declared(outputs, known, "a callable")
        return CallableModel(model, returns, name, _source(name, returns))
    raise InputError(_no_model(model, name))


def _no_model(model: object, name: str | None) -> str:
    kind = type(model).__name__
    what = f"model ({kind})" if name is None else f"{name} ({kind})"
    if hasattr(model, "predict"):
        return (
            f"{what} has no predict_proba; calibrate it first, for example with scikit-learn's CalibratedClassifierCV"
        )
    if isinstance(model, str):
        return f"model is the text {model!r}; use certcal.models.load for files and names"
    return f"{what} is no model; pass a torch module, an onnxruntime session, a scikit-learn classifier or a callable"


def _source(name: str | None, outputs: Outputs) -> Source | None:
    return None if name is None else Source(name, outputs)


def _any(value: object) -> Any:
    return value
