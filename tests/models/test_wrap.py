"""Objects as models: what comes out is declared, and every failure is one sentence."""

import hashlib
import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from torch import nn

from certcal import InputError
from certcal.models import Model, differentiable, load, wrap
from certcal.models.networks import MLP, LeNet
from tests.models.plain_for_tests import BATCH, fitted, two_columns


@pytest.mark.parametrize(
    ("model", "outputs"),
    [(two_columns, "logits"), (nn.Linear(4, 3).eval(), "probabilities"), (fitted(), None), (MLP(4).eval(), None)],
    ids=["callable", "torch module", "estimator", "network"],
)
def test_every_kind_of_object_becomes_a_model(model: Any, outputs: Any) -> None:
    wrapped = wrap(model, outputs)
    assert isinstance(wrapped, Model)
    answers = wrapped(BATCH)
    assert answers.shape[0] == 6
    assert answers.dtype in (np.float32, np.float64)
    assert wrapped.source is None
    assert len(wrapped.fingerprint(BATCH)) == 64
    assert wrap(wrapped) is wrapped


@pytest.mark.parametrize("model", [two_columns, nn.Linear(4, 2).eval()], ids=["callable", "torch module"])
def test_what_comes_out_is_never_guessed(model: Any) -> None:
    with pytest.raises(InputError, match=r"outputs: it is needed for a .*never guessed"):
        wrap(model)


@pytest.mark.parametrize(
    ("model", "outputs", "sentence"),
    [
        (two_columns, "scores", "outputs: 'scores' is not one of 'probabilities', 'logits'"),
        (fitted(), "logits", "predict_proba of LogisticRegression declares that it returns probabilities"),
        (MLP(4).eval(), "probabilities", "a torch module declares that it returns logits"),
        (wrap(two_columns, "logits"), "probabilities", "the model declares that it returns logits"),
    ],
)
def test_a_wrong_declaration_is_refused(model: Any, outputs: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        wrap(model, outputs)


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (fitted(estimator=Perceptron()), "Perceptron.*has no predict_proba; calibrate it first"),
        (LogisticRegression(), "LogisticRegression has no classes_; fit it first"),
        (fitted(lambda x: np.where(x[:, 0] > 0, "cat", "dog")), "fitted on the classes 'cat', 'dog'; fit it on whole"),
        (fitted(lambda x: 1 + (x[:, 0] > 0)), "fitted on the classes 1, 2; fit it on whole numbers from 0 to 1"),
        (
            fitted(lambda x: np.stack([x[:, 0] > 0, x[:, 1] > 0], 1).astype(int), DecisionTreeClassifier()),
            "predicts several outputs at once",
        ),
        (nn.Linear(4, 2), "Linear is in training mode; call .eval()"),
        (LogisticRegression, "LogisticRegression is a class; pass an object"),
        ("model.onnx", "use certcal.models.load for files"),
        (3, r"model \(int\) is no model; pass a torch module"),
        (nn.Linear(4, 2).state_dict(), r"model is a state_dict, which .*; make the network, call its load_state_dict"),
    ],
)
def test_what_cannot_be_a_model_is_refused_in_one_sentence(model: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        wrap(model, None if hasattr(model, "predict_proba") else "probabilities")


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lambda batch: batch[:-1, :2], r"returns shape \(5, 2\) for a batch of shape \(6, 4\)"),
        (lambda batch: batch[:, 0], r"returns shape \(6,\) .*; return two columns, 0 and z of a logit z$"),
        (lambda batch: batch[:, :1], r"returns shape \(6, 1\) .*; return two columns, 0 and z of a logit z$"),
        (
            lambda batch: batch[:, :2, None],
            r"returns shape \(6, 2, 1\) .*one column per class \(two for a binary model\)$",
        ),
        (lambda batch: batch[:, :2].astype(complex), "returns complex128; it must return numbers"),
        (lambda batch: [["a", "b"]] * 6, r"is 'a', not a number"),
        (lambda batch: 1 / 0, r"failed on a batch of shape \(6, 4\): ZeroDivisionError: division by zero"),
        (lambda batch: None, "the output of .*None"),
    ],
)
def test_a_bad_answer_is_one_sentence(answer: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        wrap(answer, "logits")(BATCH)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("answer", "dtype"),
    [
        (lambda batch: batch[:, :2].astype(np.float16), np.float32),
        (lambda batch: batch[:, :2] > 0, np.float64),
        (lambda batch: (batch[:, :2] > 0).astype(int), np.float64),
        (lambda batch: batch[:, :2].tolist(), np.float64),
        (lambda batch: torch.from_numpy(batch[:, :2]), np.float32),
    ],
)
def test_numbers_of_any_kind_come_out_as_floats(answer: Any, dtype: Any) -> None:
    assert wrap(answer, "logits")(BATCH).dtype == dtype


def test_nan_comes_out_as_it_is() -> None:
    answers = wrap(lambda batch: np.full((6, 2), np.nan), "probabilities")(BATCH)
    assert np.isnan(answers).all()


@pytest.mark.parametrize("batch", [np.zeros(4, np.float32), np.zeros((0, 4), np.float32)])
def test_a_batch_without_samples_is_refused(batch: Any) -> None:
    with pytest.raises(InputError, match="batch has shape"):
        wrap(two_columns, "logits")(batch)


def test_inputs_reach_a_callable_without_a_copy() -> None:
    seen: list[Any] = []
    wrap(lambda batch: seen.append(batch) or batch[:, :2], "logits")(BATCH)
    assert np.shares_memory(seen[0], BATCH)


def test_a_torch_module_gives_what_it_gives_in_torch() -> None:
    network = LeNet(seed=5).eval()
    images = np.random.default_rng(2).random((9, 1, 28, 28), np.float32)
    with torch.inference_mode():
        expected = network(torch.from_numpy(images)).numpy()
    np.testing.assert_allclose(wrap(network)(images), expected, atol=1e-6)


def test_a_torch_module_is_neither_changed_nor_followed() -> None:
    network = LeNet().eval()
    model = wrap(network)
    images = np.ones((2, 1, 28, 28), np.float32)
    before, digest = model(images), model.fingerprint(images)
    assert all(parameter.requires_grad for parameter in network.parameters())
    assert all(parameter.is_contiguous() for parameter in network.parameters())
    with torch.no_grad():
        network.layers[-1].bias.add_(1)
    assert np.array_equal(model(images), before)
    assert model.fingerprint(images) == digest
    assert wrap(network).fingerprint(images) != digest


def test_a_torch_modules_digits_see_every_weight_buffer_and_class() -> None:
    class Other(nn.Linear):
        pass

    def linear(kind: type[nn.Linear] = nn.Linear, mean: float = 0.0) -> nn.Module:
        layer = kind(4, 2).eval()
        layer.register_buffer("mean", torch.tensor(mean), persistent=False)
        with torch.no_grad():
            layer.weight.fill_(1)
            layer.bias.fill_(0)
        return layer

    digits = [wrap(layer, "logits").fingerprint(BATCH) for layer in (linear(), linear(Other), linear(mean=1.0))]
    assert len(set(digits)) == 3
    assert wrap(linear(), "logits").fingerprint(BATCH * 0) == digits[0]


def test_a_torch_module_may_compute_in_half_precision_and_from_read_only_memory() -> None:
    class Half(nn.Module):
        def forward(self, inputs: torch.Tensor) -> torch.Tensor:
            return inputs[:, :2].bfloat16()

    batch = BATCH.copy()
    batch.flags.writeable = False
    assert wrap(Half().eval(), "logits")(batch).dtype == np.float32


def test_a_torch_module_that_fails_or_returns_no_tensor_is_one_sentence() -> None:
    with pytest.raises(InputError, match=r"Parts .*returns str; it must return one tensor"):
        wrap(Parts(lambda logits: "logits").eval(), "logits")(BATCH)
    with pytest.raises(InputError, match=r"Linear \(torch module\) failed on a batch of shape \(6, 4\): RuntimeError"):
        wrap(nn.Linear(5, 2).eval(), "logits")(BATCH)


def test_torch_threads_and_gradients_are_left_alone() -> None:
    threads = torch.get_num_threads()
    wrap(nn.Linear(4, 2).eval(), "logits")(BATCH)
    assert torch.get_num_threads() == threads
    assert torch.is_grad_enabled()


def test_an_estimator_gets_flat_samples_and_gives_its_probabilities() -> None:
    estimator = make_pipeline(StandardScaler(), LogisticRegression())
    estimator = fitted(estimator=estimator)
    answers = wrap(estimator)(BATCH.reshape(6, 1, 2, 2))
    assert np.array_equal(answers, estimator.predict_proba(BATCH))
    with pytest.raises(InputError, match=r"Pipeline \(scikit-learn\) takes samples of shape \(4,\), not \(5,\)"):
        wrap(estimator)(np.zeros((2, 5), np.float32))


class Parts(nn.Module):
    """Answers as modules of Hugging Face, timm and many training scripts do."""

    def __init__(self, answer: Any, **attributes: Any) -> None:
        super().__init__()
        self.layer, self.answer = nn.Linear(4, 3), answer
        vars(self).update(attributes)

    def forward(self, inputs: torch.Tensor) -> Any:
        return self.answer(self.layer(inputs))


ANSWERS: dict[str, Any] = {
    "attribute": lambda logits: SimpleNamespace(loss=None, logits=logits),
    "mapping": lambda logits: {"logits": logits, "features": logits[:, :1]},
    "tuple": lambda logits: (logits, logits * 2),
    "list": lambda logits: [logits, None],
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_the_logits_in_an_answer_of_several_parts_are_found(answer: Any) -> None:
    module = Parts(answer).eval()
    expected = module.layer(torch.from_numpy(BATCH)).detach()
    np.testing.assert_allclose(wrap(module, "logits")(BATCH), expected.numpy(), rtol=1e-6)
    function = wrap(lambda batch: answer(batch[:, :3]), "logits")
    assert np.array_equal(function(BATCH), BATCH[:, :3])
    inputs = torch.from_numpy(BATCH).clone().requires_grad_()
    (slope,) = torch.autograd.grad(differentiable(module, "logits").module(inputs)[:, 1].sum(), inputs)
    np.testing.assert_allclose(slope.numpy(), module.layer.weight[1].detach().expand(6, 4).numpy())


def test_what_is_called_logits_is_not_declared_as_probabilities() -> None:
    for model in (Parts(ANSWERS["attribute"]).eval(), lambda batch: {"logits": batch}):
        with pytest.raises(InputError, match="returns what it calls logits; give 'logits'"):
            wrap(model, "probabilities")(BATCH)


@pytest.mark.parametrize(
    "configuration",
    [
        {"config": SimpleNamespace(num_channels=3, image_size=32)},
        {"config": SimpleNamespace(num_channels=3, image_size=(32, 32))},
        {"default_cfg": {"input_size": (3, 32, 32)}},
        {"pretrained_cfg": SimpleNamespace(input_size=(3, 32, 32))},
    ],
    ids=["Hugging Face", "two sides", "old timm", "timm"],
)
def test_a_failure_names_the_inputs_that_the_configuration_asks_for(configuration: Any) -> None:
    model = wrap(Parts(ANSWERS["attribute"], **configuration).eval(), "logits")
    with pytest.raises(
        InputError, match=r"RuntimeError: .*; it is for samples of shape \(3, 32, 32\): resize or reshape"
    ):
        model(np.zeros((2, 3, 28, 28), np.float32))
    assert model(BATCH).shape == (6, 3), "what it can take is taken"


def test_a_torch_module_in_double_precision_gets_doubles() -> None:
    module = nn.Linear(4, 3).double().eval()
    answers = wrap(module, "logits")(BATCH)
    assert answers.dtype == np.float64
    assert np.array_equal(answers, module(torch.from_numpy(BATCH).double()).detach().numpy())
    inputs = torch.from_numpy(BATCH).clone().requires_grad_()
    (slope,) = torch.autograd.grad(differentiable(module, "logits").module(inputs).sum(), inputs)
    assert slope.dtype == torch.float32


@pytest.mark.parametrize("kind", [bool, float])
def test_classes_that_count_as_numbers_from_zero_are_taken(kind: type) -> None:
    estimator = fitted(lambda x: (x[:, 0] > 0).astype(kind))
    assert np.array_equal(wrap(estimator)(BATCH), estimator.predict_proba(BATCH))
    with pytest.raises(InputError, match=r"fitted on the classes 0\.5, 1\.5; fit it on whole numbers"):
        wrap(SimpleNamespace(classes_=np.array([0.5, 1.5]), predict_proba=None))


def test_what_was_fitted_on_a_table_gets_its_column_names() -> None:
    import pandas as pd
    from sklearn.compose import make_column_transformer

    frame = pd.DataFrame(np.random.default_rng(1).standard_normal((60, 4)), columns=list("abcd"))
    estimator = make_pipeline(
        make_column_transformer((StandardScaler(), ["c", "a"]), remainder="passthrough"), LogisticRegression()
    ).fit(frame, frame["a"] > frame["d"])
    rows = pd.DataFrame(BATCH, columns=list("abcd"))
    assert np.array_equal(wrap(estimator)(BATCH.reshape(6, 2, 2)), estimator.predict_proba(rows))


def test_without_pandas_the_rows_go_in_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    estimator = SimpleNamespace(
        classes_=np.arange(2),
        feature_names_in_=np.array(list("abcd")),
        predict_proba=lambda rows: seen.append(rows) or rows,
    )
    monkeypatch.setitem(sys.modules, "pandas", None)
    wrap(estimator)(BATCH)
    assert type(seen[0]) is np.ndarray


class Booster:
    """What LightGBM's and XGBoost's show of themselves; the real ones are too large to install for tests."""

    def __init__(self, objective: str, columns: int = 1) -> None:
        self.objective, self.columns, self.feature_names = objective, columns, list("abcd")

    def answer(self, rows: Any) -> Any:
        right = 1 / (1 + np.exp(-np.asarray(rows)[:, 0]))
        return right if self.columns == 1 else np.stack([right / 2, right / 2, 1 - right], 1)


class LightGBMBooster(Booster):
    def dump_model(self, num_iteration: int) -> Any:
        return {"objective": f"{self.objective} sigmoid:1"[: None if num_iteration == 1 else 0]}

    def num_feature(self) -> int:
        return 4

    def predict(self, rows: Any) -> Any:
        return self.answer(rows)

    def model_to_string(self) -> str:
        return f"tree {self.objective}"


class XGBoostBooster(Booster):
    def save_config(self) -> str:
        return json.dumps({"learner": {"objective": {"name": self.objective}}})

    def num_features(self) -> int:
        return 4

    def predict(self, rows: Any) -> Any:
        raise TypeError("only a DMatrix")

    def inplace_predict(self, rows: Any) -> Any:
        assert list(rows.columns) == self.feature_names
        return self.answer(rows)

    def save_raw(self, raw_format: str) -> bytearray:
        return bytearray(f"{raw_format} {self.objective}".encode())


for each, library in ((LightGBMBooster, "lightgbm.basic"), (XGBoostBooster, "xgboost.core")):
    each.__name__, each.__module__ = "Booster", library


@pytest.mark.parametrize(
    ("binary", "several", "other", "sentence"),
    [
        (
            LightGBMBooster("binary"),
            LightGBMBooster("multiclass", 3),
            LightGBMBooster("regression"),
            r"the Booster \(lightgbm\) has the objective 'regression'; train it with binary, multiclass, cross_entropy",
        ),
        (
            XGBoostBooster("binary:logistic"),
            XGBoostBooster("multi:softprob", 3),
            XGBoostBooster("multi:softmax"),
            r"the Booster \(xgboost\) has the objective 'multi:softmax'; train it with binary:logistic, multi:softprob",
        ),
    ],
    ids=["LightGBM", "XGBoost"],
)
def test_boosters_give_probabilities_in_a_column_per_class(
    binary: Any, several: Any, other: Any, sentence: str
) -> None:
    model = wrap(binary)
    answers = model(BATCH.reshape(6, 2, 2))
    assert (model.outputs, answers.shape) == ("probabilities", (6, 2))
    assert np.array_equal(answers[:, 1], binary.answer(BATCH))
    np.testing.assert_allclose(answers.sum(1), 1)
    assert np.array_equal(wrap(several)(BATCH), several.answer(BATCH))
    assert model.fingerprint(BATCH) == wrap(binary).fingerprint(BATCH) != wrap(several).fingerprint(BATCH)
    with pytest.raises(InputError, match=sentence):
        wrap(other)
    with pytest.raises(InputError, match=r"takes samples of shape \(4,\), not \(5,\)"):
        model(np.zeros((2, 5), np.float32))


def digits(model: Any, outputs: Any = "logits", batch: Any = BATCH) -> str:
    return wrap(model, outputs).fingerprint(batch)


def test_the_digits_of_a_function_see_the_values_it_closes_over() -> None:
    def shifted(by: float) -> Any:
        def answer(batch: Any) -> Any:
            return batch[:, :2] + by

        return answer

    assert digits(shifted(0)) == digits(shifted(0))
    assert digits(shifted(0)) != digits(shifted(0.01))
    assert digits(shifted(0)) != digits(shifted(1e-9)), "far below what its answers show"


def test_the_digits_of_a_hidden_inside_follow_its_answers(tmp_path: Path) -> None:
    def read(batch: Any) -> Any:
        return np.load(tmp_path / "answers.npy")

    def answering(value: float, outputs: Any = "logits") -> str:
        np.save(tmp_path / "answers.npy", np.full((6, 2), value, np.float32))
        return digits(read, outputs)

    plus = answering(0.0)
    assert plus == answering(-0.0)  # minus zero is zero
    assert plus == answering(0.01)  # what code reads from elsewhere is noticed to one decimal
    assert plus != answering(0.1)
    assert plus != answering(0.0, "probabilities")
    assert plus != hashlib.sha256().hexdigest()


def steep(batch: Any) -> Any:
    right = 1 / (1 + np.exp(-40.0 * np.sign(batch[:, 0])))
    return np.stack([1 - right, right], axis=1)


def steeper(batch: Any) -> Any:
    right = 1 / (1 + np.exp(-60.0 * np.sign(batch[:, 0])))
    return np.stack([1 - right, right], axis=1)


def test_models_that_are_all_but_certain_are_told_apart() -> None:
    assert np.array_equal(np.round(steep(BATCH), 3), np.round(steeper(BATCH), 3))
    steeper.__qualname__ = steep.__qualname__
    assert digits(steep, "probabilities") != digits(steeper, "probabilities")


def test_two_functions_of_one_name_are_told_apart_by_what_they_use() -> None:
    source = "def f(batch):\n    return helper(batch)[:, :2] {}\ndef helper(batch):\n    return batch * WEIGHTS\n"

    def made(weights: float = 1.0, more: str = "", text: str = source) -> Any:
        names: dict[str, Any] = {"__name__": "__main__", "WEIGHTS": np.full(4, weights)}
        exec(text.format(more), names)
        return names["f"]

    first = digits(made())
    assert first == digits(made())
    assert first == digits(made(text="# a remark\n\n" + source)), "lines do not matter"
    assert first != digits(made(weights=1 + 1e-12))
    assert first != digits(made(more="+ 1e-9"))
    assert first != digits(made(text=source.replace("batch * W", "batch / W")))


class Scale:
    def __init__(self, by: float) -> None:
        self.by, self.calls = by, 0

    def __call__(self, batch: Any) -> Any:
        self.calls += 1
        return batch[:, :2] * self.by


class Plain(Scale):
    def __call__(self, batch: Any) -> Any:
        return batch[:, :2] * self.by

    def method(self, batch: Any) -> Any:
        return self(batch)


def test_objects_methods_and_partial_functions_are_looked_into() -> None:
    assert digits(Plain(2.0)) == digits(Plain(2.0))
    assert digits(Plain(2.0)) != digits(Plain(2.0 + 1e-9))
    assert digits(Plain(2.0).method) != digits(Plain(2.0 + 1e-9).method)

    def power(batch: Any, exponent: float) -> Any:
        return batch[:, :2] ** exponent

    assert digits(partial(power, exponent=2)) != digits(partial(power, exponent=2 + 1e-9))


def test_a_function_that_was_made_from_a_text_without_a_module_is_part_of_a_model():
    written: dict[str, Any] = {}
    exec("def twice(x):\n    return 2 * x", {"__name__": None}, written)  # as scipy.stats makes its methods
    twice = written["twice"]
    assert twice.__module__ is None
    model = wrap(lambda batch: twice(batch[:, :2]), "logits")
    assert len(model.fingerprint(BATCH)) == 64


def test_what_calls_change_is_left_out_so_that_a_model_stays_itself() -> None:
    model = wrap(Scale(2.0), "logits")
    first = model.fingerprint(BATCH)
    for _ in range(3):
        model(BATCH)
    assert model.fingerprint(BATCH) == first
    assert digits(Scale(2.1)) != first


@pytest.mark.parametrize(
    "make",
    [
        lambda c: LogisticRegression(C=c),
        lambda c: make_pipeline(StandardScaler(), LogisticRegression(C=c)),
        lambda c: DecisionTreeClassifier(max_depth=2 if c > 1 else 3, random_state=0),
        lambda c: RandomForestClassifier(3, max_depth=2 if c > 1 else 3, random_state=0),
        lambda c: HistGradientBoostingClassifier(max_iter=2 if c > 1 else 3, random_state=0),
    ],
)
def test_the_digits_of_an_estimator_see_its_parameters_and_what_was_fitted(make: Any) -> None:
    one, same, other = (wrap(fitted(estimator=make(c))) for c in (1.0, 1.0, 1.0 + 1e-9))
    assert one.fingerprint(BATCH) == same.fingerprint(BATCH)
    assert one.fingerprint(BATCH) != other.fingerprint(BATCH)


def test_the_digits_of_an_estimator_are_the_same_in_another_process() -> None:
    script = (
        "from sklearn.tree import DecisionTreeClassifier\n"
        "from certcal.models import wrap\n"
        "from tests.models.plain_for_tests import BATCH, fitted, two_columns\n"
        "tree = wrap(fitted(estimator=DecisionTreeClassifier(random_state=0)))\n"
        "print(tree.fingerprint(BATCH), wrap(two_columns, 'logits').fingerprint(BATCH))\n"
    )
    other = {**os.environ, "PYTHONHASHSEED": "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"}
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=other)
    assert ran.stderr == ""
    tree = fitted(estimator=DecisionTreeClassifier(random_state=0))
    assert ran.stdout.split() == [wrap(tree).fingerprint(BATCH), digits(two_columns)]


def test_a_session_is_told_by_what_it_was_opened_from(lenet_files: Any) -> None:
    import onnxruntime

    content = lenet_files["onnx"].read_bytes()
    images = np.random.default_rng(0).random((3, 1, 28, 28), np.float32)
    opened = onnxruntime.InferenceSession(content)
    assert digits(opened, batch=images) == digits(onnxruntime.InferenceSession(content), batch=images)
    assert digits(opened, batch=images) == digits(onnxruntime.InferenceSession(str(lenet_files["onnx"])), batch=images)
    assert wrap(opened, "logits")._given == hashlib.sha256(content).hexdigest()  # type: ignore[attr-defined]


def test_the_digits_of_a_torch_module_see_its_code_and_settings() -> None:
    class Scaled(nn.Module):
        def __init__(self, by: float) -> None:
            super().__init__()
            self.by = by

        def forward(self, inputs: torch.Tensor) -> torch.Tensor:
            return inputs[:, :2] * self.by

    first = digits(Scaled(1.0).eval())
    assert first == digits(Scaled(1.0).eval())
    assert first != digits(Scaled(1.5).eval())
    forward = Scaled.forward
    Scaled.forward = lambda self, inputs: inputs[:, 2:] * self.by  # type: ignore[method-assign]
    assert first != digits(Scaled(1.0).eval())
    Scaled.forward = forward  # type: ignore[method-assign]
    assert first == digits(Scaled(1.0).eval())


class Scaled(nn.Module):
    """A bit of everything that TorchScript keeps in its own place."""

    def __init__(self, by: float = 2.0, shift: float = 0.5, term: float = 1.0) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)
        nn.init.constant_(self.layer.weight, 0.25)
        nn.init.zeros_(self.layer.bias)
        self.by = by
        self.plain = torch.full((3,), term)
        self.register_buffer("shift", torch.full((4,), shift), persistent=False)

    def helped(self, batch: torch.Tensor) -> torch.Tensor:
        return batch * self.by

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        return self.helped(self.layer(batch - self.shift)) + self.plain


def traced(module: nn.Module) -> Any:
    return torch.jit.trace(module, torch.zeros(6, 4))


# torch advises against making new TorchScript; what exists is still used.
making_scripts = pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")

SCRIPTS = {
    "script": torch.jit.script,
    "trace": traced,
    "frozen": lambda module: torch.jit.freeze(torch.jit.script(module)),
    "inside another": lambda module: nn.Sequential(torch.jit.script(module)).eval(),
}


@making_scripts
@pytest.mark.parametrize("made", SCRIPTS.values(), ids=SCRIPTS.keys())
def test_torchscript_is_a_module_like_any_other(made: Any) -> None:
    module = Scaled().eval()
    model = wrap(made(module), "logits")
    before = model.fingerprint(BATCH)
    np.testing.assert_allclose(model(BATCH), module(torch.from_numpy(BATCH)).detach().numpy(), rtol=1e-6)
    assert model.fingerprint(BATCH) == before
    assert "Script" not in model.description
    inputs = torch.from_numpy(BATCH).clone().requires_grad_()
    (gradient,) = torch.autograd.grad(differentiable(made(module), "logits").module(inputs).sum(), inputs)
    np.testing.assert_allclose(gradient.numpy(), np.full((6, 4), 1.5), rtol=1e-6)
    assert wrap(made(Scaled().eval()), "logits").fingerprint(BATCH) == before


@making_scripts
@pytest.mark.parametrize("made", SCRIPTS.values(), ids=SCRIPTS.keys())
@pytest.mark.parametrize("change", [{"by": 2.0 + 1e-12}, {"shift": 0.4999999}, {"term": 1.0000001}], ids=str)
def test_whatever_torchscript_keeps_tells_it_from_others(made: Any, change: Any) -> None:
    digits = {wrap(made(Scaled(**each).eval()), "logits").fingerprint(BATCH) for each in ({}, change)}
    assert len(digits) == 2


@making_scripts
def test_torchscript_in_training_mode_is_refused() -> None:
    with pytest.raises(InputError, match="Scaled is in training mode"):
        wrap(torch.jit.script(Scaled()), "logits")


@making_scripts
def test_torchscript_is_neither_trained_nor_exported(tmp_path: Path) -> None:
    import certcal
    from certcal.models import export_onnx

    module = torch.jit.script(nn.Linear(4, 3).eval())
    with pytest.raises(
        InputError, match=r"network is TorchScript .*, which is not trained; pass the module it was made"
    ):
        certcal.train(module, (BATCH, [0, 1, 2, 0, 1, 2]), "standard", out=tmp_path / "out", outputs="logits")
    with pytest.raises(
        InputError, match=r"module is TorchScript .*, which is not exported; pass the module it was made"
    ):
        export_onnx(module, tmp_path / "x.onnx", outputs="logits", sample_shape=(4,))
    torch.jit.save(module, tmp_path / "script.pt")
    with pytest.raises(InputError, match=r"script\.pt: this is TorchScript, a program, which is not loaded from files"):
        load("tests.models.makers_for_tests:Plain", weights=tmp_path / "script.pt")
