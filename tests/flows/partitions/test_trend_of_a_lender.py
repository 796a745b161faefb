"""`trend --by-value`: a year in which the partition was not audited is a gap, and no zero."""

from lake_of_lenders import add_run, lake_of_lenders, people, rate

from flows.partitions.trends import make_trend
from schemas.tables.verdicts import Told


def test_a_year_that_lacks_the_partition_is_a_gap(tmp_path):
    lake, spec = lake_of_lenders(tmp_path, {"LEI0": ((60, 540), (60, 140), (20, 80))})
    counts = people((50, 450), (18, 132), (10, 70))
    approvals = [{**rate(counts, group, hidden=False), "measure": "approval_rate"} for group in counts]
    add_run(lake, spec, "LEI1", counts, measures=approvals)
    rows = make_trend("loans", [2023, 2024], lake, "LEI1").table.to_pylist()
    lacking, there = ([row for row in rows if row["year"] == year] for year in (2023, 2024))
    assert len(lacking) == len(there) == len(counts)
    assert {(row["value"], row["told"]) for row in lacking} == {(None, Told.NOT_MADE)}
    assert all(row["value"] for row in there)
