"""Arithmetic of measures, verdicts and disclosure control.

Intervals are in ``tasks.numerics.statistics``.
"""
