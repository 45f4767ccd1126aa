"""Models without torch: another process that only needs these starts in a moment."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

BATCH = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32)


def two_columns(batch: NDArray[np.float32]) -> NDArray[np.float32]:
    return batch[:, :2]


def fitted(labels: Any = None, estimator: Any = None) -> Any:
    from sklearn.linear_model import LogisticRegression

    random = np.random.default_rng(1)
    features = random.standard_normal((60, 4))
    labels = (features[:, 0] > 0).astype(int) + (features[:, 1] > 1) if labels is None else labels(features)
    return (LogisticRegression() if estimator is None else estimator).fit(features, labels)
