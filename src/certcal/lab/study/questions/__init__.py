"""The seven questions of the benchmark study (Tao et al. 2024), asked of any population of models: one entry each."""

from __future__ import annotations

from certcal.lab.study.questions._architecture import Designs
from certcal.lab.study.questions._charts import BinBoxes, BracketBoxes, Scatter, StageLines, StageMatrix
from certcal.lab.study.questions._form import Question, SheetAnswer, SheetChart, Statistic
from certcal.lab.study.questions._orders import Agreement, Transfer
from certcal.lab.study.questions._relations import (
    STRATUM,
    Effect,
    GrowthWithBins,
    Relation,
    Relations,
    RelationsAtEqualAccuracy,
)

__all__ = [
    "QUESTIONS",
    "Agreement",
    "BinBoxes",
    "BracketBoxes",
    "Designs",
    "Effect",
    "GrowthWithBins",
    "Question",
    "Relation",
    "Relations",
    "RelationsAtEqualAccuracy",
    "Scatter",
    "SheetAnswer",
    "SheetChart",
    "StageLines",
    "StageMatrix",
    "Statistic",
    "Transfer",
]

QUESTIONS = (
    Question(
        "Data sets",
        "Can model calibration be generalised across different data sets?",
        (Transfer("metric"),),
        "The ECE on CIFAR-10 says little about that on CIFAR-100 and nothing about that on ImageNet16-120 (for the "
        '"top 1000" models it is even negatively correlated); CIFAR-100 and ImageNet16-120 agree more. The calibration '
        "of an architecture does not carry over.",
        together=True,
    ),
    # Checked against the authors' public notebooks (q2.ipynb, fig34-37and41-q49.ipynb) and robustness tables.
    Question(
        "Robustness",
        "Can robustness be used as a calibration measurement?",
        (Relations("robustness", references=("accuracy", "equal_mass_ece", "ks_error", "mmce")),),
        "Figure 3 has all robustness measures, and accuracy itself, correlate with the ECE at about +0.5 among the "
        '"top 1000" models on CIFAR-10: the more robust model has the larger error. The authors\' notebooks sort by '
        "accuracy in ascending order and take the first rows, so these are the 1,000 least accurate models. Among all "
        "models the correlations of accuracy and of the AUROC on other data sets vanish; that of accuracy under PGD "
        "attacks is +0.27. Equal-mass ECE, KS calibration error and MMCE agree with the ECE throughout. This review "
        "takes the most accurate models instead.",
        refusal="The table has no robustness columns. Add some to the manifest (such as the accuracy on corrupted or "
        "attacked inputs) and name them as robustness, or measure with out-of-distribution files, which gives auroc_ "
        "columns.",
        cautions=("Negative correlations say that models with a higher value have a smaller calibration error.",),
    ),
    Question(
        "Metrics",
        "How reliable are calibration metrics?",
        (Agreement(),),
        "Most metrics order the models alike, whether they bin or not, NLL and Brier score included, and in spite of "
        "its known faults the ECE agrees with most of them. The classwise errors agree less; the classwise equal-mass "
        "one is even negatively correlated with others on ImageNet16-120 and may not be reliable.",
        refusal="Needs three metrics before scaling that differ between models, of the same {least} or more; measure "
        "the whole battery.",
        opening="The mean correlation of the least agreeing metric",
        cautions=(
            "Metrics of a model share their test samples, so chance makes them agree more than their true values do. "
            "Agreement does not prove that they measure the right thing: NLL and Brier score also reward accuracy.",
        ),
    ),
    Question(
        "Temperature scaling",
        "Does a post-hoc calibration method affect all models uniformly?",
        (
            Effect(
                "metric",
                "scaled",
                "scaling",
                "On {data}, scaling lowers the {label} of {lowered:share} of {n:,} models[, its median to "
                "{ratio:number} of what it was]. The order {kept} (correlation {order:correlation}[; among the {top:,} "
                "{most} accurate {best:correlation}]).",
                "On {data} {n} models were measured before and after; this needs {least}.",
            ),
        ),
        "No: the ECE before and after temperature scaling are almost uncorrelated on CIFAR-10, and alike on the other "
        "data sets and among the most accurate models. A well calibrated model need not be one after scaling, so that "
        "comparisons without post-hoc calibration may be unfair.",
        refusal="The table has no column {scaled}: measure the models with temperature scaling (certcal study "
        "measure).",
        charts=(StageMatrix(),),
        opening="The correlation of before and after",
    ),
    Question(
        "Accuracy",
        "How does calibration interact with accuracy?",
        (
            Relation(
                "accuracy",
                "metric",
                "more accurate models have a {direction} {label}",
                "On {data}, {says} among all {n:,} models ({whole:correlation})[; {also} ({first:correlation}, a "
                "difference of {change:correlation}: {clear})].",
                "On {data} there are {n} models with an accuracy; this needs at least {least}.",
            ),
        ),
        "On CIFAR-10, models of more than 90 % accuracy are the better calibrated the more accurate they are; among "
        "all models there is no such pattern. So accuracy and calibration go together only among good models, and are "
        "no trade-off there.",
        refusal="The table has no column accuracy: measure the models first.",
        charts=(Scatter(),),
        opening="The correlation of accuracy and {label}",
    ),
    Question(
        "Bins",
        "What is the impact of bin size on calibration measurement?",
        (
            GrowthWithBins(
                "On {data}, from {few} to {many} bins the median {binned} changes by a factor of {grows} scaling, and "
                "the two orders have a correlation of {orders}.",
            ),
        ),
        "On CIFAR-10 the ECE grows with the number of bins, and more so after temperature scaling: twice as large at "
        "100 bins and five times at 500, where its order of the models has almost nothing to do with that at 100. "
        "Before scaling it is steadier. Undertrained models depend more on the number of bins.",
        refusal="Needs {binned} at two numbers of bins or more, of at least {least} models; measure with several "
        "numbers of bins.",
        charts=(BinBoxes(),),
        drawn=12,
    ),
    Question(
        "Architecture",
        "Which architectural designs are beneficial for calibration?",
        (
            RelationsAtEqualAccuracy("sizes", uneven=("width",)),
            Designs("architecture"),
        ),
        "Larger models are not always worse calibrated: on CIFAR-10 the ECE first grows and then falls with size, on "
        "ImageNet16-120 it grows; wider models are worse calibrated on hard data sets. The 20 cells with the best "
        "harmonic calibration score tend to have convolutions on edges 1, 5 and 6, and all have a skip connection on "
        "edge 4.",
        refusal="The table has no columns that describe the models and differ between them. Add some to the manifest: "
        "numbers such as parameters or width, or texts with a few values such as the operation on an edge.",
        cautions=(
            "The harmonic calibration score rewards accuracy, and accuracy goes with architecture. Only what holds at "
            f"equal accuracy (within every {STRATUM} models of nearly the same accuracy) speaks of calibration.",
            "Associations among these models: a size or a design may only come with something else.",
        ),
        charts=(BracketBoxes("sizes"), StageLines("width")),
        drawn=8,
    ),
)
