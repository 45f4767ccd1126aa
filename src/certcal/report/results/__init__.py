"""What commands have found: everything that is printed, written as JSON or CSV, or put on a page."""

from certcal.report.results._bounded import BoundedResults
from certcal.report.results._certified import CertifiedResults, Line, Method
from certcal.report.results._json import BRACKETS, as_text, for_json
from certcal.report.results._measured import MeasuredResults, Part
from certcal.report.results._recalibrated import RecalibratedPredictions, RecalibratedResults
from certcal.report.results._searched import SearchedResults
from certcal.report.results._studied import StudiedResults, leading

__all__ = [
    "BRACKETS",
    "BoundedResults",
    "CertifiedResults",
    "Line",
    "MeasuredResults",
    "Method",
    "Part",
    "RecalibratedPredictions",
    "RecalibratedResults",
    "SearchedResults",
    "StudiedResults",
    "as_text",
    "for_json",
    "leading",
]
