"""Plans: one table or figure of a paper each, as data; kinds that compute them; and the runner of their jobs.

A plan is a TOML file, ``PAPER/NAME.toml`` in this folder (``cc/table7.toml`` is the plan cc-table7), and contains no
code. Fields that all plans have are those of :class:`~certcal.lab.plans.plan.PaperPlan`; a kind adds its own. A plan
with ``base = "cc-act"`` is that plan with other fields; files whose name begins with ``_`` are only there for others.

To add a kind, write a module ``certcal.lab.plans.NAME`` and enter it in :data:`MODULES`. It has

- ``Settings``, a subclass of ``PaperPlan`` with the fields of its plans. A number or list annotated with ``Floor(k)``
  shrinks with the scale, but not below k;
- ``planned(plan) -> list[tuple[label, Job]]``: what must be computed, with whatever says what each job is for; a kind
  that computes at once has none. ``Job("networks.sample", "sample at-0.5", {...plain arguments...}, passes=...)``
  calls ``networks.sample(context, **arguments)``, a function of any module here, which returns plain values for JSON
  and may keep files in ``context.folder``. A job is its arguments: those of another one's result name it by
  ``job.fingerprint``, and a plan that asks for the same job finds it done. ``networks`` has train, sample, attack and
  certify;
- ``outcome(plan, done) -> Outcome``: tables and charts of the results that there are, each with its label. What failed
  or is left to others is missing: say "–". ``outcome.line_charts`` and ``outcome.table_of`` do most of it.

A plan's ``[published.NAME]`` are the numbers as printed, beside which the table called NAME is shown: row by row, under
the same names of rows and columns; a row "ACCE | AT" is the row AT in the group ACCE.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from types import ModuleType

# Kinds of plans, and modules whose functions are jobs. They load when they are needed.
MODULES: Mapping[str, Callable[[], ModuleType]] = {
    name: partial(import_module, f"{__name__}.{name}")
    for name in (
        *("attacks", "bound_gaps", "certified", "formulas", "networks", "noise_auroc"),
        *("robustness", "search", "study", "worked"),
    )
}
