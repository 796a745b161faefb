"""Effects of situation testing and CST: regression-adjusted mean differences with closed-form errors.

Depends on numpy and scipy. Scope: one group against its reference; searches: ``algorithm.comparisons``.
"""
