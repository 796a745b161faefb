"""A predictor trained to score applicants as it scores them in other categories (Ma et al., section 4.2).

``inputs`` lays applicants and their counterfactual mediators out, whoever imagined these. ``settings`` says how to
train, ``training`` does it. How well the result predicts, and how far scores move between categories:
``tasks.methods.gcfn.reproduction.measures``.

The predictor never sees the category. It is not thereby fair: what is told is how far its scores move under imagined
mediators, which are no better than their generator.
"""
