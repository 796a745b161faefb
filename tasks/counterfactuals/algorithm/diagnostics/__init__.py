"""Checks of generated counterfactuals: convergence, quality, agreement of seeds.

Checks of a causal model's fit are in ``tasks.counterfactuals.algorithm.scm``.
"""
