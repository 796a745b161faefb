"""Stage ``rerank``: a list by recourse cost, and its re-ranking.

Arithmetic: ``tasks.methods.raguel.algorithm.recourse`` finds the costs,
``tasks.methods.raguel.algorithm.ranking`` ranks.
"""
