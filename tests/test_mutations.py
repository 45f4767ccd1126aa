"""Mutations still apply: the text they change and the tests that must notice are where they are said to be."""

from pathlib import Path

import pytest

from scripts.mutations import MUTATIONS, PACKAGE, ROOT, Mutation


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_mutation_finds_its_text_and_its_tests(mutation: Mutation) -> None:
    assert (ROOT / PACKAGE / mutation.file).read_text("utf-8").count(mutation.old) == 1
    for test in mutation.tests:
        path, _, function = test.partition("::")
        written = "".join(each.read_text("utf-8") for each in files_of(ROOT / path))
        assert f"def {function.partition('[')[0]}" in written


def files_of(path: Path) -> list[Path]:
    return [path] if path.is_file() else sorted(path.rglob("test_*.py"))
