"""Runs reproductions and prints them.

Scope: the command. A paper's experiments: its method's folder. What reproductions share: ``tasks.proof``.
"""
