"""``--mlflow``: the results are printed and written as ever, and logged as well."""

import json
import sys

import pytest

from tests.interop.stores import use_folder, use_store
from tests.study.zoo import zoo


@pytest.fixture
def store(tmp_path, monkeypatch):
    use_folder(monkeypatch, tmp_path / "store")
    import mlflow

    return mlflow


@pytest.fixture
def intervals(tmp_path):
    path = tmp_path / "intervals.csv"
    rows = [
        f"{0.5 + i / 80:.4f},{0.55 + i / 80:.4f},{i % 3 > 0:d},{radius}" for radius in (0.25, 0.5) for i in range(30)
    ]
    path.write_text("lower,upper,correct,radius\n" + "\n".join(rows) + "\n")
    return path


def only_run(mlflow):
    (run,) = mlflow.search_runs(output_format="list")
    return run


def names_of_artifacts(mlflow, run, folder):
    return {each.path for each in mlflow.MlflowClient().list_artifacts(run.info.run_id, folder)}


def test_measurements_are_logged_with_their_files(certcal_command, store, scores, tmp_path):
    plain = certcal_command("measure", scores, "--json", "--by", "site", "--bounds")
    files = ("-o", tmp_path / "a.html", "-o", tmp_path / "a.csv")
    ran = certcal_command("measure", scores, "--json", "--by", "site", "--bounds", "--mlflow", *files)
    document, logged = json.loads(plain.out), json.loads(ran.out)
    assert logged.pop("provenance")["inputs"] == document.pop("provenance")["inputs"]
    assert (ran.code, logged) == (0, document)
    run = only_run(store)
    assert f"numbers to MLflow: run {run.info.run_id} of experiment 0\n" in ran.err
    rows = {row["name"]: row["value"] for row in document["measurements"]}
    assert run.data.metrics["measure/estimate/ece_bins_15"] == rows["ece"]
    assert run.data.metrics["measure/estimate/auroc"] == rows["auroc"]
    assert run.data.metrics["measure/estimate/site_south/ece_bins_15"] == next(
        row["value"] for row in document["groups"][1]["measurements"] if row["name"] == "ece"
    )
    assert run.data.metrics["measure/bound/calibration_error_at_most"] == document["bounds"][0]["value"]
    assert run.data.params["measure/source"] == str(scores)
    assert names_of_artifacts(store, run, "measure") == {
        f"measure/{name}" for name in ("a.html", "a.csv", "claims.txt", "results.json")
    }


def test_bounds_and_certificates_of_one_run_stand_side_by_side(certcal_command, store, scores, intervals, monkeypatch):
    run_id = store.MlflowClient().create_run("0").info.run_id
    monkeypatch.setenv("MLFLOW_RUN_ID", run_id)
    bounded = certcal_command("bound", scores, "--json", "--mlflow", "-q")
    certified = certcal_command("certify", intervals, "--json", "--mlflow", "-q")
    assert [(ran.code, ran.err) for ran in (bounded, certified)] == [(0, ""), (0, "")]
    metrics = only_run(store).data.metrics
    for bound in json.loads(bounded.out)["bounds"]:
        bins = "_bins_15" if "bins" in bound["settings"] else ""
        side = {"upper": "_at_most", "lower": "_at_least"}[bound["side"]]
        assert metrics[f"bound/bound/{bound['method']}{bins}{side}"] == bound["value"]
    for result in json.loads(certified.out)["results"]:
        where = f"radius_{result['radius']}"
        worst = result["calibration_error"]["certified"]["value"]
        assert metrics[f"certify/worst_case/{where}/calibration_error_certified_bins_15_at_most"] == worst
        assert (
            metrics[f"certify/certified_value/{where}/certified_accuracy_at_least"]
            == (result["certified_accuracy"]["value"])
        )


def test_a_study_logs_its_table_and_a_review_its_answers(certcal_command, store, tmp_path):
    zoo(tmp_path / "zoo")
    table = tmp_path / "study.parquet"
    measured = certcal_command("study", "measure", tmp_path / "zoo", "--bins", "5,15", "-o", table, "--mlflow")
    assert measured.code == 0
    run = only_run(store)
    assert f"logged the table to MLflow: run {run.info.run_id}" in measured.err
    assert run.data.metrics == {}
    told = {"study_measure/rows": "6", "study_measure/failed": "0", "study_measure/bins": "5, 15"}
    assert run.data.params | told == run.data.params
    assert "study_measure/study.parquet" in names_of_artifacts(store, run, "study_measure")
    reviewed = certcal_command("study", "review", table, "--resamples", 20, "--json", "--mlflow")
    assert reviewed.code == 0
    answers = json.loads(reviewed.out)["answers"]
    latest = store.search_runs(output_format="list")[0].data.metrics
    number, finding = next((a["number"], f) for a in answers for f in a["findings"] if f["value"] is not None)
    assert finding["value"] in [
        value for name, value in latest.items() if name.startswith(f"study_review/estimate/question_{number}/")
    ]


def test_a_server_that_does_not_answer_costs_no_results(certcal_command, scores, tmp_path, monkeypatch):
    use_store(monkeypatch, "http://someone:secret@127.0.0.1:9")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    plain = certcal_command("bound", scores)
    ran = certcal_command("bound", scores, "--mlflow", "-o", tmp_path / "b.json")
    assert (ran.code, ran.out) == (2, plain.out)
    assert json.loads((tmp_path / "b.json").read_text())["bounds"]
    *_, last = ran.err.strip().splitlines()
    assert last.startswith("certcal: error: MLflow did not take the results, which are complete here (")
    assert "secret" not in ran.err


def test_a_mistake_in_the_table_leaves_no_run_behind(certcal_command, store, tmp_path):
    assert certcal_command("measure", tmp_path / "missing.csv", "--mlflow").code == 2
    assert store.search_runs(output_format="list") == []


def test_without_mlflow_nothing_is_begun(certcal_command, scores, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    for command in ("measure", "bound", "certify"):
        ran = certcal_command(command, scores, "--mlflow", "-o", tmp_path / "a.json")
        assert (ran.code, ran.out) == (2, "")
        assert ran.err == "certcal: error: --mlflow needs mlflow; run: pip install 'certcal[mlflow]'\n"
    assert not (tmp_path / "a.json").exists()


def test_a_bandwidth_is_no_result_to_log(certcal_command, store, scores):
    ran = certcal_command("bound", scores, "--choose-bandwidth", "0.01", "--mlflow")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "certcal: error: --choose-bandwidth finds nothing to log; leave --mlflow out\n"
