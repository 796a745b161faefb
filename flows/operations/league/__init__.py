"""League of the partitions of a year: which runs are read, how many partitions have none, files of the page.

Scope: reading and writing. What is computed: ``tasks.metrics.league``. What the page shows: ``tasks.reporting.league``.
"""
