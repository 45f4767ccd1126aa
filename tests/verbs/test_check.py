"""A page is checked against its data: what holds, what was changed, what cannot be recomputed, hostile pages."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier

import certcal
from certcal import InputError
from certcal.verification import InputBox

RNG = np.random.default_rng(4)
N = 300
SCORE = RNG.random(N).round(3)
OUTCOME = (RNG.random(N) < SCORE**1.5).astype(int)
SITE = np.array(["north", "south"])[RNG.integers(0, 2, N)]
BEGIN, END = '<script type="application/json" id="data">', "</script>"


@pytest.fixture
def table(tmp_path) -> Path:
    path = tmp_path / "scores.csv"
    rows = [f"{s},{y},{g}" for s, y, g in zip(SCORE, OUTCOME, SITE, strict=True)]
    path.write_text("\n".join(["score,outcome,site", *rows]) + "\n")
    return path


@pytest.fixture(scope="module")
def page_text() -> str:
    columns = {"score": SCORE, "outcome": OUTCOME, "site": SITE}
    found = certcal.measure(columns, by="site", metrics=["ece", "auroc"], bounds=True, source="scores.csv")
    return found.report(require=["ece <= 0.3", "auroc >= 0.5"], about={"owner": "Risk"}).to_html()


@pytest.fixture
def page(page_text, tmp_path) -> Path:
    path = tmp_path / "page.html"
    path.write_text(page_text, "utf-8")
    return path


def embedded(page: Path) -> dict[str, Any]:
    return json.loads(page.read_text("utf-8").partition(BEGIN)[2].partition(END)[0])


def with_data(page: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """The page with other numbers in its JSON, and its text as it was."""
    before, begin, rest = page.read_text("utf-8").partition(BEGIN)
    told, end, after = rest.partition(END)
    data = json.loads(told)
    change(data)
    page.write_text(f"{before}{begin}{json.dumps(data)}{end}{after}", "utf-8")
    return page


def wrong(found: certcal.Check) -> dict[str, tuple[str, str]]:
    return {row.claim: (row.on_page, row.recomputed) for row in found.rows if not row.holds}


# --- what holds -------------------------------------------------------------------------------------------------------

MADE: dict[str, Callable[[Path], Any]] = {
    "measure": lambda table: certcal.measure(table, bins=[10, 15], metrics="all"),
    "bound": lambda table: certcal.bound(table, by="site", delta=0.1),
    "bound, perturbed": lambda table: certcal.bound(table, perturb=0.1, seed=3),
    "recalibrate": lambda table: certcal.recalibrate(table, method="platt"),
    "recalibrate, by group": lambda table: certcal.recalibrate(table, by="site"),
    "recalibrate, two probabilities": lambda table: certcal.recalibrate(
        table, method="venn-abers", by="site", common_map=True
    ),
}


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("form", ["html", "json"])
def test_what_certcal_wrote_holds_also_when_the_table_lies_elsewhere(name, form, table, tmp_path):
    file = tmp_path / f"page.{form}"
    made = MADE[name](table)
    file.write_text(made.report().to_html() if form == "html" else made.to_json(), "utf-8")  # a map is saved as JSON
    moved = shutil.copy(table, tmp_path / "moved.csv")
    found = certcal.check(file, moved)
    assert (found.outcome, wrong(found)) == ("holds", {})
    assert len(found.rows) > 10
    assert found.verb == name.split(",")[0]


def test_a_page_with_groups_requirements_and_a_title_holds(page, table):
    found = certcal.check(page, table)
    assert found.outcome == "holds"
    assert {"ece <= 0.3", "auroc >= 0.5", "text, pictures and script"} <= {row.claim for row in found.rows}
    assert str(found.answer) == f"Holds: {len(found.rows)} claims came out the same."
    assert "author's words" in found.answer.unsaid[0]


def test_a_page_of_arrays_is_checked_with_arrays(tmp_path):
    file = certcal.measure(OUTCOME, SCORE, weight=None).save(tmp_path / "page.html")
    assert certcal.check(file, (OUTCOME, SCORE)).outcome == "holds"
    assert certcal.check(file, (1 - OUTCOME, SCORE)).outcome == "does not hold"


def test_a_comparison_of_two_tables_holds_and_swapped_tables_do_not(table, tmp_path):
    new = tmp_path / "new.csv"
    rows = [f"{s},{y},{g}" for s, y, g in zip(SCORE**1.4, OUTCOME, SITE, strict=True)]
    new.write_text("\n".join(["score,outcome,site", *rows]) + "\n")
    file = certcal.compare(table, new, by="site", bounds=True).save(tmp_path / "page.html")
    assert certcal.check(file, [table, new]).outcome == "holds"
    assert certcal.check(file, [new, table]).outcome == "does not hold"


def test_certified_intervals_hold_and_one_wider_interval_does_not(tmp_path):
    path = tmp_path / "intervals.csv"
    lower, correct = (SCORE[:60] * 0.9).round(3), OUTCOME[:60]
    lines = [f"{low},{min(low + 0.05, 1)},{right}" for low, right in zip(lower, correct, strict=True)]
    path.write_text("\n".join(["lower,upper,correct", *lines]) + "\n")
    file = certcal.certify(path, bins=5).save(tmp_path / "page.html")
    assert certcal.check(file, path).outcome == "holds"
    lines[7] = f"0,1,{correct[7]}"
    path.write_text("\n".join(["lower,upper,correct", *lines]) + "\n")
    assert certcal.check(file, path).outcome == "does not hold"


def test_verified_trees_hold_with_their_model_and_are_not_recomputed_without(tmp_path):
    features = RNG.random((80, 3)).round(2)
    labels = (features[:, 0] + 0.3 * RNG.random(80) > 0.6).astype(int)
    forest = RandomForestClassifier(3, max_depth=3, random_state=0).fit(features, labels)
    table = tmp_path / "t.csv"
    rows = [",".join(map(str, [*row, label])) for row, label in zip(features, labels, strict=True)]
    table.write_text("\n".join(["a,b,c,label", *rows]) + "\n")
    box = InputBox({"a": "+7%", "b": 0.05, "c": "0.3sd"}, limits={"a": (0, None)}, at_most=2)
    for name, amount in {"one": 0.1, "named": {"a": "+7%", "b": 0.05}, "box": box}.items():
        file = certcal.verify(forest, table, amount, label="label", epsilon=[0.5, 1]).save(tmp_path / f"{name}.html")
        assert certcal.check(file, table, model=forest).outcome == "holds"
        without = certcal.check(file, table)
        assert without.outcome == "not recomputed"
        assert "verify needs it" in without.not_recomputed[0]


# --- what was changed -------------------------------------------------------------------------------------------------


def test_a_number_changed_in_the_visible_text_alone_does_not_hold(page, table):
    text = page.read_text("utf-8")
    value = f"{embedded(page)['measurements'][0]['value']:.4f}"
    assert text.partition(BEGIN)[0].count(value) > 0
    page.write_text(text.replace(value, "0.0001", 1), "utf-8")
    found = certcal.check(page, table)
    ((told, again),) = wrong(found).values()
    assert "0.0001" in told
    assert value in again


def test_a_number_changed_in_the_json_alone_does_not_hold(page, table):
    def lower(data: dict[str, Any]) -> None:
        data["measurements"][0]["value"] = 0.01

    found = certcal.check(with_data(page, lower), table)
    assert found.outcome == "does not hold"
    ((claim, (told, again)),) = wrong(found).items()
    assert claim == "ece, bins 15"
    assert told == "0.01"
    assert float(again) > 0.02
    assert f"{claim}: 0.01 on the page" in str(found.answer)


CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "an interval": lambda data: data["measurements"][0]["interval"].update(upper=0.01),
    "a verdict": lambda data: data["verdict"][0].update(passed=False),
    "a sentence of the answer": lambda data: data["answer"][0].update(text="Calibrated."),
    "a number of a group": lambda data: data["groups"][0]["measurements"][0].update(value=0.0),
    "a group that is left out": lambda data: data["groups"].pop(),
    "a claim that is left out": lambda data: data["measurements"].pop(),
    "a claim that is added": lambda data: data["measurements"].append({"name": "nll", "value": 0.1, "n": 300}),
    "a key that is added": lambda data: data.update(certificate={"radius": 9}),
    "a number of samples": lambda data: data.update(n=30_000),
    "a number as text": lambda data: data["measurements"][0].update(value=str(data["measurements"][0]["value"])),
    "the diagram": lambda data: data["reliability"]["count"].__setitem__(0, 1),
    "the digest of the file": lambda data: data["provenance"]["inputs"][0].update(sha256="0" * 64),
    "the bins": lambda data: data["provenance"]["asked"].update(bins=[10]),
    "the level of intervals": lambda data: data["provenance"]["asked"].update(level=0.9),
    "the failure probability": lambda data: data["provenance"]["asked"].update(delta=0.2),
    "a requirement": lambda data: data["verdict"][0].update(requirement="ece <= 0.4"),
    "the seed": lambda data: data["provenance"].update(seeds={"bootstrap": 1}),
    "the schema": lambda data: data.update(schema="certcal/measurement/0"),
    "the title": lambda data: data["page"].update(title="Proven"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_whatever_is_changed_in_the_json_does_not_hold(what, page, table):
    if what == "the digest of the file":  # of a page from the command line
        origin = certcal.measure(table).provenance(inputs=[("scores.csv", 1, "1" * 64)])
        page = certcal.measure(table, source="scores.csv").save(page.with_name("other.html"), provenance=origin)
    found = certcal.check(with_data(page, CHANGES[what]), table)
    assert found.outcome == "does not hold", found.rows


@pytest.mark.parametrize(
    "changed",
    [
        lambda text: text.replace("</style>", "#headline{display:none}</style>"),
        lambda text: text.replace("<footer>", "<p>Approved.</p><footer>"),
        lambda text: re.sub(r'(<rect[^>]*height=")[0-9.]+', r"\g<1>1", text, count=1),
        lambda text: text.replace("<html lang=", "<!-- seen --><html lang="),
    ],
)
def test_style_pictures_and_further_text_may_not_be_changed_either(changed, page, table):
    text = page.read_text("utf-8")
    page.write_text(changed(text), "utf-8")
    assert page.read_text("utf-8") != text
    differing = wrong(certcal.check(page, table))
    assert list(differing) == ["text, pictures and script"]
    ((said, _),) = differing.values()
    assert ("style sheet" in said) == ("display:none" in changed(text))


def test_another_table_is_told_by_its_digest_even_where_all_numbers_are_the_same(table, tmp_path):
    from certcal._base.files import size_and_digest

    origin = certcal.measure(table).provenance(inputs=[("scores.csv", *size_and_digest(table))])
    file = certcal.measure(table).save(tmp_path / "page.html", provenance=origin)
    assert certcal.check(file, table).outcome == "holds"
    table.write_text(table.read_text() + "\n")
    found = certcal.check(file, table)
    assert list(wrong(found)) == ["file scores.csv"]
    assert "The page is of another file: scores.csv had SHA-256 " in str(found.answer)
    rows = table.read_text().splitlines()
    table.write_text("\n".join([rows[0], "0.99,0,north", *rows[2:]]) + "\n")
    assert len(wrong(certcal.check(file, table))) > 5


def test_every_number_of_the_json_is_compared(page, table, tmp_path):
    """Each number of the document, changed alone, is found; they are changed one by one in a sample of them."""
    data = embedded(page)
    places = [place for place in numbers(data) if place[0] not in ("provenance", "page", "certcal")]
    assert len(places) > 300
    text = page.read_text("utf-8")
    for place in [places[index] for index in np.random.default_rng(0).choice(len(places), 8, replace=False)]:
        page.write_text(text, "utf-8")

        def move(found: Any, place: tuple[Any, ...] = place) -> None:
            for key in place[:-1]:
                found = found[key]
            found[place[-1]] += 0.001

        assert certcal.check(with_data(page, move), table).outcome == "does not hold", place


def numbers(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        return [found for key, entry in items for found in numbers(entry, (*place, key))]
    return [place] if isinstance(value, int | float) and not isinstance(value, bool) else []


# --- what cannot be recomputed ----------------------------------------------------------------------------------------


def test_what_cannot_be_recomputed_is_said(page, table, tmp_path):
    assert "data are not given" in certcal.check(page).not_recomputed[0]
    own = certcal.measure(table, metrics=[len_of_scores]).save(tmp_path / "own.html")
    assert "measure was also given metrics" in certcal.check(own, table).not_recomputed[0]
    two = certcal.compare(certcal.measure(table), certcal.measure(table)).save(tmp_path / "two.json")
    assert "does not say what was asked" in certcal.check(two, table).not_recomputed[0]
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n")
    assert "cannot be recomputed: " in certcal.check(page, other).not_recomputed[0]


def len_of_scores(confidence, correct, sample_weight=None) -> float:
    return float(len(confidence))


def test_a_page_of_another_version_is_never_said_to_hold(page, table):
    def older(data):
        data |= {"certcal": "0.0.9", "gone": {"since": 1}}
        data["measurements"][0]["value"] += 4e-5  # less than is printed
        data["answer"][0]["text"] = "Other words."

    found = certcal.check(with_data(page, older), table)
    assert found.outcome == "not recomputed"
    assert "certcal 0.0.9" in found.not_recomputed[0]
    assert len(found.rows) > 10
    assert found.answer[0].text.startswith(f"Not recomputed in full: {len(found.rows)} claims came out the same")


def test_a_page_of_another_version_whose_numbers_differ_does_not_hold(page, table):
    def changed(data):
        data["certcal"] = "0.0.9"
        data["measurements"][0]["value"] -= 0.001

    found = certcal.check(with_data(page, changed), table)
    assert found.outcome == "does not hold"
    assert [row.claim for row in found.rows if not row.holds] == ["ece, bins 15"]


def test_files_of_the_page_that_are_not_given_are_said(table, tmp_path):
    files = [("scores.csv", 1, "1" * 64), ("more.csv", 1, "2" * 64)]
    file = certcal.measure(table).save(
        tmp_path / "page.html", provenance=certcal.measure(table).provenance(inputs=files)
    )
    assert "2 files went into it and 1 was given." in certcal.check(file, table).not_recomputed[0]


def test_a_comparison_of_which_one_side_is_missing_is_not_recomputed(table, tmp_path):
    new = tmp_path / "new.csv"
    new.write_text(Path(table).read_text())
    files = [(str(table), 1, "1" * 64), (str(new), 1, "2" * 64)]
    compared = certcal.compare(table, new)
    file = compared.save(tmp_path / "page.html", provenance=compared.provenance(inputs=files))
    found = certcal.check(file, table)
    assert found.outcome == "not recomputed"
    assert found.rows == ()
    said = "2 files went into it and 1 was given; give all that are compared, in the order of the page."
    assert found.not_recomputed == [said]


# --- hostile pages ----------------------------------------------------------------------------------------------------

HOSTILE: dict[str, tuple[str, str]] = {
    "no page": ("<html></html>", "no page of certcal"),
    "two parts with numbers": (f"{BEGIN}{{}}{END}{BEGIN}{{}}{END}", "no page of certcal"),
    "no end": (f"{BEGIN}{{}}", "no page of certcal"),
    "no JSON": (f"{BEGIN}nothing{END}", "Expecting value"),
    "deep": (f'{BEGIN}{{"schema": {"[" * 200_000}{END}', "nested too deeply|Expecting value"),
    "a list": (f"{BEGIN}[]{END}", "no result of certcal"),
    "another schema": ('{"schema": "other/1"}', "no result of certcal"),
    "a key twice": ('{"schema": "certcal/measurement/1", "n": 1, "n": 2}', "a key twice"),
    "NaN": ('{"schema": "certcal/measurement/1", "n": NaN}', "its JSON has NaN"),
    "a long number": ('{"schema": "certcal/measurement/1", "n": ' + "9" * 9_999 + "}", "digits"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_file_is_refused_in_one_sentence(what, tmp_path):
    content, said = HOSTILE[what]
    path = tmp_path / "page.html"
    path.write_text(content, "utf-8")
    with pytest.raises(InputError, match=said) as refused:
        certcal.check(path, (OUTCOME, SCORE))
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_bytes_folders_and_missing_files_are_refused(tmp_path):
    path = tmp_path / "page.html"
    path.write_bytes(b"\xff\xfe{}")
    for given_path in (path, tmp_path, tmp_path / "missing.html"):
        with pytest.raises(InputError):
            certcal.check(given_path, (OUTCOME, SCORE))


def test_a_page_cannot_name_files_to_read_or_places_to_write(page, table, tmp_path):
    kept = sorted(tmp_path.iterdir())
    stolen = tmp_path / "stolen"
    asked = {"source": str(table), "progress": True, "data": str(table), "columns": {"score": str(table)}}
    for name, value in {
        **asked,
        "save": str(stolen),
        "out": str(stolen),
        "memory": "x",
        "names": 5,
        "by": {"a": 1},
    }.items():
        changed = with_data(
            page, lambda data, name=name, value=value: data["provenance"]["asked"].update({name: value})
        )
        assert certcal.check(changed, table).outcome in ("not recomputed", "holds")
        with_data(page, lambda data, name=name: data["provenance"]["asked"].pop(name))
        with_data(page, lambda data: data["provenance"]["asked"].update(by="site"))
    assert sorted(tmp_path.iterdir()) == kept


def test_only_verbs_of_the_list_are_called(page, table):
    for verb in ("train", "sample", "eval", "os.system", "certcal.verbs.measure", "", 7, None, ["measure"]):
        found = certcal.check(with_data(page, lambda data, v=verb: data["provenance"]["asked"].update(verb=v)), table)
        assert found.outcome == "not recomputed"
        assert not found.rows


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
PLACES = [("provenance",), ("page",), ("verdict",), ("answer",), ("source",), ("certcal",), ("measurements",)]
INNER = ["asked", "command", "created", "inputs", "notes", "seeds", "versions", "fingerprints"]
SETTINGS = ["by", "columns", "score", "positive", "metrics", "bins", "level", "closed", "memory", "encoding", "skip"]
PLACES += [("provenance", each) for each in INNER] + [("provenance", "asked", each) for each in SETTINGS]
PLACES += [("page", "title"), ("page", "about"), ("verdict", 0), ("measurements", 0, "value"), ("n",)]


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.sampled_from(PLACES), value=JSON)
def test_whatever_stands_in_a_page_is_no_traceback_and_does_not_hold_unless_it_is_as_before(place, value, tmp_path):
    table = {"score": SCORE[:60], "outcome": OUTCOME[:60]}
    path = tmp_path / "fuzzed.html"
    found = certcal.measure(table, metrics=["ece"])
    path.write_text(found.report(title="July", require="ece <= 0.5").to_html(), "utf-8")
    before: list[Any] = []

    def put(data: Any) -> None:
        for key in place[:-1]:
            data = data[key]
        before.append(data.get(place[-1]) if isinstance(data, dict) else data[place[-1]])
        data[place[-1]] = value

    outcome = certcal.check(with_data(path, put), table).outcome
    assert outcome in ("holds", "does not hold", "not recomputed")
    if place[0] not in ("provenance", "page", "verdict") and value not in (before[0], None):
        assert outcome != "holds"
