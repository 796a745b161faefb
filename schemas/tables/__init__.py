"""Declarations of the tables that stages write: names, columns, types and bounds.

Rows are made by the stages (``tasks``). The audit spec is in ``schemas.audit``.
"""
