"""What the build of the documentation adds: formulas as MathML, and a refusal of pages that fetch from elsewhere."""

from __future__ import annotations

import html
import re
from typing import Any

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError

FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)
FETCHED = re.compile(r"<(?:script|img|iframe|source|audio|video)\b[^>]*?\bsrc=[\"']?(?:https?:)?//[^\"'>\s]*")
ROLE = re.compile(r":(?:func|class|meth|mod|attr):<code>(~?)([\w.]+)</code>")
LINKED = re.compile(r"<link\b[^>]*?\bhref=[\"']?(?:https?:)?//[^\"'>\s]*[^>]*>")


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
