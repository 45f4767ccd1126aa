"""``certcal.reproduce``: plans as data, jobs with a state on disk, and tables beside the printed ones."""

from pathlib import Path
from typing import Any

import pytest

import certcal
from certcal import InputError
from certcal.lab.plans import MODULES
from certcal.lab.plans.outcome import ComparedTable, OurTable
from certcal.lab.plans.plan import PublishedTable, open_plan, plan_names

TINY: dict[str, Any] = {"data.name": "digits", "network.name": "mlp"}
SMALLEST = 1e-6
FEW: dict[str, Any] = {**TINY, "methods": []}


@pytest.fixture(scope="session")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where all plans keep their jobs, which they share."""
    return tmp_path_factory.mktemp("reproduced")


def test_a_plan_runs_resumes_and_writes_its_table_in_every_form(out: Path) -> None:
    found = certcal.reproduce("cc-table7", out=out, changes=TINY, scale=SMALLEST, device="cpu")
    assert (found.done, found.failures) == (found.jobs, ())
    cell = found.tables[0].cell("ACCE | AT", "0.05")
    assert (cell.paper, cell.difference) == (11.44, None)
    assert isinstance(cell.ours, float)
    written = {path.suffix: path.read_text("utf-8") for path in found.write(out)}
    assert set(written) == {".html", ".md", ".tex", ".csv", ".json"}
    assert all("11.44" in text for text in written.values())
    assert "The setting is not the paper's (scale 1e-06; data.name = digits" in written[".md"]
    assert "Not given" not in written[".html"]
    jobs = sorted((out / "jobs").iterdir())
    before = {path: path.stat().st_mtime_ns for each in jobs for path in each.rglob("done.json")}
    again = certcal.reproduce("cc-table7", out=out, changes=TINY, scale=SMALLEST, device="cpu")
    assert again.to_dict()["tables"] == found.to_dict()["tables"]
    assert {path: path.stat().st_mtime_ns for path in before} == before


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sampel.n": 3}, "sampel is no field of a plan of kind certified; did you mean 'sample'?"),
        ({"sample.n": "many"}, "cc-table7: sample.n: expected int, got str"),
        ({"baselines.0.sigm": 3}, "baselines.0.sigm is no field"),
        ({"network": "mlp"}, "cc-table7: network is a part of the plan with fields of its own; give network.name, "),
        ({"network.nam": "mlp"}, "network.nam is no field of a plan of kind certified; did you mean 'name'?"),
        ({"baselines.9.sigma": 3}, "the plan has no field baselines.9.sigma"),
        ({"kind": "unknown"}, "kind is 'unknown', which is none"),
        ({"layout": "bset"}, "layout is 'bset'; did you mean 'best'?"),
        ({"certify.confidence": "cdff"}, "certify.confidence is 'cdff'; did you mean 'cdf'?"),
        ({"certify.solvers": ["amdm"]}, "certify.solvers.0 is 'amdm'; did you mean 'admm'?"),
        ({"network.name": "resnet21"}, "'resnet21' is no network; did you mean 'resnet20'?"),
        ({"network.name": "lenet"}, "lenet takes square images"),
        ({"sample.every": 0}, "cc-table7: sample.every: expected int >= 1"),
        ({"radii": [0.5, -1.0]}, "cc-table7: radii.1: expected float >= 0.0"),
        ({"recipe.tuning.set": {"moment": 3}}, "'moment' is no part of a recipe; did you mean 'momentum'?"),
    ],
)
def test_a_wrong_field_is_named_before_any_job(changes: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=words.replace("?", r"\?").replace(".", r"\.")):
        certcal.reproduce("cc-table7", changes={**TINY, **changes}, scale=SMALLEST, out=tmp_path, device="cpu")
    assert not [*tmp_path.iterdir()]


def test_data_that_are_not_installed_are_missed_before_any_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("certcal.data.image_files.INSTALLED", tmp_path / "nowhere")
    with pytest.raises(InputError, match="Fashion-MNIST is not installed"):
        certcal.reproduce("cc-table7", changes={"network.name": "mlp"}, scale=SMALLEST, out=tmp_path, device="cpu")
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("plan", [name for name in plan_names() if open_plan(name).kind in ("formulas", "worked")])
def test_what_a_plan_says_of_its_numbers_is_what_they_are_to_the_printed_decimals(plan: str, tmp_path: Path) -> None:
    """0.7565 is not 0.756, 2.326 is 2.3: numbers agree if ours rounds to what is printed."""
    found = certcal.reproduce(plan, out=tmp_path)
    expected = {
        "in full, as printed": "Every number comes out as printed.",
        "in full": "Nothing is printed as a number that this could be compared with.",
        "in full: five of six numbers as printed, the sixth is 0.757 for 0.756": (
            "5 of 6 entries come out as printed; the largest difference is +0.001 (100; p_A = 0.9)."
        ),
    }
    assert found.top() == [expected[found.plan.here]]


@pytest.mark.parametrize(
    ("plan", "changes", "words"),
    [
        ("cc-figure9", {"layout": "lagrangien"}, "did you mean 'lagrangian'"),
        ("cc-figure9", {"layout": "largest"}, "layout is 'largest' and radius 0.5; leave it out"),
        ("acr-table3", {"layout": "acuracy"}, "did you mean 'accuracy'"),
        ("acr-theorem1", {"layout": "unknown"}, "give one of trivial, radius, weights, constants"),
        ("muc-figure2", {"recipe.batch": 0}, "batch"),
        ("muc-figure2", {"network": "mlpp"}, "did you mean 'mlp'"),
    ],
)
def test_wrong_layouts_of_any_kind_are_refused(plan: str, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        certcal.reproduce(plan, changes=changes, dry_run=True, probe=0)


def test_unknown_plans_parts_and_missing_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="did you mean 'cc-table7'"):
        certcal.reproduce("cc-tabel7", dry_run=True)
    with pytest.raises(InputError, match="there is no folder for the jobs"):
        certcal.reproduce("cc-table7")
    with pytest.raises(InputError, match="'3/2' is no part"):
        certcal.reproduce("cc-table7", part="3/2", dry_run=True, probe=0)
    (tmp_path / "mine.toml").write_text(
        'base = "cc-table7"\n[published.table]\ncolumns = [1, 2]\nrows = {CA = [1.0]}\n'
    )
    with pytest.raises(InputError, match="CA has 1 cells, and there are 2 columns"):
        open_plan(tmp_path / "mine.toml")
    for base, words in (('"mine.toml"', "which extends this plan"), ("3", "base is 3; give the name of a plan")):
        (tmp_path / "mine.toml").write_text(f"base = {base}\n")
        with pytest.raises(InputError, match=words):
            open_plan(tmp_path / "mine.toml")
    (tmp_path / "mine.toml").write_text('base = "cc-table7"\n')
    (tmp_path / "other.toml").write_text('base = "mine.toml"\n')
    assert open_plan(tmp_path / "other.toml").place == "other"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "the plan needs CIFAR-10, and no folder of cifar-10 was given"),
        ({"data": "nowhere"}, "nowhere: there is no such file or folder"),
        ({"data": "docs/reference"}, "docs/reference: this folder holds no data; it needs idx files"),
        ({"data": {"cifar10": "."}}, "cc-table4 has no data called cifar10; did you mean 'cifar-10'"),
        ({"data": ".", "checkpoints": "nowhere"}, "nowhere: there is no such folder"),
    ],
)
def test_what_is_not_there_is_said_before_any_job(given: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=words):
        certcal.reproduce("cc-table4", scale=SMALLEST, out=tmp_path, **given)
    assert not [*tmp_path.iterdir()]


def test_tables_that_are_missing_are_named_before_any_job_and_unknown_data_in_dry_runs(tmp_path: Path) -> None:
    given: dict[str, Any]
    for given in ({}, {"data": str(tmp_path)}):
        with pytest.raises(InputError, match="no table of scores and outcomes called amazon-polarity or"):
            certcal.reproduce("muc-figure4", out=tmp_path / "out", scale=SMALLEST, **given)
    with pytest.raises(InputError, match="muc-figure4 has no data called yelp-polarty; did you mean 'yelp-polarity'"):
        certcal.reproduce("muc-figure4", data={"yelp-polarty": "x"}, dry_run=True, probe=0)
    assert not [*tmp_path.iterdir()]
    far = certcal.reproduce("cc-table4", data="nowhere", dry_run=True, probe=0)
    assert far.top() == [f"0 of {far.jobs} jobs done.", f"It needs {'; '.join(far.plan.needs.values())}."]
    assert far.notes == ("nowhere: there is no such file or folder yet.",)


def test_a_dry_run_says_what_is_left(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"changes": FEW, "scale": SMALLEST, "out": tmp_path, "device": "cpu"}
    certcal.reproduce("cc-table7", part="1/2", **settings)
    some = certcal.reproduce("cc-table7", dry_run=True, probe=0, **settings)
    assert some.question == "What does Table 7 take?"
    assert 0 < sum(each.left for each in some.cost) == some.jobs - some.done
    assert [str(each) for each in some.answer] == [f"{some.done} of {some.jobs} jobs done."]
    assert some.answer.key == ""
    certcal.reproduce("cc-table7", **settings)
    dry = certcal.reproduce("cc-table7", dry_run=True, probe=0, **settings)
    assert [(each.left, each.forward, each.backward) for each in dry.cost] == [(0, 0, 0)] * 3
    assert dry.to_dict()["cost"]["left"] == [0, 0, 0]


def test_parts_share_one_folder_and_together_do_everything(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"changes": FEW, "scale": SMALLEST, "out": tmp_path, "device": "cpu"}
    first = certcal.reproduce("cc-table7", part="1/2", **settings)
    second = certcal.reproduce("cc-table7", part="2/2", **settings)
    assert first.done < second.done == second.jobs


def test_a_job_that_fails_is_named_and_the_others_are_done(tmp_path: Path) -> None:
    there, gone = ({"sigma": 0.25, "row": row, "name": row} for row in ("AT", "gone"))
    broken = {**FEW, "baselines": [there, {**gone, "run": "nowhere"}]}
    found = certcal.reproduce("cc-table7", changes=broken, scale=SMALLEST, out=tmp_path, device="cpu")
    assert found.done == found.jobs - 1
    assert all("certify gone" in each and "nowhere" in each for each in found.failures)
    assert found.tables[0].cell("CBS | gone", "0.05").ours == "–"


def test_differences_are_shown_where_the_experiment_is_the_papers_and_patterns_anywhere() -> None:
    paper = PublishedTable([1.0, 2.0], {"A | x": [1.0, 5.0], "A | y": [2.0, 3.0], "B": ["–", 1.0]})
    ours = OurTable("table", [1.0, 2.0], {"A | x": [1.5, 2.0], "A | y": [2.5, 4.0], "B": ["–", 2.0]})
    same = ComparedTable(ours, paper, as_printed=True)
    assert (same.text("A | x", "1"), same.text("B", "1")) == ("1.00 / 1.50 / +0.50", "– / –")
    between = OurTable("table", [1.0], {"a": [18.55], "b": [69.05]}, digits=1)
    half = ComparedTable(between, PublishedTable([1.0], {"a": [18.6], "b": [69.1]}), as_printed=True)
    assert [half.text(row, "1") for row in "ab"] == ["18.6 / 18.6 / 0.0", "69.1 / 69.1 / 0.0"]
    assert same.pattern() == ["0 of 3 rows come out to the last printed digit, and 1 more but for one number."]
    coarse = PublishedTable([1.0, 2.0], {"A | x": [2, 2], "A | y": [3, 4], "B": ["–", 2]}, digits=0)
    assert ComparedTable(ours, coarse, as_printed=True).text("A | x", "1") == "2 / 1.50 / −0.50"
    assert ComparedTable(ours, coarse, as_printed=True).pattern() == ["3 of 3 rows come out to the last printed digit."]
    other = ComparedTable(ours, paper)
    assert other.text("A | x", "1") == "1.00 / 1.50"
    assert other.pattern() == [
        "A: the same row is best in 1 of 2 columns, and 1 of 2 pairs of rows are in the printed order."
    ]


@pytest.mark.parametrize("name", plan_names())
def test_a_plan_of_which_nothing_is_done_is_shown_without_numbers(name: str) -> None:
    plan = open_plan(name)
    made = MODULES[plan.kind]().outcome(plan, [])
    tables = [ComparedTable(each, plan.published.get(each.name), plan.as_printed) for each in made.tables]
    assert all(table.text(row, column) for table in tables for row in table.rows() for column in table.columns())
    assert plan.kind in ("formulas", "worked") or not any(table.compared() for table in tables)


def test_the_page_of_the_papers_is_what_the_plans_say() -> None:
    from scripts.papers import PAGE, page

    written = PAGE.read_text("utf-8")
    assert page(written) == written
    assert f"| {len(plan_names())} plans " in (PAGE.parents[1] / "README.md").read_text("utf-8")
