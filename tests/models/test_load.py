"""Names and files: what is loaded, what is refused."""

import hashlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from certcal import InputError
from certcal.models import Source, load
from certcal.models.networks import LeNet

IMAGES = np.random.default_rng(0).random((5, 1, 28, 28), np.float32)


@pytest.mark.parametrize("suffix", ["onnx", "safetensors"])
def test_a_file_gives_what_the_network_gives(suffix: str, lenet: LeNet, lenet_files: dict[str, Path]) -> None:
    import torch

    model = load(lenet_files[suffix])
    with torch.inference_mode():
        expected = lenet(torch.from_numpy(IMAGES)).numpy()
    np.testing.assert_allclose(model(IMAGES), expected, atol=1e-6)
    assert model.outputs == "logits"
    assert model.fingerprint(IMAGES) == hashlib.sha256(lenet_files[suffix].read_bytes()).hexdigest()


@pytest.mark.parametrize("suffix", ["onnx", "safetensors"])
def test_a_model_is_loaded_again_from_its_source(
    suffix: str, lenet_files: dict[str, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(lenet_files[suffix].parent)
    model = load(f"lenet.{suffix}")
    monkeypatch.chdir(tmp_path)
    assert model.source == Source(str(lenet_files[suffix]), "logits")
    again = model.source.load()
    assert again.fingerprint(IMAGES) == model.fingerprint(IMAGES)
    assert np.array_equal(again(IMAGES), model(IMAGES))


@pytest.mark.parametrize("suffix", ["onnx", "safetensors"])
def test_a_file_that_says_what_it_returns_is_believed_and_not_contradicted(
    suffix: str, lenet_files: dict[str, Path]
) -> None:
    assert load(lenet_files[suffix], "logits").outputs == "logits"
    with pytest.raises(InputError, match="declares that it returns logits"):
        load(lenet_files[suffix], "probabilities")


def test_samples_of_another_shape_are_one_sentence(lenet_files: dict[str, Path]) -> None:
    with pytest.raises(InputError, match=r"takes samples of shape \(1, 28, 28\), not \(3, 28, 28\); reshape"):
        load(lenet_files["onnx"])(np.zeros((2, 3, 28, 28), np.float32))


@pytest.mark.parametrize("suffix", ["onnx", "safetensors"])
@pytest.mark.parametrize("rows", [1, 2, 7])
def test_any_number_of_samples_is_taken(suffix: str, rows: int, lenet_files: dict[str, Path]) -> None:
    model = load(lenet_files[suffix])
    images = np.random.default_rng(1).random((rows, 1, 28, 28), np.float32)
    one_by_one = np.concatenate([model(image[None]) for image in images])
    np.testing.assert_allclose(model(images), one_by_one, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("model.pth", r"model\.pth: there is no such file"),
        ("resnet110-cifar", "weights: it is needed for resnet110-cifar; give a checkpoint"),
        ("resnet21-cifar", "'resnet21-cifar' is no model; the published networks are resnet20-cifar, resnet32"),
        ("resnet20", "resnet20 needs weights; give the .safetensors file that training wrote as the model, or a pub"),
        ("model.pkl", "are never loaded; load it in a module of your own and name it, as 'mine:model', or save trees"),
        ("model.joblib", "are pickles"),
        ("model.h5", "'model.h5' is no model; give a file, ONNX"),
        ("model", "'model' is no model; .*; or, with weights, resnet20-cifar, .*, resnet152-imagenet"),
        ("", "'' is no model"),
        ("a:b:c", "'a:b:c' is no model"),
        ("os.system('x'):f", "is no model"),
        ("missing.onnx", "missing.onnx: there is no such file; check the path"),
        ("lenett.onnx", "did you mean 'lenet.onnx'"),
        ("folder.onnx", "folder.onnx: this is a folder"),
        (
            "net.pt2",
            "net.pt2: .pt2 files are not loaded, for they run torch's native operators .*; export the model as",
        ),
        ("folder/NET.PT2", "name the network as 'package.module:name' and give its weights as .safetensors"),
        ("empty.safetensors", "the file is empty"),
        ("nul\0.onnx", "there is no such file|cannot be read"),
    ],
)
def test_what_is_no_model_is_refused_in_one_sentence(
    name: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lenet.onnx").touch()
    (tmp_path / "folder.onnx").mkdir()
    (tmp_path / "net.pt2").write_bytes(b"PK")
    (tmp_path / "empty.safetensors").touch()
    with pytest.raises(InputError, match=sentence) as caught:
        load(name, "logits")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("missing", "suffix", "sentence"),
    [
        ("onnxruntime", "onnx", r"an ONNX file needs onnxruntime; run: pip install 'certcal\[onnx\]'"),
        ("onnx", "onnx", r"needs onnx; run: pip install 'certcal\[onnx\]'"),
    ],
)
def test_a_missing_library_is_named_with_its_extra(
    missing: str, suffix: str, sentence: str, lenet_files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(InputError, match=sentence):
        load(lenet_files[suffix])


MAKERS = "tests.models.makers_for_tests"


def test_a_network_by_name_takes_weights_from_a_file(tmp_path: Path) -> None:
    import torch
    from safetensors.torch import save_file

    from certcal.models.networks.named import made_with
    from tests.models.makers_for_tests import fitting

    made: Any = fitting((1, 28, 28), 4)
    path = tmp_path / "mine.safetensors"
    save_file(made.state_dict(), path, made_with((1, 28, 28), 4, 7, "logits"))
    model = load(f"{MAKERS}:fitting", weights=path)
    with torch.inference_mode():
        np.testing.assert_array_equal(model(IMAGES), made(torch.from_numpy(IMAGES)).numpy())
    assert model.description == f"{MAKERS}:fitting with mine.safetensors (torch module)"
    assert model.source == Source(f"{MAKERS}:fitting", "logits", str(path))
    assert model.source.load().fingerprint(IMAGES) == model.fingerprint(IMAGES)
    with torch.no_grad():
        made[1].bias += 1
    save_file(made.state_dict(), path, made_with((1, 28, 28), 4, 7, "logits"))
    assert load(f"{MAKERS}:fitting", weights=path).fingerprint(IMAGES) != model.fingerprint(IMAGES)


def test_lazy_layers_take_their_sizes_from_what_the_file_says(tmp_path: Path) -> None:
    import torch
    from safetensors.torch import save_file

    from certcal.models.networks.named import made_with
    from tests.models.makers_for_tests import fitting

    made = fitting((1, 28, 28), 3)
    path = tmp_path / "w.safetensors"
    save_file(made.state_dict(), path, made_with((1, 28, 28), 3, 7, "logits"))
    with torch.inference_mode():
        expected = made(torch.from_numpy(IMAGES)).numpy()
    np.testing.assert_array_equal(load(f"{MAKERS}:lazy", weights=path)(IMAGES), expected)


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        (
            f"{MAKERS}:Plain",
            {"layers.1.bias": None},
            r"'layers\.1\.bias' is missing there and \(6,\) in the network",
        ),
        (
            f"{MAKERS}:Plain",
            {"more": (2,)},
            r"w\.safetensors: its weights do not fit .*: 'more' is \(2,\) there",
        ),
        (f"{MAKERS}:Plain", {"layers.1.bias": (5,)}, r"'layers\.1\.bias' is \(5,\) there and \(6,\) in the network"),
        (f"{MAKERS}:Plain", {"layers.1.bias": "nan"}, "'layers.1.bias' has entries that are not finite; give other"),
        (
            f"{MAKERS}:Plain",
            {"layers.1.bias": "int8"},
            r"'layers\.1\.bias' is int8 there and float32 in .*:Plain; give",
        ),
        (
            f"{MAKERS}:lazy",
            {},
            r":lazy has lazy layers, and .*w\.safetensors does not say which inputs they take; give",
        ),
        (
            f"{MAKERS}:fitting",
            {},
            "calling .*:fitting failed: TypeError: .*sample_shape.*; it must make",
        ),
        (f"{MAKERS}:NUMBER", {}, "NUMBER is a int; name a class or function that makes a torch module"),
        (f"{MAKERS}:no_module", {}, "no_module makes a int; it must make a torch module"),
        (f"{MAKERS}:nothing", {}, "has no 'nothing'; check the spelling"),
        ("net.onnx", {}, r"weights: it is for a network by name \('package.*\), and 'net.onnx' is none; leave it out"),
        (
            "resnet21-cifar",
            {},
            "weights: .*, and 'resnet21-cifar' is none; the published networks are resnet20-cifar, resnet32",
        ),
        ("resnet20", {}, "and 'resnet20' is none; give the .safetensors file that training wrote as the model"),
    ],
)
def test_weights_that_do_not_fit_are_one_sentence(name: str, change: Any, sentence: str, tmp_path: Path) -> None:
    import torch
    from safetensors.torch import save_file

    from tests.models.makers_for_tests import Plain

    tensors = Plain().state_dict()
    for key, value in change.items():
        if value is None:
            del tensors[key]
        elif value == "int8":
            tensors[key] = tensors[key].to(torch.int8)
        else:
            tensors[key] = torch.full((6,), torch.nan) if value == "nan" else torch.zeros(value)
    save_file(tensors, tmp_path / "w.safetensors")
    with pytest.raises(InputError, match=sentence) as caught:
        load(name, "logits", weights=tmp_path / "w.safetensors")
    assert "\n" not in str(caught.value)


def test_weights_are_never_unpickled_freely_and_their_texts_are_checked(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    from tests.models.makers_for_tests import Plain

    with pytest.raises(InputError, match=r"w\.pkl: \.pkl files are pickles, .*; save its state_dict\(\) with"):
        load(f"{MAKERS}:Plain", weights=tmp_path / "w.pkl")
    (tmp_path / "bad").write_bytes(b"\x80\x04.")
    with pytest.raises(
        InputError, match=r"bad: this is no file of weights; give one that ends in \.safetensors, .*\.bin"
    ):
        load(f"{MAKERS}:Plain", weights=tmp_path / "bad")
    with pytest.raises(InputError, match=r"net\.pt2: \.pt2 files are not loaded"):
        load(f"{MAKERS}:Plain", weights=tmp_path / "net.pt2")
    for text in ("[]", "{", '{"sample_shape": [0], "classes": 3, "seed": 0}', '{"sample_shape": [2], "classes": 3}'):
        save_file(Plain().state_dict(), tmp_path / "w.safetensors", {"certcal.made_with": text})
        with pytest.raises(InputError, match="what it says of its network cannot be understood; train it again"):
            load(f"{MAKERS}:Plain", weights=tmp_path / "w.safetensors")
    save_file(Plain().state_dict(), tmp_path / "w.safetensors")
    with pytest.raises(InputError, match=r"outputs: it is needed for .*:Plain, and never guessed; give"):
        load(f"{MAKERS}:Plain", weights=tmp_path / "w.safetensors")
    with pytest.raises(InputError, match=r"it does not say which network .*, or name the network, 'package"):
        load(tmp_path / "w.safetensors")


def write_module(folder: Path, name: str, text: str) -> None:
    (folder / f"{name}.py").write_text(text)


def test_a_name_finds_a_callable_in_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_module(
        tmp_path, "certcal_test_named", "class A:\n    @staticmethod\n    def f(x):\n        return x[:, :2]\n"
    )
    path = list(sys.path)
    model = load("certcal_test_named:A.f", "logits")
    assert sys.path == path
    assert model.source == Source("certcal_test_named:A.f", "logits")
    assert model.description == "certcal_test_named:A.f (Python callable)"
    assert model(np.ones((2, 3))).tolist() == [[1, 1], [1, 1]]
    monkeypatch.delitem(sys.modules, "certcal_test_named")


def test_a_file_in_the_current_folder_never_stands_in_for_an_installed_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_module(tmp_path, "colorsys", "raise RuntimeError('the wrong one')")
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    assert load("colorsys:rgb_to_hsv", "logits").description.startswith("colorsys:rgb_to_hsv")


@pytest.mark.parametrize(
    ("text", "name", "sentence"),
    [
        ("", "certcal_test_bad:f", "module 'certcal_test_bad' has no 'f'"),
        ("f = 3", "certcal_test_bad:f", r"certcal_test_bad:f \(int\) is no model"),
        ("class f: pass", "certcal_test_bad:f", r"certcal_test_bad:f \(f\) is no model"),
        (
            "class f:\n  def __init__(self, x): 1",
            "certcal_test_bad:f",
            "calling .*:f failed: TypeError: .*'x'; it must make",
        ),
        ("def f(sample_shape): 1", "certcal_test_bad:f", "'sample_shape'; it must make a model from no more than"),
        (
            "def f(): raise OSError('a\\nb')",
            "certcal_test_bad:f",
            "calling certcal_test_bad:f failed: OSError: a; make",
        ),
        ("raise SystemExit(2)", "certcal_test_bad:f", "importing certcal_test_bad ended the program; put what it does"),
        ("1 / 0", "certcal_test_bad:f", "importing certcal_test_bad failed: ZeroDivisionError: division by zero"),
        ("import certcal_no_such", "certcal_test_bad:f", "failed: ModuleNotFoundError.*certcal_no_such.*install"),
        ("", "certcal_no_such.part:f", "there is no module 'certcal_no_such'"),
        ("", "certcal_test_bad.part:f", "there is no module 'certcal_test_bad.part'|is not a package"),
    ],
)
def test_a_name_that_finds_no_model_is_one_sentence(
    text: str, name: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "certcal_test_bad", raising=False)
    write_module(tmp_path, "certcal_test_bad", text)
    with pytest.raises(InputError, match=sentence) as caught:
        load(name, "logits")
    assert "\n" not in str(caught.value)
    sys.modules.pop("certcal_test_bad", None)


def test_a_named_module_or_estimator_is_wrapped_as_what_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_module(
        tmp_path,
        "certcal_test_kinds",
        "import numpy as np\nfrom sklearn.dummy import DummyClassifier\nfrom certcal.models.networks import MLP\n"
        "network = MLP(3).eval()\nestimator = DummyClassifier().fit(np.zeros((4, 3)), [0, 1, 1, 1])\n"
        "def make(seed=0, *, features=3):\n    return MLP(features)\n"
        "def fit():\n    return estimator\n"
        "class Small(MLP):\n    def __init__(self):\n        super().__init__(3)\n",
    )
    names = ("network", "estimator", "make", "fit", "Small")
    found: list[Any] = [load(f"certcal_test_kinds:{name}") for name in names]
    assert [model.outputs for model in found] == ["logits", "probabilities", "logits", "probabilities", "logits"]
    assert all(model.source.load()(np.zeros((1, 3))).shape[0] == 1 for model in found)
    probe = np.ones((1, 3), np.float32)
    assert all(model.source.load().fingerprint(probe) == model.fingerprint(probe) for model in found)
    sys.modules.pop("certcal_test_kinds")
