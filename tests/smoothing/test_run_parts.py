"""Several processes write one run, each a part of it: nothing is lost, nothing is drawn twice, no step joins them."""

import hashlib
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

from certcal import InputError
from certcal.smoothing import Run, certificates, open_run, usable_counts
from certcal.smoothing._manifest import write_manifest
from tests.smoothing.drawing import ROOT, X, Y, assert_same_counts, digests, draw


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return draw(tmp_path_factory.mktemp("whole") / "run")


def test_parts_in_any_order_make_the_run_that_one_process_makes(tmp_path: Path, whole: Run) -> None:
    for number, missing in (
        (3, "parts 1, 2 and 4 of 4 are missing; give the same sample command for part 1/4, and so on"),
        (1, "parts 2 and 4 of 4 are missing"),
        (4, "part 2 of 4 is missing; give the same sample command for part 2/4$"),
    ):
        run = draw(tmp_path / "run", part=f"{number}/4")
        with pytest.raises(InputError, match=missing):
            run.counts()
        with pytest.raises(InputError, match=r"the run is not complete, .* draws are there; parts? .* missing"):
            usable_counts(open_run(run.path))
    assert open_run(run.path).state().missing_parts == (2,)
    assert_same_counts(draw(tmp_path / "run", part="2/4"), whole)
    assert open_run(run.path).state().complete


def test_the_only_part_is_the_whole_run_and_has_its_lock(tmp_path: Path) -> None:
    refused: list[str] = []

    def second(done: int, total: int) -> None:
        for part in (None, "1/1"):
            with pytest.raises(InputError, match=r"another process .* is drawing into this run") as error:
                draw(tmp_path / "run", part=part)
            refused.append(str(error.value))

    assert draw(tmp_path / "run", part="1/1", progress=second).state().complete
    assert refused


def test_a_part_resumes_grows_and_a_command_without_one_draws_the_rest(tmp_path: Path) -> None:
    progress: list[tuple[int, int]] = []
    draw(tmp_path / "run", part="2/3")
    draw(tmp_path / "run", part="2/3", progress=lambda done, total: progress.append((done, total)))
    assert progress == [(8 * 20, 8 * 420), (8 * 420, 8 * 420)]  # of its own eight samples all are there
    draw(tmp_path / "run", part="1/3", n=500)
    grown = draw(tmp_path / "run", n=500)
    assert_same_counts(grown, draw(tmp_path / "whole", n=500))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"part": "1/5"}, r"the run was begun in 4 parts, and 1/5 is asked for; give a part of 4"),
        ({"part": "2/4", "sigma": 0.25}, r"drawn with sigma = 0\.5, and 0\.25 is asked for"),
        ({"part": "2/4", "histograms": 2}, r"drawn with histograms = 1, and 2 is asked for"),
        ({"part": "2/4", "inputs": X + 1}, r"drawn from other data"),
        ({"part": "5/4"}, r"'5/4' is no part; give one such as 3/16"),
        ({"part": "train"}, r"'train' is no part; the split of the data is split"),
    ],
)
def test_a_part_with_other_settings_is_refused(tmp_path: Path, change: dict[str, object], sentence: str) -> None:
    draw(tmp_path / "run", part="1/4")
    with pytest.raises(InputError, match=sentence):
        draw(tmp_path / "run", **change)


def test_a_run_that_was_not_begun_in_parts_has_none(whole: Run) -> None:
    with pytest.raises(InputError, match=r"the run was not begun in parts, and 1/4 is asked for; leave it out"):
        draw(whole.path, part="1/4")


# Loads everything once, then draws four parts in copies of itself at the same time; the third is killed in the middle.
SCRIPT = f"""
import os, signal, sys
sys.path.insert(0, {str(ROOT)!r})
from pathlib import Path
import numpy as np
from certcal.smoothing._sampler import Sampler
from tests.smoothing.drawing import X, draw, model

sampler = Sampler(model(), sigma=1.0, seed=0)
sampler.count(X, np.arange(24), sampler.select(X, np.arange(24), 1).votes.argmax(axis=1), 0, 1)

def told(done, total):
    if part == 3 and done >= 200:
        os.kill(os.getpid(), signal.SIGKILL)

children = []
for part in range(1, 5):
    children.append(os.fork())
    if children[-1] == 0:
        draw(Path(sys.argv[1]), part=f"{{part}}/4", progress=told)
        os._exit(0)
print([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children])
"""


def test_a_part_that_is_killed_loses_nothing_while_the_others_go_on(tmp_path: Path, whole: Run) -> None:
    """Four processes begin one folder at the same time; one is killed in the middle and given again."""
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "run")]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.stdout == f"[0, 0, {-signal.SIGKILL}, 0]\n", ran.stderr
    state = open_run(tmp_path / "run").state()
    assert (state.missing_parts, state.damaged) == ((3,), ())
    assert 18 * 420 + 200 <= state.finished < state.total
    again = draw(tmp_path / "run", part="3/4")
    assert_same_counts(again, whole)
    assert list(again.path.rglob(".*.certcal-tmp")) == []
    assert not (again.path / "damaged").exists()


def test_what_another_part_is_writing_is_not_taken_for_a_leftover(tmp_path: Path) -> None:
    run = draw(tmp_path / "run", part="1/2")
    own, other = (
        next(unit for unit in run.manifest.units() if unit.part == part and unit.stage == "counting") for part in (1, 2)
    )
    left = [run.path / f"counting/.{Path(unit.name).name}.123.certcal-tmp" for unit in (own, other)]
    for path in left:
        path.write_bytes(b"half")
    draw(tmp_path / "run", part="1/2")
    assert [path.exists() for path in left] == [False, True]


# --- the format -------------------------------------------------------------------------------------------------------


def test_a_run_of_the_old_format_goes_on_in_it_and_gives_what_it_gave(tmp_path: Path, whole: Run) -> None:
    old = structs.replace(whole.manifest, version=2, data=structs.replace(whole.manifest.data, range=None))
    (tmp_path / "old").mkdir()
    write_manifest(tmp_path / "old", old)
    run = draw(tmp_path / "old")
    assert run.manifest == old
    # Of the shards that certcal 0.1 wrote with these arguments, and its certificates: do not change them.
    every = hashlib.sha256(b"".join(digest for _, digest in sorted(digests(run).items())))
    assert every.hexdigest() == "a27a6642dcfa41517d22249dc89be49e823c91df753b74375b0b4b5cb6add787"
    assert run.counts().sums is None
    found = certificates(run.counts(), 0.1, 0.001, "standard")
    ends = [float(each[found.certified].sum()) for each in (found.lower, found.upper)]
    assert ends == pytest.approx([8.726095090552336, 13.267101577394884], rel=1e-12)
    with pytest.raises(InputError, match="the run has no votes of all classes; sample it again into a new folder"):
        run.class_votes()
    assert_same_counts(run, whole, ("label", "predicted", "draws", "votes", "invalid", "histogram"))
    grown = draw(tmp_path / "old", n=500)
    assert (grown.manifest.version, grown.manifest.data.range) == (2, None)


def test_standard_intervals_of_a_run_are_around_the_mean_of_the_draws(whole: Run) -> None:
    counts = whole.counts()
    found = certificates(counts, 0.0, 0.001, "standard")
    mean, spent = counts.sums / 2**30 / counts.draws, dict(found.ledger.entries)
    certified = found.certified
    for side, end in (("lower", mean - found.lower), ("upper", found.upper - mean)):
        hoeffding = np.sqrt(np.log(1 / spent[side]) / (2 * 400))
        inside = certified & (found.lower > 0) & (found.upper < 1)
        np.testing.assert_allclose(end[inside], hoeffding, atol=2e-9)


def test_histograms_of_several_classes_are_those_of_their_confidences(tmp_path: Path, whole: Run) -> None:
    run = draw(tmp_path / "run", histograms=2)
    assert_same_counts(run, whole)
    classes, histograms = run.class_histograms()
    second = np.argsort(-run.class_votes().toarray(), axis=1, kind="stable")
    assert classes.shape == (24, 1)
    assert np.mean(classes[:, 0] == second[:, 1]) > 0.5  # chosen by few other draws
    assert np.all(histograms.sum(axis=2) == 400)
    edges = np.concatenate(([0.0], run.counts().thresholds, [1.0]))
    middle = (edges[1:] + edges[:-1]) / 2
    total = run.counts().histogram @ middle + (histograms @ middle).sum(axis=1)
    np.testing.assert_allclose(total / 400, 1, atol=0.01)  # three classes: A, one other, the rest
    with pytest.raises(InputError, match="the run has no histograms of several classes"):
        whole.class_histograms()
    with pytest.raises(InputError, match="histograms is 4, and the model has 3 classes; pass at most that number"):
        draw(tmp_path / "other", histograms=4)


def test_the_manifest_says_which_values_the_inputs_have(whole: Run, tmp_path: Path) -> None:
    assert whole.manifest.data.range == (float(X.min()), float(X.max()))
    few = draw(tmp_path / "run", inputs=X[:10], labels=Y[:10])
    assert draw(tmp_path / "run").manifest.data.range == whole.manifest.data.range != few.manifest.data.range
