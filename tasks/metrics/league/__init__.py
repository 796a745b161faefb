"""League: compares the measures of all partitions of a year, from the published results of their runs.

Scope: rows of the table. Pooling, screening and what is withheld across partitions: ``algorithm``. Which runs are read:
``flows/operations/league``. The page: ``tasks/reporting/league``.
"""
