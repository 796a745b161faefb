"""Stage ``score``: decisions of the lender and of a model, the files of models, and what explains them.

Attributions themselves are in ``tasks.numerics.attributions``; models that a method trains are in its folder.
"""
