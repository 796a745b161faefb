"""The age of data counts from the time at which a run began: in its report, its repetition and its replay."""

from pathlib import Path

import pytest
from conftest import SPEC, loans, spec_of

from flows.runs.index import read_manifest
from flows.runs.record import planned_in, publish
from flows.runs.replay import replay_run
from flows.runs.report_files import read_anew, report_anew
from tasks.lake.store import Lake
from tasks.plan import held, plan, walk
from tasks.reporting.first_page.page import decide, run_of
from tasks.reporting.stage import material_of

METHODS = SPEC[SPEC.index("methods:") : SPEC.index("thresholds:")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("started", "rule"), [("2027-12-31T23:59:59Z", "unseen"), ("2031-01-01T00:00:00Z", "old_years")]
)
def test_a_run_of_a_later_year_counts_from_it(place: Path, started: str, rule: str) -> None:
    loans(200).to_csv(place / "loans.csv", index=False)
    spec, lake = spec_of(place, SPEC.replace(METHODS, "methods: {adjusted: null, fgce: null}\n")), Lake(place / "lake")
    planned = plan(spec, started)
    publish(lake, planned, walk(planned.steps, lambda s, given: s.stage.run(lake, given, s.settings, s.modules)))

    manifest = read_manifest(lake, planned.run)
    assert manifest["started"] == started
    assert plan(spec).run == planned.run, "the time is no part of the run id"
    page = decide(run_of(material_of(*read_anew(lake, planned.run))))
    assert [line.rule for line in page.cannot] == ["why_lawful", rule, "single_person"]

    again = planned_in(lake, spec)
    assert (again.started, len(held(lake, again.steps))) == (started, len(planned.steps)), "nothing is left to compute"
    assert all(step["equal"] for step in replay_run(lake.root, planned.run))
    exported = {name: (lake.root / "reports" / planned.run / name).read_bytes() for name in manifest["exported"]}
    assert report_anew(lake, planned.run) == exported
