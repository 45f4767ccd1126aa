"""The first screen of a page: the answer, a picture beside it, what it assumes, and what it does not say."""

from __future__ import annotations

from collections.abc import Sequence

from certcal.report.html.elements import Child, Raw, element, join
from certcal.report.html.markup import SENTENCE, as_markup, clip_middle, note, unbroken
from certcal.report.html.svg import WIDTHS, coordinate, picture
from certcal.report.scale import Scale
from certcal.result import Answer, Sentence

_LONG = 90  # letters


def first_screen(answer: Answer, seen: Child, judged: Child = None, below: Child = None) -> Raw:
    """The first sentence in large type, the other sentences, the verdict, what to do next and what stands below.

    The picture, and what the answer assumes, stand beside all of it where there is room, else the picture after the
    first sentence.
    """
    first, *others = answer
    told = [each for each in others if each.kind != "next"]
    beside = element("div", _limits_of(answer), class_="limits") if below is not None else None
    screen = element(
        "div",
        element("h2", tag(first), _sentence_markup(first), id="answer", class_=_size(first.text, seen)),
        element(
            "div",
            element(
                "ul",
                [element("li", tag(each), element("div", _sentence_markup(each))) for each in told],
                class_="findings",
            )
            if told
            else None,
            note(answer.key) if answer.key else None,
            judged,
            [_next_step(each) for each in others if each.kind == "next"],
            class_="rest",
        ),
        element("div", below, class_="below") if seen and below is not None else None,
        element("div", element("div", seen, class_="picture"), beside, class_="aside") if seen else None,
        class_="answer" if seen else "answer alone",
    )
    if seen or below is None:
        return screen
    return join(screen, element("div", element("div", below), beside, class_="below"))


def _size(text: str, seen: Child) -> str | None:
    """A long sentence beside a picture is set smaller, so that what follows stays on the first screen."""
    return "long" if seen and len(text) > _LONG else None


def tag(sentence: Sentence) -> Raw | None:
    """The word for how much a sentence claims, and a space; its border differs as well as its colour."""
    if not sentence.word:
        return None
    return join(element("span", sentence.word, class_=f"tag {sentence.kind}"), " ")


def _sentence_markup(sentence: Sentence) -> Raw:
    remark = join(" ", element("span", sentence.remark, class_="soft")) if sentence.remark else None
    return join(as_markup(sentence.text, SENTENCE), remark)


def _next_step(sentence: Sentence) -> Raw:
    said = element("p", tag(sentence), as_markup(sentence.text, SENTENCE))
    return element("div", said, to_copy(sentence.command, "next-command") if sentence.command else None, class_="next")


def to_copy(command: str, key: str, most: int = SENTENCE, *, whole: bool = True) -> Raw:
    """A command, with a button that copies it where it is shown whole."""
    return element(
        "div",
        element("pre", element("code", unbroken(clip_middle(command, most))), tabindex=0, id=key),
        element("button", "Copy", type="button", data_copy=key, data_needs_script=True, hidden=True) if whole else None,
        class_="command",
    )


def scale_picture(scale: Scale) -> Raw:
    """A line with the interval, the estimate on it, and the limits."""
    width = WIDTHS["small"]

    def beside(text: str, share: float, y: float) -> Raw:
        side = "" if share < 0.3 else "end" if share > 0.7 else "middle"
        return element("text", text, x=coordinate(share * width), y=y, class_=side or None)

    low, high = scale.interval
    span = max(high - low, 0.008) * width
    return picture(
        "scale",
        scale.limit_text,
        f"Found {scale.text}.",
        element("rect", x=0, y=24, width=width, height=8, rx=2, class_="scale-line"),
        element("rect", x=coordinate(low * width), y=24, width=coordinate(span), height=8, class_="scale-span"),
        None
        if scale.estimate is None
        else element("circle", cx=coordinate(scale.estimate * width), cy=28, r=5, class_="dot ink"),
        [element("path", d=f"M{coordinate(end * width)} 16V40", class_="median") for end in scale.limits],
        beside(scale.limit_text, scale.limits[0], 12),
        beside(scale.text, (low + high) / 2, 54),
        width=width,
        height=60,
    )


def _limits_of(answer: Answer) -> Raw:
    """What the answer assumes, and what a reader might take it to say."""
    listed: Sequence[tuple[str, Sequence[str]]] = (
        ("This holds if", answer.assumptions),
        ("This page does not say", answer.unsaid),
    )
    return join(
        [
            element(
                "div",
                element("h3", title),
                element("ul", [element("li", as_markup(each, SENTENCE)) for each in items], class_="listing"),
            )
            for title, items in listed
            if items
        ]
    )
