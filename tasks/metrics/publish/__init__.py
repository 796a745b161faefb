"""What is published of a run: which numbers are shown, rounded, given as a range or withheld.

Scope: reading tables and writing the published ones; the arithmetic is in ``algorithm``. Measures are made by
``tasks.metrics.stage``.
"""
