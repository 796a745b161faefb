"""Files of applications by format: each gives its columns as text, with the number of every row.

HMDA's layouts are in ``tasks.ingest.hmda.source``, generated applications in ``tasks.ingest.synthetic``.
"""
