"""Stage ``predict_fairly``: predictors that are trained to score applicants alike in every category.

Their arithmetic is in ``algorithm.fair_prediction``.
"""
