"""Attacks in a terminal, as JSON and as CSV."""

from __future__ import annotations

import csv
import io
import json

from rich.console import Console

from certcal.report.attacks import SmallDiagrams, attack_table
from certcal.report.figures import reliability_panels
from certcal.report.results import estimate_of
from tests.report.attacked import ATTACKS, attacked_results


def shown(what, width=80, **options):
    console = Console(width=width, color_system=None, **options)
    with console.capture() as captured:
        console.print(what)
    return captured.get()


def test_every_attack_has_a_line_below_its_distance_with_the_numbers_that_were_measured():
    results = attacked_results()
    lines = shown(attack_table(results)).splitlines()
    assert max(map(len, lines)) <= 80
    heads = [place for place, line in enumerate(lines) if line.startswith("ε = ")]
    assert [lines[place].strip() for place in heads] == ["ε = 2/255 (ℓ∞)", "ε = 8/255 (ℓ∞)"]
    for place, attacks in zip(heads, results.by_epsilon.values(), strict=True):
        for offset, attack in enumerate(attacks, 1):
            line = lines[place + offset]
            assert line.split(attack.name)[1].split()[-4:] == [
                f"{estimate_of(attack.part, name).value:.4f}"
                for name in ("equal_mass_ece", "ece", "mean_confidence", "accuracy")
            ]


def test_a_narrow_terminal_has_every_number_whole_and_goes_without_the_aims():
    results = attacked_results()
    lines = shown(attack_table(results, 60), 60).splitlines()
    assert max(map(len, lines)) <= 60
    assert "…" not in "".join(lines)
    assert "confidence in" not in lines[0]
    every = [estimate_of(line.part, "ece").value for line in results.lines]
    assert all(f"{value:.4f}" in "".join(lines) for value in every)


def test_the_strongest_attack_is_the_one_with_the_largest_adaptive_error():
    results = attacked_results()
    errors = [estimate_of(line.part, "equal_mass_ece").value for line in results.lines]
    assert estimate_of(results.strongest.part, "equal_mass_ece").value == max(errors)
    assert results.strongest.epsilon_text == "8/255"


def test_small_diagrams_stand_side_by_side_as_far_as_there_is_room():
    results = attacked_results()
    names = [name for name, _, _ in ATTACKS.values()]
    for width, panels in ((40, 1), (80, 3), (140, 5)):
        lines = shown(SmallDiagrams(results.clean, results.lines[:4]), width).splitlines()
        assert lines[0].startswith("confidence   unattacked")
        assert [name in lines[0] for name in names] == [place < panels - 1 for place in range(4)]
        assert max(map(len, lines)) <= width


def test_small_diagrams_leave_out_bins_that_are_empty_everywhere_and_show_plain_letters_where_nothing_else_can_be():
    results = attacked_results()
    text = shown(SmallDiagrams(results.clean, results.lines[:1]), file=io.TextIOWrapper(io.BytesIO(), "ascii"))
    assert "0.40 - 0.47" not in text
    assert "#" in text
    assert "0.93 - 1.00" in text


def test_diagrams_of_very_many_bins_are_left_to_pages():
    results = attacked_results(bins=100)
    assert "pages and pictures" in shown(SmallDiagrams(results.clean, results.lines))


def test_the_json_has_every_attack_with_its_measurements_and_how_many_labels_changed():
    results = attacked_results()
    document = json.loads(results.to_json())
    assert [each["attack"] for each in document["attacks"]] == [*ATTACKS] * 2
    assert {each["labels_changed"] for each in document["attacks"]} == {0}
    assert document["clean"]["measurements"][0]["name"] == "accuracy"
    assert [each["epsilon"] for each in document["attacks"]] == [2 / 255] * 4 + [8 / 255] * 4


def test_the_csv_has_a_line_per_attack_and_metric_with_all_digits():
    results = attacked_results()
    rows = list(csv.DictReader(io.StringIO(results.to_csv())))
    assert len(rows) == 9 * len(results.clean.rows)
    for row in rows:
        found = [line for line in results.lines if line.key == row["attack"] and repr(line.epsilon) == row["epsilon"]]
        part = found[0].part if row["attack"] else results.clean
        assert float(row["value"]) == estimate_of(part, row["metric"]).value


def test_a_picture_has_a_panel_without_an_attack_and_one_for_each():
    results = attacked_results()
    figure = reliability_panels(results.diagrams)
    titles = [ax.get_title().splitlines()[0] for ax in figure.axes if ax.get_title()]
    assert titles == list(results.diagrams)
    assert titles[:2] == ["unattacked", "(-1, y)-ACE, ε = 2/255 (ℓ∞)"]
