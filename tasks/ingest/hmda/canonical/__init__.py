"""HMDA's columns under one set of names, codes and units for all years.

Which file has which column is in ``tasks.ingest.hmda.files``.
"""
