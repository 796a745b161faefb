"""Stage ``predict_fairly``: predictors that are trained to score applicants alike in every category.

Their arithmetic is in ``tasks.methods.gcfn.algorithm.fair_prediction``.
"""
