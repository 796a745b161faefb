"""What the pages over years read of a run: what it published, and what stands beside that in no case."""

import pytest
from test_monitored_years import Shelf, rows_of, run
from year_verdicts import as_table, verdict, whole

from flows.partitions import trends
from flows.partitions.trends import followed
from schemas.tables.verdicts import PUBLISHED_WATERFALL
from tasks.metrics.algorithm.monitoring import MonitoringRule
from tasks.reporting.trend_pages import SOURCE
from tasks.reporting.trends import YearResult


def test_a_published_table_hides_the_one_that_it_was_made_of():
    both = run(2016, tables=("measures", "verdicts", "published_measures"))
    assert both.published("measures").table == "published_measures"
    assert both.published("verdicts") is None, "what was not published is not told"


def test_a_run_of_an_earlier_version_has_its_tables_as_they_were():
    before = run(2016, tables=("measures", "verdicts"))
    assert before.published("verdicts").table == "verdicts"
    assert before.published("waterfall") is None


def test_years_are_held_against_limits_by_published_verdicts():
    class Told(Shelf):
        def read(self, artifact):
            assert artifact.table == "published_verdicts"
            return super().read(artifact)

    runs = {2016: run(2016, tables=("verdicts", "published_verdicts"))}
    (row,) = followed(Told({"2016": as_table([whole(), verdict("Black", 0.08, 0.01)])}), runs, MonitoringRule())
    assert row.of.value == pytest.approx(-0.08)
    assert rows_of(runs, {2016: 0.08})[2016]["state"] == "outside"


def line(number, kind, n, *, group="All", stage="", reason="", column=""):
    return {
        **{"protected_attribute": "race", "line": number, "kind": kind, "stage": stage, "reason": reason},
        **{"column": column, "group": group, "n": n, "approval": None, "withheld": n is None},
    }


LINES = (
    line(0, "source", 1000),
    line(0, "source", 300, group="Black"),
    line(1, "refused", None, stage="ingest", reason="not_a_number", column="income"),
    line(2, "left", 990, stage="ingest"),
    line(3, "refused", 40, stage="preprocess", reason="missing_covariate"),
    line(4, "used", 950),
)
WATERFALL = PUBLISHED_WATERFALL.build(**{c.name: [row[c.name] for row in LINES] for c in PUBLISHED_WATERFALL.columns})


def test_counts_of_an_edition_are_those_of_its_published_waterfall(monkeypatch):
    monkeypatch.setattr(trends, "_result", lambda lake, audit, year, of: YearResult(year, run=of.run))
    edition = trends._edition(Shelf({"2016": WATERFALL}), run(2016, tables=("published_waterfall",)))
    assert edition.counts == {
        SOURCE: 1000,
        "refused, ingest: not a number (income)": None,
        "refused, preprocess: missing covariate": 40,
        "used": 950,
    }


def test_a_run_that_published_no_waterfall_has_no_counts(monkeypatch):
    monkeypatch.setattr(trends, "_result", lambda lake, audit, year, of: YearResult(year, run=of.run))
    assert trends._edition(Shelf({}), run(2016)).counts == {}
