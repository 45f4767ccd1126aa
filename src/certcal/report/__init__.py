"""What people see: tables and diagrams in the terminal, figures for papers. No numbers are computed here.

``certcal.report.terminal`` needs rich and ``certcal.report.figures`` needs matplotlib; importing this package loads
neither.
"""
