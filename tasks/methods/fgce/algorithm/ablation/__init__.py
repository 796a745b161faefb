"""Ablations of FGCE: searches without a rule of the graph, connectivity, and size-matched groups.

Tables of it are written by the stage in ``tasks.methods.fgce.ablate``.
"""
