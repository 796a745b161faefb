"""Stage ``predict_fairly``: trains predictors to score applicants alike in every category.

Scope: the stage. Arithmetic: ``tasks.methods.gcfn.algorithm.predictors``.
"""
