"""Pages that a colleague can read and a reviewer can check: one HTML file each, complete in itself.

``page(results)`` makes one of what ``measure``, ``bound``, ``certify``, ``compare``, ``recalibrate``, ``attack`` or
``study review`` found. All numbers on a page are texts that the claims themselves print, and the whole JSON is inside
it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from certcal._checks import InputError
from certcal.report.page._skeleton import Page
from certcal.report.provenance import Provenance

if TYPE_CHECKING:
    from certcal.report.results import (
        BoundedResults,
        CertifiedResults,
        MeasuredResults,
        RecalibratedResults,
        StudiedResults,
    )

__all__ = ["Page", "Provenance", "page"]


def page(
    results: MeasuredResults | BoundedResults | CertifiedResults | RecalibratedResults | StudiedResults,
    provenance: Provenance | None = None,
    *,
    title: str | None = None,
    review: Any = None,
    inputs: Any = None,
    remarks: Sequence[str] = (),
) -> Page:
    """A page of what was found.

    Parameters
    ----------
    results
        Of measuring or bounding a table, of certifying or recalibrating a table of intervals or a run, of comparing
        runs or families of them, of attacking a model, or of reviewing a population of models.
    provenance
        How the results came about; ``Provenance.here()`` knows date and versions.
    title
        What is written on top; by default what was asked.
    review
        For the results of a run: its :class:`certcal.smoothing.Review`, for the diagrams; by default the one that
        came with them.
    inputs
        For the results of a run, the images that it was drawn for, to show the samples that matter most.
    remarks
        For the results of a run, sentences to stand below its claim.

    Returns
    -------
    Page
        ``save(path)`` writes it; notebooks show it.

    Examples
    --------
    >>> import certcal
    >>> from certcal.report.results import MeasuredResults
    >>> predictions = certcal.Predictions.from_confidence([0.9, 0.8, 0.6, 0.3], [1, 1, 0, 0])
    >>> prepared = certcal.metrics.reliability(predictions.confidence, predictions.correct, bins=5)
    >>> page(MeasuredResults.of(certcal.measure(predictions, bins=5), prepared, source="four samples"))
    Page('How calibrated are the confidences?')
    """
    from certcal.report.results import (
        BoundedResults,
        CertifiedResults,
        MeasuredResults,
        RecalibratedResults,
        StudiedResults,
    )

    if isinstance(results, MeasuredResults):
        from certcal.report.page._table_page import table_page

        return table_page(results, provenance, title=title)
    if isinstance(results, BoundedResults):
        from certcal.report.page._bounds_page import bounds_page

        return bounds_page(results, provenance, title=title)
    if isinstance(results, RecalibratedResults):
        from certcal.report.page._recalibration_page import recalibration_page

        return recalibration_page(results, provenance, title=title)
    if isinstance(results, StudiedResults):
        from certcal.report.page._study_page import study_page

        return study_page(results, provenance, title=title)
    if isinstance(results, CertifiedResults):  # pyright: ignore[reportUnnecessaryIsInstance]
        behind = results.review if review is None else review
        if behind is not None:
            from certcal.report.page._run_page import run_page

            return run_page(results, behind, provenance, title=title, inputs=inputs, remarks=remarks)
        from certcal.report.page._intervals_page import intervals_page

        return intervals_page(results, provenance, title=title)
    raise InputError(
        f"results are {type(results).__name__}; pass what measuring, bounding, certifying, comparing, recalibrating, "
        "attacking or reviewing found"
    )
