"""Validation at the boundary of a stage: Great Expectations reads the tables themselves in DuckDB.

It is imported on first use. Connections and views: ``connections``. The dialect of SQLAlchemy: ``duckdb_dialect``.
"""

from tasks.pipeline.validation.boundary import (
    Outcome,
    Validation,
    as_table,
    judged,
    prepare_engine,
    terms_listed,
    validate,
    validate_all,
)

__all__ = ["Outcome", "Validation", "as_table", "judged", "prepare_engine", "terms_listed", "validate", "validate_all"]
