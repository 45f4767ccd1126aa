from __future__ import annotations

import sys

import pytest

from certcal import InputError
from certcal.training import export_events, read_log, train
from tests.training.digits import data, network, small


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("events") / "run"
    train(network(), data(300), small("gaussian"), out=folder)
    return folder


def test_every_number_of_the_log_is_in_the_events(run, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    assert export_events(run, tmp_path / "events") == 2
    events = EventAccumulator(str(tmp_path / "events"))
    events.Reload()
    names = set(read_log(run)[0]) - {"epoch", "step", "samples"}
    assert set(events.Tags()["scalars"]) == names
    for name in names:
        found = [(event.step, event.value) for event in events.Scalars(name)]
        assert found == [(line["step"], pytest.approx(line[name], rel=1e-6)) for line in read_log(run)]


def test_events_without_tensorboard_are_one_sentence(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(InputError, match="event files need tensorboard; install it with: pip install tensorboard"):
        export_events(run, tmp_path / "events")


def test_events_are_not_written_over_other_files(run, tmp_path):
    (tmp_path / "mine").write_text("kept")
    with pytest.raises(InputError, match="is not an empty folder; choose a new one"):
        export_events(run, tmp_path)
    with pytest.raises(InputError, match=r"metrics.jsonl: there is no such file"):
        export_events(tmp_path, tmp_path / "events")
