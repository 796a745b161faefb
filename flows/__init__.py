"""Prefect flows, the command line and processes. No arithmetic lives here.

Files here are the flows that deployments name. Folders: the command line (``cli``), the years of a back-fill
(``partitions``), records of runs (``runs``), operations, benches, reproductions and supervision of processes.
"""
