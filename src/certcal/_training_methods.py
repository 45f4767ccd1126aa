"""The methods of training by their names: here, so that the command line can list them without loading torch."""

from __future__ import annotations

# By what they train on, in the order of the papers.
METHODS = {
    "standard": "clean inputs",
    "gaussian": "Gaussian noise",
    "smoothadv": "adversaries of the smoothed classifier's labels (AT; also called at)",
    "brier-act": "adversaries of the Brier score",
    "acce-act": "adversaries of the certified calibration error, by ADMM in the batch",
    "acce-act-star": "the same, with their calibration error in the loss",
    "exact-act": "adversaries of the calibration error itself, with the exact signs of its bins",
    "exact-act-star": "the same, with their calibration error in the loss",
    "exact-act-ahead": "adversaries that the exact program tells where to go",
    "macer": "noise; a larger certified radius where the label is right",
    "consistency": "noise; the same answer under every draw",
    "smoothmix": "noise; less confidence on the way to an adversary",
    "cat-rs": "the draws that fit the confidence, the worst if it is high",
    "acr": "noise, attacked, on easy samples: what the radius rewards",
}
ALIASES = {"at": "smoothadv", "catrs": "cat-rs"}
# Train under noise or not at all, and of these the ones for which epsilon means nothing.
NOISY = ("gaussian", "macer", "consistency", "smoothmix", "cat-rs", "acr")
WITHOUT_BALL = ("gaussian", "macer", "consistency", "smoothmix", "acr")
