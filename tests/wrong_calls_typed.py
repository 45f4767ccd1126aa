"""Calls as users write them, for ``test_typed_calls.py``: pyright reports every line marked wrong, and no other."""

from pathlib import Path
from typing import assert_type

import numpy as np
import pandas as pd
import torch
from sklearn.linear_model import LogisticRegression
from torch.utils.data import Dataset

import certcal as cc
from certcal.smoothing import Run
from certcal.smoothing.robustness import VoteRecord

y_true, y_prob = np.array([0, 1]), np.array([0.2, 0.7])
df = pd.DataFrame({"pd": y_prob, "default": y_true})
table = {"score": [0.2, 0.7], "outcome": [0, 1]}
predictions = cc.Predictions.from_scores(y_prob, y_true)
model = LogisticRegression()


network = torch.nn.Linear(2, 2)


class Samples(Dataset[tuple[list[float], int]]):
    def __getitem__(self, index: int) -> tuple[list[float], int]:
        return [0.0, 1.0], 1


samples = Samples()


def own_metric(z: object, c: object) -> float:
    return 0.0


def right(run: Run, record: VoteRecord) -> None:
    m = assert_type(cc.measure(y_true, y_prob), cc.Measurement)
    assert_type(cc.measure(y_true=y_true, y_prob=y_prob, bins=10), cc.Measurement)
    assert_type(cc.bound(estimator=model, X=df, y=y_true), cc.Bounds)
    assert_type(cc.measure([0, 1], [0.2, 0.7], bins=[5, 10], by=["a", "b"]), cc.Measurement)
    assert_type(cc.measure("a.csv", by=["region", "product*channel"]).groups["region=north"].n, int)
    assert_type(cc.measure(df, score="pd", outcome="default", metrics=["ece", own_metric]), cc.Measurement)
    assert_type(cc.measure(model, df[["pd"]], y_true, positive=1), cc.Measurement)
    assert_type(cc.measure("net.onnx", "test.npz"), cc.Measurement)
    assert_type(cc.measure(network, samples), cc.Measurement)
    assert_type(cc.measure(Path("table.csv"), closed="right", bounds=None), cc.Measurement)
    assert_type(cc.bound(table, delta=0.01, form="published"), cc.Bounds)
    assert_type(cc.bound(y_true, y_prob, lipschitz=2), cc.Bounds)
    assert_type(cc.recalibrate(y_true, y_prob), cc.PredictionRecalibration)
    assert_type(cc.recalibrate(predictions, method="isotonic"), cc.PredictionRecalibration)
    assert_type(cc.recalibrate(y_true, y_prob, fit_on_all=True), cc.Recalibration)
    assert_type(cc.recalibrate(run, fit_on_all=True, radii=0.5), cc.Recalibration)
    assert_type(cc.recalibrate(run, radii=0.5), cc.CertifiedRecalibration)
    assert_type(cc.recalibrate("table.csv"), cc.PredictionRecalibration | cc.CertifiedRecalibration)
    assert_type(cc.compare(df, table, key="id"), cc.ChangeComparison)
    assert_type(cc.compare(m, m), cc.ChangeComparison)
    assert_type(cc.compare(df, score=["old", "new"], outcome="y"), cc.ChangeComparison)
    assert_type(cc.compare("a.csv", score=("old", "new")), cc.ChangeComparison)
    assert_type(cc.compare("run"), cc.Comparison)
    assert_type(cc.compare(run, record, radii=[0, 0.5]), cc.Comparison)
    assert_type(cc.compare({"a": run, "b": [record, record]}), cc.Comparison)
    assert_type(cc.compare(a=run, b=[record], radii=0.5), cc.Comparison)
    assert_type(cc.compare("a.csv", "b.csv"), cc.ChangeComparison | cc.Comparison)
    assert_type(cc.compare("a.csv", "b.csv", by="site"), cc.ChangeComparison)
    assert_type(cc.certify(run, radii=[0.25, 0.5], kind="all"), cc.Certification)
    assert_type(cc.certify("table.csv", edges=[0, 0.5, 1], by="site"), cc.Certification)
    assert_type(cc.apply_map("map.json", df, everything=True), cc.MappedTable)


def wrong(run: Run, record: VoteRecord) -> None:
    cc.measure()  # wrong: no data
    cc.measure(0.7)  # wrong: a number is no table
    cc.measure(0, 0.7)  # wrong: numbers are no arrays
    cc.measure(y_true, y_prob, y_prob)  # wrong: an array is no estimator
    cc.measure(df, 15)  # wrong: bins by position
    cc.measure(df, bin=15)  # wrong: a misspelt name
    cc.measure(df, bins="15")  # wrong: a text
    cc.measure(df, bins=7.5)  # wrong: no whole number
    cc.measure(df, closed="lft")  # wrong: no such word
    cc.measure(df, band="point-wise")  # wrong: no such word
    cc.measure(df, level="95%")  # wrong: a text
    cc.measure(df, settings=None)  # wrong: there are no settings at once
    cc.measure(df, score=3)  # wrong: neither a name nor values
    cc.measure(df, bounds="yes")  # wrong: a text
    repr(cc.measure(y_true, y_prob).rowz)  # wrong: no such attribute
    cc.bound(df, joint=1)  # wrong: not True or False
    cc.bound(y_true, y_prob, form="exact")  # wrong: no such word
    cc.bound(y_true, y_prob, alpha=0.05)  # wrong: it is called delta
    cc.recalibrate(df, method="plat")  # wrong: no such calibrator
    repr(cc.recalibrate(y_true, y_prob).ledger)  # wrong: predictions are not certified
    repr(cc.recalibrate(y_true, y_prob, fit_on_all=True).before)  # wrong: nothing was held out
    cc.recalibrate(run, kind="all")  # wrong: one kind only
    cc.compare(run, run, keys="id")  # wrong: a misspelt name
    cc.compare(df, table, radii=[0.5])  # wrong: radii are for runs
    cc.compare(table, table, pair="rows")  # wrong: no such word
    cc.compare(1, 2)  # wrong: numbers are nothing to compare
    cc.certify(run, radius=0.5)  # wrong: it is called radii
    cc.certify(run, radii="0.5")  # wrong: a text
    cc.certify(run, confidence="tangnt")  # wrong: no such kind
    cc.certify(run, accounting="paper")  # wrong: no such word
    cc.apply_map("map.json")  # wrong: no data
    cc.apply_map("map.json", df, all=True)  # wrong: it is called everything
