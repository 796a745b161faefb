"""Arithmetic of adjusted disparities: arrays in, arrays out.

Scope: the ladder of regressions, its sensitivity and its streamed forms. Tables: ``adjust``.
"""
