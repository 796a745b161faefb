"""Generated applications with known truth, as a source of an audit.

Files that people deliver are in ``tasks.ingest.sources``.
"""
