"""Rankings by recourse cost and their re-ranking (RAGUEL; Haldar, Cunningham and Ferhatosmanoglu 2022).

``records`` is the list, with points and costs from ``tasks.methods.raguel.algorithm.recourse``. ``reranking`` is
Algorithm 1, ``blocks`` Algorithm 2, ``any_depth`` our form that reaches further down; all give a ``reranked`` list.
``representation``, ``ratios`` and ``quality`` say of any list how fair it is, and ``fair_top`` is the baseline FA*IR.

Compiled loops are in modules of their own and call each other. Numba keeps them on disk by the file of the outermost
only: after a change in one of them, ``__pycache__`` of this folder has to be deleted.
"""
