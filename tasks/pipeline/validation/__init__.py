"""Validation of what a stage writes: rules of a declaration, counts of the rows that break them, and the verdict.

``rules`` turns the declaration of a table into SQL conditions, ``counts`` counts them with DuckDB, ``judge`` asks Great
Expectations about the counts, ``boundary`` joins the three for all tables of a stage. What follows from a failure is
decided in ``tasks.pipeline.stage``.
"""
