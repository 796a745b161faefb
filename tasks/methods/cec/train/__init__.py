"""Stage ``train``: trains networks with consistent explanations, and the mitigations that they are compared with.

Scope: the stage. Arithmetic: ``tasks.methods.cec.algorithm.models``.
"""
