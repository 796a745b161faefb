"""Prefect flows, the command line and processes. No arithmetic lives here.

Files here are the flows that deployments name; a folder each has the command line (``cli``), the years of a back-fill
(``partitions``), what a run leaves (``runs``), operations, benches, reproductions and supervision of processes.
"""
