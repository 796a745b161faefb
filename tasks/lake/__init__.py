"""Files of results: where they are kept, how they are written, found, read and queried.

What is in a table is declared in ``schemas.tables``; which run wrote it is told by ``flows.runs``.
"""
