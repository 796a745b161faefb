"""Feasible group counterfactual explanations (FGCE), whole.

``method`` declares it, ``measures`` plans what it measures, ``algorithm`` is its arithmetic, ``ablate`` is a stage of
its own. Its section is in ``report``, its timing in ``bench``, the paper's experiments in ``reproduction``.
"""
