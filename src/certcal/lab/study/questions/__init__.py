"""The seven questions of the benchmark study (Tao et al. 2024), asked of any population of models: one entry each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from certcal.lab.study._findings import Answer, Draft
from certcal.lab.study._population import Population
from certcal.lab.study.questions._accurate import accuracy, robustness
from certcal.lab.study.questions._architecture import architecture
from certcal.lab.study.questions._orders import across_datasets, agreement
from certcal.lab.study.questions._scaling import bin_counts, scaling


@dataclass(frozen=True)
class Question:
    """One question."""

    name: str  # what it is about, in a word or two
    title: str  # as the benchmark study asks it
    ask: Callable[[Population], Draft | str]  # the answer for a population in the making, or why there is none
    published: str  # what the benchmark study found

    def answer(self, population: Population) -> Answer:
        """The answer for a population; one that cannot be given says why."""
        number, made = QUESTIONS.index(self) + 1, self.ask(population)
        if isinstance(made, str):
            return Answer(number, self.title, made, published=self.published)
        few = population.resampling.small_sample_caution(min(made.models)) if made.models else ()
        cautions = (*few, *made.cautions)
        return Answer(number, self.title, made.text, tuple(made.findings), tuple(made.charts), cautions, self.published)


QUESTIONS = (
    Question(
        "Data sets",
        "Can model calibration be generalised across different data sets?",
        across_datasets,
        "The ECE on CIFAR-10 says little about that on CIFAR-100 and nothing about that on ImageNet16-120 (for the "
        '"top 1000" models it is even negatively correlated); CIFAR-100 and ImageNet16-120 agree more. The calibration '
        "of an architecture does not carry over.",
    ),
    # Checked against the authors' public notebooks (q2.ipynb, fig34-37and41-q49.ipynb) and robustness tables.
    Question(
        "Robustness",
        "Can robustness be used as a calibration measurement?",
        robustness,
        "Figure 3 has all robustness measures, and accuracy itself, correlate with the ECE at about +0.5 among the "
        '"top 1000" models on CIFAR-10: the more robust model has the larger error. The authors\' notebooks sort by '
        "accuracy in ascending order and take the first rows, so these are the 1,000 least accurate models. Among all "
        "models the correlations of accuracy and of the AUROC on other data sets vanish; that of accuracy under PGD "
        "attacks is +0.27. Equal-mass ECE, KS error and MMCE agree with the ECE throughout. This review takes the most "
        "accurate models instead.",
    ),
    Question(
        "Metrics",
        "How reliable are calibration metrics?",
        agreement,
        "Most metrics order the models alike, whether they bin or not, NLL and Brier score included, and in spite of "
        "its known faults the ECE agrees with most of them. The classwise errors agree less; the classwise equal-mass "
        "one is even negatively correlated with others on ImageNet16-120 and may not be reliable.",
    ),
    Question(
        "Temperature scaling",
        "Does a post-hoc calibration method affect all models uniformly?",
        scaling,
        "No: the ECE before and after temperature scaling are almost uncorrelated on CIFAR-10, and alike on the other "
        "data sets and among the most accurate models. A well calibrated model need not be one after scaling, so that "
        "comparisons without post-hoc calibration may be unfair.",
    ),
    Question(
        "Accuracy",
        "How does calibration interact with accuracy?",
        accuracy,
        "On CIFAR-10, models of more than 90 % accuracy are the better calibrated the more accurate they are; among "
        "all models there is no such pattern. So accuracy and calibration go together only among good models, and are "
        "no trade-off there.",
    ),
    Question(
        "Bins",
        "What is the impact of bin size on calibration measurement?",
        bin_counts,
        "On CIFAR-10 the ECE grows with the number of bins, and more so after temperature scaling: twice as large at "
        "100 bins and five times at 500, where its order of the models has almost nothing to do with that at 100. "
        "Before scaling it is steadier. Undertrained models depend more on the number of bins.",
    ),
    Question(
        "Architecture",
        "Which architectural designs are beneficial for calibration?",
        architecture,
        "Larger models are not always worse calibrated: on CIFAR-10 the ECE first grows and then falls with size, on "
        "ImageNet16-120 it grows; wider models are worse calibrated on hard data sets. The 20 cells with the best "
        "harmonic calibration score tend to have convolutions on edges 1, 5 and 6, and all have a skip connection on "
        "edge 4.",
    ),
)
