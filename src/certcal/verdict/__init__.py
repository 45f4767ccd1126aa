"""Is it good enough? Requirements such as "ece <= 5%", held against what a result claims: met, not met or not shown."""

from certcal.verdict.judging import (
    CLAIM_NAMES,
    MET,
    NOT_MET,
    NOT_SHOWN,
    OUTCOMES,
    POPULATION,
    SAMPLES,
    Candidate,
    Judgement,
    Outcome,
    Verdict,
    Vocabulary,
    judge,
)
from certcal.verdict.requirement import Requirement, plain, read_requirements

__all__ = [
    "CLAIM_NAMES",
    "MET",
    "NOT_MET",
    "NOT_SHOWN",
    "OUTCOMES",
    "POPULATION",
    "SAMPLES",
    "Candidate",
    "Judgement",
    "Outcome",
    "Requirement",
    "Verdict",
    "Vocabulary",
    "judge",
    "plain",
    "read_requirements",
]
