"""Many models, many metrics; and calibration functions whose error is known."""

from __future__ import annotations

from certcal.study._battery import Battery, battery
from certcal.study._entries import Entry
from certcal.study._findings import Answer, Box, Boxes, Finding, Lines, Matrix, Points, StudyReview, Table
from certcal.study._joining import Joined, join, stack
from certcal.study._measure import measure
from certcal.study._nats_files import read_architectures, read_nats_bench
from certcal.study._published import read_calibration_table
from certcal.study._ranks import correlations, kendall, kendall_matrix, kendall_resampled, spearman, spearman_matrix
from certcal.study._review import review
from certcal.study._spaces import Cell, SizeSpace, Space, TopologySpace
from certcal.study._synthetic import SYNTHETIC, Synthetic
from certcal.study._table import Measurement, StudyTable

__all__ = [
    "SYNTHETIC",
    "Answer",
    "Battery",
    "Box",
    "Boxes",
    "Cell",
    "Entry",
    "Finding",
    "Joined",
    "Lines",
    "Matrix",
    "Measurement",
    "Points",
    "SizeSpace",
    "Space",
    "StudyReview",
    "StudyTable",
    "Synthetic",
    "Table",
    "TopologySpace",
    "battery",
    "correlations",
    "join",
    "kendall",
    "kendall_matrix",
    "kendall_resampled",
    "measure",
    "read_architectures",
    "read_calibration_table",
    "read_nats_bench",
    "review",
    "spearman",
    "spearman_matrix",
    "stack",
]
