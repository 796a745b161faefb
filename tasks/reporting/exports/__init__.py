"""Files of a report for machines and spreadsheets: report.json, the workbook, one page of several, PDF.

Scope: what is published, in other forms. Pages and what they may hold:
``tasks.reporting.pages``. Nothing is computed here.
"""
