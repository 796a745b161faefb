"""Stage ``generate``, and the generators of counterfactuals: structural causal model, GAN, nearest neighbours.

What a method makes of counterfactuals is in ``tasks.methods``.
"""
