"""What the build of the documentation adds: formulas, the help of every command, a refusal of pages that fetch."""

from __future__ import annotations

import html
import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import click
from click.testing import CliRunner
from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError

FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)
FETCHED = re.compile(r"<(?:script|img|iframe|source|audio|video)\b[^>]*?\bsrc=[\"']?(?:https?:)?//[^\"'>\s]*")
ROLE = re.compile(r":(?:func|class|meth|mod|attr):<code>(~?)([\w.]+)</code>")
LINKED = re.compile(r"<link\b[^>]*?\bhref=[\"']?(?:https?:)?//[^\"'>\s]*[^>]*>")


HELP = "<!-- generated: help of every command -->"
NAMES = re.compile(r"<!-- generated: public names of ([\w.]+) -->")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Write the help texts and the lists of public names where a page asks for them."""
    markdown = NAMES.sub(lambda match: listing(match[1]), markdown)
    return markdown.replace(HELP, "\n\n".join(help_texts())) if HELP in markdown else markdown


def listing(module: str) -> str:
    """The public classes and functions of a module, each to be filled from its docstring."""
    return f"## {module}\n\n" + "\n".join(f"::: {module}.{name}" for name in public_names(module))


def public_names(module: str) -> list[str]:
    """What a module offers that has a docstring of its own: the classes and functions of its ``__all__``."""
    found = importlib.import_module(module)
    kept = {name: getattr(found, name) for name in found.__all__}
    return sorted(name for name, each in kept.items() if inspect.isclass(each) or inspect.isroutine(each))


def help_texts() -> Iterator[str]:
    """A heading and the help of each command and subcommand, as a terminal of 100 columns shows them."""
    from certcal.cli import cli

    def below(command: click.Command, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        context = click.Context(command)
        names = command.list_commands(context) if isinstance(command, click.Group) else []
        yield from [words] if not names or len(words) == 1 else []
        for name in names:
            yield from below(command.get_command(context, name), (*words, name))

    for words in below(cli, ("certcal",)):
        asked = [*words[1:], "--help-all" if len(words) > 1 else "--help"]
        shown = CliRunner().invoke(cli, asked, prog_name="certcal", terminal_width=100).output
        yield f"## {' '.join(words)}\n\n```text\n{shown}```"


def on_page_content(content: str, **_: Any) -> str:
    """Turn LaTeX into MathML, which browsers draw without scripts or fonts, and docstring roles into links."""

    def mathml(match: re.Match[str]) -> str:
        return convert(html.unescape(match[2]).strip(), display="block" if match[1] == "div" else "inline")

    def reference(match: re.Match[str]) -> str:
        name = match[2]
        shown = f"<code>{name.rpartition('.')[2] if match[1] else name}</code>"
        return f'<a href="#{name}">{shown}</a>' if f'id="{name}"' in content else shown

    return ROLE.sub(reference, FORMULA.sub(mathml, content))


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Refuse a page that would load scripts, images or styles from another host."""
    linked = [tag for tag in LINKED.findall(output) if 'rel="canonical"' not in tag]
    for tag in [*FETCHED.findall(output), *linked]:
        raise PluginError(f"{page.file.src_path} loads something from elsewhere: {tag}")
    return output
