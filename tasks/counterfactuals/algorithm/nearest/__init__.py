"""Nearest neighbours of another group, with and without replacement.

CST's situations are another search (``tasks.methods.cst.algorithm.neighbours``).
"""
