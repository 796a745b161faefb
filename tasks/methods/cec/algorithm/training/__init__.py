"""Models on held-out folds, mitigations beside them, and their frontier.

The network and its losses are in ``tasks.numerics.networks``.
"""
