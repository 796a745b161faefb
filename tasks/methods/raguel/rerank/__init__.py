"""Stage ``rerank``: a list by recourse cost, and its re-ranking.

Arithmetic: ``algorithm.recourse`` finds the costs, ``algorithm.ranking`` ranks.
"""
