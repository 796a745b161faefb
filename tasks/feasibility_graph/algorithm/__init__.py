"""Arithmetic of the feasibility graph: edges, the radius, and who is reached.

Costs along its paths are FGCE's (``tasks.methods.fgce.algorithm.costs``).
"""
