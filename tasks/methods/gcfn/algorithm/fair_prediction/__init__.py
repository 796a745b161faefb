"""A predictor trained to score applicants as it scores them in other categories (Ma et al., section 4.2).

``inputs`` lays out applicants and their counterfactual mediators, from any generator; ``settings`` configures
``training``. Performance and dependence on the category: ``tasks.methods.gcfn.reproduction.measures``.

The predictor never sees the category. That does not make it fair: the measure is how far its scores move under
generated mediators, which are no better than their generator.
"""
