"""Arithmetic of the checks of data: tests of missingness, and of the direction of the decision.

Tables and words of both are in ``tasks.preprocessing``.
"""
