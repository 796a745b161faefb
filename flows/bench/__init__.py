"""Benches that belong to no single method: overhead, ingest, the twin.

A method's bench is in its folder (``tasks.methods``).
"""
