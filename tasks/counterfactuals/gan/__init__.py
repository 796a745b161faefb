"""Generators of mediators as tables: their settings, ensembles, and states that are kept while they train.

Their arithmetic is in ``tasks.counterfactuals.algorithm.gan``.
"""
