"""Structural causal models: abduction, action and prediction along a graph, and checks of the fit.

The mechanism of one node is in ``mechanisms``.
"""
