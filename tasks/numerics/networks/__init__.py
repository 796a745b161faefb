"""Fully connected networks: parameters, checkpoints, training for consistency (Popoola and Sheppard 2026, Algorithm 2).

``net`` builds the network, ``path`` explains it in a form that can be trained through, ``losses`` has the three terms
and ``training`` minimises them. Variants on held-out folds and their comparison are in
``tasks.methods.cec.algorithm.models``; stacked networks of a GAN in ``tasks.counterfactuals.algorithm.gan``.
"""
