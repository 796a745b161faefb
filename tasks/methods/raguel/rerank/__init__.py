"""Stage ``rerank``: ranks applicants by recourse cost, and re-ranks the list.

Scope: the stage. Costs: ``tasks.counterfactuals.algorithm.recourse``. Ranking:
``tasks.methods.raguel.algorithm.reranking``.
"""
