"""Lineage of a result: the code and the libraries that made it, and the cost of the run.

``digests`` has what is recorded; ``shape`` reads one file of code, ``sources`` joins files by their imports, ``kept``
keeps shapes from one process to the next. Keys of stages are made of it in ``tasks.plan``.
"""
