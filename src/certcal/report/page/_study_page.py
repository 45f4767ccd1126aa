"""The page of a study: seven questions, each answered for this population, and the whole matrices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from certcal._html import Child, Raw, definition_list, element, join, table
from certcal._text import counted
from certcal.claims import short_text
from certcal.report.numbers import between, brief
from certcal.report.page._claims import key_numbers
from certcal.report.page._pieces import aside, details, note, row, scrolling, shown, verdict_card
from certcal.report.page._skeleton import Page, Section, document, embedded
from certcal.report.page._study_charts import chart_figure, is_wide
from certcal.report.provenance import Provenance
from certcal.report.results import StudiedResults, leading
from certcal.study import Answer, Finding, Matrix, StudyReview
from certcal.study._findings import Chart

# What the questions are about, by their numbers.
SUBJECTS = {
    1: "Data sets",
    2: "Robustness",
    3: "Metrics",
    4: "Temperature scaling",
    5: "Accuracy",
    6: "Bins",
    7: "Architecture",
}
_TITLE = "What do these models say about calibration?"
_KIND = "what these models show; intervals say how it would vary with other models of the kind"
# What is drawn takes about as much again.
_MOST_DATA = 600_000
# Numbers of an answer that are seen at first.
MOST_FINDINGS = 10
_LARGE = 40


def study_page(results: StudiedResults, provenance: Provenance | None = None, *, title: str | None = None) -> Page:
    """The page of a population of models.

    Parameters
    ----------
    results
        Of ``certcal study review``.
    provenance, title
        As for :func:`certcal.report.page.page`.
    """
    review = results.review
    level = review.settings.get("level", 0.95)
    sections = [Section(f"question-{each.number}", subject(each), _answer(results, each, level)) for each in review]
    if review.charts:
        sections.append(Section("all", "All measurements", _whole(review.charts)))
    sections.append(Section("settings", "How it was computed", _settings(review)))
    data = results.to_dict()
    lean = dict(_leaner(data))
    left_out = "" if len(embedded(data)) <= _MOST_DATA else next(iter(lean))
    return document(
        _TITLE if title is None else title,
        sections,
        lean[left_out] if left_out else data,
        headline=_headline(review, level),
        eyebrow="Study of many models",
        source=results.source,
        description=results.description,
        provenance=provenance,
        left_out=left_out,
        smaller=lean.items(),
    )


def subject(answer: Answer) -> str:
    """What a question is about, in a word or two.

    Examples
    --------
    >>> subject(Answer(6, "What is the impact of the number of bins?", "Large."))
    '6 Bins'
    """
    return f"{answer.number} {SUBJECTS[answer.number]}" if answer.number in SUBJECTS else f"Question {answer.number}"


def _leaner(data: dict[str, Any]) -> Iterable[tuple[str, Mapping[str, Any]]]:
    """The numbers without what grows with the columns or with the models."""

    def reduced(value: Any) -> Any:
        if isinstance(value, list):
            return [reduced(each) for each in value]  # pyright: ignore[reportUnknownVariableType]
        if not isinstance(value, dict):
            return value
        names: Any = value.get("names", ())  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        many = isinstance(names, list) and len(names) > _LARGE  # pyright: ignore[reportUnknownArgumentType]
        dropped = ({"values"} if "method" in value else {"x", "y", "names", "colour"}) if many else set[str]()
        return {key: reduced(each) for key, each in value.items() if key not in dropped}  # pyright: ignore

    said = (
        "The numbers in this page leave out the cells of large matrices and the single models of scatter plots, to "
        "keep it small; certcal study review --json prints them."
    )
    yield said, reduced(data)


def _headline(review: StudyReview, level: float) -> Raw:
    entries = [
        ("models", f"{review.models:,}", ""),
        ("data sets", f"{len(review.datasets):,}", ""),
        ("failed rows", f"{review.failed:,}", "left out" if review.failed else ""),
    ]
    rows: list[list[Child]] = [
        [
            element("a", subject(each), href=f"#question-{each.number}"),
            shown(found.name, 300),
            brief(found.value),
            between(found.low, found.high),
        ]
        for each in review
        for found in leading(each.findings, 1)
    ]
    unanswered = [subject(each) for each in review if not each.findings]
    caption = "One number per question; more of them, and what they mean, below"
    heads = ["question", "what was computed", "value", f"{short_text(level, 'lower')} interval"]
    return verdict_card(
        "estimate",
        _KIND,
        [_answered(review)],
        key_numbers(entries),
        scrolling(table(heads, rows, caption, numeric=(2, 3), row_headers=True), caption) if rows else None,
        note(f"Not answered for these models: {', '.join(unanswered)}.") if unanswered else None,
        _cautions(review.cautions),
    )


def _answered(review: StudyReview) -> str:
    count = sum(1 for each in review if each.findings)
    how_many = "all" if count == len(review.answers) else f"{count}" if count else "none"
    asked = counted(len(review.answers), "question")
    return f"Of the {asked} of the benchmark study, {how_many} can be answered with {counted(review.models, 'model')}."


def _answer(results: StudiedResults, answer: Answer, level: float) -> Raw:
    return join(
        element("p", shown(answer.question, 400), class_="question"),
        [element("p", shown(each, 3000), class_="sentence") for each in results.paragraphs(answer.answer)],
        _cautions(answer.cautions),
        _findings(answer, level) if answer.findings else None,
        _charts(f"question-{answer.number}", answer.charts),
        element(
            "p", element("strong", "The benchmark study found: "), shown(answer.published, 2000), class_="published"
        )
        if answer.published
        else None,
    )


def _cautions(sentences: Sequence[str]) -> Raw | None:
    if not sentences:
        return None
    return element(
        "ul",
        [element("li", element("strong", "Caution: "), shown(each, 1000)) for each in sentences],
        class_="cautions",
    )


def _findings(answer: Answer, level: float) -> Raw:
    """Some of the numbers, and all of them where they are asked for."""
    shown_first = leading(answer.findings, MOST_FINDINGS)
    caption = f"Question {answer.number}: what was computed"
    first = _numbers(shown_first, caption, level)
    if len(shown_first) == len(answer.findings):
        return first
    everything = f"all {len(answer.findings):,} numbers"
    return join(first, details(everything.capitalize(), _numbers(answer.findings, f"{caption}, {everything}", level)))


def _numbers(findings: Sequence[Finding], caption: str, level: float) -> Raw:
    def what(found: Finding) -> Child:
        return (shown(found.name, 300), aside(found.note))

    rows = [[what(found), brief(found.value), between(found.low, found.high), f"{found.n:,}"] for found in findings]
    heads = ["number", "value", f"{short_text(level, 'lower')} interval", "models"]
    made = table(heads, rows, caption, numeric=(1, 2, 3), row_headers=True, class_="findings")
    return scrolling(made, caption)


def _charts(key: str, charts: Sequence[Chart]) -> list[Raw]:
    """Charts in their order: narrow ones beside each other, wide ones by themselves."""
    made: list[Raw] = []
    numbered = list(enumerate(charts))
    for wide, members in groupby(numbered, lambda each: is_wide(each[1])):
        figures = [chart_figure(f"{key}-chart-{place}", each) for place, each in members]
        made += [row(each) for each in figures] if wide else [row(*figures)]
    return made


def _whole(charts: Sequence[Chart]) -> Raw:
    """What belongs to no question: the first matrix, the tables, and further matrices where they are asked for."""
    matrices = [each for each in charts if isinstance(each, Matrix)]
    others = [each for each in charts if not isinstance(each, Matrix)]
    further = [
        details(shown(each.title), row(chart_figure(f"all-matrix-{place}", each)))
        for place, each in enumerate(matrices[1:], 1)
    ]
    return join(_charts("all", [*others, *matrices[:1]]), further)


def _settings(review: StudyReview) -> Raw:
    facts: list[tuple[Child, Child]] = [
        (shown(name.replace("_", " ").capitalize(), 60), shown(_setting(value), 600))
        for name, value in review.settings.items()
        if value is not None
    ]
    return join(
        definition_list(facts, class_="facts"),
        note(
            "Intervals are bootstrap intervals over models: all rows of a model are drawn together. They are "
            "estimates, and no guarantees. They do not cover the sampling noise of the test sets, nor that several "
            "questions are asked of the same models."
        ),
    )


def _setting(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_setting, value)) or "none"  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:g}" if isinstance(value, float) else str(value)
