"""Records of a back-fill in the lake: attempts at a year or at one partition of it, and what is left to do.

What an attempt does: ``flows.partitions.year_audit``.
"""
