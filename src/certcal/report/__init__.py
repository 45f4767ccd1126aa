"""What people see: reports, charts, and three renderers of both. It computes no numbers.

Terminals need rich and figures matplotlib; pages need neither, and importing this package loads none of them.
"""

from certcal.report.views.worst_case import interval_widths, sign_runs, worst_case_charts

__all__ = [
    "interval_widths",
    "sign_runs",
    "worst_case_charts",
]
