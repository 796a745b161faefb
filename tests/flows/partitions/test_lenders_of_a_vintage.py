"""Lenders of a year of HMDA in the lake: counted as ingest reads them, whichever spec asks."""

from datetime import date

import pytest

from flows.cli.options import BUNDLED, load_spec
from flows.partitions.part_spec import spec_of_part
from flows.partitions.partition_list import listing, without_value, year_spec
from schemas.audit.partition import ALL
from tasks.ingest import registry
from tasks.ingest.stage import ingest, ingest_settings
from tasks.ingest.synthetic.algorithm.twin import TwinSettings
from tasks.ingest.synthetic.twin_files import write
from tasks.ingest.vintages.store import add
from tasks.lake.store import Lake

YEAR, TOTAL = 2022, 3000


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    place = tmp_path_factory.mktemp("vintage")
    file = write(place, TwinSettings(rows=TOTAL, year=YEAR, lenders=4), 482).rows
    lake = Lake(place / "lake")
    add(lake, file, year=YEAR, dataset="snapshot", geography="nationwide", frozen=date(2023, 5, 1))
    return lake


@pytest.fixture(scope="module")
def spec():
    return load_spec(BUNDLED.parent / "hmda.yaml", {"by": "{column: lender_id, minimum: 100}"}).spec


def test_lenders_have_the_rows_that_ingest_reads(lake, spec):
    every, largest, *others = listing(spec, YEAR, lake)
    assert every.value == ALL
    assert sum(each.rows for each in (largest, *others)) + without_value(spec, YEAR, lake).rows == TOTAL == every.rows
    of_lender = spec_of_part(spec, YEAR, largest, lake)
    produced = ingest.function(settings=ingest_settings(of_lender))
    assert (produced.rows_in, produced.tables["applications"].num_rows) == (largest.rows, largest.usable)
    assert "lender_id" not in of_lender.columns
    assert "lender_id" not in of_lender.source.lacking


def test_parts_by_another_column_have_digests_of_their_own(lake, spec):
    states = spec.model_copy(update={"by": spec.by.model_copy(update={"column": "state_code"})})
    found = {each.value: each.rows_sha256 for each in listing(states, YEAR, lake)}
    assert len(set(found.values())) == len(found) > 1


def test_the_table_of_lenders_has_the_digests_that_the_rows_have(lake, spec, monkeypatch):
    source = year_spec(spec, YEAR, lake).source
    told = registry.part_digests(source, "lender_id")
    monkeypatch.setattr(registry, "_held", lambda *_: None)
    assert registry.part_digests(source, "lender_id") == told
