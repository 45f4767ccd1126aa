"""Many models, many metrics; and calibration functions whose error is known."""

from __future__ import annotations

from certcal.lab.study._battery import Battery, battery
from certcal.lab.study._benchmark import Benchmark, SearchObjective
from certcal.lab.study._entries import Entry
from certcal.lab.study._findings import Box, BoxPlots, Finding, FindingTable, Lines, Matrix, QuestionAnswer, ScatterPlot
from certcal.lab.study._measure import measure, unfinished
from certcal.lab.study._overview import DatasetMedians, StudyOverview, overview
from certcal.lab.study._published import convert, read_architectures
from certcal.lab.study._ranks import correlations, kendall, kendall_matrix, kendall_resampled, spearman, spearman_matrix
from certcal.lab.study._review import StudyReview, ask, review
from certcal.lab.study._search import SearchRow, StudySearch, search
from certcal.lab.study._spaces import Cell, SizeSpace, Space, TopologySpace
from certcal.lab.study._synthetic import SYNTHETIC, Synthetic
from certcal.lab.study._table import KEYS, STATE, Joined, MeasuredColumn, StudyTable, join, stack

__all__ = [
    "KEYS",
    "STATE",
    "SYNTHETIC",
    "Battery",
    "Benchmark",
    "Box",
    "BoxPlots",
    "Cell",
    "DatasetMedians",
    "Entry",
    "Finding",
    "FindingTable",
    "Joined",
    "Lines",
    "Matrix",
    "MeasuredColumn",
    "QuestionAnswer",
    "ScatterPlot",
    "SearchObjective",
    "SearchRow",
    "SizeSpace",
    "Space",
    "StudyOverview",
    "StudyReview",
    "StudySearch",
    "StudyTable",
    "Synthetic",
    "TopologySpace",
    "ask",
    "battery",
    "convert",
    "correlations",
    "join",
    "kendall",
    "kendall_matrix",
    "kendall_resampled",
    "measure",
    "overview",
    "read_architectures",
    "review",
    "search",
    "spearman",
    "spearman_matrix",
    "stack",
    "unfinished",
]
