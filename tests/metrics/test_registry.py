"""The registry: every metric once, and everywhere as soon as it has an entry."""

from __future__ import annotations

import json
import re

import click
import numpy as np
import pytest

import certcal
from certcal import InputError, Predictions, metrics
from certcal.cli import cli
from certcal.cli.options import complete_metrics
from certcal.metrics import METRICS, NAMES, SECTIONS, MetricEntry, measure_stream
from certcal.metrics.registry import TASK_KINDS, OfBins, OfSamples, entry_named, entry_of
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
    found = certcal.measure(TABLE, bootstrap=20)
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
