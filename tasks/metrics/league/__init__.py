"""League: the measures of all partitions of a year beside each other, from what their runs have published.

Scope: rows of the table. Pooling, screening and what is withheld across partitions: ``algorithm``. Which runs are read:
``flows/operations/league``. The page: ``tasks/reporting/league``.
"""
