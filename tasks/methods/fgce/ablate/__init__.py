"""Stage ``ablate``: runs FGCE on a graph without one of its rules, and on groups of equal size.

Scope: the stage. Arithmetic: ``tasks.methods.fgce.algorithm.ablation``.
"""
