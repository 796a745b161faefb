"""Where a back-fill's tasks run: threads, processes or Dask workers, and how many are submitted ahead.

What a task does: ``flows.partitions.year_audit``.
"""
