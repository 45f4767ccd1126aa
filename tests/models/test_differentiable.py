"""Models with gradients: the same answers as the model's, gradients that are right, and a sentence where none are."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from torch import Tensor, nn

from certcal import InputError
from certcal.models import Differentiable, differentiable, load, wrap
from certcal.models.networks import MLP, LeNet, save_weights
from tests.models.makers_for_tests import FITTED

ROWS = np.random.default_rng(4).random((7, 4)).astype(np.float32)


def gradient(found: Differentiable, rows: Any = ROWS) -> Tensor:
    """Of the sum of the squared outputs with respect to the inputs."""
    inputs = torch.from_numpy(rows.copy()).requires_grad_()
    answer: Tensor = found.module(inputs)
    return torch.autograd.grad((answer**2).sum(), inputs)[0]


@pytest.fixture(params=["module", "wrapped", "name", "safetensors", "named weights"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    save_weights(FITTED, tmp_path / "small.safetensors")
    return {
        "module": FITTED,
        "wrapped": wrap(FITTED),
        "name": "tests.models.makers_for_tests:FITTED",
        "safetensors": str(tmp_path / "small.safetensors"),
        "named weights": load("tests.models.makers_for_tests:unfitted", weights=tmp_path / "small.safetensors"),
    }[request.param]


def test_every_kind_of_torch_model_gives_its_answers_and_its_gradients(source: Any) -> None:
    found = differentiable(source)
    assert found.outputs == "logits"
    assert not any(part.training for part in found.module.modules())
    assert not any(parameter.requires_grad for parameter in found.module.parameters())
    np.testing.assert_allclose(found.module(torch.from_numpy(ROWS)).numpy(), wrap(FITTED)(ROWS), atol=1e-6)
    expected = gradient(Differentiable(FITTED, "logits", "itself"))
    assert expected.abs().max() > 1e-3
    torch.testing.assert_close(gradient(found), expected)


def test_gradients_agree_with_finite_differences() -> None:
    found = differentiable(FITTED)
    step = 1e-2
    slopes = np.zeros_like(ROWS)
    for place in np.ndindex(ROWS.shape):
        up, down = ROWS.copy(), ROWS.copy()
        up[place] += step
        down[place] -= step
        values = [float((found.module(torch.from_numpy(rows)).double() ** 2).sum()) for rows in (up, down)]
        slopes[place] = (values[0] - values[1]) / (2 * step)
    np.testing.assert_allclose(gradient(found).numpy(), slopes, rtol=0.05, atol=2e-3)


def test_inputs_of_another_shape_are_one_sentence() -> None:
    with pytest.raises(InputError, match=r"failed on a batch of shape \(2, 5\)") as caught:
        differentiable(FITTED).module(torch.zeros(2, 5))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("hidden", [(), (16,), (16, 12)])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_perceptron_of_scikit_learn_becomes_a_module_with_its_probabilities(hidden: Any, classes: int) -> None:
    rng = np.random.default_rng(0)
    features = rng.random((90, 4))
    labels = np.digitize(features.sum(1), [2.0, 2.4][: classes - 1])
    fitted = MLPClassifier(hidden, max_iter=30, learning_rate_init=0.05, random_state=0).fit(features, labels)
    found = differentiable(fitted)
    assert found.outputs == "logits"
    with torch.no_grad():
        ours = torch.softmax(found.module(torch.from_numpy(ROWS).reshape(7, 1, 2, 2)), 1).numpy()
    np.testing.assert_allclose(ours, fitted.predict_proba(ROWS), atol=1e-5)
    assert np.ptp(ours) > 0.1
    assert gradient(found).abs().max() > 1e-3


LINEAR = {
    "logistic": lambda: LogisticRegression(C=50),
    "SGD": lambda: SGDClassifier(loss="log_loss", random_state=0),
    "discriminant": LinearDiscriminantAnalysis,
    "scaled": lambda: make_pipeline(MinMaxScaler(), StandardScaler(), LogisticRegression(C=50)),
    "scaled perceptron": lambda: make_pipeline(
        StandardScaler(), MLPClassifier((5,), max_iter=200, tol=1e-2, n_iter_no_change=3, random_state=0)
    ),
}


@pytest.mark.parametrize("make", LINEAR.values(), ids=LINEAR)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("framed", [False, True], ids=["array", "frame"])
def test_a_linear_classifier_becomes_a_module_with_its_probabilities(make: Any, classes: int, framed: bool) -> None:
    import pandas as pd

    features = np.random.default_rng(0).random((90, 4)) * [1, 2, 3, 4]
    labels = np.digitize(features.sum(1), [4.5, 5.5][: classes - 1])
    fitted = make().fit(pd.DataFrame(features, columns=list("abcd")) if framed else features, labels)
    found = differentiable(fitted)
    with torch.no_grad():
        ours = torch.softmax(found.module(torch.from_numpy(ROWS)), 1).numpy()
    assert found.outputs == "logits"
    np.testing.assert_allclose(ours, wrap(fitted)(ROWS), atol=1e-5)
    assert np.ptp(ours) > 0.1
    assert gradient(found).abs().max() > 1e-3


def test_probabilities_that_are_not_of_the_weights_give_no_gradients() -> None:
    class Odd(LogisticRegression):
        def predict_proba(self, X: Any) -> Any:
            return super().predict_proba(X) ** 2

    with pytest.raises(InputError, match=r"Odd .* gives no gradients: its probabilities are not those of its weights"):
        differentiable(Odd().fit(ROWS, [0, 1, 2, 0, 1, 2, 0]))


@pytest.mark.parametrize("activation", ["tanh", "logistic", "identity"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_other_activations_of_scikit_learn_are_refused(activation: str) -> None:
    fitted = MLPClassifier((3,), activation=activation, max_iter=2).fit(ROWS, [0, 1, 2, 0, 1, 2, 0])
    with pytest.raises(InputError, match=f"has the activation '{activation}'; train one with activation='relu'"):
        differentiable(fitted)


def test_what_gives_no_gradients_is_refused_with_what_to_do(tmp_path: Path) -> None:
    for tree in (DecisionTreeClassifier(), make_pipeline(StandardScaler(), DecisionTreeClassifier())):
        with pytest.raises(
            InputError, match=r"no gradients; of scikit-learn's classifiers linear ones and MLPClassifier"
        ):
            differentiable(tree.fit(ROWS, [0, 1, 2, 0, 1, 2, 0]))
    with pytest.raises(InputError, match=r"no gradients; of scikit-learn's classifiers linear ones and MLPClassifier"):
        differentiable(make_pipeline(PolynomialFeatures(), LogisticRegression()).fit(ROWS, [0, 1, 2, 0, 1, 2, 0]))
    with pytest.raises(
        InputError, match=r"gives no gradients; pass the torch module .* load that by its name, .* with its weights"
    ):
        differentiable(lambda batch: batch, outputs="logits")
    with pytest.raises(InputError, match=r"identity\.onnx \(ONNX\) gives no gradients; pass the torch module"):
        differentiable(identity_onnx(tmp_path / "identity.onnx"))
    with pytest.raises(InputError, match="there is no such file"):
        differentiable(tmp_path / "nothing.safetensors")
    with pytest.raises(InputError, match=r"\.pt2 files are not loaded"):
        differentiable(tmp_path / "net.pt2")
    with pytest.raises(InputError, match="is in training mode; call"):
        differentiable(LeNet())
    with pytest.raises(InputError, match="outputs: it is needed for a torch module"):
        differentiable(nn.Linear(4, 2).eval())


def identity_onnx(path: Path) -> Path:
    from onnx import TensorProto, helper, save

    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 4]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "same", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    helper.set_model_props(model, {"certcal.outputs": "logits"})
    save(model, path)
    return path


class Silent(nn.Module):
    outputs = "logits"

    def forward(self, inputs: Tensor) -> Tensor:
        return inputs.detach()


class Wrong(nn.Module):
    outputs = "logits"

    def forward(self, inputs: Tensor) -> Tensor:
        return inputs.sum(1)


class Half(nn.Module):
    outputs = "probabilities"

    def forward(self, inputs: Tensor) -> Tensor:
        return torch.softmax(inputs, 1).bfloat16()


def test_a_module_that_cuts_its_gradients_or_returns_no_matrix_is_one_sentence() -> None:
    with pytest.raises(InputError, match=r"Silent \(torch module\) gives no gradients with respect to its inputs"):
        gradient(differentiable(Silent().eval()))
    assert differentiable(Silent().eval()).module(torch.from_numpy(ROWS)).shape == (7, 4)
    with pytest.raises(InputError, match=r"returns \(7,\) for a batch of shape \(7, 4\); it must return one row"):
        gradient(differentiable(Wrong().eval()))


def test_what_a_module_returns_is_declared_and_single_precision() -> None:
    found = differentiable(Half().eval())
    assert found.outputs == "probabilities"
    assert found.module(torch.from_numpy(ROWS)).dtype == torch.float32


def test_the_module_is_a_copy() -> None:
    network = MLP(4, hidden=(3,), classes=2).eval()
    found = differentiable(network)
    before = gradient(found)
    with torch.no_grad():
        network.layers[0].weight.zero_()
    assert torch.equal(gradient(found), before)
    assert network.layers[0].weight.requires_grad
