"""Stage ``ablate``: FGCE on a graph without one of its rules, and on groups of equal size.

Its arithmetic is in ``tasks.methods.fgce.algorithm.ablation``.
"""
