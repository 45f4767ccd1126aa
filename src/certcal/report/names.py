"""What the rows of a table are called for people, and in which order they stand."""

from __future__ import annotations

from collections.abc import Iterable

from certcal.claims import Estimate

SECTIONS: tuple[tuple[str, dict[str, str]], ...] = (
    (
        "Accuracy",
        {
            "accuracy": "accuracy",
            "mean_confidence": "mean confidence",
            "auroc": "AUROC (confidence ranks correct)",
            "harmonic_calibration_score": "harmonic score of accuracy, 1 − ECE",
        },
    ),
    (
        "Calibration error in bins",
        {
            "ece": "ECE",
            "equal_mass_ece": "ECE, equal-mass bins",
            "debiased_ece": "RMS gap, debiased",
            "lp_ece": "ECE, root mean square",
            "sweep_ece": "ECE, monotone sweep",
            "mce": "MCE, the largest gap",
            "classwise_ece": "ECE per class, averaged",
            "classwise_equal_mass_ece": "ECE per class, equal-mass",
        },
    ),
    (
        "Calibration error without bins",
        {
            "smooth_ece": "SmoothECE",
            "ks_error": "Kolmogorov–Smirnov",
            "kuiper_error": "Kuiper",
            "kde_ece": "ECE by kernel density",
            "mmce": "MMCE",
        },
    ),
    (
        "Proper scores",
        {
            "brier_score": "Brier score, all classes",
            "top_label_brier_score": "Brier score, top label",
            "brier_reliability": "= reliability (miscalibration)",
            "brier_resolution": "− resolution (what is told apart)",
            "brier_uncertainty": "+ uncertainty (of the outcomes)",
            "brier_within_bin": "+ spread within bins",
            "nll": "log loss, all classes",
            "top_label_nll": "log loss, top label",
        },
    ),
)
# For tables with a line per group, most telling first.
HEADLINES = (
    "accuracy",
    "mean_confidence",
    "ece",
    "smooth_ece",
    "equal_mass_ece",
    "top_label_brier_score",
    "ks_error",
    "top_label_nll",
    "auroc",
    "mce",
)
SHORT = {
    "mean_confidence": "mean conf.",
    "equal_mass_ece": "equal mass",
    "top_label_brier_score": "Brier",
    "ks_error": "KS",
    "top_label_nll": "log loss",
    "auroc": "AUROC",
    "mce": "MCE",
}

NAMES = tuple(name for _, members in SECTIONS for name in members)
_OTHER = "Other"

# What certified numbers are called.
CERTIFIED_NAMES = {
    "certified_accuracy": "certified accuracy",
    "certified_skill": "certified skill",
    "certified_best_skill": "certified skill of the best monotone map",
    "certified_miscalibration": "certified miscalibration",
    "certified_resolution": "certified resolution",
    "certified_uncertainty": "uncertainty",
    "brier_score": "Brier score",
    "nll": "log loss",
    "calibration_error": "calibration error (ECE)",
    "mce": "largest gap of a bin (MCE)",
    "ks_error": "Kolmogorov–Smirnov error",
    "population_bound": "calibration error of the population",
    "claimed_calibration_error": "calibration error, claimed",
}


def label(name: str) -> str:
    """What a metric is called for people.

    Examples
    --------
    >>> label("ece"), label("new_metric")
    ('ECE', 'new metric')
    """
    for _, members in SECTIONS:
        if name in members:
            return members[name]
    return name.replace("_", " ")


def in_sections(rows: Iterable[Estimate]) -> list[tuple[str, list[Estimate]]]:
    """Rows under the headings they belong to; within a heading in the order of the headings' own list.

    Examples
    --------
    >>> rows = [Estimate("ece", 0.1, 9), Estimate("accuracy", 0.8, 9)]
    >>> [(title, [row.name for row in members]) for title, members in in_sections(rows)]
    [('Accuracy', ['accuracy']), ('Calibration error in bins', ['ece'])]
    """
    left = list(rows)
    sections: list[tuple[str, list[Estimate]]] = []
    for title, members in SECTIONS:
        order = list(members)
        found = sorted((row for row in left if row.name in members), key=lambda row: order.index(row.name))
        left = [row for row in left if row.name not in members]
        if found:
            sections.append((title, found))
    if left:
        sections.append((_OTHER, left))
    return sections
