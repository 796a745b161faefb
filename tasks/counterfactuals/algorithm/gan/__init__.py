"""Counterfactual mediators by adversarial networks (Ma et al., section 4.1), several of them trained as one batch.

``settings`` says what the default does and the paper does not. ``mixed`` encodes mediators of any type as numbers,
``batches`` hands them out, ``networks`` has the stacked generators and discriminators, ``losses`` their losses,
``training`` the loop; its state is kept as ``tasks.numerics.networks.checkpoint`` says. Others use a trained
``imaginer`` alone. How a training went: ``tasks.counterfactuals.algorithm.diagnostics``.

Whether what comes out is a counterfactual, and what is done with it, is elsewhere: one mediator that is a number is
identified up to a flip, several or categorical ones are not (Lemma 1).
"""
