"""Intervals, proportions and distributions, for one number or many at once.

Which measure has which interval is decided in ``tasks.metrics.algorithm``.
"""
