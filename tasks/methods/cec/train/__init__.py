"""Stage ``train``: networks that are trained for consistency, and what they are compared with.

Their arithmetic is in ``tasks.methods.cec.algorithm.training``.
"""
