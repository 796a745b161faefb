"""Small sets of counterfactuals that cover a group: greedy and exact.

Costs come from ``tasks.methods.fgce.algorithm.costs``.
"""
