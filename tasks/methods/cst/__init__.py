"""Counterfactual situation testing (CST), whole.

``method`` declares it, ``measures`` plans what it measures, ``algorithm`` is its arithmetic. Its section is in
``report``, its timing in ``bench``, the paper's experiments in ``reproduction``.
"""
