"""The short report of one partition of many: its first page and report.json, and how to make the rest."""

import json
from dataclasses import replace

import pytest
from decide_runs import boston
from report_tables import RUN, material, settings, tables

from schemas.audit.partition import Part
from tasks.reporting import stage
from tasks.reporting.exports.single_file import budget_lines
from tasks.reporting.material import Material, ReportSettings
from tasks.reporting.pages import DOCUMENT, FIRST, files, short

PART = Part(column="lender_id", value="TWIN01", rows_sha256="ef" * 32)


def of_lender(whole: ReportSettings) -> ReportSettings:
    return whole.model_copy(update={"source": whole.source.model_copy(update={"part": PART})})


@pytest.fixture
def given() -> Material:
    found = material(boston())
    return replace(found, settings=of_lender(found.settings))


def test_a_run_of_one_lender_gets_the_short_report_and_any_other_run_all_files() -> None:
    read = [tables(boston())[table.name] for table in stage.READ]
    made = stage.report.function(*read, settings=of_lender(settings()))
    assert list(made.files) == [FIRST, DOCUMENT]
    assert made.tables["report_index"]["file"].to_pylist() == [FIRST, DOCUMENT]
    assert {FIRST, DOCUMENT, "method.html", "measures.xlsx"} < set(
        stage.report.function(*read, settings=settings()).files
    )


def test_the_first_page_says_what_the_whole_one_says(given: Material) -> None:
    found, whole = short(given), files(given)
    main = [each[FIRST].decode().split("<main")[1].split("</main>")[0] for each in (found, whole)]
    assert "What was found" in main[0]
    assert [text for text in main[1].split("<") if text not in main[0]] != []  # links of the whole one
    said = [json.loads(each[DOCUMENT]) for each in (found, whole)]
    assert said[0].pop("pages") == [FIRST]
    assert "pages/approval-rates.html" in said[1].pop("pages")
    assert said[0] == said[1]


def test_no_link_leads_to_a_page_that_is_not_made_and_the_page_says_how_to_make_them(given: Material) -> None:
    page = short(given)[FIRST].decode()
    assert [part.split('"')[0] for part in page.split(' href="')[1:]] == ["#main", "report.json"]
    assert f"<code>evenhand report {RUN}</code>" in page
    assert "evenhand report" not in files(given)[FIRST].decode()


def test_page_and_document_say_whose_rows_they_are_of(given: Material) -> None:
    made = files(given)
    assert '<p class="kicker">Lender TWIN01, 1990 ·' in made[FIRST].decode()
    assert ", lender_id TWIN01" in made["pages/approval-rates.html"].decode()
    assert json.loads(made[DOCUMENT])["partition"] == {"column": "lender_id", "value": "TWIN01"}
    assert json.loads(files(material(boston()))[DOCUMENT])["partition"] is None


def test_the_short_report_is_within_the_budgets(given: Material) -> None:
    assert [line.over for line in budget_lines(short(given)) if line.over] == []
