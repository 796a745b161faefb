"""Recourse to a linear boundary: permitted changes, the cheapest accepted point, and its cost.

Shared by RAGUEL and by the counterfactual sources of other papers. Scope: one applicant at a time. Lists of applicants
and offers in them: ``tasks.methods.raguel.algorithm``.
"""
