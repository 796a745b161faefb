"""Counterfactual mediators by adversarial networks (Ma et al., section 4.1), several of them trained as one batch.

``settings`` lists departures from the paper. ``mixed`` encodes mediators as numbers, ``batches`` shuffles rows,
``networks`` has the stacked generators and discriminators, ``losses`` their losses, ``training`` the loop. Other
modules use the trained ``imaginer``. Diagnostics: ``tasks.counterfactuals.algorithm.diagnostics``.

A single numeric mediator is identified up to a flip; several or categorical mediators are not identified (Lemma 1).
"""
