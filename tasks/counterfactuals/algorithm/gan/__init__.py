"""Counterfactual mediators by adversarial networks (Ma et al., section 4.1), several of them trained as one batch.

``settings`` says what the default does and the paper does not. ``mixed`` lays mediators of any type out as numbers and
back, ``batches`` hands them out, ``networks`` has the stacked generators and discriminators, ``losses`` what they play
for, ``loop`` lets them play, ``checkpoint`` keeps the state, ``convergence`` tells how it went. A trained ``Imaginer``
is all that others use.

Whether what comes out is a counterfactual, and what is done with it, is elsewhere: one mediator that is a number is
identified up to a flip, several or categorical ones are not (Lemma 1).
"""
