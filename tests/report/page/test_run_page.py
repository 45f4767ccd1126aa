"""The page of a run: its numbers are the JSON's, every state of its figures is prepared, and names do no harm."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from certcal.cli._certified_run import Request, certify_run
from certcal.report.page import Page, Provenance, page
from certcal.report.page._curves import BETWEEN
from certcal.report.results import CertifiedResults

from certcal import InputError
from certcal.models import wrap
from certcal.smoothing import CONFIDENCES, Run, open_run
from tests.report.reading import Reader, embedded, flat
from tests.smoothing.drawing import X, draw, model

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>\u202e"
LABELS = np.where(np.arange(24) % 6 == 0, 0, np.argmax(np.asarray(model()(X)), axis=1))
SETTINGS = {"bins": 15, "closed": "left", "delta": 0.05}
PIXELS = (np.round(255 / (1 + np.exp(-X))) / 255).astype(np.float32)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("page") / "run"
    # Rows of four pixels: one channel of two by two, as images would be.
    return draw(folder, inputs=PIXELS, labels=LABELS, n=800, unit=20_000)


def certified(folder: Path, radii: tuple[str, ...] | None = None, **changes: Any) -> CertifiedResults:
    settings = {name: changes.pop(name, value) for name, value in SETTINGS.items()}
    options: dict[str, Any] = {"kinds": ("tight",), "alpha": 0.001, "familywise": False, "drawn_only": False}
    asked = Request(radii, compare=False, **(options | changes))
    return certify_run(folder, asked, settings)[0]


@pytest.fixture(scope="module")
def results(run: Run) -> CertifiedResults:
    return certified(run.path)


@pytest.fixture(scope="module")
def made(results: CertifiedResults) -> Page:
    return page(results, Provenance.here(["certcal", "report", "run"]))


def values_of(made: Page) -> list[list[str]]:
    return Reader(made.html).tables["Certified values; ≥ and ≤ say on which side each holds"]


def test_the_numbers_in_the_page_are_those_that_json_prints(made: Page, results: CertifiedResults) -> None:
    document = embedded(made)
    provenance = document.pop("provenance")
    assert document == json.loads(results.to_json())
    assert provenance["command"] == ["certcal", "report", "run"]


def test_the_table_of_values_has_the_texts_of_the_json_at_every_radius(made: Page) -> None:
    header, *rows = values_of(made)
    found = embedded(made)["results"]
    assert header[0] == "radius"
    assert len(rows) == len(found) > 3
    for row, line in zip(rows, found, strict=True):
        error = line["calibration_error"]
        assert float(row[0]) == line["radius"]
        assert row[1:] == [
            f"{line['n_certified']:,}",
            line["certified_accuracy"]["text"],
            line["claim"]["text"],
            error["certified"]["text"],
            line["population_bound"]["certified"]["text"],
            error["all"]["text"],
            line["brier_score"]["certified"]["text"],
            line["certified_skill"]["text"],
            line["nll"]["certified"]["text"],
            line["mce"]["certified"]["text"],
            line["ks_error"]["certified"]["text"],
            row[-1],
        ]
        assert float(row[-1]) >= line["mean_width"] > float(row[-1]) - 1.01e-4


def test_the_headline_is_the_claim_with_its_probability_and_assumptions(made: Page, results: CertifiedResults) -> None:
    reader = Reader(made.html)
    one = results.review.at()
    line = embedded(made)["results"][results.review.headline]
    assert line["claim"]["sentence"] == one.claim.sentence
    shown = flat(reader)
    assert one.claim.sentence in shown
    assert re.search(rf"At radius 0.25, the calibration error is ?at most ?{line['claim']['text']}", shown)
    assert line["population_bound"]["certified"]["sentence"] in shown
    assert "It may fail with probability at most 0.001 over the noise that was drawn." in shown
    for assumption in one.claim.assumptions:
        assert f"{assumption}" in shown


def test_the_verdict_is_that_of_the_headline_radius(made: Page, results: CertifiedResults) -> None:
    line = embedded(made)["results"][results.review.headline]
    assert line["information"]["verdict"] == results.review.at().summary.information.verdict_at("0.25")
    assert line["information"]["verdict"] in flat(Reader(made.html))
    parts = Reader(made.html).tables["The certified Brier score, taken apart"]
    assert [row[-1] for row in parts[2:4]] == [
        line["certified_resolution"]["text"],
        line["certified_miscalibration"]["text"],
    ]


def test_every_position_of_the_slider_is_prepared_and_says_what_the_json_says(
    made: Page, results: CertifiedResults
) -> None:
    reader = Reader(made.html)
    review = results.review
    count = len(review.radii)
    (control,) = [own for tag, own in reader.tags if tag == "input" and "data-slider" in own]
    assert (control["min"], control["max"], control["value"]) == ("0", str(count - 1), str(review.headline))
    framed = [(tag, own) for tag, own in reader.tags if own.get("data-of") == "radius"]
    kinds = {tag for tag, _ in framed}
    assert kinds == {"div", "g", "span"}
    for frame in range(count):
        own = [(tag, each) for tag, each in framed if each["data-frame"] == str(frame)]
        # Two diagrams with their tables, the upright line in four charts, the words beside the slider.
        assert sorted(tag for tag, _ in own) == ["div"] * 4 + ["g"] * 4 + ["span"]
        assert all(("hidden" in each) == (frame != review.headline) for _, each in own)
    for place, line in enumerate(embedded(made)["results"]):
        clean = review.clean_bins(place)
        said = (
            f"radius {review.radii[place]}: calibration error {clean.ece:.4f} (estimate) without a perturbation, at "
            f"most {line['calibration_error']['certified']['text']} in the worst case (claimed: "
            f"{line['claim']['text']}, "
        )
        assert said in flat(reader)


def test_the_page_says_what_is_an_estimate_what_only_may_happen_and_where_claims_are_made(made: Page, run: Run) -> None:
    shown = flat(Reader(made.html))
    # Intervals contain what perturbations do; whether one reaches the ends of all of them is not known.
    assert "The worst that the certificates leave possible" in shown
    assert "perturbations up to the radius can do" not in shown
    assert "at most, certified samples" in shown
    assert "Every claim of this page is from tight certificates" in shown
    both = page(certified(run.path, ("0.25",), kinds=("standard", "tight")))
    assert "The headline of this page is from standard certificates" in flat(Reader(both.html))
    assert re.search(r"at most, over certified samples ?except with probability 0\.05", shown)
    assert "At radius 0.25: the largest that was asked for, or half of sigma when none was" in shown
    # Four charts against the radius, and that of the widths.
    assert shown.count(BETWEEN) == 5
    assert BETWEEN not in flat(Reader(page(certified(run.path, ("0.25",))).html))


def test_the_tables_of_the_diagrams_are_the_bins_of_the_witness_and_of_the_estimates(
    made: Page, results: CertifiedResults
) -> None:
    tables, review = Reader(made.html).tables, results.review
    for place, radius in enumerate(review.radii):
        for name, bins in (
            ("of the worst case", review.at(place).worst_bins.table),
            ("without a perturbation", review.clean_bins(place).table),
        ):
            _, *rows = tables[f"Bins: Reliability diagram {name}, radius {radius}"]
            used = bins.count > 0
            assert [int(row[1]) for row in rows] == bins.count[used].tolist()
            assert [row[3] for row in rows] == [f"{value:.4f}" for value in bins.accuracy[used]]
        signs = review.at(place).worst.signs
        _, *rows = tables[f"Bins: Reliability diagram of the worst case, radius {radius}"]
        used = review.at(place).worst_bins.table.count > 0
        assert [row[-1] for row in rows] == ["+" if sign > 0 else "−" for sign in signs[used]]


def test_figures_against_the_radius_have_the_texts_of_the_claims_as_tables(made: Page) -> None:
    tables, found = Reader(made.html).tables, embedded(made)["results"]
    _, *errors = tables["Calibration error of the certified samples"]
    for row, line in zip(errors, found, strict=True):
        texts = [line["calibration_error"]["certified"], line["claim"], line["population_bound"]["certified"]]
        assert row[2:] == [each["text"] for each in texts]
    _, *whole = tables["Calibration error of all samples"]
    assert [row[1:] for row in whole] == [
        [line["calibration_error"]["all"]["text"], line["population_bound"]["all"]["text"]] for line in found
    ]
    _, *accuracy = tables["Certified accuracy"]
    assert [row[1] for row in accuracy] == [line["certified_accuracy"]["text"] for line in found]


def test_widths_of_all_kinds_are_rounded_up(made: Page, results: CertifiedResults) -> None:
    _, *rows = Reader(made.html).tables["Widths of the intervals at radius 0.25"]
    assert [row[0] for row in rows] == list(CONFIDENCES)
    for row in rows:
        widths = results.review.widths(row[0])
        for text, value in zip(row[1:], (widths.mean, *widths.quantiles), strict=True):
            assert float(text) >= value > float(text) - 1.01e-4


def test_the_samples_that_matter_most_are_named_with_their_intervals(made: Page, results: CertifiedResults) -> None:
    told = results.review.most_telling(12)
    _, *rows = Reader(made.html).tables[f"The {len(told)} samples that add most at radius 0.25"]
    assert [int(row[0]) for row in rows] == [each.index for each in told]
    for row, each in zip(rows, told, strict=True):
        assert row[1] == f"{each.label}"
        assert row[2] == (f"{each.label}" if each.label == each.predicted else f"{each.predicted} (wrong)")
        assert row[5] == each.interval_text


def test_ledgers_add_up_to_what_the_claims_say(made: Page, results: CertifiedResults) -> None:
    one = results.review.at()
    rows = re.findall(r"<caption>How α was spent</caption>.*?</table>", made.html)
    assert len(rows) == 2
    texts = [re.sub(r"<[^>]*>", " ", each).split() for each in rows]
    assert texts[0][-4:] == ["spent", "0.001", "budget", "0.001"]
    assert {"prediction", "0.00025", "lower", "0.000375", "upper"} <= set(texts[0])
    assert f"more than {one.claim.settings['failing certificates']} certificates fail" in " ".join(texts[1])


def test_facts_of_the_run_are_those_of_its_manifest(made: Page, run: Run) -> None:
    shown = flat(Reader(made.html))
    m = run.manifest
    for fact in (m.model.fingerprint, m.data.inputs, m.data.labels, f"certcal {m.versions['certcal']}", m.created):
        assert fact in shown
    assert "20 choose the class, 800 count" in shown
    assert f"Seed{m.seed}" in shown


def test_kinds_side_by_side_have_a_line_each_and_the_first_is_in_the_headline(run: Run) -> None:
    made = page(certified(run.path, ("0.1", "0.2"), kinds=CONFIDENCES))
    header, *rows = values_of(made)
    assert header[1] == "certificate"
    assert [(row[0], row[1]) for row in rows] == [(radius, kind) for radius in ("0.1", "0.2") for kind in CONFIDENCES]
    found = embedded(made)["results"]
    assert [row[4] for row in rows] == [line["claim"]["text"] for line in found]
    assert found[5]["claim"]["sentence"] in flat(Reader(made.html))


# ------------------------------------------------------------------------------------------------- states of all kinds


def test_one_radius_needs_no_slider(run: Run) -> None:
    made = page(certified(run.path, ("0.1",)))
    reader = Reader(made.html)
    assert not [tag for tag, own in reader.tags if "data-slider" in own]
    assert "radius 0.1: calibration error" in flat(reader)
    assert len(values_of(made)) == 2


def test_one_radius_has_no_curves_over_the_radius(run: Run) -> None:
    one, two = (page(certified(run.path, radii)).html for radii in (("0.1",), ("0.1", "0.2")))
    assert ["Against the radius" in each for each in (one, two)] == [False, True]
    assert ['href="#radii"' in each for each in (one, two)] == [False, True]


def test_where_nothing_is_certified_at_any_radius_there_is_no_empty_diagram_and_no_slider(run: Run) -> None:
    made = page(certified(run.path, ("40", "50")))
    shown = flat(Reader(made.html))
    assert "so there is nothing to draw; the other radii have none either." in shown
    assert "perfect calibration" not in shown
    assert "slider" not in shown
    assert "data-slider" not in re.sub(r"<script.*?</script>", "", made.html, flags=re.DOTALL)
    assert "Median width of the intervals" not in shown


def test_where_nothing_is_certified_the_page_says_so_and_claims_nothing_better(run: Run) -> None:
    made = page(certified(run.path, ("40", "50")))
    shown = flat(Reader(made.html))
    assert "radius 50: no sample is certified, so there is nothing to draw" in shown
    assert "No sample is certified at this radius, so nothing better is claimed." in shown
    assert "No sample is certified at radius 50, so none adds to a worst case." in shown
    assert "No sample is certified at radius 50, so there is no interval to measure." in shown
    assert [row[3] for row in values_of(made)[1:]] == ["1.0000", "1.0000"]
    assert not re.search(r"\bnan\b", shown.lower())


def test_a_radius_beyond_all_certificates_beside_others_is_an_empty_diagram(run: Run) -> None:
    made = page(certified(run.path, ("0.1", "50")))
    tables = Reader(made.html).tables
    assert "Bins: Reliability diagram of the worst case, radius 0.1" in tables
    assert "Bins: Reliability diagram of the worst case, radius 50" not in tables
    assert values_of(made)[2][4] == "–"


def test_what_was_drawn_of_an_unfinished_run_is_said(tmp_path: Path) -> None:
    part = draw(tmp_path / "part", labels=LABELS, n=400, unit=4000)
    late = [unit for unit in part.manifest.units() if unit.stage == "counting" and unit.first >= 10]
    for unit in late:
        (part.path / unit.name).unlink()
    made = page(certified(part.path, ("0.1",), drawn_only=True))
    assert f"{late[0].first} of 24: those that were drawn completely" in flat(Reader(made.html))


def test_many_radii_are_thinned_for_the_slider_and_whole_in_the_table(run: Run) -> None:
    radii = tuple(f"{step / 1000:g}" for step in range(230))
    made = page(certified(run.path, radii, bins=4))
    shown = flat(Reader(made.html))
    (said,) = re.findall(r"The slider has (\d+) of 230 radii; the table of values has all", shown)
    assert 20 <= int(said) <= 41
    assert [row[0] for row in values_of(made)[1:]] == list(radii)
    assert len(made.html) < 6_000_000
    assert embedded(made)["results"][-1]["radius"] == 0.229


def test_many_bins_leave_fewer_positions_of_the_slider(run: Run) -> None:
    made = page(certified(run.path, tuple(f"{step / 100:g}" for step in range(12)), bins=300))
    shown = flat(Reader(made.html))
    (said,) = re.findall(r"The slider has (\d+) of 12 radii; the table of values has all", shown)
    assert 5 <= int(said) <= 8
    assert shown.count("Neighbouring bins are drawn as one.") == 2
    assert "+ and −: whether" not in shown


def test_a_review_of_other_radii_is_refused(run: Run, results: CertifiedResults) -> None:
    with pytest.raises(InputError, match="review is of other radii than results; pass the one that came with them"):
        page(certified(run.path, ("0.1",)), review=results.review)


def test_certificates_that_hold_together_add_nothing_for_failures(run: Run) -> None:
    made = page(certified(run.path, ("0.1", "0.2"), familywise=True))
    shown = flat(Reader(made.html))
    assert "with certificates that fail" not in shown
    assert "where all certificates hold" not in shown
    assert "its share of a probability for all samples together" in shown


def test_when_the_numbers_are_too_many_those_of_the_slider_are_kept(
    run: Run, results: CertifiedResults, monkeypatch: pytest.MonkeyPatch
) -> None:
    from certcal.report.page import _frames, _run_page, _skeleton

    whole = len(_skeleton.embedded(embedded(page(results))))
    monkeypatch.setattr(_skeleton, "_MOST_DATA", whole - 1)
    monkeypatch.setattr(_run_page, "chosen", lambda count, start, most: _frames.chosen(count, start, 3))
    made = page(results)
    kept = [line["radius"] for line in embedded(made)["results"]]
    assert 0.25 in kept
    assert len(kept) < len(results.lines)
    assert f"The numbers in this page are of {len(kept)} of {len(results.lines)} radii" in flat(Reader(made.html))


# -------------------------------------------------------------------------------------------------------------- images


@pytest.mark.parametrize("shape", [(4, 4), (1, 4, 4), (4, 4, 1), (3, 4, 4), (4, 4, 3)])
def test_images_of_the_telling_samples_are_shown_for_the_data_of_the_run(
    tmp_path: Path, shape: tuple[int, ...]
) -> None:
    images = np.random.default_rng(1).integers(0, 256, (12, *shape), dtype=np.uint8)
    labels = np.arange(12) % 3
    bright = wrap(
        lambda batch: np.c_[batch.reshape(len(batch), -1)[:, :2].sum(1) * 3, np.ones((len(batch), 2))], "logits"
    )
    folder = draw(tmp_path / "images", model=bright, inputs=images, labels=labels, n=300, batch=300).path
    found = certified(folder, ("0",))
    told = found.review.most_telling()
    made = page(found, inputs=images)
    pictures = [own for tag, own in Reader(made.html).tags if tag == "img"]
    assert len(pictures) == len(told) > 0
    for own, each in zip(pictures, told, strict=True):
        assert str(own["src"]).startswith("data:image/png;base64,")
        assert own["alt"] == f"sample {each.index}: class {each.label}, predicted {each.predicted}"
    with pytest.raises(InputError, match="are not the data that the run was drawn from"):
        page(found, inputs=images[::-1])


def test_inputs_that_are_no_images_are_not_shown_and_that_is_said(results: CertifiedResults) -> None:
    made = page(results, inputs=PIXELS)
    assert "The inputs, of shape (4,), are no images, so none are shown." in flat(Reader(made.html))
    assert "<img" not in made.html
    with pytest.raises(InputError, match="the review is of counts without a run"):
        page(results, review=replace(results.review, manifest=None), inputs=PIXELS)


# ------------------------------------------------------------------------------------------------------------- hostile


def test_hostile_names_are_shown_and_not_run(run: Run, results: CertifiedResults) -> None:
    m = run.manifest
    nasty = replace(
        m,
        model=replace(m.model, description=HOSTILE),
        data=replace(m.data, source=HOSTILE),
        versions={HOSTILE: HOSTILE},
        created=HOSTILE,
    )
    found = replace(
        results, source=HOSTILE, description=HOSTILE, notes=HOSTILE, review=replace(results.review, manifest=nasty)
    )
    made = page(found, Provenance(("certcal", HOSTILE), HOSTILE, {HOSTILE: HOSTILE}), title=HOSTILE)
    plain, reader = Reader(page(results, Provenance(("certcal",), "now")).html), Reader(made.html)
    assert [tag for tag, _ in reader.tags].count("script") == [tag for tag, _ in plain.tags].count("script")
    assert not [tag for tag, own in reader.tags if tag == "img" or any(name.startswith("on") for name in own)]
    assert "\u202e" not in made.html
    assert made.html.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 7
    assert embedded(made)["source"] == HOSTILE


def test_a_page_of_a_run_on_disk_asks_for_nothing_from_outside(made: Page) -> None:
    for _, own in Reader(made.html).tags:
        for name in ("src", "href", "action", "poster", "data"):
            address = own.get(name)
            assert address is None or address.startswith(("#", "data:"))
        assert "style" not in own
    (policy,) = [own["content"] for _, own in Reader(made.html).tags if "http-equiv" in own]
    assert str(policy).startswith("default-src 'none'; ")
    identifiers = re.findall(r'\sid="([^"]*)"', made.html)
    assert len(identifiers) == len(set(identifiers))


def test_a_review_made_in_python_gives_the_same_figures(run: Run, results: CertifiedResults) -> None:
    from certcal.smoothing import review

    again = review(open_run(run.path))
    assert page(replace(results, review=None), review=again).html == page(results).html
