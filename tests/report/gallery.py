"""One report with every block and every mark, for the tests of all renderers."""

import math
from dataclasses import replace

import numpy as np

from certcal.claims import Estimate, Interval
from certcal.report.charts import (
    Axis,
    Band,
    Bars,
    Boxes,
    Chart,
    Cursor,
    Graph,
    Heatmap,
    Line,
    Panel,
    Points,
    Segments,
    Stack,
    TextBars,
    Words,
    counts,
    covering,
    curves,
    named_axis,
    unit,
    whiskers,
)
from certcal.report.document import (
    Block,
    Choice,
    Claim,
    Column,
    Details,
    Facts,
    Figures,
    Heading,
    KeyNumber,
    KeyNumbers,
    Listing,
    Picture,
    Report,
    Section,
    Strong,
    Table,
    Text,
)
from certcal.report.provenance import Provenance
from certcal.verdict import Candidate, Verdict, judge

RADII = (0.0, 0.25, 0.5, 0.75)
START = 1
CHOICE = "radius"


def gallery(more: str = "", *, outcome: str = "met") -> Report:
    """A report with every block and every mark.

    Parameters
    ----------
    more
        Added to every text that may come from outside, such as something that would like to be markup.
    outcome
        What the verdict says.
    """
    return Report(
        f"How calibrated is the model?{more}",
        [
            Claim(
                f"Certificate{more}",
                f"The certified calibration error is at most 0.0813 within radius 0.25.{more}",
                f"at most 0.0813{more}",
                f"99.9% sure, over the noise.{more}",
                tuple(f"{each}{more}" for each in ("samples are independent", "the noise is Gaussian", "α is split")),
                {f"bins{more}": f"15{more}", f"sigma{more}": f"0.25{more}"},
                _terms(more),
                f"The calibration error is the average gap between confidence and accuracy.{more}",
            ),
            Claim("Estimate", "The ECE is 0.0398 on these samples.", "0.0398", "Not a guarantee."),
            Text(f"Two sentences. They say what it means.{more}"),
            KeyNumbers(
                [
                    KeyNumber(f"accuracy{more}", f"0.9310{more}", (f"of 1,000 samples{more}", "all of them")),
                    KeyNumber("mean confidence", "0.9520", ("overconfident",)),
                    KeyNumber("Brier score", "0.0710"),
                ],
                f"Estimates of this table.{more}",
            ),
        ],
        [Section(f"{title}{more}", blocks, brief=place == 0) for place, (title, blocks) in enumerate(_sections(more))],
        [
            Section(f"Settings{more}", [Facts([(f"bins{more}", f"15{more}"), ("seed", "0")], f"Settings used{more}")]),
            Section("Ledger", [table(more), Claim(f"Bound{more}", f"A bound of {more} is at most 0.1.")]),
        ],
        f"predictions.csv{more}",
        f"1,000 samples, 10 classes{more}",
        [f"Groups with fewer than 30 samples are not shown.{more}"],
        {"ece": 0.0398, "name": f"group{more}"},
        (),
        {"owner": f"Risk team{more}", "model": f"credit score{more}", f"ticket{more}": f"ABC-1{more}"},
        verdict(outcome, more),
        Provenance(
            ("certcal", "measure", f"predictions.csv{more}", "--bins", "15"),
            "2026-01-02T03:04:05Z",
            {"certcal": "0.0", f"python{more}": f"3.11{more}"},
            {f"bootstrap{more}": 0},
            ((f"predictions.csv{more}", 123_456, "0" * 64),),
            (f"The table was read once.{more}",),
        ),
    )


def _sections(more: str) -> list[tuple[str, list[Block]]]:
    return [
        ("Reliability", [Figures([reliability(more)], beside=[table(more), Text(f"Beside a chart.{more}", "note")])]),
        (
            "Radius",
            [
                choice(more),
                Table(
                    (Column(f"radius{more}", "level", "lower"), Column("ECE", "bound", "upper")),
                    [(radius, 0.04 + radius / 5) for radius in RADII],
                    f"By radius{more}",
                    choice=(CHOICE, {place: place for place in range(len(RADII))}),
                ),
                by_radius(more),
            ],
        ),
        (
            "Comparison",
            [
                Figures([scatter(more), front(more), boxes(more), bars(more), stack(more)], f"Five figures.{more}"),
                Figures([reliability(more, size="small") for _ in range(4)]),
                heatmap(4, more),
                heatmap(24, more),
                graph(more),
                boxes(more, 20),
            ],
        ),
        (
            "Samples",
            [
                Table(
                    (Column("sample"), Column(f"label{more}"), Column("confidence", "estimate")),
                    [(Picture(_pixels(place), f"a digit {place}{more}"), f"{place}{more}", 0.5) for place in range(2)],
                    f"Most influential samples{more}",
                    f"Rows are ordered by influence.{more}",
                ),
            ],
        ),
        (
            "Texts",
            [
                Text(f"A plain paragraph.{more}"),
                Text(f"A note.{more}", "note"),
                Text(f"Nine samples were left out.{more}", "warning"),
                Text(f"certcal measure table.csv{more}", "code"),
                Listing([f"A sentence.{more}", "Another one.", "A third one."], most=2),
                Facts([(f"alpha{more}", f"0.001{more}"), ("n", "10,000")], f"Facts{more}"),
                Details(f"More{more}", [Text(f"Inside.{more}"), table(more)]),
            ],
        ),
        ("Nothing", [nothing(more)]),
    ]


def table(more: str = "") -> Table:
    """A table with every kind of column and cell."""
    return Table(
        (
            Column(f"metric{more}"),
            Column("estimate", "estimate"),
            Column("interval", "interval", priority=2),
            Column("bound", "bound", "upper"),
            Column("samples", "count", priority=1),
            Column("share", "percent", priority=3),
            Column("correlation", "brief", priority=4),
            Column("radius", "level", "lower", priority=5),
        ),
        [
            Heading(f"Errors{more}"),
            (f"ECE{more}", 0.03978, (0.03011, 0.05012), 0.08121, 1000, 0.25, 0.417, 0.25),
            (Strong(f"MCE{more}"), math.nan, (math.nan, 1.0), math.nan, 12_000, math.nan, math.nan, None),
            Heading("Scores"),
            ("Brier", 0.0000123, None, None, 1000, 0.5, -1e-9, 0.1),
            ("log loss", 0.25, None, None, 1000, 0.5, 1.0, 0.1),
        ],
        f"Metrics of the table{more}",
        f"Intervals are bootstrap intervals.{more}",
        most=5,
    )


def _terms(more: str) -> Table:
    return Table(
        (Column("term"), Column("value", "bound", "upper")),
        [(f"estimate{more}", 0.0398), ("sampling error", 0.0415)],
        f"Terms of the bound{more}",
    )


def verdict(outcome: str, group: str = "") -> Verdict:
    """One requirement on an error."""
    value = {"met": 0.06, "not shown": 0.09, "not met": 0.2}[outcome]
    error = Estimate("error", value, 400, {}, Interval(value - 0.02, value + 0.02, 0.95, "norm"))
    return judge([Candidate(error, group=group or None)], "error <= 10%")


def reliability(more: str = "", *, size: str = "normal", shift: float = 0.0) -> Chart:
    """Bars, gaps, a diagonal, whiskers, points and signs over a histogram."""
    edges = np.linspace(0, 1, 6)
    accuracy = np.array([math.nan, 0.35, 0.45, 0.68, 0.85]) - shift
    confidence = np.array([math.nan, 0.3, 0.52, 0.71, 0.93])
    count = np.array([0, 3, 40, 200, 2500])
    over = confidence > accuracy
    left, right = edges[:-1], edges[1:]
    middles = (left + right) / 2
    samples = counts(count.tolist(), "samples")
    return Chart(
        f"Reliability diagram{more}",
        f"Four of five bins hold samples.{more}",
        [
            Panel(
                unit("confidence"),
                unit(f"accuracy{more}"),
                [
                    Bars(left, right, np.zeros(5), accuracy, "accuracy", f"accuracy{more}"),
                    Bars(left[over], right[over], accuracy[over], confidence[over], "over", "gap, overconfident"),
                    Bars(left[~over], right[~over], confidence[~over], accuracy[~over], "under", "gap, underconfident"),
                    Segments([(0, 0, 1, 1)], "ideal", "perfect calibration"),
                    whiskers(confidence, accuracy - 0.05, accuracy + 0.05, "95% bootstrap band"),
                    Points(confidence, accuracy, "ink", "mean confidence and accuracy"),
                    Words(middles, np.ones(5), ["", "−", "+", f"+{more}", "+"], "sign"),
                ],
                240,
            ),
            Panel(
                unit(f"confidence{more}"),
                samples,
                [Bars(left, right, np.full(5, samples.low), count, "count", "samples per bin")],
                58,
            ),
        ],
        f"ECE 0.0398, 5 bins.{more}",
        Table(
            (Column("bin"), Column("samples", "count"), Column("accuracy", "estimate")),
            [(f"bin {place}", int(count[place]), float(accuracy[place])) for place in range(5)],
            f"Bins{more}",
        ),
        size,
        TextBars(
            (f"bin{more}", f"{{bar}} accuracy, {{mark}} confidence{more}", "samples"),
            [
                (
                    f"bin {place}{more}",
                    float(accuracy[place]) if count[place] else None,
                    float(confidence[place]) if count[place] else None,
                    [f"{count[place]:,}"],
                )
                for place in range(5)
            ],
            f"Bars are accuracies.{more}",
        ),
    )


def choice(more: str = "") -> Choice:
    """A slider over radii."""
    return Choice(
        CHOICE,
        f"Radius{more}",
        [f"radius {radius}{more}" for radius in RADII],
        START,
        [
            [reliability(more, shift=radius / 5), Text(f"The error is at most {0.04 + radius / 5:.2f}.{more}")]
            for radius in RADII
        ],
    )


def by_radius(more: str = "") -> Chart:
    """Eight lines, one with a band, one with a gap, and a cursor."""
    series = {f"method {place}{more}": [0.1 * place + radius / 4 for radius in RADII] for place in range(8)}
    series[f"method 3{more}"][1] = math.nan
    first = series[f"method 0{more}"]
    made = curves(
        f"ECE by radius{more}",
        RADII,
        series,
        y_label=f"ECE{more}",
        description=f"It grows with the radius.{more}",
        cursor=Cursor(CHOICE, RADII, START),
        caption=f"Lines between the radii only guide the eye.{more}",
    )
    (panel,) = made.panels
    band = Band(RADII, [value - 0.02 for value in first], [value + 0.02 for value in first], 0)
    return replace(made, panels=[replace(panel, marks=[band, *panel.marks])])


def scatter(more: str = "") -> Chart:
    """Points with names and shades, and staircases."""
    x = np.linspace(0.1, 0.9, 30)
    y = np.where(x > 0.85, math.nan, x * x)
    return Chart(
        f"Models{more}",
        f"Thirty models as points.{more}",
        [
            Panel(
                unit(f"accuracy{more}"),
                covering([-0.5, 1], f"score{more}", low=None),
                [
                    Segments([(0, 0, 1, 0)], "zero"),
                    Points(x, y, "ink", "", [f"model {place}{more}" for place in range(30)], x[::-1], f"depth{more}"),
                    Line([0, 0.3, 0.6, 1], [0.1, 0.4, 0.7, 0.9], 1, "distribution, post", "post", markers=False),
                    Line([0, 0.3, 0.6, 1], [0.0, 0.3, 0.6, 0.8], 2, "distribution, pre", "pre"),
                    Points([0.5], [-0.3], 4, "one series of points"),
                    Segments([(0.1, -0.2, 0.4, -0.4)], 3, "a segment"),
                    Segments([(0.1, -0.3, 0.4, -0.5)], "edge"),
                ],
                270,
            )
        ],
        f"Point at a model to read its name.{more}",
    )


def front(more: str = "") -> Chart:
    """Points with words beside them."""
    x, y = [0.1, 0.2, 0.35, 0.355, 0.6], [0.8, 0.6, 0.4, 0.4, 0.3]
    return Chart(
        f"Clean and certified Brier score{more}",
        f"Lower is better.{more}",
        [
            Panel(
                unit("clean"),
                unit("certified"),
                [
                    Line(x, y, 0, "maps"),
                    Segments([(0.1, 0.8, 0.35, 0.4)], "cursor", "the chosen step"),
                    Points([0.1, 0.6], [0.8, 0.3], "ink", "ends"),
                    Words(x, y, [f"λ = {place}{more}" for place in range(5)], beside=True),
                    Words([0.8], [0.9], [f"centred{more}"]),
                ],
                260,
            )
        ],
    )


def boxes(more: str = "", count: int = 3) -> Chart:
    """Box plots at named places."""
    middle = np.linspace(-0.3, 0.6, count)
    return Chart(
        f"Distributions{more}",
        f"{count} distributions side by side.{more}",
        [
            Panel(
                named_axis(
                    [f"population {place}{more}" if count > 3 else f"p{place}{more}" for place in range(count)], "by"
                ),
                covering([*(middle - 0.4), *(middle + 0.4)], "rank correlation", low=None),
                [
                    Segments([(0, 0, count, 0)], "zero"),
                    Boxes(middle - 0.4, middle - 0.1, middle, middle + 0.15, middle + 0.4),
                ],
            )
        ],
        size="wide" if count > 14 else "normal",
    )


def bars(more: str = "") -> Chart:
    """Bars up and down, and bars of a series and of an unknown look."""
    places = np.arange(4.0)
    return Chart(
        f"Contributions{more}",
        f"Two up, two down.{more}",
        [
            Panel(
                named_axis([f"{name}{more}" for name in "abcd"], f"bin{more}"),
                covering([-0.4, 0.6], "contribution", low=None),
                [
                    Bars(places[:2] + 0.2, places[:2] + 0.8, [0, 0], [0.5, 0.25], "plus", "adds"),
                    Bars(places[2:] + 0.2, places[2:] + 0.5, [0, 0], [-0.3, -0.1], "minus", "takes away"),
                    Bars([2.5], [2.8], [0], [0.3], 1, "second series"),
                    Bars([3.5], [3.8], [0], [0.2], "unheard of", "unknown look"),
                    Band([0, 4], [-0.1, -0.1], [0.1, 0.1], 5, "tolerance"),
                    Segments([(0, 0, 4, 0)], "zero"),
                ],
                title=f"By bin{more}",
            )
        ],
    )


def stack(more: str = "") -> Chart:
    """Lying bars that add up terms."""
    terms = [{f"estimate{more}": 0.04, "sampling error": 0.05}, {f"estimate{more}": 0.02, "bias": 0.1, "gap": 0.01}]
    return Chart(
        f"Terms of the bounds{more}",
        f"Two bounds.{more}",
        [Stack([f"binned{more}", f"isotonic{more}"], terms, [f"0.0901{more}", "0.1300"], covering([0.13], "value"))],
    )


def heatmap(count: int, more: str = "") -> Chart:
    """A symmetric matrix of rank correlations with an undefined pair."""
    place = np.arange(count)
    values = np.cos(np.abs(place[:, None] - place[None, :]) / 2.0)
    values[0, 1] = values[1, 0] = math.nan
    names = [f"{'ece' if each < count // 2 else 'smooth ece'} {each}{more}" for each in range(count)]
    return Chart(
        f"Rank correlations of {count} columns{more}", f"Neighbours agree.{more}", [Heatmap(names, values)], "Kendall."
    )


def graph(more: str = "") -> Chart:
    """Boxes with arrows of every look."""
    names = [f"{name}{more}" for name in ("baseline", "smoothing with noise", "ensemble", "distilled")]
    first, second, third, fourth = names
    return Chart(
        f"Dominance{more}",
        f"Ensembles are ahead.{more}",
        [
            Graph(
                names,
                [(third, first, "firm"), (third, second, "strict"), (second, fourth, "weak"), (third, fourth, "weak")],
                frozenset([third]),
                {
                    "firm": f"beyond sampling error{more}",
                    "strict": "higher everywhere",
                    "weak": "nowhere lower",
                    "top": "undominated",
                    "node": "dominated",
                },
            )
        ],
    )


def nothing(more: str = "") -> Chart:
    """A chart without a finite value."""
    return Chart(
        f"Empty{more}",
        f"There is no value.{more}",
        [Panel(Axis(0, 1, (), "x"), unit("y"), [Line([0, 1], [math.nan, math.inf], 0, "a line"), Points([], [])])],
    )


def _pixels(place: int) -> np.ndarray:
    values = np.zeros((8, 8))
    values[place : place + 3, 2:6] = 1.0
    return values
