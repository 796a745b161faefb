"""Offers to one applicant: the moves towards its counterfactual point, and the smallest set of them that is enough.

Points and costs are in ``tasks.counterfactuals.algorithm.recourse``, lists and their re-ranking in
``tasks.methods.raguel.algorithm.ranking``.
"""
