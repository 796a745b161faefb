"""Costs of a change and of a path, and densities that weigh them.

The graph itself is in ``tasks.feasibility_graph``.
"""
