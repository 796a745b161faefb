"""Stage ``abandoned``: applications that ended without a decision, with the columns of the others.

Its reader is the ingest's own statement, so that both kinds of rows are typed alike.
"""
