"""Stage ``adjust``: the denial ladder of every decision maker and protected attribute, as tables.

Its arithmetic is in ``tasks.methods.adjusted.algorithm``.
"""
