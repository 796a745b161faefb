"""The k nearest applicants of a situation, exactly.

Matching of pairs for other methods is in ``tasks.counterfactuals.algorithm.nearest``.
"""
