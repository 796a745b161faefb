"""What is published of a run: which numbers are shown, rounded, given as a range or withheld.

Scope: the arithmetic is in ``algorithm``. Measures are made by ``tasks.metrics.stage``.
"""
