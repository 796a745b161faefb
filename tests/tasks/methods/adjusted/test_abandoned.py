"""Applications that ended without a decision are read again as ingest reads the others: by the recipe, by the order of
the stages, and without loans that were bought."""

from pathlib import Path

import pyarrow as pa
import pytest

from schemas.audit.spec import AuditSpec
from schemas.tables.readings import ABANDONED, ABANDONED_MEMBERSHIPS, UNDECIDED
from tasks.ingest.stage import ingest, ingest_settings
from tasks.methods.adjusted.abandoned.stage import OWN_STAGE, abandoned
from tasks.pipeline.registry import read_spec
from tasks.pipeline.stage import hold

SPEC = """\
name: made
title: Made
year: 2023
source:
  kind: csv
  path: made.csv
  intake: {columns: {income: {read: number, thousands: ',', unit: USD}}}
row_id: id
decision: {column: decision, favourable: [approved], unfavourable: [denied, Declined], neither: [withdrawn]}
protected:
  - {name: race, columns: [race], reference: White}
columns:
  income: {type: continuous}
methods: {adjusted: {}}
"""
ENDINGS = ("Approved", "DENIED ", "declined", " Withdrawn", "withdrawn.", "approved")


@pytest.fixture
def spec(tmp_path: Path) -> AuditSpec:
    rows = [f'A{i},{ENDINGS[i % 6]},{("White", "BLACK", "Black")[i % 3]},"${20_000 + 1_250 * i:,}"' for i in range(36)]
    (tmp_path / "made.csv").write_text("\n".join(["id,decision,race,income", *rows]) + "\n")
    return read_spec(SPEC, "made.yaml", {"source.path": str(tmp_path / "made.csv")}).spec


def read_again(spec: AuditSpec, undecided: pa.Table) -> dict[str, pa.Table]:
    settings = OWN_STAGE.settings(spec)
    assert settings is not None
    produced = abandoned.function(undecided, settings=settings)
    contents, *_ = hold(abandoned, produced, produced.rows_in or 0)
    return {name: table for name, table in contents.items() if isinstance(table, pa.Table)}


def test_they_are_those_that_ingest_refused_with_their_columns_typed(spec: AuditSpec) -> None:
    ingested = ingest.function(settings=ingest_settings(spec)).tables
    assert ingested[UNDECIDED.name].to_pylist() == [{"rows": 12}]
    tables = read_again(spec, ingested[UNDECIDED.name])
    rows = tables[ABANDONED.name]
    assert rows["row_id"].to_pylist() == [f"A{i}" for i in range(36) if i % 6 in (3, 4)]
    assert rows["income"].to_pylist() == [20_000.0 + 1_250 * i for i in range(36) if i % 6 in (3, 4)]
    groups = tables[ABANDONED_MEMBERSHIPS.name]["group"].to_pylist()
    assert groups == [("White", "Black")[i % 3 > 0] for i in range(36) if i % 6 in (3, 4)]


def test_nothing_is_read_where_every_application_is_decided(spec: AuditSpec) -> None:
    settings = OWN_STAGE.settings(spec)
    Path(str(spec.source.path)).unlink()  # so that a look into the source would fail
    produced = abandoned.function(UNDECIDED.build(rows=[0]), settings=settings)
    assert (produced.tables[ABANDONED.name].num_rows, produced.rows_in) == (0, 0)


def test_it_waits_for_ingest_and_the_ladder_for_it(spec: AuditSpec) -> None:
    from flows.concurrency.schedule import waits_for
    from tasks.plan import plan

    steps = plan(spec).steps
    names = [step.name for step in steps]
    before = {name: {names[at] for at in places} for name, places in zip(names, waits_for(steps), strict=True)}
    assert before["abandoned"] == {"ingest"}
    assert "abandoned" in before["adjust"]


def test_an_audit_that_ignores_them_has_no_such_stage(spec: AuditSpec) -> None:
    verdicts = spec.verdicts.model_copy(update={"undecided": "ignore"})
    assert OWN_STAGE.settings(spec.model_copy(update={"verdicts": verdicts})) is None
