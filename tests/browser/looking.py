"""What a visitor would see: texts with their size, colours and place, as the browser has laid them out."""

import json
from functools import cache
from typing import Any

# Every visible piece of text: what it says, its height in pixels on the screen, its colour, what it stands on, where.
_TEXTS = """() => {
  const found = [];
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const known = new Map();
  const channels = colour => {
    if (!known.has(colour)) known.set(colour, drawn(colour));
    return known.get(colour);
  };
  const drawn = colour => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return Array.from(canvas.getImageData(0, 0, 1, 1).data);
  };
  // What an element stands on, and how opaque it is: asked once for each.
  const grounds = new Map();
  const ground = element => {
    if (!element) return {behind: [255, 255, 255, 255], opacity: 1};
    if (!grounds.has(element)) {
      const style = getComputedStyle(element), above = ground(element.parentElement);
      const own = channels(style.backgroundColor);
      grounds.set(element, {behind: own[3] === 255 ? own : above.behind, opacity: above.opacity * style.opacity});
    }
    return grounds.get(element);
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, element = node.parentElement;
    if (!node.textContent.trim() || element.closest("script, style, title, desc, noscript")) continue;
    if (!element.checkVisibility({contentVisibilityAuto: true, visibilityProperty: true})) continue;
    const style = getComputedStyle(element), picture = element.closest("svg");
    const scale = picture ? picture.getScreenCTM().a : 1;
    const place = document.createRange();
    place.selectNodeContents(node);
    const box = place.getBoundingClientRect();
    found.push({
      text: node.textContent.trim(),
      size: parseFloat(style.fontSize) * scale,
      colour: channels(picture ? style.fill : style.color),
      ...ground(element),
      picture: picture ? picture.getAttribute("aria-labelledby") : null,
      left: box.left, right: box.right, top: box.top + scrollY, bottom: box.bottom + scrollY,
    });
  }
  return JSON.stringify(found);
}"""

_MARKS = """() => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const found = new Map();
  for (const each of document.querySelectorAll(".chart .line, .chart .dot, .chart .whisker, .chart .gap")) {
    if (!each.checkVisibility()) continue;
    const style = getComputedStyle(each), colour = each.matches(".dot") ? style.fill : style.stroke;
    const kind = each.getAttribute("class");
    if (found.has(kind + " " + colour)) continue;
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    found.set(kind + " " + colour, [kind, Array.from(canvas.getImageData(0, 0, 1, 1).data)]);
  }
  return Array.from(found.values());
}"""

_CONTROLS = """() => Array.from(document.querySelectorAll("a[href], button, input, summary, [tabindex='0']"))
  .filter(each => each.checkVisibility() && !each.matches("[type=radio]:not(:checked)"))  // arrow keys reach those
  .map(each => {
    const box = each.getBoundingClientRect();
    return {what: each.tagName.toLowerCase() + " " + each.textContent.trim().slice(0, 60),
            width: box.width, height: box.height};
  })"""


def texts(tab: Any) -> list[dict[str, Any]]:
    """All visible texts."""
    return json.loads(tab.evaluate(_TEXTS))


def marks(tab: Any) -> list[tuple[str, list[int]]]:
    """Every class and colour of the marks of charts that can be seen."""
    return tab.evaluate(_MARKS)


def controls(tab: Any) -> list[dict[str, Any]]:
    """What can be pressed or focused, and how large it is."""
    return tab.evaluate(_CONTROLS)


def open_all(tab: Any) -> None:
    """Open every part that opens on demand."""
    tab.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")


def background(tab: Any) -> str:
    """The colour of the paper."""
    return tab.evaluate("getComputedStyle(document.body).backgroundColor")


def contrast(one: list[int], two: list[int], opacity: float = 1.0) -> float:
    """The ratio of WCAG 2 between a colour and the one that it stands on.

    >>> round(contrast([0, 0, 0, 255], [255, 255, 255, 255]))
    21
    """
    return _contrast(tuple(one[:3]), tuple(two[:3]), opacity)


@cache
def _contrast(one: tuple[int, ...], two: tuple[int, ...], opacity: float) -> float:
    mixed = tuple(opacity * a + (1 - opacity) * b for a, b in zip(one, two, strict=True))
    lighter, darker = sorted((_luminance(mixed), _luminance(two)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: tuple[float, ...]) -> float:
    linear = [c / 255 / 12.92 if c / 255 <= 0.04045 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def overlapping(found: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Pairs of texts of one picture that cover each other by more than a pixel."""
    pairs: list[tuple[str, str]] = []
    for picture in {each["picture"] for each in found} - {None}:
        own = [each for each in found if each["picture"] == picture]
        for place, one in enumerate(own):
            for two in own[place + 1 :]:
                across = min(one["right"], two["right"]) - max(one["left"], two["left"])
                down = min(one["bottom"], two["bottom"]) - max(one["top"], two["top"])
                # Boxes of text are taller than its letters.
                if across > 1 and down > 0.3 * min(one["size"], two["size"]):
                    pairs.append((f"{picture}: {one['text']}", two["text"]))
    return pairs
