"""What scikit-learn asks of an estimator before it uses one. Loaded by scikit-learn's own questions only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from certcal.calibrators._base import Calibrator


def tags_of(calibrator: Calibrator) -> Any:
    """The tags of a calibrator.

    A map of confidences is a regression of outcomes on one column, as scikit-learn's isotonic regression is; a map of
    scores is a classifier whose features are the scores.
    """
    from sklearn.utils import ClassifierTags, InputTags, RegressorTags, Tags, TargetTags, TransformerTags

    from certcal.calibrators._base import ScoreMap

    scores = isinstance(calibrator, ScoreMap)
    return Tags(
        estimator_type="classifier" if scores else "regressor",
        target_tags=TargetTags(required=True),
        transformer_tags=TransformerTags(),
        classifier_tags=ClassifierTags() if scores else None,
        regressor_tags=None if scores else RegressorTags(),
        input_tags=InputTags(one_d_array=not scores, two_d_array=scores),
    )
