"""Names by which columns are found, normalised: lower case, underscores.

Where a role has several tuples, names in an earlier one win over names in a later one; two names of one tuple in the
same table are ambiguous, and the user is asked.
"""

from __future__ import annotations

TOP_CONFIDENCE = ("confidence", "confidences", "conf", "max_prob", "max_probability", "top_prob", "top_probability")
SCORE = (
    "score",
    "scores",
    "prob",
    "probs",
    "proba",
    "probability",
    "probabilities",
    "p",
    "p_hat",
    "y_prob",
    "y_proba",
    "y_score",
)
CORRECT = ("correct", "is_correct", "correctness", "hit")
OUTCOME = ("outcome", "outcomes")
LABEL = (
    "label",
    "labels",
    "y",
    "y_true",
    "target",
    "targets",
    "true_label",
    "true_class",
    "ground_truth",
    "truth",
    "class",
)
PREDICTION = (
    "prediction",
    "predictions",
    "predicted",
    "pred",
    "y_pred",
    "predicted_label",
    "predicted_class",
    "predict",
)
WEIGHT = ("sample_weight", "sample_weights")  # a column called "weight" may be a patient's; it must be given

LOWER = ("lower", "lower_bound", "lower_end", "lower_confidence", "confidence_lower", "lo", "low", "lb")
UPPER = ("upper", "upper_bound", "upper_end", "upper_confidence", "confidence_upper", "hi", "high", "ub")
CERTIFIED = ("certified", "is_certified", "verified", "is_verified")
RADIUS = ("radius", "radii", "epsilon", "eps")
ALPHA = ("alpha",)
GROUP = ("group",)
SAMPLE = ("sample", "sample_id", "sample_index")
IDENTIFIER = ("id", *SAMPLE)
