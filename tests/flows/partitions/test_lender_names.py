"""Names of lenders on runs: by the panel of the very year, and without a change of results or of the run id."""

from pathlib import Path

import pytest
from conftest import REPOSITORY

from flows.cli.runs import folder_of_report
from flows.partitions.years import with_lender
from schemas.audit.partition import Part
from schemas.audit.source import Source
from schemas.audit.spec import AuditSpec
from tasks.ingest.vintages import panels
from tasks.lake.store import Lake
from tasks.pipeline.registry import read_spec

LEI = "549300GAX7IKJUKCJE72"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    opened = Lake(tmp_path / "lake")
    file = tmp_path / "panel.csv"
    file.write_text(f"activity_year,lei,agency_code,respondent_name\n2024,{LEI},5,Travis Credit Union\n")
    panels.add(opened, file)
    return opened


def spec_of_lender(lender: str = LEI, year: int = 2024) -> AuditSpec:
    text = (REPOSITORY / "data" / "audits" / "hmda.yaml").read_text()
    spec = read_spec(text, "hmda.yaml", {"year": str(year)}).spec
    part = Part(column="lender_id", value=lender, rows_sha256="0" * 64)
    return spec.model_copy(update={"source": spec.source.model_copy(update={"part": part})})


def test_the_lender_of_a_partition_has_its_name_from_the_panel(lake: Lake) -> None:
    assert with_lender(spec_of_lender(), lake).source.lender_name == "Travis Credit Union"


def test_a_name_longer_than_a_page_has_room_for_is_cut_and_its_spec_is_valid(tmp_path: Path) -> None:
    opened, file = Lake(tmp_path / "lake"), tmp_path / "panel.csv"
    file.write_text(f'activity_year,lei,agency_code,respondent_name\n2024,{LEI},5,"Banc ""d\'É""/{"x" * 300}"\n')
    panels.add(opened, file)
    named = with_lender(spec_of_lender(), opened)
    name = named.source.lender_name
    assert (len(name), name[:12], name[-4:]) == (200, 'Banc "d\'É"/x', "x...")
    assert Source.model_validate(named.source.model_dump(mode="json")).lender_name == name


def test_a_panel_of_another_year_or_without_the_lender_names_nobody(lake: Lake) -> None:
    assert with_lender(spec_of_lender(year=2023), lake).source.lender_name == ""
    assert with_lender(spec_of_lender("OTHER"), lake).source.lender_name == ""


@pytest.mark.parametrize(
    ("name", "end"),
    [
        ('../../etc/Banc "d\'Épargne"', "-etc_Banc_d_Epargne"),
        ("B" * 300, "-" + "B" * 40),
        ("=1<b>", "-1_b"),
        ("銀行", "-x"),
        ("", ""),
    ],
)
def test_no_name_leaves_the_folder_of_a_report(name: str, end: str) -> None:
    assert folder_of_report("run", name) == f"run{end}"


def test_a_name_in_the_spec_stays(lake: Lake) -> None:
    spec = spec_of_lender()
    own = spec.model_copy(update={"source": spec.source.model_copy(update={"lender_name": "Ours"})})
    assert with_lender(own, lake).source.lender_name == "Ours"


def test_a_name_is_no_part_of_what_identifies_the_rows(lake: Lake) -> None:
    spec = spec_of_lender()
    assert with_lender(spec, lake).source.identifying() == spec.source.identifying()
