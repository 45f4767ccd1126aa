"""A model from a file, a name or an object, and a model that gives gradients."""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from certcal._base.checks import InputError
from certcal._base.files import read_bytes
from certcal._base.text import did_you_mean, reason
from certcal.models._adapter import BoosterModel, CallableModel, EstimatorModel, extra
from certcal.models._tree_files import checked_model
from certcal.models.fingerprint import is_instance
from certcal.models.protocol import LARGEST_FILE, Model, Outputs, Source, declared_outputs

if TYPE_CHECKING:
    from torch import nn

NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")

# Networks with the names of published weights: depth, and the images that they are for.
PUBLISHED: dict[str, tuple[int, Literal["cifar", "imagenet"]]] = {
    **{f"resnet{depth}-cifar": (depth, "cifar") for depth in (20, 32, 44, 56, 110)},
    **{f"resnet{depth}-imagenet": (depth, "imagenet") for depth in (18, 34, 50, 101, 152)},
}
# Names of networks that training makes; the file that it writes says which it is.
REFERENCE = ("lenet", "resnet20", "resnet110", "preact18", "mlp")
_AS_WRITTEN = (
    "give the .safetensors file that training wrote as the model, or a published network, such as resnet20-cifar, with "
    "its weights"
)

_FORMATS = (
    "ONNX (.onnx), weights of a reference network (.safetensors), or trees of XGBoost (.json .ubj) or LightGBM (.txt)"
)
# Where in its own sources XGBoost has failed, which says nothing to a user.
_XGBOOST_PLACE = re.compile(r"\[[\d:]+\] \S+:\d+: ")
# Files in which boosters are saved by their own libraries: no pickles.
BOOSTERS = {".json": "xgboost", ".ubj": "xgboost", ".txt": "lightgbm"}
CHECKPOINTS = (".pth", ".pth.tar", ".pt", ".ckpt", ".bin")
_PICKLES = (".pkl", ".pickle", ".joblib")
_NETWORK = "'package.module:name', resnet110-cifar or resnet50-imagenet"
# What a class or function that makes a model may be called with.
_FACTORY_PARAMETERS = ("sample_shape", "classes", "mean", "std", "seed")


def load(
    path_or_name: str | os.PathLike[str],
    outputs: Outputs | None = None,
    *,
    weights: str | os.PathLike[str] | None = None,
    threads: int = 1,
    device: str = "auto",
) -> Model:
    """Load a model from a file, or by the name of a Python object.

    Files are treated as hostile: no code in them is run beyond the operators of the network, checkpoints are read by
    ``torch.load(weights_only=True)`` only, and whatever is wrong with a file is an :class:`certcal.InputError` of one
    sentence.

    Parameters
    ----------
    path_or_name
        An ONNX file (``.onnx``, run by onnxruntime), weights of a reference network (``.safetensors``, written by
        ``certcal.models.networks.save_weights``), trees that XGBoost (``.json``, ``.ubj``) or LightGBM (``.txt``) has
        saved, or ``"package.module:name"`` for anything that
        :func:`certcal.models.wrap` takes, and for a class or function that makes it: one whose parameters without a
        default are among ``sample_shape``, ``classes`` and ``seed``. Naming a module runs it. With ``weights`` also a
        network by name, such as ``"resnet110-cifar"`` (see :func:`certcal.models.networks.by_name`). A checkpoint
        alone, if it says which of these it is of (``arch``), as the published ones do.
    outputs
        What the model returns: ``"probabilities"`` or ``"logits"``. Needed unless the file or object says so, as those
        written by certcal do.
    weights
        Weights of a network: ``.safetensors``, or a checkpoint (``.pth``, ``.pth.tar``, ``.pt``, ``.ckpt``, ``.bin``)
        with a ``state_dict()`` at its top or where training scripts put one. Names that wrappers add (``module.``,
        ``_orig_mod.``, ``1.``) are taken off; a normalisation before the network is read. Then ``path_or_name`` names
        the network: a torch module, or a class or function that makes one; it is called with those of
        ``sample_shape``, ``classes`` and ``seed`` for which it has a parameter, as the file of a training says them.
    threads
        Number of threads of onnxruntime.
    device
        Where the model computes: ``"auto"`` (an accelerator if there is one), ``"cpu"``, ``"cuda"``, ``"cuda:1"``,
        ``"mps"`` or any accelerator that torch knows; see :mod:`certcal.models.devices`. Estimators and callables
        compute where they like.

    Examples
    --------
    >>> load("operator:neg", outputs="logits")([[0.5, 2.0]])
    array([[-0.5, -2. ]], dtype=float32)
    >>> load("model.pkl")
    Traceback (most recent call last):
        ...
    certcal.InputError: model.pkl: .pkl files are pickles, which can run code and are never loaded; load it in a
    module of your own and name it, as 'mine:model', or save trees with XGBoost's or LightGBM's own save_model and a
    torch network with certcal.models.export_onnx
    """
    text = os.fspath(path_or_name)
    path = Path(text)
    suffix = path.suffix.lower()
    if text and ":" not in text and path.is_dir():
        raise InputError(f"{text}: this is a folder", argument="model", remedy=f"give {_model_in_folder(path)}")
    named = isinstance(path_or_name, str) and NAME.fullmatch(text) is not None
    if weights is not None:
        if not named and text not in PUBLISHED:
            raise InputError(
                f"it is for a network by name ({_NETWORK}), and {text!r} is none",
                argument="weights",
                remedy=_AS_WRITTEN
                if text in REFERENCE
                else _published_if_near(text) or "leave it out, or name the network",
            )
        _refuse_exported(Path(weights))
        _refuse_pickle(Path(weights), "save its state_dict() with safetensors.torch.save_file")
        with extra("torch", ("torch", "safetensors"), "a network with weights"):
            from certcal.models._torch import load_named_network

            return load_named_network(text, Path(weights), outputs, device)
    if text in REFERENCE and not path.is_file():
        raise InputError(f"{text} needs weights", remedy=_AS_WRITTEN, roles=("weights",))
    if text in PUBLISHED:
        raise InputError(f"it is needed for {text}", argument="weights", remedy="give a checkpoint or .safetensors")
    if suffix == ".onnx":
        from certcal.models._onnx import load_onnx

        return load_onnx(path, outputs, threads, device)
    _refuse_exported(path)
    if suffix == ".safetensors":
        with extra("torch", ("torch", "safetensors"), "a safetensors file"):
            from certcal.models._torch import load_network

            return load_network(path, outputs, device)
    if suffix in BOOSTERS and not named:
        return _refuse_moving(_load_booster(path, outputs), "a Booster", device)
    if named:
        found, taken = make_named(text, {})
        if taken is not None and is_instance(found, "torch.nn", "Module"):
            cast("nn.Module", found).eval()
        return _adapt(found, outputs, text, device)
    if is_checkpoint(path):
        network = _network_of_checkpoint(path)
        if network in PUBLISHED:
            return load(network, outputs, weights=path, device=device)
        raise InputError(
            f"{path}: a checkpoint holds weights without their network",
            remedy=f"name the network ({_NETWORK}) and give the file as its weights",
            roles=("weights",),
        )
    _refuse_pickle(
        path,
        "load it in a module of your own and name it, as 'mine:model', or save trees with XGBoost's or LightGBM's own "
        "save_model and a torch network with certcal.models.export_onnx",
    )
    names = f"give a file, {_FORMATS}; a name, 'package.module:name'; or, with weights, {', '.join(PUBLISHED)}"
    raise InputError(f"{text!r} is no model", remedy=_published_if_near(text) or names)


def _load_booster(path: Path, outputs: Outputs | None) -> Model:
    """Trees from the file that XGBoost or LightGBM has saved, checked before the library itself reads them."""
    library = BOOSTERS[path.suffix.lower()]
    model = checked_model(read_bytes(path, LARGEST_FILE, "a model"), path, library)
    with extra("trees", (library,), f"a {path.suffix} file of trees"):
        package: Any = import_module(library)
    try:
        given: Any = {"model_file": bytearray(model)} if library == "xgboost" else {"model_str": model.decode()}
        made = package.Booster(**given)
        return BoosterModel(made, outputs, os.fspath(path.resolve()))
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"{path}: {library} cannot read it: {_XGBOOST_PLACE.sub('', reason(error))}",
            remedy=f"save the model with {library}'s save_model",
        ) from error


def _published_if_near(name: str) -> str:
    there = f"the published networks are {', '.join(PUBLISHED)}"
    return there if did_you_mean(name, PUBLISHED) else ""


def is_checkpoint(path: Path) -> bool:
    return path.name.lower().endswith(CHECKPOINTS)


def _model_in_folder(folder: Path) -> str:
    if (folder / "model.safetensors").is_file():
        return f"the model in it, {folder / 'model.safetensors'}"
    if (folder / "weights.safetensors").is_file():
        return f"the network as module:name, with the weights {folder / 'weights.safetensors'}"
    return f"a file, {_FORMATS}, or a name, 'package.module:name'"


def _refuse_exported(path: Path) -> None:
    if path.suffix.lower() == ".pt2":
        raise InputError(
            f"{path}: .pt2 files are not loaded, for they run torch's native operators on whatever they say",
            remedy="export the model as ONNX, or, for gradients, name the network as 'package.module:name' and give "
            "its weights as .safetensors",
            roles=("weights",),
        )


def _network_of_checkpoint(path: Path) -> str:
    """The network that a checkpoint names; or say what else is in the file: TorchScript, a pickled module."""
    with extra("torch", ("torch", "safetensors"), "a checkpoint"):
        from certcal.models._checkpoint import checkpoint_network

        return checkpoint_network(read_bytes(path, LARGEST_FILE, "a checkpoint"), path)


def _refuse_pickle(path: Path, remedy: str) -> None:
    suffix = path.suffix.lower()
    if suffix in _PICKLES:
        raise InputError(f"{path}: {suffix} files are pickles, which can run code and are never loaded; {remedy}")


def wrap(model: object, outputs: Outputs | None = None, *, device: str | None = None) -> Model:
    """Make a model from an object: torch module, onnxruntime session, scikit-learn classifier or callable.

    Parameters
    ----------
    model
        The object. A torch module (TorchScript is one, so are those of timm and Hugging Face) must be in evaluation
        mode and is copied; of an answer of several parts its ``logits`` or the first matrix is taken. A scikit-learn
        classifier must have ``predict_proba`` and classes 0, 1, 2, …, as XGBoost's and LightGBM's have; inputs are
        flattened for it, and for a ``Booster`` of these two. A callable gets a
        float32 array with the samples along the first axis, which it must not keep, and returns a row per sample and a
        column per class.
    outputs
        What it returns: ``"probabilities"`` or ``"logits"``. Needed unless the object itself says so: by an attribute
        ``outputs`` (the networks in ``certcal.models.networks`` have one) or by being a scikit-learn classifier.
    device
        Where a torch module computes, as for :func:`certcal.models.load`; by default where its parameters are. With
        ``"auto"`` a module on the CPU goes to an accelerator if there is one, and any other stays where it is.

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
    certcal.InputError: outputs: it is needed for a callable, and never guessed; give 'probabilities' or
    'logits'
    """
    return _adapt(model, outputs, device=device)


def _adapt(model: object, outputs: Outputs | None, name: str | None = None, device: str | None = None) -> Model:
    """As :func:`wrap`, for an object that was found under a name and can be found there again."""
    if isinstance(model, type):
        raise InputError(f"{name or model.__name__} is a class; pass an object made from it")
    asked = device or "auto"
    if isinstance(model, Model):
        declared_outputs(outputs, model.outputs, "the model")
        return (
            cast("Any", model).on(device) if hasattr(model, "on") else _refuse_moving(model, model.description, asked)
        )
    own = getattr(model, "outputs", None)
    known = own if isinstance(own, str) else None
    if is_instance(model, "torch.nn", "Module"):
        from certcal.models._torch import TorchModel

        returns = declared_outputs(outputs, known, "a torch module")
        about = None if name is None else f"{name} (torch module)"
        source = None if name is None else Source(name, returns, device=asked)
        return TorchModel(cast("Any", model), returns, about, source, device=device)
    if is_instance(model, "onnxruntime", "InferenceSession"):
        from certcal.models._onnx import OnnxModel

        session = OnnxModel(model, declared_outputs(outputs, known, "an onnxruntime session"), "an onnxruntime session")
        return _refuse_moving(session, session.description, asked)
    if hasattr(model, "predict_proba"):
        return _refuse_moving(EstimatorModel(model, outputs, name), "a scikit-learn classifier", asked)
    if type(model).__name__ == "Booster" and type(model).__module__.partition(".")[0] in ("xgboost", "lightgbm"):
        return _refuse_moving(BoosterModel(model, outputs, name), "a Booster", asked)
    if callable(model):
        returns = declared_outputs(outputs, known, "a callable")
        made = CallableModel(model, returns, name, None if name is None else Source(name, returns))
        return _refuse_moving(made, "a Python callable", asked)
    kind = type(model).__name__
    what = f"model ({kind})" if name is None else f"{name} ({kind})"
    if hasattr(model, "predict"):
        raise InputError(
            f"{what} has no predict_proba; calibrate it first, for example with scikit-learn's CalibratedClassifierCV"
        )
    if isinstance(model, str):
        raise InputError(f"model is the text {model!r}; use certcal.models.load for files and names")
    values = cast("Mapping[str, object]", model).values() if isinstance(model, Mapping) else ()
    if any(is_instance(each, "torch", "Tensor") for each in values):
        raise InputError(
            "model is a state_dict, which holds weights without their network",
            remedy="make the network, call its load_state_dict with these weights and eval(), and pass the network",
        )
    raise InputError(
        f"{what} is no model; pass a torch module, an onnxruntime session, a scikit-learn classifier or a callable"
    )


def _refuse_moving(model: Model, what: str, device: str) -> Model:
    if device not in ("auto", getattr(model, "device", "cpu")):
        raise InputError(
            f"{what} computes where it was made to, and is not moved to {device!r}",
            argument="device",
            remedy="leave it out, or give a torch module or a file",
        )
    return model


@dataclass(frozen=True, eq=False)
class Differentiable:
    """A classifier that torch can differentiate."""

    # In evaluation mode, with fixed weights: float32 inputs with the samples along the first axis in, a row per sample
    # and a column per class out. Its failures are certcal.InputError of one sentence.
    module: nn.Module
    outputs: Outputs
    description: str
    device: str = "cpu"  # where the module is, and where its inputs must be


def differentiable(model: object, outputs: Outputs | None = None, *, device: str | None = None) -> Differentiable:
    """Make a torch module that gives gradients with respect to its inputs, from a model.

    Parameters
    ----------
    model
        A torch module in evaluation mode, or what :func:`certcal.models.load` takes: weights of a reference network
        (``.safetensors``), the name of a torch module (``"package.module:name"``); or what ``load`` and
        :func:`certcal.models.wrap` have made of one, such as a network of your own by its name with its weights. A
        linear classifier of scikit-learn (``LogisticRegression``, ``SGDClassifier`` with log loss,
        ``LinearDiscriminantAnalysis``) or a multi-layer perceptron with rectifiers (``MLPClassifier``), alone or behind
        scalers in a pipeline, is rebuilt as a torch module that returns the logits of its probabilities. ONNX files,
        other estimators and plain callables give no gradients and are refused.
    outputs
        What the model returns, as for ``load`` and ``wrap``; needed unless it says so itself.
    device
        Where it computes, as for ``load`` and ``wrap``.

    Raises
    ------
    InputError
        If there is no model, or if it gives no gradients.

    Examples
    --------
    >>> import torch
    >>> from certcal.models.networks import MLP
    >>> network = differentiable(MLP(4, hidden=(8,), classes=3).eval())
    >>> inputs = torch.zeros(2, 4, requires_grad=True)
    >>> logits = network.module(inputs)
    >>> network.outputs, torch.autograd.grad(logits.sum(), inputs)[0].shape
    ('logits', torch.Size([2, 4]))
    """
    is_name = isinstance(model, str | os.PathLike)
    if is_name:
        found = load(cast("str", model), outputs, device=device or "auto")
    else:
        found = wrap(model, outputs, device=device)
    about = found.description
    with extra("torch", ("torch", "safetensors"), "an attack or training"):
        from certcal.models._torch import TorchModel, with_clear_failures

        if isinstance(found, TorchModel):
            return Differentiable(with_clear_failures(found.module, about), found.outputs, about, found.device)
        if isinstance(found, EstimatorModel):
            from certcal.models._rebuilt import rebuilt

            return Differentiable(with_clear_failures(rebuilt(found), about), "logits", about)
    raise InputError(
        f"{about} gives no gradients; pass the torch module it was made from, or load that by its name, "
        "'package.module:name', with its weights; bound the scores of trees with verify"
    )


def make_named(name: str, given: Mapping[str, Any]) -> tuple[object, dict[str, Any] | None]:
    """What ``"package.module:name"`` names, or makes; and, if it was made, what from.

    A class makes a model, and so does a function without a parameter for inputs: all of its parameters without a
    default are among the given ones. It is called with those of them for which it has a parameter. The seed of torch is
    the given one, or 0.
    """
    found: Any = find_named(name)
    parameters = _parameters(found)
    if not _is_factory(found, parameters):
        return found, None
    named = {each.name for each in parameters or () if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)}
    taken = {key: value for key, value in given.items() if key in named and value is not None}
    with _torch_seeded(given.get("seed") or 0):
        try:
            return found(**taken), taken
        except InputError:
            raise
        except Exception as error:
            lacking = [each for each in parameters or () if _is_required(each) and each.name not in taken]
            remedy = "it must make a model from no more than sample_shape, classes and seed"
            raise InputError(
                f"calling {name} failed: {reason(error)}", remedy=remedy if lacking else "make this call work first"
            ) from error


def _parameters(make: Any) -> list[inspect.Parameter] | None:
    try:
        return list(inspect.signature(make).parameters.values())
    except (TypeError, ValueError):
        return None


def _is_required(parameter: inspect.Parameter) -> bool:
    several = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    return parameter.default is parameter.empty and not several


def _is_factory(found: object, parameters: list[inspect.Parameter] | None) -> bool:
    """Whether it is a class, or a function that needs nothing but what may be given."""
    if isinstance(found, type):
        return True
    if parameters is None or not (inspect.isroutine(found) or isinstance(found, partial)):
        return False  # an object that can be called is a model itself
    return all(
        each.kind is not each.VAR_POSITIONAL and (each.name in _FACTORY_PARAMETERS or not _is_required(each))
        for each in parameters
    )


def _torch_seeded(seed: int) -> Any:
    if "torch" not in sys.modules:
        return nullcontext()
    from certcal.models.networks._network import fixed_seed

    return fixed_seed(seed)


def find_named(name: str) -> object:
    """The object that ``"package.module:name"`` names; only that module is imported.

    The module is looked for as Python does, and, if it is not found there, in the current folder.

    Parameters
    ----------
    name
        Such as ``"package.module:name"``.

    Examples
    --------
    >>> find_named("math:pi")
    3.141592653589793
    """
    module_name, _, attribute = name.partition(":")
    module = _import_by_name(module_name)
    target: object = module
    for part in attribute.split("."):
        try:
            target = getattr(target, part)
        except AttributeError:
            raise InputError(f"{name}: module {module_name!r} has no {attribute!r}; check the spelling") from None
    return target


def _import_by_name(name: str) -> object:
    here = os.getcwd()
    # Looked for last, so that a file in the current folder never stands in for an installed package.
    elsewhere = _is_missing(name.partition(".")[0]) and here not in sys.path
    if elsewhere:
        sys.path.append(here)
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            raise InputError(f"there is no module {error.name!r}; check the spelling and the current folder") from None
        raise InputError(f"importing {name} failed: {reason(error)}; install what it needs") from error
    except SystemExit:
        raise InputError(
            f"importing {name} ended the program; put what it does as a script under if __name__ == '__main__'"
        ) from None
    except Exception as error:
        raise InputError(f"importing {name} failed: {reason(error)}; make `import {name}` work first") from error
    finally:
        if elsewhere:
            sys.path.remove(here)


def _is_missing(top: str) -> bool:
    try:
        return find_spec(top) is None
    except (ImportError, ValueError):
        return top not in sys.modules
