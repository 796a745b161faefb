"""Arithmetic of the generated applications, apart from the twin of HMDA.

The twin has its own in ``tasks.ingest.synthetic.algorithm.twin``.
"""
