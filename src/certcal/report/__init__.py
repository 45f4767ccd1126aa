"""What people see: tables and diagrams in the terminal, figures for papers, pages for reviews. It computes no numbers.

``certcal.report._old_terminal`` needs rich and ``certcal.report.figures`` matplotlib; ``certcal.report.page`` needs
neither, and importing this package loads none of them.
"""
