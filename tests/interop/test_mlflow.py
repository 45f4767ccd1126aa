"""Claims in MLflow, with the real library: what is stored is what is claimed, and nothing is stored by halves."""

import importlib
import json
import math
import sys

import pytest

import certcal
from certcal import InputError
from certcal.claims import Bound, Estimate
from tests.interop.stores import use_folder, use_store

BOUND = Bound("ece", 0.08121, "upper", 0.05, 1000, ("samples are independent",))


@pytest.fixture
def mlflow(tmp_path, monkeypatch):
    use_folder(monkeypatch, tmp_path / "store")
    import mlflow

    return mlflow


@pytest.fixture
def log(mlflow):
    from certcal.interop.mlflow import log

    return log


def artifacts(mlflow, run_id, path=None):
    return {each.path for each in mlflow.MlflowClient().list_artifacts(run_id, path)}


def test_a_claim_becomes_metrics_params_and_artifacts_of_a_run_of_its_own(mlflow, log, tmp_path):
    table = certcal.measure(certcal.Predictions.from_confidence([0.9, 0.6, 0.7], [1, 0, 1]), bins=5, bootstrap=0)
    page = tmp_path / "page.html"
    page.write_text("<p>")
    logged = log({"measured": table, "claimed": BOUND}, prefix="validation/", step=3, files=[page])
    assert mlflow.active_run() is None
    run = mlflow.get_run(logged.run_id)
    assert run.info.status == "FINISHED"
    expected = {
        f"validation/estimate/measured/{row.name}" + ("_bins_5" if "bins" in row.settings else ""): row.value
        for row in table.rows
    }
    assert run.data.metrics == expected | {"validation/bound/claimed_at_most": 0.08121} == logged.metrics
    assert run.data.params | {"validation/bins": "5", "validation/delta": "0.05"} == run.data.params == logged.params
    history = mlflow.MlflowClient().get_metric_history(logged.run_id, "validation/bound/claimed_at_most")
    assert [(point.step, point.value) for point in history] == [(3, 0.08121)]
    assert artifacts(mlflow, logged.run_id, "validation") == {
        "validation/claims.txt",
        "validation/page.html",
        "validation/results.json",
    }
    document = json.loads(mlflow.artifacts.load_text(f"{run.info.artifact_uri}/validation/results.json"))
    assert document["claimed"] == BOUND.to_dict()
    sentences = mlflow.artifacts.load_text(f"{run.info.artifact_uri}/validation/claims.txt")
    assert f"validation/bound/claimed_at_most\n    {BOUND.statement}\n" in sentences
    assert "at most 0.0813: " in sentences  # rounded outward where it is a text
    assert BOUND.statement in run.data.tags["mlflow.note.content"]
    assert run.data.tags["certcal.version"] == certcal.__version__


def test_an_active_run_goes_on_and_keeps_its_description(mlflow, log):
    with mlflow.start_run(description="mine") as run:
        for step in range(3):
            logged = log(Estimate("ece", 0.1 * step, 50, {"bins": 15}), step=step)
            assert logged.run_id == run.info.run_id
        assert mlflow.active_run().info.run_id == run.info.run_id
        assert mlflow.get_run(run.info.run_id).info.status == "RUNNING"
    stored = mlflow.get_run(run.info.run_id)
    assert stored.data.tags["mlflow.note.content"] == "mine"
    points = mlflow.MlflowClient().get_metric_history(run.info.run_id, "estimate/ece_bins_15")
    assert [(point.step, point.value) for point in points] == [(step, 0.1 * step) for step in range(3)]


@pytest.mark.parametrize("how", ["argument", "environment"])
def test_a_named_run_keeps_its_status(mlflow, log, how, monkeypatch):
    client = mlflow.MlflowClient()
    run = client.create_run("0")
    if how == "environment":
        monkeypatch.setenv("MLFLOW_RUN_ID", run.info.run_id)
        logged = log(BOUND)
    else:
        logged = log(BOUND, run_id=run.info.run_id)
    assert logged.run_id == run.info.run_id
    stored = client.get_run(run.info.run_id)
    assert (stored.info.status, stored.data.metrics) == ("RUNNING", {"bound/ece_at_most": 0.08121})


def test_infinite_and_undefined_numbers_are_not_stored_as_others(mlflow, log):
    claims = [Estimate("nll", math.inf, 5), Estimate("auroc", math.nan, 5), Estimate("ece", 0.5, 5)]
    logged = log(claims)
    run = mlflow.get_run(logged.run_id)
    assert run.data.metrics == {"estimate/ece": 0.5}
    assert logged.left_out == ("estimate/nll", "estimate/auroc")
    document = json.loads(mlflow.artifacts.load_text(f"{run.info.artifact_uri}/results.json"))
    assert [each["value"] for each in document] == ["Infinity", None, 0.5]


def test_another_value_of_a_setting_is_refused_before_anything_is_stored(mlflow, log):
    first = log(Estimate("ece", 0.1, 50, {"bins": 15}))
    second = Estimate("ece", 0.2, 50, {"bins": 20})
    with pytest.raises(InputError, match=r"has bins = 15 already, and these results have 20; give a prefix"):
        log(second, run_id=first.run_id)
    assert mlflow.get_run(first.run_id).data.metrics == {"estimate/ece_bins_15": 0.1}
    log(second, run_id=first.run_id, params=False)
    log(second, run_id=first.run_id, prefix="again/")
    assert mlflow.get_run(first.run_id).data.params == {
        "bins": "15",
        "n": "50",
        "again/bins": "20",
        "again/n": "50",
    }


def test_many_claims_and_long_sentences_fit_what_servers_take(mlflow, log):
    claims = [Estimate(f"metric {index}", index / 2048, 10, {f"setting {index % 150}": 1}) for index in range(1200)]
    run = mlflow.get_run(log([*claims, Estimate("x", 1, 10, {"text": "y" * 9000})]).run_id)
    assert run.data.metrics == {f"estimate/metric_{index}": index / 2048 for index in range(1200)} | {"estimate/x": 1}
    assert len(run.data.params) == 152
    assert len(run.data.params["text"]) == 500
    assert len(run.data.tags["mlflow.note.content"]) <= 5100
    assert run.data.tags["mlflow.note.content"].endswith("(the rest is in claims.txt)\n")


@pytest.mark.parametrize(
    ("results", "options", "message"),
    [
        (0.04, {}, "results holds a float, which claims nothing"),
        ([], {}, "results holds no claim"),
        (BOUND, {"prefix": "a=b"}, "prefix is 'a=b'"),
        (BOUND, {"files": ["missing.html"]}, "files has missing.html, which is no file"),
    ],
)
def test_what_cannot_be_logged_is_refused_before_there_is_a_run(mlflow, log, results, options, message):
    with pytest.raises(InputError, match=message):
        log(results, **options)
    assert mlflow.search_runs(output_format="list") == []


def test_a_database_stores_every_digit(tmp_path, monkeypatch):
    use_store(monkeypatch, f"sqlite:///{tmp_path / 'mlflow.db'}")
    monkeypatch.chdir(tmp_path)  # where MLflow puts artifacts of a database
    import mlflow

    from certcal.interop.mlflow import log

    logged = log([Estimate("ece", 1 / 3, 10, {"bins": 15}), BOUND, Estimate("nll", math.inf, 5)])
    run = mlflow.get_run(logged.run_id)
    assert run.data.metrics == {"estimate/ece_bins_15": 1 / 3, "bound/ece_at_most": 0.08121}
    assert artifacts(mlflow, logged.run_id) == {"claims.txt", "results.json"}


def test_without_mlflow_the_import_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    monkeypatch.delitem(sys.modules, "certcal.interop.mlflow", raising=False)
    with pytest.raises(ImportError, match=r"needs mlflow; install it with: pip install 'certcal\[mlflow\]'"):
        importlib.import_module("certcal.interop.mlflow")
