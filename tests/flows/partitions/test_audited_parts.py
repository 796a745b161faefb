"""Audits of partitions through every stage: their own rows, kept where only another lender changed."""

import pandas as pd
import pytest
from loans_of_lenders import ROWS, lenders_spec, loans_of_lenders

from flows.partitions.part_spec import spec_to_audit
from flows.runs.index import last_run, listed, read_manifest
from flows.runs.record import publish, summarise
from flows.runs.replay import planned_again
from schemas.audit.partition import ALL
from schemas.errors import IntegrityError
from tasks.lake.store import Lake, stage_runs
from tasks.lake.views import open_views
from tasks.plan import plan, walk

pytestmark = pytest.mark.slow

METHODS = "{adjusted: null, fgce: null, cst: null, cec: null, gcfn: null, raguel: null}"


def audited(spec, lake, value=None):
    """Run every stage; the summary."""
    planned = plan(spec_to_audit(spec, lake, value))
    done = walk(planned.steps, lambda step, given: step.stage.run(lake, given, step.settings, step.modules))
    publish(lake, planned, done)
    return summarise(lake, planned.spec, planned.run, done)


def written(place, table):
    return lenders_spec(place, table, methods=METHODS, thresholds="[]")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("audited")


@pytest.fixture(scope="module")
def lake(place):
    return Lake(place / "lake")


@pytest.fixture(scope="module")
def runs(place, lake):
    """Run of every row, and of two lenders."""
    spec = written(place, loans_of_lenders())
    return {value: audited(spec, lake, value) for value in (ALL, "Bank A", "No income")}


def test_a_partition_is_audited_of_its_own_rows(runs):
    assert {value: summary.source_summary["rows"] for value, summary in runs.items()} == {
        ALL: len(loans_of_lenders()),
        "Bank A": ROWS["Bank A"],
        "No income": ROWS["No income"],
    }
    assert "lender Bank A of loans.csv" in runs["Bank A"].source_summary["source"]


def test_its_manifest_and_the_lists_name_it(runs, lake):
    run = runs["Bank A"].run
    part = {"column": "lender", "value": "Bank A"}
    assert read_manifest(lake, run)["partition"] == part
    assert {each.run: each.partition for each in listed(lake)}[run] == part
    assert {row["partition_value"] for row in stage_runs(read_manifest(lake, run))} == {"Bank A"}
    assert last_run(lake, "loans", 2024, "Bank A").run == run
    assert last_run(lake, "loans", 2024).run == runs[ALL].run


def test_rows_of_the_views_name_it(runs, lake):
    query = (
        "SELECT partition_value, count(DISTINCT run) FROM {} WHERE partition_column = 'lender' GROUP BY 1 ORDER BY 1"
    )
    told = [(value, 1) for value in ("Bank A", "No income", ALL)]
    with open_views(lake) as views:
        for view in ("measures", "verdicts", "stage_runs"):
            assert views.sql(query.format(view)).fetchall() == told, view


def test_a_corrected_lender_leaves_the_others_as_they_were(runs, place, lake):
    table = loans_of_lenders()
    moved = table.iloc[[-1]].assign(id="N1", lender="Small")
    table.loc[table["lender"] == "Bank-A", "amount"] += 1
    spec = written(place, pd.concat([moved, table]))
    again = audited(spec, lake, "Bank A")
    assert (again.run, again.computed) == (runs["Bank A"].run, 0)
    assert audited(spec, lake, "Bank-A").computed > 0
    planned_again(lake, again.run)  # its rows are still those
    table.loc[table["lender"] == "Bank A", "amount"] += 1
    written(place, table)
    with pytest.raises(IntegrityError, match="has changed since"):
        planned_again(lake, again.run)
