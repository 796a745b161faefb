"""The command that runs reproductions and prints them.

A paper's experiments are in its method's folder; what reproductions share is in ``tasks.proof``.
"""
