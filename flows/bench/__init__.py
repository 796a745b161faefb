"""Benchmarks of no single method: overhead, ingest, the twin.

Scope: Evenhand's own. Those of a method: ``bench`` in its folder (``tasks.methods``).
"""
