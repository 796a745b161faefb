"""Adversarial training on the CPU: gradients written out in compiled code, each network by itself, in threads.

``passes`` has one pass of a batch, ``kernel`` gradients, steps and epochs of one network, ``game`` the ensemble.
"""
