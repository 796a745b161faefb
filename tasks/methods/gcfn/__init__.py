"""Generative counterfactual fairness network (GCFN), whole.

``method`` declares it, ``measures`` plans what it measures, ``algorithm`` is its arithmetic, ``mediate``,
``predict_fairly`` are stages of its own. Its section is in ``report``, its timing in ``bench``, the paper's experiments
in ``reproduction``.
"""
