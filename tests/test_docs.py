"""The documentation is executed: every Python block runs, every shown output is what is printed.

A page starts in an empty folder. Its ``python`` blocks run in order and share their names; a ``text``
block that follows one directly shows what it prints. A ``console`` block holds ``$ certcal …`` commands and what they
print (compared when shown). ``...`` stands for any number of left-out lines, or for a part of a line. The comment
``<!-- exit code 2 -->`` before a block says that its commands fail. Commands run in this process; how the program
behaves as a process of its own is tested in ``tests/cli/test_process.py``.
"""

import ast
import contextlib
import importlib
import inspect
import io
import math
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import packages_distributions, requires
from pathlib import Path
from types import ModuleType
from unittest import mock

import click
import pytest
from markdown.extensions.toc import slugify

import certcal
from certcal.cli import cli, main

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
FENCE = re.compile(r"^```(?P<kind>[^\n]*)\n(?P<text>.*?)^```\s*?$", re.MULTILINE | re.DOTALL)
MISSED = re.compile(r"^([ \t]+```|[ \t]*~~~)[ \t]*(python|console)", re.MULTILINE)
EXIT = re.compile(r"<!-- exit code (\d+) -->\s*\Z")
MARK = re.compile(r"<!-- (?:([\w-]+): (begin|end)|(begin|end): ([\w-]+)) -->")
INLINE = re.compile(r"`(certcal\s[^`]+)`")
SHELL = re.compile(r"(?:^|[|;&] *|: )((?:certcal) .*)$")
# Kinds of fences that are not run, because nothing in them could be.
INERT = {"text", "bash", "json", "csv", "yaml", "mermaid", "toml", "bibtex", ""}


@dataclass(frozen=True)
class Block:
    kind: str
    text: str
    line: int
    shown: str | None  # the output that the page shows for a python block
    exit_code: int
    source: str  # fences included, with the output shown


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page, each python block with the output shown right after it."""
    fences = list(FENCE.finditer(page))
    found: list[Block] = []
    outputs: set[int] = set()
    for index, fence in enumerate(fences):
        if index in outputs:
            continue
        kind, shown, end = fence["kind"].strip(), None, fence.end()
        if kind == "python" and index + 1 < len(fences) and fences[index + 1]["kind"].strip() == "text":
            between = page[fence.end() : fences[index + 1].start()]
            if not between.strip():
                shown, end = fences[index + 1]["text"], fences[index + 1].end()
                outputs.add(index + 1)
        code = EXIT.search(page[: fence.start()])
        line = page[: fence.start()].count("\n") + 2
        source = page[fence.start() : end]
        found.append(Block(kind, fence["text"], line, shown, int(code[1]) if code else 0, source))
    return found


def unfilled(page: str) -> list[str]:
    """Names of the marks between which a script writes that have nothing between them, or no partner."""
    marks = [(m[1] or m[4], m[2] or m[3], m.start(), m.end()) for m in MARK.finditer(page)]
    found: list[str] = []
    while marks:
        name, kind, _, end = marks.pop(0)
        if kind == "begin" and marks and marks[0][:2] == (name, "end"):
            filled = page[end : marks.pop(0)[2]].strip()
            found += [] if filled else [name]
        else:
            found.append(name)
    return found


def matches(shown: str, printed: str) -> bool:
    """Whether the printed text is what the page shows, ``...`` standing for anything it leaves out."""
    printed = "".join(f"{line}\n" for line in printed.strip("\n").splitlines())
    pattern = ""
    for line in shown.strip("\n").splitlines():
        if line.strip() == "...":
            pattern += r"(?:[^\n]*\n)*?"
        else:
            pieces = [re.escape(piece) for piece in line.rstrip().split("...")]
            pattern += "[^\n]*".join(pieces) + r"[ \t]*\n"
    return re.fullmatch(pattern, printed) is not None


def compare(shown: str, printed: str, place: str) -> None:
    if not matches(shown, printed):
        raise AssertionError(f"{place} shows\n{shown}\nand prints\n{printed}")


def commands(text: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with the output shown below it."""
    found: list[tuple[str, str]] = []
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        while command.endswith("\\"):
            more, _, shown = shown.partition("\n")
            command = command[:-1] + more
        found.append((command, shown))
    return found


def run_python(block: Block, namespace: dict[str, object], page: str) -> None:
    printed = io.StringIO()
    code = compile("\n" * (block.line - 1) + block.text, page, "exec")
    with contextlib.redirect_stdout(printed):
        exec(code, namespace)
    compare(block.shown or "", printed.getvalue(), f"{page}:{block.line}")


@dataclass(frozen=True)
class Ran:
    returncode: int
    stdout: str


def run_command(command: str, folder: Path) -> Ran:
    """Run a command as in a terminal of 100 columns, errors between the output.

    It runs in this process, through the same edge as the real one, so that its libraries are loaded once for all pages.
    What it imports from the page's folder is forgotten: another page may give the same name to something else.
    """
    arguments = shlex.split(command)[1:]
    surroundings = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}
    already = set(sys.modules)
    written = io.BytesIO()
    terminal = io.TextIOWrapper(written, encoding="utf-8", write_through=True)
    with (
        contextlib.chdir(folder),
        mock.patch.dict(os.environ, surroundings),
        mock.patch.object(sys, "argv", ["certcal", *arguments]),
        mock.patch("certcal.cli._say_that_it_compiles"),  # whether it does depends on what ran before
        mock.patch("certcal._base.waiting.APART_SECONDS", math.inf),  # and how long it takes on what runs beside it
        contextlib.redirect_stdout(terminal),
        contextlib.redirect_stderr(terminal),
        pytest.raises(SystemExit) as leaving,
    ):
        main(arguments)
    for name in set(sys.modules) - already:
        if Path(getattr(sys.modules[name], "__file__", None) or ROOT).is_relative_to(folder):
            del sys.modules[name]
    return Ran(int(leaving.value.code or 0), written.getvalue().decode("utf-8"))


def run_console(block: Block, folder: Path, page: str) -> None:
    assert commands(block.text), f"{page}:{block.line} is a console block without a command"
    for command, shown in commands(block.text):
        program = command.split()[0]
        assert program == "certcal", f"{page}:{block.line} runs {program}; show other programs in a bash block"
        done = run_command(command, folder)
        place = f"{page}:{block.line} `{command}`"
        assert done.returncode == block.exit_code, f"{place} exits {done.returncode} and prints\n{done.stdout}"
        if shown.strip():
            compare(shown, done.stdout, place)


@pytest.fixture
def threads_of_torch() -> Iterator[None]:
    """A page may say how many threads torch uses; the tests after it have what they had."""
    import torch

    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture
def environment() -> Iterator[None]:
    """A page may set variables; the tests after it have what they had."""
    with mock.patch.dict(os.environ):
        yield


@pytest.mark.usefixtures("threads_of_torch", "environment")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_does_what_it_shows(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    name = str(page.relative_to(ROOT))
    text = page.read_text("utf-8")
    assert not MISSED.search(text), (
        f"{name} has an indented or ~~~ block to run, which would not be seen; write it as ```"
    )
    for block in blocks(text):
        if block.kind == "python":
            run_python(block, namespace, name)
        elif block.kind == "console":
            run_console(block, tmp_path, name)
        else:
            assert block.kind in INERT, f"{name}:{block.line} has a `{block.kind}` block; it would never be run"


def test_the_pages_hold_blocks_of_both_kinds() -> None:
    kinds = [block.kind for page in PAGES for block in blocks(page.read_text("utf-8"))]
    assert kinds.count("python") >= 10
    assert kinds.count("console") >= 5


def test_the_reference_has_a_page_for_every_public_room() -> None:
    pages = "".join(page.read_text("utf-8") for page in (ROOT / "docs" / "reference").glob("*.md"))
    listed = set(re.findall(r"<!-- generated: public names of (\S+) -->", pages))
    rooms = {found.__name__ for name in certcal.__all__ if isinstance(found := getattr(certcal, name), ModuleType)}
    written_out = {
        "certcal.binning",
        "certcal.claims",
        "certcal.interop",
        "certcal.lab",
    }  # the last is modules imported by name
    assert rooms - written_out - listed == set()
    for name in listed:
        assert importlib.import_module(name).__all__, name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_is_written_between_markers_is_there(page: Path) -> None:
    assert unfilled(page.read_text("utf-8")) == []


@pytest.mark.parametrize(
    ("page", "found"),
    [
        ("<!-- begin: a -->\n| x |\n<!-- end: a -->", []),
        ("<!-- begin: a -->\n\n<!-- end: a -->", ["a"]),
        ("<!-- table: begin -->\n<!-- table: end -->\n<!-- begin: b -->1<!-- end: b -->", ["table"]),
        ("<!-- begin: a -->\n| x |\n", ["a"]),
        ("| x |\n<!-- end: a -->\n", ["a"]),
        ("<!-- begin: a -->1<!-- end: b -->", ["a", "b"]),
    ],
)
def test_markers_with_nothing_between_them_are_noticed(page: str, found: list[str]) -> None:
    assert unfilled(page) == found


@pytest.mark.parametrize(("fence", "seen"), [("    ```python", False), ("~~~console", False), ("    ```text", True)])
def test_a_block_that_would_not_be_seen_is_noticed(fence: str, seen: bool) -> None:
    assert (MISSED.search(f"A list:\n\n{fence}\nx\n") is None) is seen


def test_a_wrong_output_and_a_failing_block_are_noticed(tmp_path: Path) -> None:
    page = "```python\nprint(1)\n```\n\n```text\n2\n```\n\n```python\nprint(3)\n```\n\n```python\n1 / 0\n```\n"
    wrong, silent, broken = blocks(page)
    assert (wrong.shown, silent.shown, broken.line) == ("2\n", None, 14)
    with pytest.raises(AssertionError, match="shows\n2\n\nand prints\n1"):
        run_python(wrong, {}, "page.md")
    with pytest.raises(AssertionError, match="prints\n3"):
        run_python(silent, {}, "page.md")
    with pytest.raises(ZeroDivisionError):
        run_python(broken, {}, "page.md")
    with pytest.raises(AssertionError, match="show other programs in a bash block"):
        run_console(Block("console", "$ ls\n", 1, None, 0, ""), tmp_path, "page.md")
    with pytest.raises(AssertionError, match="without a command"):
        run_console(Block("console", "certcal\n", 1, None, 0, ""), tmp_path, "page.md")
    with pytest.raises(AssertionError, match="exits 0"):
        run_console(Block("console", "$ certcal --version\n", 1, None, 2, ""), tmp_path, "page.md")


@pytest.mark.parametrize(
    ("shown", "printed", "equal"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a\nb", "a  \nb\n\n", True),
        ("", "", True),
        ("", "a\n", False),
        ("a\n", "a\nb\n", False),
        ("a\n...\nd\n", "a\nb\nc\nd\n", True),
        ("a\n...\nd\n", "a\nd\n", True),
        ("a\n...\nd\n", "a\nb\nc\n", False),
        ("took ...\n", "took 3 s\n", True),
        ("took ... s\n", "took 3 s\n", True),
        ("took ... s\n", "took 3 m\n", False),
        ("1.5\n", "1x5\n", False),
    ],
)
def test_dots_stand_for_what_a_page_leaves_out_and_for_nothing_else(shown: str, printed: str, equal: bool) -> None:
    assert matches(shown, printed) is equal


def test_a_command_may_go_over_several_lines() -> None:
    assert commands("$ certcal a \\\n    b\nout\n$ certcal c\n") == [("certcal a     b", "out\n"), ("certcal c", "")]


def command_lines(page: str) -> Iterator[tuple[str, bool]]:
    """Commands that a page tells its readers to write, and whether each is a whole line rather than a part of prose."""
    prose = FENCE.sub("", page)
    yield from ((" ".join(found[1].split()), False) for found in INLINE.finditer(prose))
    for block in blocks(page):
        if block.kind == "console":
            yield from ((command, True) for command, _ in commands(block.text) if not block.exit_code)
        elif block.kind in ("bash", "yaml"):
            lines = re.sub(r"\\\n\s*", " ", block.text).splitlines()
            yield from ((found[1], True) for line in lines if (found := SHELL.search(line)))


def refused_line(line: str, whole: bool) -> str | None:
    """What the program says against a command line, without running it; what prose leaves out is not missed."""
    words = shlex.split(line, comments=True)
    ends = [place for place, word in enumerate(words) if word in ("|", ">", "&&", "||", ";")]
    words = words[1 : min(ends, default=None)]
    follows = zip(words, ["", *words], strict=False)  # after an option … stands for its value, elsewhere for anything
    words = [word for word, before in follows if word.strip("….[]") or before.startswith("-")]
    command: click.Command = cli
    context = click.Context(cli, info_name="certcal")
    while words and isinstance(command, click.Group) and not words[0].startswith("-"):
        name = words.pop(0)
        if name.isupper():  # COMMAND stands for any
            return None
        known = command.get_command(context, name)
        if known is None:
            return f"there is no command {name!r}"
        command, context = known, click.Context(known, context, name)
    try:
        if words and not {"-h", "--help", "-V", "--version"} & {*words}:
            command.make_context(context.info_name, list(words), context.parent)
    except click.MissingParameter as error:
        return error.format_message() if whole and "…" not in line else None
    except click.UsageError as error:
        return None if "'…'" in error.format_message() else error.format_message()
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_on_a_page_is_one_that_the_program_takes(page: Path) -> None:
    lines = command_lines(page.read_text("utf-8"))
    assert {line: said for line, whole in lines if (said := refused_line(line, whole))} == {}


@pytest.mark.parametrize(
    ("line", "whole", "said"),
    [
        ("certcal measure scores.csv --bins 5 # five", True, None),
        ("certcal measure scores.csv --bins few", True, "'few' is not a whole number"),
        ("certcal measure", True, None),
        ("certcal attack --epsilon 0.1", True, "Missing option '--model'"),
        ("certcal attack … --epsilon 0.1", False, None),
        ("certcal mesure scores.csv", True, "there is no command 'mesure'"),
        ("certcal study review table.parquet --tops 100", False, "No such option"),
        ("certcal runs show run --json | python3 -m json.tool --compact", True, None),
    ],
)
def test_a_command_that_the_program_would_refuse_is_noticed(line: str, whole: bool, said: str | None) -> None:
    found = refused_line(line, whole)
    assert found is None if said is None else said in (found or "")


LINKED = sorted([*PAGES, *(ROOT / f"{name}.md" for name in ("CONTRIBUTING", "SECURITY", "CHANGELOG"))])
LINK = re.compile(r"\]\(([^)\s]+)\)|<img[^>]* src=\"([^\"]+)\"")


def anchors(page: str) -> set[str]:
    """What can stand after ``#`` in a link to a page: its headings, by the rule of the builder, and ids of its own."""
    text = FENCE.sub("", page)
    titles = re.findall(r"^#+ (.+?)(?: *\{ *#([\w-]+) *\})?$", text, re.MULTILINE)
    ids = [own or slugify(re.sub(r"[`*]", "", re.sub(r"\]\([^)]*\)", "", title)), "-") for title, own in titles]
    return {*ids, *re.findall(r'id="([\w-]+)"', text)}


def broken_links(page: Path) -> list[str]:
    """Relative links of a page to files or anchors that are not there."""
    found: list[str] = []
    for match in LINK.finditer(re.sub(r"`[^`\n]+`", "", FENCE.sub("", page.read_text("utf-8")))):
        link = match[1] or match[2]
        if re.match(r"https?:|mailto:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target.read_text("utf-8"))):
            found.append(link)
    return found


@pytest.mark.parametrize("page", LINKED, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_links_to_what_is_there(page: Path) -> None:
    assert broken_links(page) == []


def test_a_broken_link_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# One thing\n\n## Two { #second }\n\n```text\n# no heading\n```\n")
    page = tmp_path / "page.md"
    page.write_text("# Here\n[a](other.md#one-thing) [b](other.md#second) [c](#here) [d](https://x.test/y) `[e](f)`\n")
    assert broken_links(page) == []
    page.write_text("# Here\n[a](missing.md) [b](other.md#no-heading) [c](#there)\n")
    assert broken_links(page) == ["missing.md", "other.md#no-heading", "#there"]


def test_pages_that_the_source_names_are_there() -> None:
    named = {
        name
        for folder in ("src", "tests", "scripts", "bench", "experiments")
        for file in (ROOT / folder).rglob("*.py")
        for name in re.findall(r"\bdocs/[\w/-]+\.md\b", file.read_text("utf-8"))
    }
    assert {name for name in named if not (ROOT / name).exists()} == set()


PAGES_OF_RUNS = [ROOT / "docs" / name for name in ("benchmarks.md", "results.md")]


@pytest.mark.parametrize("page", PAGES_OF_RUNS, ids=lambda page: str(page.relative_to(ROOT)))
def test_numbers_that_come_from_runs_carry_the_version_that_made_them(page: Path) -> None:
    assert re.search(r"certcal \d+\.\d+\.\d+ at commits? [0-9a-f]{7}\b", page.read_text("utf-8"))


def equations() -> list[tuple[str, str, str]]:
    """Statement, name and file of every line of the page that finds equations in the source."""
    lines = (ROOT / "docs" / "equations.md").read_text("utf-8").splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.count("|") == 5]
    return [
        (statement, name, file.strip("`"))
        for statement, _, names, file in rows
        for name in re.findall(r"`([\w.]+)`", names)
    ]


@pytest.mark.parametrize(("statement", "name", "file"), equations(), ids=lambda value: value)
def test_an_equation_of_a_paper_is_in_the_file_that_the_index_names(statement: str, name: str, file: str) -> None:
    source = ROOT / "src" / "certcal" / file
    tree = ast.parse(source.read_text("utf-8"))
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    assert name.rpartition(".")[2] in defined, f"{statement}: {name} is not in {file}"
    if name.startswith("certcal."):
        room, _, last = name.rpartition(".")
        found = getattr(importlib.import_module(room), last)
        assert Path(inspect.getsourcefile(inspect.unwrap(found)) or "") == source


def test_the_index_of_equations_covers_the_four_papers() -> None:
    page = (ROOT / "docs" / "equations.md").read_text("utf-8")
    assert page.count("\n## ") == 4
    assert len(equations()) >= 70


def packages_of_extras() -> set[str]:
    """Names of all that is installed here and not with ``pip install certcal``."""
    plain: set[str] = set()
    open_ = ["certcal"]
    while open_:
        name = open_.pop()
        if name not in plain:
            plain.add(name)
            asked = [each for each in requires(name) or [] if "extra ==" not in each]
            open_ += [re.split(r"[^\w.-]", each)[0].lower().replace("_", "-") for each in asked]
    owners = packages_distributions().items()
    return {top for top, names in owners if not {name.lower().replace("_", "-") for name in names} & plain}


def test_the_readmes_first_block_and_the_demo_run_on_a_plain_install(tmp_path: Path) -> None:
    missing = packages_of_extras()
    assert {"sklearn", "torch", "matplotlib", "pandas", "onnxruntime"} <= missing
    assert not {"numpy", "scipy", "numba", "pyarrow", "click", "certcal"} & missing
    first, *_ = (block for block in blocks((ROOT / "README.md").read_text("utf-8")) if block.kind == "python")
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({sorted(missing)!r}))\n{first.text}\n"
        "from certcal.cli import main; main(['demo', '-o', 'page.html', '--no-diagram'])"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    assert first.shown is not None
    assert done.stdout.startswith(first.shown)
    assert "scikit-learn is not installed" in done.stdout
    assert "certcal certify" not in done.stdout
    assert "pip install 'certcal[sklearn,torch]'" in done.stdout
    assert (tmp_path / "page.html").stat().st_size > 10_000
