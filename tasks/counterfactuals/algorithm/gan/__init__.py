"""Counterfactual mediators by adversarial networks (Ma et al., section 4.1), several of them in an ensemble.

``settings`` lists departures from the paper. ``mixed`` encodes mediators as numbers, ``networks`` has the stacked
generators and discriminators, ``training`` the loop over epochs, ``compiled`` the epochs on the CPU, and ``autograd``
those on CUDA, which are also what the compiled ones are held against. Other modules use the trained ``imaginer``.
Diagnostics: ``tasks.counterfactuals.algorithm.diagnostics``.

A single numeric mediator is identified up to a flip; several or categorical mediators are not identified (Lemma 1).
"""
