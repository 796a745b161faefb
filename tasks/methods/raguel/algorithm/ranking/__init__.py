"""Rankings by recourse cost and their re-ranking (RAGUEL; Haldar, Cunningham and Ferhatosmanoglu 2022).

``records`` is the list; points and costs come from ``tasks.counterfactuals.algorithm.recourse``. ``reranking`` is
Algorithm 1, ``blocks`` Algorithm 2, ``any_depth`` our variant with a longer reach; all give a ``reranked`` list.
``representation``, ``ratios`` and ``quality`` measure the fairness of any list. Orders of other papers:
``tasks.baselines.algorithm.rankings``.

Compiled loops call each other across modules. Numba's cache follows the file of the outermost loop only: after a change
in an inner one, delete ``__pycache__`` of this folder.
"""
