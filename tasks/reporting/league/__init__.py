"""The page of a league: partitions of a year beside each other.

Scope: words, tables and charts. What they show is computed in ``tasks.metrics.league``.
"""
