"""Counterfactual sources: what an applicant would have to change to be approved, by the systems of other papers."""
