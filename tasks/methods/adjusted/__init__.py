"""The family ``adjusted``: disparities among similar applicants (Boston Fed's denial ladder), and their sensitivity.

Scope: adjusted differences of the decision. Differences of outcomes without adjustment: ``tasks.metrics``.
"""
