"""Files of a report: which there are (``files``), the frame of a page (``frame``), how large each may be (``budgets``).

Templates and the style sheet lie beside them. What stands on a page is made in
``tasks.reporting.chapters`` and ``tasks.reporting.evidence``.
"""
