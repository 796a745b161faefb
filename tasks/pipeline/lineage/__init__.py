"""Lineage of a result: the code and the libraries that made it, the cost of the run, and the rows that went no further.

``digests`` has what is recorded; ``shape`` reads one file of code, ``sources`` joins files by their imports, ``kept``
keeps shapes from one process to the next, ``refusals`` counts refused rows. Keys of stages are
made of it in ``tasks.plan``.
"""
