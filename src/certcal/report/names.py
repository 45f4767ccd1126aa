"""What numbers are called for people, in which order they stand, and how each is computed."""

from __future__ import annotations

from collections.abc import Iterable

from certcal.claims import Estimate
from certcal.report.document import Column, Table

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
    "population_bound": "calibration error in the population",
    "claimed_calibration_error": "calibration error, claimed",
}

CALIBRATION_ERROR = (
    "The calibration error is how far confidences and the share of right predictions lie apart, averaged over "
    "predictions; smaller is better."
)
METRICS = {
    "accuracy": "The share of samples whose prediction is correct.",
    "mean_confidence": "The mean of the confidences. Above the accuracy, the model is overconfident on the whole.",
    "auroc": "The probability that a random correct sample has a higher confidence than a random wrong one; ties count "
    "half.",
    "harmonic_calibration_score": "The harmonic mean of the accuracy and 1 − ECE: high only when both are.",
    "ece": "Samples are put into bins of equal width by their confidence. The value is the mean over samples of the "
    "distance between accuracy and mean confidence of their bin.",
    "equal_mass_ece": "As ECE, with bins that hold equally many samples; equal confidences share a bin.",
    "debiased_ece": "The root of the mean squared gap of the bins, after the part that chance alone would give to each "
    "bin is subtracted.",
    "lp_ece": "The root of the mean squared gap of the bins, each weighted by its samples.",
    "sweep_ece": "As ECE with equal-mass bins, with as many bins as keep the accuracies rising.",
    "mce": "The largest gap between accuracy and mean confidence of any bin that holds samples, however few.",
    "classwise_ece": "The ECE of “the probability of class k” against “the label is k”, averaged over the classes.",
    "classwise_equal_mass_ece": "As the ECE per class, with equal-mass bins chosen for each class.",
    "smooth_ece": "Gaps are smoothed with a kernel, reflected at 0 and 1, whose width is where the smoothed error "
    "equals it. No bins are chosen.",
    "ks_error": "The largest distance from zero of the running sum of correctness minus confidence, taken in the order "
    "of the confidences, divided by the number of samples. No bins are chosen.",
    "kuiper_error": "The range of the same running sum: the largest miscalibration of any interval of confidences.",
    "kde_ece": "Accuracy as a function of the confidence is estimated with kernels; the value is its mean distance "
    "from the confidence.",
    "mmce": "A kernel compares all pairs of samples; the value is zero only when no smooth function of the confidence "
    "tells correct from expected.",
    "brier_score": "The mean squared distance between the probabilities of all classes and the outcome, from 0 to 2.",
    "top_label_brier_score": "The mean squared difference between confidence and correctness.",
    "brier_reliability": "The part of the Brier score that recalibrating the bins would remove.",
    "brier_resolution": "How much the accuracies of the bins differ from the overall accuracy: more is better.",
    "brier_uncertainty": "The variance of the outcomes, which no model of these samples can change.",
    "brier_within_bin": "What is left because confidences differ within their bin.",
    "nll": "The mean of −log of the probability that was given to the true class.",
    "top_label_nll": "The mean of −log z over correct samples and −log(1 − z) over wrong ones.",
}

CERTIFIED = {
    "certified_accuracy": "The share of all samples whose prediction is certified and correct. Rounded down.",
    "certified_skill": "1 minus the certified Brier score over that of one constant confidence for all samples. Above "
    "0, the confidences carry information that survives inside the intervals. Rounded down.",
    "certified_best_skill": "The certified skill of the non-decreasing map of the confidences that has the least "
    "certified Brier score: one isotonic regression, of correctness on the lower end of each correct sample's interval "
    "and the upper end of each wrong one's. It is fitted to these very samples, so it is an optimistic figure for "
    "others. Rounded down.",
    "certified_miscalibration": "The certified Brier score minus that of the same map: what a non-decreasing map can "
    "take away, and no more. Rounded up.",
    "certified_resolution": "The Brier score of one constant confidence minus the certified one of the same map: 0 "
    "when no non-decreasing map is certified to beat a constant. No confidences inside the intervals have less. "
    "Rounded down.",
    "certified_uncertainty": "The Brier score of one constant confidence for all samples, the best one: p(1 − p), with "
    "p the share of correct samples among those that are certified. Rounded up.",
    "brier_score": "Each correct sample is put at the lower end of its interval and each wrong one at the upper end: "
    "no other confidences have a larger score.",
    "nll": "Each correct sample is put at the lower end of its interval and each wrong one at the upper end: no other "
    "confidences have a larger loss.",
    "calibration_error": "The largest ECE over all confidences inside the intervals, found exactly: for a given sign "
    "of every bin the best place of each sample is known, and a dynamic program goes over all signs.",
    "mce": "The largest gap that any single bin can have, over all confidences inside the intervals.",
    "ks_error": "The largest Kolmogorov–Smirnov distance over all confidences inside the intervals, found exactly.",
    "population_bound": "The worst case on these samples, plus the sampling error, plus what intervals that fail can "
    "add.",
    "claimed_calibration_error": "The worst case on these samples, plus what failing certificates can add: each moves "
    "two bins by at most one sample each, and the tail of a binomial distribution bounds how many fail. Nothing is "
    "added when all certificates hold together (familywise).",
}


def label(name: str) -> str:
    """What a metric is called for people."""
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
        sections.append(("Other", left))
    return sections


def definitions(rows: Iterable[Estimate]) -> Table:
    """What each metric of some rows is, once."""
    known = [name for name in dict.fromkeys(row.name for row in rows) if name in METRICS]
    return Table((Column("metric"), Column("definition")), [(label(name), METRICS[name]) for name in known])
