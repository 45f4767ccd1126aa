"""What commands have found: everything that is printed, written as JSON or CSV, or put on a page."""

from certcal.report.results._attacked import AttackedResults, AttackLine, estimate_of
from certcal.report.results._bounded import BoundedResults
from certcal.report.results._compared import ComparedResults
from certcal.report.results._families import FamilyResults
from certcal.report.results._json import BRACKETS, as_text, for_json
from certcal.report.results._measured import MeasuredResults, Part
from certcal.report.results._recalibrated import RecalibratedPredictions, RecalibratedResults
from certcal.report.results._searched import SearchedResults
from certcal.report.results._studied import StudiedResults, leading

__all__ = [
    "BRACKETS",
    "AttackLine",
    "AttackedResults",
    "BoundedResults",
    "ComparedResults",
    "FamilyResults",
    "MeasuredResults",
    "Part",
    "RecalibratedPredictions",
    "RecalibratedResults",
    "SearchedResults",
    "StudiedResults",
    "as_text",
    "estimate_of",
    "for_json",
    "leading",
]
