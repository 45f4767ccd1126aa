"""What claims rest on, in the words that their lists of assumptions use."""

from __future__ import annotations

INDEPENDENT = "samples are independent draws from the population"
NOT_USED_BEFORE = "they were not used to train, choose or recalibrate the classifier"

# Of numbers that look like probabilities.
LOGITS = "what is read as logits are logits, although every row lies in [0, 1] and sums to 1 as probabilities do"
# Of numbers that look like outcomes or predicted classes.
CERTAIN = "the scores are probabilities, although each is 0 or 1 as outcomes and predicted classes are"

# Of noise on tables.
IN_DEVIATIONS = "sigma and radii are in standard deviations of each feature in these samples, taken as given"

NOISE = {
    "gaussian": "noise draws are independent and exactly Gaussian (rounding to float32 is neglected)",
    "exact": "noise draws are independent and exactly discretised Gaussian (what is certified is the model applied to "
    "inputs rounded to k/255, around the rounded input)",
}
SPLIT = "the random split of the draws, fixed by the seed, has nothing to do with them"
BATCH = "the model's output for an input does not depend on the other inputs in its batch"


def own_kind(name: str) -> str:
    """That a kind of certificate of somebody's own does what it says; only its ends can be checked."""
    return f"intervals of the kind {name} hold with the probability that was asked of them, which is not checked"


def own_map(name: str) -> str:
    """That the intervals of a map of somebody's own hold what it makes of confidences between their ends."""
    return f"intervals of {name} hold every mapped confidence, of which only the ends are checked"


def fixed(what: str) -> str:
    """That some settings were chosen without a look at results."""
    return f"{what} were fixed before any result was looked at"
