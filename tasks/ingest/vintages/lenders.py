"""The lenders of a vintage: ``lenders.parquet``, one row a lender, which says what there is without reading it."""
# ruff: noqa: S608 what goes into the SQL is quoted, or a name of ours

from pathlib import Path

import pyarrow.parquet as pq

from schemas.tables.hmda import HMDA_LENDERS
from tasks.ingest.hmda.canonical.cells import parquet
from tasks.ingest.hmda.expectations import check
from tasks.ingest.hmda.sorted_rows import LENDER, LENDERS_FILE
from tasks.ingest.sources.parts import counted
from tasks.ingest.vintages.arrangement import NO_LENDER, NO_STATE
from tasks.ingest.vintages.sorting import bounded

_ACTIONS = ", ".join(f"count(*) FILTER (action_taken = '{code}') AS action_taken_{code}" for code in "12345678")
_QUERY = f"""
SELECT coalesce(lender_id, '{NO_LENDER}') AS lender_id, NULL::VARCHAR AS name, count(*) AS rows, {_ACTIONS},
  array_to_string(list_sort(list(DISTINCT coalesce(CAST(state_code AS VARCHAR), '{NO_STATE}'))), ',') AS states,
  min(source_row) AS first_row, max(source_row) AS last_row
FROM {{}} GROUP BY ALL ORDER BY ALL
"""


def write_lenders(rows: Path, folder: Path) -> int:
    """Write ``folder/lenders.parquet`` of a vintage's rows; returns how many lenders there are.

    Raises:
        SuiteError: what was found does not keep its declaration.
        InfrastructureError: memory or disk is not enough.
    """
    target = folder / LENDERS_FILE
    with bounded(folder) as connection:
        found = connection.sql(_QUERY.format(parquet(rows))).to_arrow_table()
        digests = counted(connection, parquet(rows), LENDER)
        table = found.append_column("rows_sha256", digests["rows_sha256"])
        if digests["value"] != found[LENDER] or digests["rows"] != found["rows"]:
            raise RuntimeError("lenders are not counted in the order in which they are told")
        pq.write_table(table.cast(HMDA_LENDERS.schema()), target)
        check(connection, target, HMDA_LENDERS)
    return int(table.num_rows)
