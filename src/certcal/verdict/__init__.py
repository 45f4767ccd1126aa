"""Is it good enough? Requirements such as "ece <= 5%", held against what a result claims: met, not met or not shown."""

from certcal.verdict.candidates import CLAIM_NAMES, Candidate, Vocabulary
from certcal.verdict.judging import Judgement, Outcome, Verdict, VerdictRow, judge
from certcal.verdict.requirement import Requirement, plain, read_requirements

__all__ = [
    "CLAIM_NAMES",
    "Candidate",
    "Judgement",
    "Outcome",
    "Requirement",
    "Verdict",
    "VerdictRow",
    "Vocabulary",
    "judge",
    "plain",
    "read_requirements",
]
