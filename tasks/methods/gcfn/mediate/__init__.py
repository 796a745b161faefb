"""Stage ``mediate``: generates counterfactual mediators of other categories, and the decisions on them.

Scope: the stage. Generators: ``tasks.counterfactuals.gan``.
"""
