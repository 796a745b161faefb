"""Stage ``detect``: a problem for each decision maker and protected attribute, handed to a method.

What a method finds in it is in ``tasks.methods``; measures are made in ``tasks.metrics``.
"""
