"""Arithmetic of the league: arrays and counts in, arrays and decisions out.

Scope: pooling over partitions, multiplicity, and disclosure across partitions. Tables: the folder above.
"""
