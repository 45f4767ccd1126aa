"""The registry: every metric once, and everywhere as soon as it has an entry."""

import json
import re

import click
import numpy as np
import pytest

import certcal
from certcal import InputError, Predictions, metrics
from certcal.cli import cli
from certcal.cli.options import complete_metrics
from certcal.metrics import METRICS, MetricEntry, measure_stream
from certcal.metrics.registry import (
    NAMES,
    SECTIONS,
    TASK_KINDS,
    USUAL,
    OfBins,
    OfSamples,
    entry_named,
    entry_of,
    row_names,
)
from certcal.report.names import headlines

RNG = np.random.default_rng(0)
Z = RNG.random(60)
C = (RNG.random(60) < Z).astype(np.uint8)
TABLE = {"confidence": Z, "correct": C}


def largest_bin(confidence, correct, bins=15, *, edges=None, closed="left", sample_weight=None):
    return largest_bin_of(certcal.binning.bin_table(confidence, correct, np.linspace(0, 1, bins + 1), closed))


def largest_bin_of(table):
    return float(table.weight.max() / table.total)


def median_confidence(confidence, correct, *, sample_weight=None):
    return float(np.quantile(confidence, 0.5, weights=sample_weight, method="inverted_cdf"))


NEW = [
    MetricEntry(largest_bin, "fullest bin", "The share of the fullest bin.", form=OfBins(largest_bin_of)),
    MetricEntry(median_confidence, "median", "The middle of all confidences.", "Accuracy", 9),
]


@pytest.fixture(params=NEW, ids=lambda entry: entry.name)
def entry(request, monkeypatch):
    """A metric that has a function and an entry, and nothing else."""
    monkeypatch.setitem(METRICS, request.param.name, request.param)
    return request.param


def test_a_metric_with_an_entry_is_measured_shown_and_written_everywhere(entry, tmp_path, capsys):
    expected = entry.function(Z, C)
    found = certcal.measure(TABLE, bootstrap=20, metrics="all")
    assert found[entry.name].value == expected
    resampled = metrics.bootstrap(
        entry.function, Z, C, replicates=20, **entry.settings(15 if entry.bins else None, "left")
    )
    assert found[entry.name].interval == resampled.interval
    assert resampled.interval.lower < resampled.interval.upper
    by_name = {row["name"]: row["value"] for row in json.loads(found.to_json())["measurements"]}
    assert by_name[entry.name] == expected
    assert entry.label in str(found)
    page = tmp_path / "page.html"
    found.report().save(page)
    assert entry.label in page.read_text("utf-8")
    assert entry.definition in page.read_text("utf-8")


@pytest.mark.parametrize("task", TASK_KINDS)
def test_a_dozen_metrics_are_measured_by_default_and_the_rest_by_name(task):
    p = RNG.dirichlet((2, 1, 1), 60)
    tables = {
        "binary": {"score": Z, "outcome": C},
        "top-label": TABLE,
        "multiclass": {"prob_a": p[:, 0], "prob_b": p[:, 1], "prob_c": p[:, 2], "label": ["a", "b", "c"] * 20},
    }
    usual, every = (certcal.measure(tables[task], metrics=given) for given in ((), "all"))
    names = [row.name for row in usual.rows]
    assert usual.task == task
    assert sorted(names) == sorted(USUAL[task])
    assert 10 <= len(names) <= 12
    assert "kde_ece" not in names
    assert [row for row in every.rows if row.name in names] == list(usual.rows)
    assert sorted(row.name for row in every.rows) == sorted(row_names(task))
    more = certcal.measure(tables[task], metrics=["default", "kde-ece", largest_bin])
    assert {row.name for row in more.rows} == {*names, "kde_ece", "largest_bin"}
    again = certcal.measure(tables[task], **vars(usual.settings))
    assert again.rows == usual.rows
    pieces = certcal.measure(tables[task], memory=1)
    assert {"ece"} < {row.name for row in pieces.rows} < set(names)
    assert f"of {len(row_names(task))} metrics; asking for" in str(usual)
    assert "metrics; asking for" not in str(every)


def test_a_threshold_that_is_given_has_its_accuracy():
    for options in ({}, {"memory": 1}):
        assert certcal.measure({"score": Z, "outcome": C}, threshold=0.3, **options)["accuracy"].value > 0.5


def test_the_caution_about_kernel_densities_is_true_and_stands_wherever_they_are_shown():
    found = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        z = rng.beta(0.1, 0.1, 1500)
        table = {"score": z, "outcome": rng.random(1500) < z}
        found.append([metrics.kde_ece(z, table["outcome"]), metrics.ece(z, table["outcome"])])
    by_density, in_bins = np.mean(found, axis=0)
    assert 0.057 < by_density < 0.067
    assert 0.005 < in_bins < 0.02
    caution = METRICS["kde_ece"].caution
    assert "0.062 ± 0.005" in caution
    shown = certcal.measure(table, metrics=["ece", "kde_ece"])
    for text in (shown.report().to_html(), str(shown), str(certcal.compare(shown, shown))):
        assert caution.split(":")[0] in " ".join(text.split())
    assert caution.split(":")[0] not in str(certcal.measure(table))


def test_a_metric_with_an_entry_can_be_asked_for_by_name_on_the_command_line(entry, tmp_path, capsys):
    table = tmp_path / "table.csv"
    table.write_text("confidence,correct\n" + "".join(f"{z},{c}\n" for z, c in zip(Z, C, strict=True)))
    cli.main(["measure", str(table), "--metric", entry.name, "--json"], standalone_mode=False)
    (row,) = json.loads(capsys.readouterr().out)["measurements"]
    assert (row["name"], row["value"]) == (entry.name, pytest.approx(entry.function(Z, C)))
    option = click.Option(["--metric"])
    assert complete_metrics(click.Context(cli), option, entry.name[:5]) == [entry.name]
    assert entry.name in NAMES
    with pytest.raises(InputError, match=f"there are accuracy, .*{entry.name}"):
        certcal.measure(TABLE, metrics=["qqq"])


def test_a_metric_of_bin_sums_streams_and_one_of_samples_does_not(entry):
    pieces = [Predictions.from_confidence(Z[:30], C[:30]), Predictions.from_confidence(Z[30:], C[30:])]
    found = {row.name: row for row in measure_stream(lambda: pieces, intervals=True)}
    assert (entry.name in found) is isinstance(entry.form, OfBins)
    if entry.name in found:
        assert found[entry.name].value == entry.function(Z, C)
        assert found[entry.name].interval is None  # its entry names none


def test_without_its_entry_a_metric_is_unknown():
    with pytest.raises(InputError, match="there is no 'largest_bin'"):
        certcal.measure(TABLE, metrics=["largest_bin"])
    assert entry_of(largest_bin) is None
    assert isinstance(entry_of(metrics.mmce).form, OfSamples)


def test_every_entry_says_all_that_a_page_shows():
    places = [(entry.section, entry.place) for entry in METRICS.values()]
    assert len(set(places)) == len(places)
    assert {section for section, _ in places} == set(SECTIONS)
    for task in TASK_KINDS:
        rows = [entry for entry in METRICS.values() if task in entry.tasks]
        names = [entry.text("name", task) for entry in rows]
        assert len(set(names)) == len(names)
        assert [entry_named(name, task) for name in names] == rows
        shown = [entry_named(name, task).headline for name in headlines(task)]
        assert sorted(shown) == shown
        assert len(set(shown)) == len(shown)
    for name, entry in METRICS.items():
        assert (name, entry.function.__name__) == (entry.name, entry.name)
        assert entry.label
        assert re.search(r"[.:]$", entry.definition)
        assert set(entry.by_kind) <= set(TASK_KINDS)
        assert entry_of(entry.function) is entry


def test_texts_can_differ_between_kinds_of_tasks_and_have_one_default():
    words = {"binary": {"label": "base rate", "definition": "The share of outcomes 1."}}
    entry = MetricEntry(metrics.accuracy, "accuracy", "The share that is right.", by_kind=words)
    assert [entry.text("label", kind) for kind in (None, "binary", "top-label")] == [
        "accuracy",
        "base rate",
        "accuracy",
    ]
    assert entry.text("short", "binary") == "base rate"
    assert entry.text("definition") == "The share that is right."
