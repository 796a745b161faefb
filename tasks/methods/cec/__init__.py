"""Counterfactual explanation consistency (CEC), whole.

``method`` declares it, ``measures`` plans what it measures, ``algorithm`` is its arithmetic, ``train`` is a stage of
its own. Its section is in ``report``, its timing in ``bench``, the paper's experiments in ``reproduction``.
"""
