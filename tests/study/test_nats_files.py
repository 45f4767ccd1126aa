"""NATS-Bench's files: read without running anything in them, whatever they hold."""

from __future__ import annotations

import bz2
import os
import pickle
from collections import OrderedDict, defaultdict
from decimal import Decimal
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certcal import InputError
from certcal.study import _nats_files as nats_files
from certcal.study import _plain_pickle as plain_pickle
from certcal.study import read_architectures, read_nats_bench
from certcal.study._plain_pickle import plain_value
from tests.study.zoo import Counted

ARCHITECTURE = "|nor_conv_3x3~0|+|none~0|skip_connect~1|+|none~0|none~1|nor_conv_1x1~2|"
OTHER = "|none~0|+|none~0|skip_connect~1|+|none~0|none~1|nor_conv_1x1~2|"


def trial(data, seed, epochs=12, accuracy=90.0, params=0.073306, sets=("ori-test",)):
    """One training as NATS-Bench's API keeps it."""
    return {
        "name": "ResultsCount",
        "net_state_dict": None,
        "train_acc1es": OrderedDict((i, 50.0 + i / 5) for i in range(epochs)),
        "train_acc5es": OrderedDict((i, 90.0) for i in range(epochs)),
        "train_losses": OrderedDict((i, 2.0 / (1 + i)) for i in range(epochs)),
        "train_times": dict.fromkeys(range(epochs), 1.5),
        "arch_config": {"channel": 16, "num_cells": 5, "arch_str": ARCHITECTURE, "class_num": 10},
        "params": np.float64(params),
        "flop": 7.78305,
        "seed": seed,
        "epochs": epochs,
        "latency": [0.01, np.float32(0.02)],
        "eval_names": list(sets),
        "eval_acc1es": {f"{name}@{i}": accuracy - (epochs - 1 - i) for name in sets for i in range(epochs)},
        "eval_losses": {f"{name}@{i}": 0.3 for name in sets for i in range(epochs)},
        "eval_times": {f"{name}@{i}": 0.1 for name in sets for i in range(epochs)},
    }


def results(trials, architecture=ARCHITECTURE, index=123):
    return {
        "arch_index": index,
        "arch_str": architecture,
        "all_results": {(each["data"], each["seed"]): each["trial"] for each in trials},
        "dataset_seed": {"cifar10": [777]},
        "clear_net_done": True,
    }


def made(data, seed, **options):
    return {"data": data, "seed": seed, "trial": trial(data, seed, **options)}


def content(architecture=ARCHITECTURE):
    """Two settings of training, two data sets, up to three seeds."""
    long = [made("cifar10", seed, epochs=200, accuracy=a) for seed, a in ((777, 90.0), (888, 91.0), (999, 95.0))]
    long.append(made("cifar100", 777, epochs=200, accuracy=70.5, sets=("x-valid", "x-test")))
    return {"12": results([made("cifar10", 777)], architecture), "200": results(long, architecture)}


def write(path, value, protocol=4):
    path.write_bytes(bz2.compress(pickle.dumps(value, protocol)))
    return path


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "NATS-tss-v1_0-3ffb9-simple"
    place.mkdir()
    write(place / "000123.pickle.pbz2", content())
    write(place / "000007.pickle.pbz2", content(OTHER))
    write(place / "meta.pickle.pbz2", {"meta_archs": [OTHER, ARCHITECTURE], "evaluated_indexes": {0, 1}})
    return place


def rows(table, *names):
    return list(zip(*(table[name].tolist() for name in names), strict=True))


def test_a_folder_becomes_a_row_for_each_architecture_data_set_images_and_setting(folder):
    table = read_nats_bench(folder)
    assert table.models == [OTHER, ARCHITECTURE]  # in the order of the files' numbers
    assert rows(table, "data", "split", "seeds")[:4] == [
        ("cifar10", "ori-test@12", 1.0),
        ("cifar10", "ori-test@200", 3.0),
        ("cifar100", "x-valid@200", 1.0),
        ("cifar100", "x-test@200", 1.0),
    ]
    assert table["accuracy"][:4].tolist() == pytest.approx([0.9, 0.92, 0.705, 0.705])
    assert table["accuracy_spread"][1] == pytest.approx(np.std([0.9, 0.91, 0.95], ddof=1))
    assert np.isnan(table["accuracy_spread"][0])
    assert table["params"].tolist() == [73306.0] * 8
    assert table["flops"][0] == 7783050
    assert table["epochs"][:2].tolist() == [12, 200]
    assert table["train_accuracy"][0] == pytest.approx(0.522)
    assert table["train_loss"][0] == pytest.approx(2 / 12)
    assert table["loss"][0] == 0.3
    assert table.measurements == []
    assert not list(table.failures)


def test_each_seed_can_have_a_row_of_its_own(folder):
    table = read_nats_bench(folder / "000123.pickle.pbz2", seeds="each")
    assert rows(table, "split", "seed", "accuracy")[1:4] == [
        ("ori-test@200#777", 777.0, 0.9),
        ("ori-test@200#888", 888.0, 0.91),
        ("ori-test@200#999", 999.0, 0.95),
    ]


def test_one_data_set_can_be_chosen(folder):
    assert read_nats_bench(folder, data="cifar100").datasets == ["cifar100"]
    with pytest.raises(InputError, match="data is 'svhn'; the files have results on cifar10, cifar100"):
        read_nats_bench(folder, data="svhn")


def test_sizes_that_differ_between_seeds_are_those_of_the_seed_that_the_api_trusts(tmp_path):
    trials = [made("cifar10", 777, params=5.0), made("cifar10", 888, params=0.1)]
    table = read_nats_bench(write(tmp_path / "1.pickle.pbz2", {"12": results(trials)}))
    assert table["params"].tolist() == [100_000.0]


def test_files_can_be_given_one_by_one_and_progress_is_told(folder):
    told = []
    files = [folder / "000123.pickle.pbz2", str(folder / "000007.pickle.pbz2")]
    table = read_nats_bench(files, progress=Counted(lambda *numbers: told.append(numbers)))
    assert table.models == [ARCHITECTURE, OTHER]
    assert told == [(0, 2), (1, 2), (2, 2)]


def test_an_architecture_that_is_given_twice_is_refused(folder):
    with pytest.raises(InputError, match="is the second one of model"):
        read_nats_bench([folder, folder / "000123.pickle.pbz2"])


def test_a_broken_file_is_a_failed_row_and_the_others_are_read(folder):
    (folder / "000200.pickle.pbz2").write_bytes(b"BZh9 nothing")
    write(folder / "000201.pickle.pbz2", {"12": {"arch_str": ARCHITECTURE}})
    table = read_nats_bench(folder)
    failures = list(table.failures)
    assert [failure[0] for failure in failures] == [f"{folder.name}/00020{i}.pickle.pbz2" for i in (0, 1)]
    assert "not compressed by bzip2" in failures[0][3]
    assert "it has no 'all_results'" in failures[1][3]
    assert len(table.where()) == 8
    assert table.datasets == ["cifar10", "cifar100"]


def test_a_loaded_api_is_read_by_its_state(folder):
    class Result:
        def __init__(self, state):
            self.state = state

        def state_dict(self):
            return self.state

    api = SimpleNamespace(arch2infos_dict={123: {hp: Result(state) for hp, state in content().items()}})
    expected = read_nats_bench(folder / "000123.pickle.pbz2")
    table = read_nats_bench(api)
    for name in ("model", "data", "split", "accuracy"):
        assert table[name].tolist() == expected[name].tolist()
    with pytest.raises(InputError, match="there are no results of NATS-Bench: nothing is loaded"):
        read_nats_bench(SimpleNamespace(arch2infos_dict={}))


def test_architectures_are_read_by_their_index(folder):
    assert read_architectures(folder / "meta.pickle.pbz2") == [OTHER, ARCHITECTURE]
    with pytest.raises(InputError, match="there is no list of architectures"):
        read_architectures(folder / "000123.pickle.pbz2")


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda value: value["12"].pop("arch_str"), "it has no 'arch_str'"),
        (lambda value: value["12"].update(all_results={"cifar10": 1}), "not named by data set and seed"),
        (lambda value: trial_of(value).pop("epochs"), "it has no 'epochs'"),
        (lambda value: trial_of(value).update(params="many"), "'params' is not a number"),
        (lambda value: trial_of(value).update(flop=float("nan")), "'flop' is not a number"),
        (lambda value: trial_of(value)["eval_acc1es"].update({"ori-test@11": 101.0}), "an accuracy is 101"),
        (lambda value: trial_of(value)["eval_losses"].pop("ori-test@11"), "'eval_losses' is not a number"),
        (lambda value: trial_of(value).update(eval_acc1es=[1, 2]), "it has no 'eval_acc1es'"),
    ],
)
def test_what_is_missing_or_no_number_is_named(tmp_path, change, complaint):
    value = content()
    change(value)
    with pytest.raises(InputError, match=complaint):
        read_nats_bench(write(tmp_path / "000001.pickle.pbz2", value))


def trial_of(value):
    return value["12"]["all_results"]["cifar10", 777]


@pytest.mark.parametrize("value", [[1, 2], "text", 5, None])
def test_a_file_of_something_else_is_refused(tmp_path, value):
    with pytest.raises(InputError, match="does not hold a dictionary"):
        read_nats_bench(write(tmp_path / "000001.pickle.pbz2", value))


def test_places_without_files_are_refused(tmp_path):
    with pytest.raises(InputError, match="there is no file such as 000123"):
        read_nats_bench(tmp_path)
    with pytest.raises(InputError, match="there is no such file or folder"):
        read_nats_bench(tmp_path / "none")
    with pytest.raises(InputError, match="seeds is 'all'; use 'mean' or 'each'"):
        read_nats_bench(tmp_path, seeds="all")


def test_what_unpacks_to_too_much_is_refused_before_it_fills_the_memory(tmp_path, monkeypatch):
    path = tmp_path / "000001.pickle.pbz2"
    path.write_bytes(bz2.compress(bytes(nats_files.MOST_BYTES + 1)))  # two hundred bytes
    assert path.stat().st_size < 1000
    with pytest.raises(InputError, match="unpacks to more than 16 MiB"):
        read_nats_bench(path)


@pytest.mark.parametrize("cut", [1, 10, 60])
def test_a_file_that_is_cut_short_is_refused(tmp_path, folder, cut):
    whole = (folder / "000123.pickle.pbz2").read_bytes()
    path = tmp_path / "000001.pickle.pbz2"
    path.write_bytes(whole[:-cut])
    with pytest.raises(InputError, match="cut short"):
        read_nats_bench(path)


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(max_size=20)
    | st.binary(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner, inner, inner)
        | st.tuples(inner)
        | st.dictionaries(
            st.text(max_size=5) | st.integers(-(2**62), 2**62) | st.tuples(st.text(), st.integers(0, 9)), inner
        )
        | st.sets(st.text(max_size=5) | st.integers(0, 9), max_size=3)
        | st.frozensets(st.integers(0, 9), max_size=3)
    ),
    max_leaves=20,
)


@settings(max_examples=60, deadline=None)
@given(PLAIN, st.sampled_from([4, 5]))
def test_plain_values_are_what_they_were(value, protocol):
    assert plain_value(pickle.dumps(value, protocol)) == value


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_containers_texts_and_numbers_are_read_from_every_protocol(protocol):
    value = {"a": [1, 2.5, None, True, 10**30, -7, 300, 70000], ("b", 3): {"c": ("d",)}, 5: "é" * 300}
    shared = [1, 2]
    value["twice"] = [shared, shared, OrderedDict(x=1, y=OrderedDict())]
    assert plain_value(pickle.dumps(value, protocol)) == value


@pytest.mark.parametrize("kind", ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?", ">f8", ">i4"])
def test_scalars_of_numpy_are_numbers(kind):
    value = np.array([1], kind)[0]
    found = plain_value(pickle.dumps({"x": value, "y": [value]}, 4))
    assert found == {"x": 1, "y": [1]}
    assert type(found["x"]) in (float, int, bool)


class Call:
    """What unpickling would call."""

    def __init__(self, function, *arguments):
        self.function, self.arguments = function, arguments

    def __reduce__(self):
        return self.function, self.arguments


MARK = "certcal-test-was-here"


@pytest.mark.parametrize(
    "value",
    [
        Call(os.system, f"touch {MARK}"),
        Call(eval, f"open('{MARK}', 'w')"),
        Call(os.mkdir, MARK),
        [Call(exec, f"import os; os.mkdir('{MARK}')")],
        {"12": Call(os.getcwd)},
        defaultdict(list, a=[1]),
        Decimal(3),
        np.arange(3),
        np.array(["a"])[0],
        SimpleNamespace(a=1),
        Call,
        len,
        bytearray(b"abc"),
        1j,
        range(3),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_nothing_that_a_file_asks_for_is_run_or_made(tmp_path, monkeypatch, value, protocol):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="nothing in it was run") as caught:
        plain_value(pickle.dumps(value, protocol))
    assert len(str(caught.value)) < 200
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_name_is_refused_before_it_is_looked_up():
    with pytest.raises(InputError, match=r"it asks for no_such_module_of_anybody\.thing, which is no plain value"):
        plain_value(b"\x80\x02cno_such_module_of_anybody\nthing\n.")
    with pytest.raises(InputError, match=r"it asks for a\?\[31mb\.c"):
        plain_value(b"\x80\x02ca\x1b[31mb\nc\n.")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b".",
        b"\x80",
        b"\x80\x04",
        b"\x80\x09N.",
        b"N",
        b"NN.",
        b"(N.",
        b"t.",
        b"(e.",
        b"Na.",
        b"]]s.",
        b"}(Nu.",
        b"}(]Nu.",
        b"}(G\x00\x00\x00\x00\x00\x00\x00\x00Nu.",
        b"\x85.",
        b"N\x87.",
        b"h\x00.",
        b"j\xff\xff\xff\xff.",
        b"q\x00.",
        b"X\xff\xff\xff\xffabc.",
        b"\x8d" + b"\xff" * 8 + b"abc.",
        b"\x8e" + b"\xff" * 8 + b".",
        b"\x8c\x01\xff.",
        b"\x8a\xffabc.",
        b"B\xff\xff\xff\x7fab.",
        b"NNR.",
        b"N)R.",
        b"ccollections\nOrderedDict\n.",
        b"ccollections\nOrderedDict\n]R.",
        b"ccollections\nOrderedDict\n(K\x01tR.",
        b"cnumpy\ndtype\n)R.",
        b"cnumpy\ndtype\n(X\x02\x00\x00\x00O8tR.",
        b"cnumpy\ndtype\n(X\x02\x00\x00\x00f8tR.",
        b"cnumpy\ndtype\n(X\x02\x00\x00\x00f8tRNb.",
        b"cnumpy.core.multiarray\nscalar\n(NC\x01atR.",
        b"cnumpy.core.multiarray\nscalar\n(cnumpy\ndtype\n(X\x02\x00\x00\x00f8tRC\x01atR.",
        b"}Nb.",
        b"ccollections",
        b"NK\x01\x93.",
        b"I1\n.",
        b"P1\n.",
        b"NQ.",
        b"(ios\nsystem\n.",
        b"(cos\nsystem\no.",
        b"\x82\x01.",
        b"2.",
        b"]q\x00(h\x00h\x00u.",
    ],
)
def test_what_is_no_pickle_of_plain_values_is_one_sentence(content):
    with pytest.raises(InputError, match="nothing in it was run") as caught:
        plain_value(content)
    assert caught.value.__cause__ is None


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=60), st.integers(0, 400), st.booleans())
def test_damage_never_ends_in_anything_but_a_value_or_a_sentence(noise, place, after):
    whole = pickle.dumps({"12": results([made("cifar10", 777, epochs=1)])}, 4)
    cut = whole[:place] + noise + (whole[place + len(noise) :] if after else b"")
    try:
        plain_value(cut)
    except InputError as error:
        assert "nothing in it was run" in str(error)  # noqa: PT017


def test_deep_tuples_are_neither_hashed_nor_a_crash():
    deep = b"\x80\x02)" + b"\x85" * 200_000
    assert plain_value(deep + b".") != ()
    with pytest.raises(InputError, match="damaged"):
        plain_value(b"\x80\x02}" + deep[2:] + b"Ns.")


def test_values_that_hold_themselves_are_read():
    value = plain_value(b"\x80\x02]q\x00h\x00a.")
    assert value[0] is value


def test_keys_that_could_be_made_to_collide_are_refused():
    with pytest.raises(InputError, match="damaged"):
        plain_value(pickle.dumps({2**64: 1}, 4))
    with pytest.raises(InputError, match="damaged"):
        plain_value(pickle.dumps({(-1, -2, -1, -2, -1): 1}, 4))
    same = [(1, 1), (5, 1678395250935405367), (25, -1526424474090560516), (28, -2216573949503440704)]
    assert len(set(map(hash, same))) == 1  # a file can hold any number of such tuples
    for kind in (dict.fromkeys, frozenset):
        with pytest.raises(InputError, match="damaged"):
            plain_value(pickle.dumps(kind(same), 4))
    assert plain_value(pickle.dumps({("cifar10", 777): 1, (5,): 2}, 4)) == {("cifar10", 777): 1, (5,): 2}


def test_the_number_of_instructions_is_bounded(monkeypatch):
    monkeypatch.setattr(plain_pickle, "MOST_INSTRUCTIONS", 1000)
    assert plain_value(b"\x80\x02" + b"N0" * 400 + b"N.") is None
    with pytest.raises(InputError, match="more than 1,000 instructions"):
        plain_value(b"\x80\x02" + b"N0" * 600 + b"N.")
