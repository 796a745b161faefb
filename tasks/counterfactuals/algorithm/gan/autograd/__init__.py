"""Adversarial training by torch's automatic differentiation, all networks in one batch of tensors.

It trains on a CUDA device, and is what the gradients of ``gan.compiled`` are held against, by
tests and by the benchmark.
"""
