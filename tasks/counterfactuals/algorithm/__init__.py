"""Arithmetic of the generators, a folder a kind, and of the checks of what they make.

Tables are read and written in ``tasks.counterfactuals``.
"""
