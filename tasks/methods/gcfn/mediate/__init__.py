"""Stage ``mediate``: mediators as they would have been in another category, and the decisions on them.

Generators are in ``tasks.counterfactuals.gan``.
"""
