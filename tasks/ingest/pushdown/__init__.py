"""Ingest as SQL: DuckDB reads the columns that the audit spec names, judges every row and streams what comes of it.

A row is judged in layers, each a view of the connection: ``raw`` is the source as text, ``texts`` its cells as they are
compared with codes, ``cells`` adds derived columns and which cells are missing or exempt. What SQL could read in
another way than Python, such as a number in an unusual form, is mapped by Python once for each distinct text.

Sources are laid out in ``tasks.ingest.sources`` and ``tasks.ingest.hmda``; the stage is ``tasks.ingest.stage``.
"""
