"""Training for counterfactual explanation consistency (Popoola and Sheppard 2026, Algorithm 2) and what it is shown by.

``net`` builds the network, ``path`` explains it in a form that can be trained through, ``losses`` has the three terms
and ``loop`` minimises them. ``folds`` trains variants on held-out folds, ``frontier`` compares them, ``performance``
has what is measured of a model besides its consistency.

Matching, the score and the regimes are not here: they are told of a trained model, whoever trained it.
"""
