"""The work of the soak: a server, a worker and a schedule of one's own, random kills, and what came of every date.

Runs and targets: ``flows.bench.operations``.
"""
