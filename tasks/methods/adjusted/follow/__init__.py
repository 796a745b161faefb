"""Stage ``follow``: what became of applications beyond the decision: how they ended, why, at which price and where.

Its reader is the ingest's own statement, so that rows and groups are those of the audit.
"""
