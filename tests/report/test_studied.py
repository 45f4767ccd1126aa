"""The results of a review as JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

from certcal.report.results import StudiedResults
from tests.report.studied import review, studied_results


def test_json_holds_every_answer_chart_and_setting_with_null_where_undefined():
    results = studied_results()
    document = json.loads(results.to_json())
    assert document["type"] == "study_review"
    assert document["source"] == "study.parquet"
    assert [answer["number"] for answer in document["answers"]] == [1, 2, 3, 4, 5, 6, 7]
    found = document["answers"][0]["findings"]
    assert [each["value"] for each in found] == [0.41678, 0.41678, None]
    assert document["settings"]["level"] == 0.95
    assert document["charts"][0]["values"][-1][0] is None
    assert len(document["charts"][0]["values"]) == 24


def test_csv_has_a_line_per_finding_with_all_digits():
    rows = list(csv.DictReader(io.StringIO(studied_results().to_csv())))
    assert len(rows) == 6 * 3
    assert rows[0] == {
        "question": "1",
        "finding": "Kendall's tau, digits and fashion",
        "value": "0.41678",
        "low": "0.30999",
        "high": "0.52001",
        "models": "300",
        "note": "",
    }
    assert rows[2]["value"] == rows[2]["low"] == ""
    assert rows[2]["note"] == "all are constant"


def test_the_description_says_how_many_models_data_sets_and_failures():
    found = review()
    assert studied_results().description.startswith("300 models on 3 data sets (digits, fashion, ")
    assert studied_results().description.endswith("split 'test'; 2 rows failed and left out")
    one = StudiedResults("s", replace(found, models=1, datasets=("digits",), failed=0, split=""))
    assert one.description == "1 model on 1 data set (digits)"
