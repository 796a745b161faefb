"""Vintages of official data in a lake: the publisher's offers, deliveries, and storage.

The transfer itself is in ``tasks.ingest.download``.
"""
