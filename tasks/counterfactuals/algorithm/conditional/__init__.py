"""Counterfactuals of one numeric mediator by its conditional moments or quantiles.

Mediators of any number and type are made in ``tasks.counterfactuals.algorithm.gan``.
"""
