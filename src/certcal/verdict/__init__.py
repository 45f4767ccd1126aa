"""Is it good enough? Requirements such as "ece <= 5%", held against what a result claims: met, not met or not shown."""

from certcal.verdict.candidates import CLAIM_NAMES, PREFIX, Candidate, Vocabulary
from certcal.verdict.judging import Judgement, Outcome, Verdict, VerdictRow, judge
from certcal.verdict.requirement import Requirement, Requirements, plain, read_requirements

__all__ = [
    "CLAIM_NAMES",
    "PREFIX",
    "Candidate",
    "Judgement",
    "Outcome",
    "Requirement",
    "Requirements",
    "Verdict",
    "VerdictRow",
    "Vocabulary",
    "judge",
    "plain",
    "read_requirements",
]
