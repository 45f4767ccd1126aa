"""``certcal reproduce``: the list, a dry run, and what is refused."""

import json
from typing import Any


def test_the_command_lists_runs_and_refuses(certcal_command: Any) -> None:
    listed = certcal_command("reproduce", "--json")
    assert "cc-table7" in [plan["name"] for plan in json.loads(listed.out)["plans"]]
    tiny = ("--set", "data.name=digits", "--set", "network.name=mlp", "--shrink", "1e-6", "--device", "cpu")
    dry = certcal_command("reproduce", "cc-table7", *tiny, "--dry-run", "--probe", "0")
    assert (dry.code, "18 jobs" in dry.out) == (0, True), dry.err
    for arguments, words in (
        (("cc-table7",), "-o is missing"),
        (("cc-table7", "--set", "x"), "is not FIELD=VALUE"),
        (("cc-table7", "--scale", "0.1"), "there is no option '--scale'; did you mean '--shrink'?"),
        (("none",), "there is no plan 'none'"),
        (("cc-table7", "-o", "a", "-o", "b"), "there is a folder already"),
    ):
        refused = certcal_command("reproduce", *arguments)
        assert (refused.code, words in refused.err.replace("\n", " ")) == (2, True), refused.err
