"""Partitions of a year by a column, such as one a lender: which there are, and the audit spec of each.

Running them is not here: ``flows.partitions.runners`` and ``flows.backfill``.
"""
