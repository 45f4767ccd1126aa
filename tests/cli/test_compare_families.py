"""``certcal compare NAME=RUN ...``: families of runs and logs, shown, printed as JSON and written to files."""

import csv
import io
import json

import numpy as np
import pytest

from certcal.cli.compare import family_names
from certcal.lab.logs import compare, read_log
from certcal.models import wrap
from certcal.smoothing import certificates, open_run, sample
from certcal.smoothing.robustness import vote_radii
from tests.cli.conftest import flat

N = 1000


class Steep:
    """Two classes by the sign of the first input, more or less surely."""

    outputs = "probabilities"

    def __init__(self, slope):
        self.slope, self.description = slope, f"slope {slope}"

    def __call__(self, batch):
        right = 1 / (1 + np.exp(-self.slope * batch[:, 0].astype(np.float64)))
        return np.stack([1 - right, right], axis=1)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("families")
    points = np.linspace(-0.2, 1.2, 30, dtype=np.float32)[:, None]
    for name, slope in (("mild", 1.0), ("steep", 9.0)):
        for sigma in (0.25, 0.5):
            model = wrap(Steep(slope), outputs="probabilities")
            seed = int(slope)
            sample(model, points, np.ones(30, int), sigma=sigma, n=300, seed=seed, out=folder / f"{name}-{sigma}")
    return folder


def arguments(folder):
    return [f"{name}={folder / f'{name}-{sigma}'}" for sigma in (0.5, 0.25) for name in ("mild", "steep")]


def write_log(path, votes, sigma):
    rows = ["idx\tlabel\tpredict\tradius\tcorrect\ttime"]
    for index, radius in enumerate(vote_radii(votes, N, sigma, 0.001)):
        kept = "-1\t0.0\t0" if np.isnan(radius) else f"3\t{radius:.3}\t1"
        rows.append(f"{index}\t3\t{kept}\t0:01")
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture
def logs(tmp_path):
    rng = np.random.default_rng(3)
    votes = [np.append(rng.integers(low, N + 1, 58), [N, N - 1]) for low in (930, 300)]
    return write_log(tmp_path / "a.tsv", votes[0], 0.5), write_log(tmp_path / "b.tsv", votes[1], 0.5)


def test_logs_make_families_too_and_have_no_calibration(certcal_command, logs):
    named = [f"{name}={path}" for name, path in zip("xy", logs, strict=True)]
    ran = certcal_command("compare", *named, "--sigma", 0.5, "-n", N, "--json")
    document = json.loads(ran.out)
    found = compare({name: [read_log(path, sigma=0.5, n=N)] for name, path in zip("xy", logs, strict=True)})
    assert document["calibration"] == []
    assert document["graphs"][0]["edges"] == [list(edge) for edge in found.graphs[0].edges]
    assert {each["ahead"] for each in document["graphs"][0]["beyond_chance"][0]["stretches"]} == {"x"}
    assert [note for note in document["notes"] if "inferred" in note] == [f"All 2 logs: {found.runs[0].notes[0]}"]
    shown = certcal_command("compare", *named, "--sigma", 0.5, "-n", N)
    assert shown.code == 0
    assert "Certified calibration" not in shown.out


def test_a_path_with_an_equals_sign_is_a_path_where_it_exists(certcal_command, logs, tmp_path):
    odd = tmp_path / "sigma=0.5.tsv"
    odd.write_bytes(logs[0].read_bytes())
    ran = certcal_command("compare", odd, logs[1], "--sigma", 0.5, "-n", N, "--json")
    assert json.loads(ran.out)["type"] == "comparison"
    assert family_names([str(odd), str(logs[1])]) is None
    assert family_names([f"a={odd}"]) == (("a", str(odd)),)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("a=LOG", "LOG"), "has no name, and a="),
        (("a=none.tsv",), "none.tsv: there is no such run or log"),
        (("=LOG",), "has no name before the '='; write NAME=PATH"),
        (("a=",), "a= has no path after the '='; write NAME=PATH"),
        (("a=LOG", "a=LOG"), "is given twice; give each run once"),
        (("a=LOG", "b=SHORT"), "a 0.5 and b 0.5 are about different samples (sample 3 is in a 0.5 only)"),
        (("a=LOG", "--budget", "100"), "'100' is not N,ALPHA, such as 100,0.01"),
        (("a=LOG", "--budget", "x,0.01"), "'x' is not a whole number"),
        (("a=LOG", "--budget", "100,7"), "7 is not a probability of failing below 0.5"),
        (("a=LOG", "-o", "families.doc"), "choose one of the endings .html"),
    ],
)
def test_bad_input_leaves_with_a_sentence(certcal_command, logs, tmp_path, words, text):
    short = write_log(tmp_path / "short.tsv", np.array([N, N, 900]), 0.5)
    texts = [word.replace("LOG", str(logs[0])).replace("SHORT", str(short)) for word in words]
    ran = certcal_command("compare", *texts, "--sigma", 0.5, "-n", N)
    assert ran.code == 2
    assert text in flat(ran.err)
    assert "Traceback" not in ran.err


def test_a_path_that_exists_beside_a_name_is_said_to_be_a_path(certcal_command, logs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    logs[0].rename(tmp_path / "a=a.tsv")
    ran = certcal_command("compare", "a=a.tsv", "b=b.tsv", "--sigma", 0.5, "-n", N)
    assert ran.code == 2
    assert "a=a.tsv is a path as it stands, and b=b.tsv has a name; name all" in flat(ran.err)


def test_one_log_read_at_two_noise_levels_has_both(certcal_command, tmp_path):
    log = tmp_path / "log.tsv"
    log.write_text("idx\tlabel\tpredict\tradius\tcorrect\n0\t1\t1\t0.3\t1\n1\t1\t1\t0.2\t1\n")
    words = ("--sigma", 0.25, "--sigma", 0.5, "-n", 100, "--alpha", 0.1, "--json")
    found = json.loads(certcal_command("compare", f"a={log}", f"b={log}", *words).out)["runs"]
    assert [(run["family"], run["sigma"]) for run in found] == [("a", 0.25), ("b", 0.5)]


@pytest.mark.parametrize("named", [True, False], ids=["named", "without names"])
def test_calibration_is_certified_at_the_radii_that_were_asked_for(certcal_command, runs, tmp_path, named):
    folders = [runs / "mild-0.25", runs / "steep-0.5"]
    given = [f"{'mild=' if place == 0 else 'steep='}{each}" for place, each in enumerate(folders)] if named else folders
    ran = certcal_command("compare", *given, "--radius", "0.1", "-o", tmp_path / "c.json", "-o", tmp_path / "c.csv")
    assert (ran.code, ran.err.count("\n")) == (0, 2)
    found = json.loads((tmp_path / "c.json").read_text())["calibration"]
    assert [each["radii"] for each in found] == [[0.1], [0.1]]
    certified = [certificates(open_run(folder).counts(), 0.1).summary() for folder in folders]
    errors = [each["calibration_error"] for each in certified]
    table = ran.out.partition("Certified calibration by radius")[2].partition("\n\n")[0]
    assert "radius 0.1" in table
    for error in errors:
        assert error.worst.text in table
        assert error.worst_all.text in table
    rows = list(csv.DictReader(io.StringIO((tmp_path / "c.csv").read_text())))
    said = [row["value"] for row in rows if row["quantity"] == "certified_calibration_error"]
    assert {float(each) for each in said} == {
        value for error in errors for value in (error.worst.value, error.worst_all.value)
    }
