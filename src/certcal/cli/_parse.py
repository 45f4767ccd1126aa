"""Texts from the command line turned into values; what cannot be is refused with the nearest that could."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from typing import Any, Literal

import click

from certcal._checks import LEAST_FAILURE, MOST_FAILURE, MOST_LEVEL

MOST_BINS = 1_000_000
MOST_RESAMPLES = 1_000_000
# The time of a worst case grows with the square of the number of bins: this many take seconds.
MOST_CERTIFIED_BINS = 10_000


def nearest(word: str, words: Iterable[str], otherwise: str = "") -> str:
    """The end of an error's sentence: the known word that was probably meant, or else something to say instead.

    Examples
    --------
    >>> nearest("smoth_ece", ["ece", "smooth_ece"]), nearest("x", ["left", "right"], "give left or right")
    ("; did you mean 'smooth_ece'?", '; give left or right')
    """
    near = get_close_matches(word, list(words), n=1)
    return f"; did you mean {near[0]!r}?" if near else f"; {otherwise}" if otherwise else ""


class Choice(click.Choice[str]):
    """One of some words; another one is answered with the nearest of them."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """What is wrong, and what was probably meant."""
        listed = ", ".join(map(repr, self.choices))
        return f"{value!r} is not one of {listed}{nearest(str(value).lower(), self.choices)}"


def optional(parse: Callable[..., Any]) -> Callable[..., Any]:
    """The parser of an option that may be left out.

    Examples
    --------
    >>> parse = optional(whole_number(1, 9))
    >>> parse(None, None, None), parse(None, None, "3")
    (None, 3)
    """

    def parse_given(ctx: click.Context | None, param: click.Parameter | None, value: str | None) -> Any:
        return None if value is None else parse(ctx, param, value)

    return parse_given


def parse_bins(ctx: click.Context | None, param: click.Parameter | None, values: Sequence[str]) -> tuple[int, ...]:
    """Turn ``15``, ``5,10,15`` and repetitions of these into numbers of bins, each once, smallest first.

    Examples
    --------
    >>> parse_bins(None, None, ["15", "5,10,15"])
    (5, 10, 15)
    """
    number = whole_number(1, MOST_BINS)
    return tuple(sorted({number(ctx, param, part) for value in values for part in value.split(",")}))


def parse_bin_count(ctx: click.Context | None, param: click.Parameter | None, value: str) -> int:
    """Turn ``15`` into a number of bins; several numbers are refused in words of their own.

    Examples
    --------
    >>> parse_bin_count(None, None, "15")
    15
    """
    if "," in value:
        raise click.BadParameter(
            f"{value!r} is several numbers of bins; give one, and run it once for each", ctx, param
        )
    return whole_number(1, MOST_CERTIFIED_BINS)(ctx, param, value)


def whole_number(least: int, most: int) -> Callable[[click.Context | None, click.Parameter | None, str], int]:
    """A parser of whole numbers in a range.

    Examples
    --------
    >>> whole_number(0, 9)(None, None, " 7 ")
    7
    """

    def parse(ctx: click.Context | None, param: click.Parameter | None, value: str) -> int:
        text = value.strip()
        if text[:1] == "-" and text[1:].isdecimal():
            raise click.BadParameter(f"{text} is not in the range from {least} to {most}", ctx, param)
        if not (text.isdecimal() and len(text) <= len(str(most)) and least <= int(text) <= most):
            raise click.BadParameter(f"{text!r} is not a whole number from {least} to {most}", ctx, param)
        return int(text)

    return parse


def parse_resamples(ctx: click.Context | None, param: click.Parameter | None, value: str) -> int:
    """Turn ``1000`` into a number of resamples: none, or enough for an interval.

    Examples
    --------
    >>> parse_resamples(None, None, "0"), parse_resamples(None, None, "1000")
    (0, 1000)
    """
    text = value.strip()
    if text != "0" and text.isdecimal() and (len(text) > 7 or not 10 <= int(text) <= MOST_RESAMPLES):
        raise click.BadParameter(f"{text!r} is neither 0 nor a whole number from 10 to {MOST_RESAMPLES}", ctx, param)
    return whole_number(0, MOST_RESAMPLES)(ctx, param, value)


def parse_share(
    ctx: click.Context | None, param: click.Parameter | None, value: str, *, example: str = "0.95", zero: bool = False
) -> float:
    """Turn ``0.95`` or ``95%`` into a number strictly between 0 and 1, or 0 where that is allowed.

    Examples
    --------
    >>> parse_share(None, None, "95%"), parse_share(None, None, ".9"), parse_share(None, None, "0", zero=True)
    (0.95, 0.9, 0.0)
    """
    text = value.strip()
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = math.nan
    if not (0 < share < 1 or (zero and share == 0)):
        allowed = "neither 0 nor" if zero else "not"
        raise click.BadParameter(f"{text!r} is {allowed} between 0 and 1, such as {example}", ctx, param)
    return share


def parse_failure(
    ctx: click.Context | None, param: click.Parameter | None, value: str, *, example: str, zero: bool = False
) -> float:
    """Turn ``0.05`` or ``5%`` into a probability of failing; who gives ``95%`` is asked whether 5% is meant.

    Examples
    --------
    >>> parse_failure(None, None, "5%", example="0.05")
    0.05
    """
    text, found = value.strip(), parse_share(ctx, param, value, example=example, zero=zero)
    if found >= MOST_FAILURE:
        meant = f"{100 - 100 * found:.12g}%" if text.endswith("%") else f"{1 - found:.12g}"
        hint = f"did you mean {meant}?" if found > MOST_FAILURE else f"give {example}, for example"
        raise click.BadParameter(f"{text!r} is not a probability of failing below {MOST_FAILURE:g}; {hint}", ctx, param)
    if 0 < found < LEAST_FAILURE:
        raise click.BadParameter(f"{text!r} is too small; give at least {LEAST_FAILURE:g}", ctx, param)
    return found


def parse_level(ctx: click.Context | None, param: click.Parameter | None, value: str) -> float:
    """Turn ``0.95`` or ``95%`` into the level of an interval.

    Examples
    --------
    >>> parse_level(None, None, "95%")
    0.95
    """
    level = parse_share(ctx, param, value)
    if level > MOST_LEVEL:
        raise click.BadParameter(f"{value.strip()!r} is too close to 1; give at most {MOST_LEVEL}", ctx, param)
    return level


def parse_size(ctx: click.Context | None, param: click.Parameter | None, value: str) -> int:
    """Turn ``2GB``, ``500 MB`` or ``1.5GiB`` into bytes.

    Examples
    --------
    >>> parse_size(None, None, "2GB"), parse_size(None, None, "1.5 GiB")
    (2000000000, 1610612736)
    """
    match = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*([kmgt]?)(i?)b?", value.strip().lower())
    if match is None or (match[3] and not match[2]):
        raise click.BadParameter(f"{value!r} is not a size such as 500MB or 2GB", ctx, param)
    return int(float(match[1]) * (1024 if match[3] else 1000) ** " kmgt".index(match[2] or " "))


def parse_radius(ctx: click.Context | None, param: click.Parameter | None, value: str) -> float:
    """Turn ``0.5`` into a radius.

    Examples
    --------
    >>> parse_radius(None, None, " .5 ")
    0.5
    """
    try:
        radius = float(value)
    except ValueError:
        radius = math.nan
    if not 0 <= radius < math.inf:
        raise click.BadParameter(f"{value.strip()!r} is not a radius, a number >= 0 such as 0.5", ctx, param)
    return abs(radius)


def parse_radii(ctx: click.Context | None, param: click.Parameter | None, values: Sequence[str]) -> tuple[float, ...]:
    """Turn ``0.5``, ``0,0.25,0.5`` and repetitions of these into radii.

    Examples
    --------
    >>> parse_radii(None, None, ["0.5", "0,0.25"])
    (0.0, 0.25, 0.5)
    """
    return tuple(sorted({parse_radius(ctx, param, part) for value in values for part in value.split(",")}))


def parse_epsilons(
    ctx: click.Context | None, param: click.Parameter | None, values: Sequence[str]
) -> tuple[tuple[str, float], ...]:
    """Turn ``8/255``, ``0.5,1`` and repetitions of these into distances, each as it was written and as a number.

    Examples
    --------
    >>> parse_epsilons(None, None, ["2/255, 8 / 255"])
    (('2/255', 0.00784313725490196), ('8/255', 0.03137254901960784))
    """
    texts = ["".join(part.split()) for value in values for part in value.split(",")]
    found = {parse_epsilon(ctx, param, text): text for text in reversed(texts)}
    return tuple((text, number) for number, text in sorted(found.items()))


def parse_epsilon(ctx: click.Context | None, param: click.Parameter | None, value: str) -> float:
    """Turn ``8/255`` or ``0.5`` into a distance.

    Examples
    --------
    >>> parse_epsilon(None, None, "51/255")
    0.2
    """
    text = value.strip()
    match = re.fullmatch(r"([0-9.]{1,20})\s*/\s*([0-9.]{1,20})", text)
    try:
        distance = float(match[1]) / float(match[2]) if match else float(text)
    except (ValueError, ZeroDivisionError):
        distance = math.nan
    if not 0 < distance < math.inf:
        raise click.BadParameter(f"{text!r} is not a distance above 0, such as 0.5 or 8/255", ctx, param)
    return distance


def parse_box(
    ctx: click.Context | None, param: click.Parameter | None, value: str
) -> tuple[float, float] | Literal["auto"] | None:
    """Turn ``0,1`` into the smallest and the largest value of an input, and ``none`` into None.

    Examples
    --------
    >>> parse_box(None, None, "0,1"), parse_box(None, None, "none"), parse_box(None, None, "auto")
    ((0.0, 1.0), None, 'auto')
    """
    text = value.strip().lower()
    if text in ("none", "auto"):
        return None if text == "none" else "auto"
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        low = high = math.nan
    if not (low < high and math.isfinite(low) and math.isfinite(high)):
        raise click.BadParameter(
            f"{value!r} is no box; give the smallest and the largest value, such as 0,1, or none", ctx, param
        )
    return low, high


def parse_words(words: Sequence[str]) -> Callable[..., tuple[str, ...]]:
    """A parser of some of the given words, with commas between them.

    Examples
    --------
    >>> parse_words(["left", "right", "up"])(None, None, "up, left")
    ('up', 'left')
    """

    def parse(ctx: click.Context | None, param: click.Parameter | None, value: str) -> tuple[str, ...]:
        given = [part.strip().lower() for part in value.split(",")]
        for word in given:
            if word not in words:
                hint = nearest(word, words, f"there are {', '.join(words)}")
                raise click.BadParameter(f"there is no {word!r}{hint}", ctx, param)
        return tuple(dict.fromkeys(given))

    return parse


def parse_positive(
    ctx: click.Context | None, param: click.Parameter | None, value: str, *, zero: bool = False, most: float = math.inf
) -> float:
    """Turn ``0.5`` into a number above 0, or 0 where that is allowed.

    Examples
    --------
    >>> parse_positive(None, None, "0.25")
    0.25
    """
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not (0 < number < math.inf or (zero and number == 0)):
        what = "a number from 0" if zero else "a number above 0"
        raise click.BadParameter(f"{value.strip()!r} is not {what}, such as 0.5", ctx, param)
    if number > most:
        raise click.BadParameter(f"{value.strip()!r} is too large; give at most {most:g}", ctx, param)
    return number


def parse_pairs(ctx: click.Context | None, param: click.Parameter | None, values: Sequence[str]) -> dict[str, Any]:
    """Turn ``momentum=0.8``, ``milestones=4,8`` and ``loss=draws`` into values by name.

    Examples
    --------
    >>> parse_pairs(None, None, ["momentum=0.8", "milestones=4,8", "loss=draws", "weight-decay=5e-4", "seed=3"])
    {'momentum': 0.8, 'milestones': (4, 8), 'loss': 'draws', 'weight_decay': 0.0005, 'seed': 3}
    """
    found: dict[str, Any] = {}
    for text in values:
        name, equals, value = text.partition("=")
        if not (equals and name.strip() and value.strip()):
            raise click.BadParameter(f"{text!r} is not NAME=VALUE, such as momentum=0.8", ctx, param)
        key = name.strip().lower().replace("-", "_")
        if key in found:
            raise click.BadParameter(f"{key} is given twice; give it once", ctx, param)
        parts = [_plain(part) for part in value.strip().rstrip(",").split(",")]
        found[key] = tuple(parts) if "," in value or key == "milestones" else parts[0]
    return found


def _plain(text: str) -> int | float | str:
    """A whole number, a number, or a word."""
    word = text.strip()
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return word
