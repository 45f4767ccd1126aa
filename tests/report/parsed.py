"""A page read back by a parser, so that tests see what a browser sees."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
ADDRESSES = {"href", "src", "srcset", "action", "formaction", "poster", "data", "background", "xlink:href", "ping"}
# Elements that fetch, run or embed something whatever their attributes say.
FOREIGN = {"link", "iframe", "object", "embed", "base", "form", "audio", "video", "applet", "frame", "foreignobject"}


@dataclass
class Node:
    tag: str
    attributes: dict[str, str | None]
    children: list[Node | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(child if isinstance(child, str) else child.text for child in self.children)

    def all(self, tag: str | None = None, **attributes: str) -> list[Node]:
        """Every element below this one with that tag and those attributes, in the order of the page."""
        wanted = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
        found: list[Node] = []
        for child in self.children:
            if isinstance(child, Node):
                fits = tag in (None, child.tag) and all(child.attributes.get(k) == v for k, v in wanted.items())
                found += [child] * fits + child.all(tag, **attributes)
        return found

    def one(self, tag: str | None = None, **attributes: str) -> Node:
        found = self.all(tag, **attributes)
        assert len(found) == 1, (tag, attributes, len(found))
        return found[0]

    def of_class(self, name: str) -> list[Node]:
        return [each for each in self.all() if name in (each.attributes.get("class") or "").split()]


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node("", {})
        self.stack = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), (tag, attrs)
        node = Node(tag, dict(attrs))
        self.stack[-1].children.append(node)
        if tag not in VOID:
            self.stack.append(node)

    def handle_endtag(self, tag: str) -> None:
        assert self.stack[-1].tag == tag, (tag, [node.tag for node in self.stack])
        self.stack.pop()

    def handle_data(self, data: str) -> None:
        self.stack[-1].children.append(data)


def parsed(html: str) -> Node:
    """The elements of a page; an error when they are not nested properly."""
    parser = _Parser()
    parser.feed(html)
    parser.close()
    assert parser.stack == [parser.root]
    return parser.root


def data_of(root: Node) -> dict[str, Any]:
    """The numbers for machines that are inside a page."""
    return json.loads(root.one("script", id="data").text)


def assert_sound(html: str) -> Node:
    """Nothing is loaded or run that is not the page's own, and everything that is referred to is there."""
    root = parsed(html)
    assert html.startswith("<!DOCTYPE html>")
    assert {each.tag for each in root.all()}.isdisjoint(FOREIGN)
    _assert_nothing_from_elsewhere(root)
    _assert_only_own_code(root)
    _assert_references(root)
    levels = [int(each.tag[1]) for each in root.all() if re.fullmatch("h[1-6]", each.tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels)), levels
    return root


def _assert_nothing_from_elsewhere(root: Node) -> None:
    for each in root.all():
        for name, value in each.attributes.items():
            assert not name.startswith("on"), (each.tag, name)
            assert name != "style", each.tag
            if name in ADDRESSES:
                assert value is not None
                assert value.startswith(("#", "data:image/png;base64,")), (each.tag, name, value)
    style = root.one("style").text
    assert "@import" not in style
    assert re.findall(r"url\((?!#)", style) == []
    for text in (style, root.all("script")[-1].text):
        assert re.search(r"https?:|[\"'(]//", text) is None


def _assert_only_own_code(root: Node) -> None:
    scripts = root.all("script")
    assert [each.attributes.get("type") for each in scripts] == ["application/json", None]
    policy = root.one("meta", http_equiv="Content-Security-Policy").attributes["content"]
    assert policy is not None
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == _hash(scripts[1].text)
    assert rules["style-src"] == _hash(root.one("style").text)
    assert rules["img-src"] == "data:"
    assert rules["base-uri"] == rules["form-action"] == "'none'"


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _assert_references(root: Node) -> None:
    names = [each.attributes["id"] for each in root.all() if "id" in each.attributes]
    assert len(names) == len(set(names)), "two elements share an id"
    for each in root.all():
        for name in ("aria-labelledby", "for"):
            assert set((each.attributes.get(name) or "").split()) <= set(names), each.attributes
        address = each.attributes.get("href") or ""
        assert not address.startswith("#") or address[1:] in names, address


def classes(root: Node) -> set[str]:
    """Every class that an element of the page has."""
    return {name for each in root.all() for name in (each.attributes.get("class") or "").split()}
