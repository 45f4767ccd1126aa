"""``certcal choose``: methods and their runs on the command line, and what is wrong with them."""

from __future__ import annotations

from typing import Any

from tests.smoothing.drawing import draw


def test_the_command_reads_runs_by_method(certcal_command: Any, tmp_path: Any) -> None:
    run = draw(tmp_path / "run").path
    ran = certcal_command("choose", f"AT={run}", f"ACT={run}", "--radius", ".05")
    assert ran.code == 0, ran.err
    assert "AT" in ran.out
    for arguments, words in (
        ((run,), "write METHOD=RUN"),
        ((f"AT={run}", "--baseline", "X"), "'X' is not one of AT"),
        ((f"AT={tmp_path / 'none'}",), "is not the folder of a run"),
        ((f"AT={run}", "--radius", "99"), "no model certifies any sample"),
    ):
        refused = certcal_command("choose", *arguments)
        assert (refused.code, words in refused.err.replace("\n", " ")) == (2, True), refused.err
