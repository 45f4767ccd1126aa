"""Files are opened to read without waiting for anybody."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from certcal import InputError
from certcal._durable import open_regular

# Each reader is given a named pipe to which nobody writes. Opened in the usual way, that waits for ever.
READERS = """
import sys
from pathlib import Path
from types import SimpleNamespace

from certcal import InputError, calibrators, data, models, smoothing
from certcal.smoothing._shards import read_shard
from certcal.smoothing._units import Unit
from certcal.study._listing import entries_in_manifest
from certcal.study._nats_files import _value

folder = Path(sys.argv[1])
unit = Unit("counting", 0, 1, 0, 5)
drawn = SimpleNamespace(model=SimpleNamespace(classes=2), thresholds=(0.5,))
readers = {
    "manifest.json": lambda path: smoothing.open_run(folder),
    unit.name: lambda path: read_shard(folder, drawn, unit),
    "log.tsv": lambda path: smoothing.read_log(path, sigma=1.0, n=100),
    "decisions.json": smoothing.read_decisions,
    "study.jsonl": entries_in_manifest,
    "one.pickle.pbz2": _value,
    "table.csv": data.read_predictions,
    "table.npz": data.read_inputs,
    "model.onnx": models.load,
    "model.safetensors": models.load,
    "map.json": calibrators.load,
}
for name, read in readers.items():
    (folder / name).parent.mkdir(exist_ok=True)
    __import__("os").mkfifo(folder / name)
    try:
        print(name, read(folder / name))
    except InputError:
        print(name, "refused")
"""


def test_a_named_pipe_is_refused_and_not_waited_for(tmp_path):
    ran = subprocess.run(
        [sys.executable, "-c", READERS, str(tmp_path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.stderr == ""
    found = dict(line.rsplit(" ", 1) for line in ran.stdout.splitlines())
    assert len(found) == 11
    assert set(found.values()) == {"refused"}


def test_devices_and_folders_are_refused_and_what_the_shell_has_opened_is_read(tmp_path):
    with pytest.raises(InputError, match="/dev/zero: this is not a regular file; give one"):
        open_regular("/dev/zero")
    with pytest.raises(IsADirectoryError):
        open_regular(tmp_path)
    read, write = os.pipe()
    writer = threading.Thread(target=lambda: (os.write(write, b"given"), os.close(write)))
    writer.start()
    with open_regular(f"/dev/fd/{read}") as stream:
        assert stream.read() == b"given"
    writer.join()
    os.close(read)
