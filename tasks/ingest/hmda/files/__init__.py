"""HMDA's files as published: their layouts, how one is recognised and opened, and their lines.

What the cells mean is in ``tasks.ingest.hmda.canonical``.
"""
