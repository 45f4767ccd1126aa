"""``certcal predict`` and ``measure --model``: what a model says, as a table and without one."""

import json

import numpy as np
import pytest

import certcal

MODEL = "tests.cli.test_predict:tripled"


def tripled(batch):
    return 3 * np.asarray(batch, np.float64)


@pytest.fixture
def data(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "data.npz"
    np.savez(path, inputs=rng.normal(size=(60, 3)), labels=rng.integers(0, 3, 60))
    return path


def test_the_table_is_measured_as_the_model_is(certcal_command, data, tmp_path):
    table = tmp_path / "p.parquet"
    asked = ("--model", MODEL, "--outputs", "logits", "--data", data)
    ran = certcal_command("predict", *asked, "--batch", "7", "-o", table)
    assert (ran.code, ran.out) == (0, "")
    assert f"next: certcal measure {table}" in ran.err
    read, made = (
        json.loads(certcal_command("measure", *source, "--metric", "ece", "--json").out) for source in ((table,), asked)
    )
    assert read["measurements"] == made["measurements"]
    with np.load(data) as held:
        found = certcal.predict(tripled, (held["inputs"], held["labels"]), outputs="logits", every=2)
        expected = certcal.Predictions.from_logits(3 * held["inputs"][::2], held["labels"][::2])
    np.testing.assert_allclose(found.logits, expected.logits, rtol=1e-6)
    np.testing.assert_array_equal(found.labels, expected.labels)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("measure",), "TABLE is missing; give one, or --model and --data"),
        (("measure", "{data}", "--model", MODEL), "--model is for predictions made here, and {data} has them"),
        (("predict", "--model", MODEL, "--data", "{data}", "-o", "{data}.csv"), "--outputs: it is needed"),
        (("predict", "--model", MODEL, "--data", "{data}", "-o", "{data}.txt"), "choose one of the endings .parquet"),
        (("predict", "--model", MODEL, "--data", "{data}", "-o", "{data}"), "choose one of the endings"),
    ],
)
def test_what_cannot_be_is_said(certcal_command, data, words, sentence):
    ran = certcal_command(*(word.format(data=data) for word in words))
    assert ran.code == 2
    assert sentence.format(data=data) in ran.err


def test_an_existing_table_is_kept(certcal_command, data, tmp_path):
    table = tmp_path / "p.csv"
    table.write_text("mine")
    words = ("predict", "--model", MODEL, "--outputs", "logits", "--data", data, "-o", table)
    assert certcal_command(*words).code == 2
    assert table.read_text() == "mine"
    assert certcal_command(*words, "--force").code == 0
    assert table.read_text().startswith('"label","logit_0"')
