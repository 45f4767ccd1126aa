"""All maps of a recalibration in tables: what each does to samples that it was not fitted to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from certcal._html import Raw, element, join
from certcal._text import counted
from certcal.calibrators import Judged, JudgedAt, Recalibration
from certcal.claims import short_text
from certcal.report.numbers import number
from certcal.report.page._frames import chosen
from certcal.report.page._pieces import note, scrolling
from certcal.report.page._recalibration_drawn import NOTHING, within

MOST_MAPS = 60

Column = tuple[str, Callable[[Judged, JudgedAt], str]]


def _clean(key: str) -> Callable[[Judged, JudgedAt], str]:
    return lambda line, _: number(line.clean[key].value) if key in line.clean else NOTHING


def _worst(metric: str) -> Callable[[Judged, JudgedAt], str]:
    def text(_: Judged, at: JudgedAt) -> str:
        found = at.summary[metric].worst
        return NOTHING if found is None else found.text

    return text


def _text(claim: Any) -> str:
    return NOTHING if claim is None else claim.text


_WITHOUT: tuple[Column, ...] = (
    ("clean Brier", _clean("brier_score")),
    ("clean ECE", _clean("ece")),
    ("AUROC", _clean("auroc")),
)
_WITHIN: tuple[Column, ...] = (
    ("Brier\u00a0≤", _worst("brier_score")),
    ("ECE\u00a0≤", _worst("calibration_error")),
    ("ECE, claimed\u00a0≤", lambda _, at: _text(at.claim)),
    ("ECE, population\u00a0≤", lambda _, at: _text(at.summary.population)),
    ("skill\u00a0≥", lambda _, at: at.summary.skill.text),
    ("gain, population\u00a0≥", lambda _, at: _text(at.gain)),
)


def maps_part(found: Recalibration) -> Raw:
    """Tables of all maps on the held-out samples: without a perturbation, and in the worst case within each radius.

    Parameters
    ----------
    found
        What recalibrating did.
    """
    certified = [each for each in _WITHIN if "claimed" not in each[0] or found.chosen.at[0].claim is not None]
    without = _WITHOUT if found.identity.clean else ()
    delta = short_text(float(found.settings["delta"]), "upper")
    if len(found.radii) == 1:
        caption = f"Held-out samples, clean and in the worst case {within(found.radii[0])}"
        tables = [_table(found, caption, [*without, *certified], None)]
    else:
        clean = "Without a perturbation: estimates on the held-out samples"
        worst = "In the worst case: ≥ and ≤ say on which side each number holds"
        tables = [_table(found, clean, without, None)] if without else []
        tables.append(_table(found, worst, certified, found.radii))
    rest = len(found.lines) - len(_shown(found))
    return join(
        element(
            "p",
            f"Every map is the best {found.method} one for its λ on the same {counted(found.n_fit, 'sample')}; the "
            f"numbers are of the {counted(found.n_held_out, 'other')}. The map that was asked for stands out.",
        ),
        tables,
        note(
            "Skill compares the certified Brier score with that of the best constant confidence on these samples; the "
            "gain is how far it is below that of a constant from the samples of the fit, in the population. Numbers "
            f"about the population may fail with probability {delta} each, so choose the trade-off before looking."
        ),
        note(f"{counted(rest, 'further map')} are in the JSON only.") if rest > 0 else None,
    )


def _table(found: Recalibration, caption: str, columns: Sequence[Column], radii: Sequence[str] | None) -> Raw:
    """Maps as rows; with radii, one group of rows for each."""
    heads = [
        element("th", "map", scope="col"),
        *(element("th", head, scope="col", class_="number") for head, _ in columns),
    ]
    lines: list[Raw] = []
    for place in range(1 if radii is None else len(radii)):
        if radii is not None:
            weight = f", weight {found.radius_weight[place]:.3g}" if len(radii) > 1 else ""
            words = f"Within radius {radii[place]}{weight}"
            lines.append(element("tr", element("th", words, colspan=len(columns) + 1, scope="colgroup")))
        for line in _shown(found):
            asked = "true" if line is found.chosen else None
            cells = [element("td", text(line, line.at[place]), class_="number") for _, text in columns]
            lines.append(element("tr", element("th", _short(line), scope="row"), cells, aria_current=asked))
    body = join(element("caption", caption), element("thead", element("tr", heads)), element("tbody", lines))
    return scrolling(element("table", body), caption)


def _short(line: Judged) -> str:
    """The λ of a map: all of a table are of one method."""
    return line.name if line.tradeoff is None else f"λ\u00a0=\u00a0{line.tradeoff:g}"


def _shown(found: Recalibration) -> list[Judged]:
    places = chosen(len(found.lines), found.lines.index(found.chosen), MOST_MAPS)
    return [found.lines[place] for place in places]
