"""Years of official data in a lake: what is offered, what was delivered, and how it is kept.

The transfer itself is in ``tasks.ingest.download``.
"""
