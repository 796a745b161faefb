"""What stands on pages: lists and filters, the report's own pages, measures as tables and files, two runs compared."""

import csv
import io
import re
import zipfile
from pathlib import Path

import pytest
from lake_of_runs import NEW, OLD, OTHER, lake_of_runs
from sealed_run import RUN, sealed_run
from served_lake import Served, served

from flows.serving.pages.runs import difference_of
from tasks.lake.store import Lake


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Served:
    return served(lake_of_runs(tmp_path_factory.mktemp("listed") / "lake").location)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Served:
    from conftest import SPEC, loans

    place = tmp_path_factory.mktemp("reported")
    loans().to_csv(place / "loans.csv", index=False)
    (place / "loans.yaml").write_text(SPEC.replace("path: loans.csv", f"path: {place / 'loans.csv'}"))
    return served(sealed_run(place).location)


def listed(text: str) -> list[str]:
    return list(dict.fromkeys(re.findall(r'href="/runs/([a-z]+-\d{4}-\d+)"', text)))


def test_the_audits_with_their_last_runs(runs: Served) -> None:
    text = runs.get("/").text
    assert listed(text) == [OTHER, NEW]
    assert '<time datetime="2026-01-03T10:00:00Z">' in text
    assert "/audits/loans/years" in text
    assert "/audits/loans/trend" in text


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", [NEW, OTHER, OLD]),
        ("?audit=loans", [NEW, OLD]),
        ("?state=outside", [NEW]),
        ("?year=2024", [OTHER]),
        ("?signed=approved", []),
        ("?signed=unsigned&audit=cards", [OTHER]),
        ("?page=7", []),
        ("?audit=%3Cscript%3E", []),
    ],
)
def test_filters_stand_in_the_address(runs: Served, query: str, found: list[str]) -> None:
    answer = runs.get(f"/runs{query}")
    assert answer.status_code == 200
    assert listed(answer.text) == found


def test_measures_are_filtered_sorted_and_the_same_as_a_file(runs: Served) -> None:
    place = f"/runs/{NEW}/measures"
    assert "approval_rate" in runs.get(f"{place}?measure=approval_rate&sort=-value").text
    rows = list(csv.DictReader(io.StringIO(runs.get(f"{place}.csv?method=fgce").text)))
    assert {row["method"] for row in rows} == {"fgce"}
    assert len(runs.get(f"{place}.json?method=fgce").json()["measures"]) == len(rows) == 4
    falling = runs.get(f"{place}?measure=approval_rate&sort=-n").text
    assert falling.index("1,200") < falling.index("1,199") < falling.index("1,198")
    for strange in ("sort=value;drop", "measure=' OR 1=1 --", "state=nothing", "page=9999", "sort=-"):
        assert runs.get(f"{place}?{strange}").status_code == 200
    assert runs.get(f"{place}?page=x").status_code == 422


def test_a_measure_that_is_withheld_says_so(tmp_path: Path) -> None:
    lake = lake_of_runs(tmp_path / "lake")
    text = served(lake.location).get(f"/runs/{NEW}/measures").text
    assert "None" not in re.sub(r"<[^>]*>", "", text)


def test_search_finds_runs_groups_and_measures(runs: Served) -> None:
    assert NEW in runs.get("/search?q=loans").text
    assert "Asian" in runs.get("/search?q=asian").text
    assert "approval_rate" in runs.get("/search?q=approval").text
    assert "2 letters" in runs.get("/search?q=x").text
    assert "Nothing has" in runs.get("/search?q=zzzzzz").text


def test_two_runs_are_compared(runs: Served) -> None:
    to = runs.get(f"/runs/{NEW}/compare", follow_redirects=True)
    assert to.status_code == 200
    text = runs.get(f"/runs/{NEW}/compare/{OTHER}").text
    assert "keys of the spec differ" in text
    assert "applications in common" in text  # of the same data: no interval of the difference
    assert runs.get(f"/runs/{NEW}/compare/{NEW}").status_code == 404
    assert runs.get(f"/runs/{NEW}/compare/nothing").status_code == 404


def test_the_interval_of_a_difference_by_hand() -> None:
    one = {"value": 0.5, "plain_low": 0.3, "plain_high": 0.6}
    other = {"value": 0.9, "plain_low": 0.6, "plain_high": 1.3}
    gap, ends = difference_of(one, other)
    assert gap == pytest.approx(0.4)
    assert ends is not None
    assert ends == pytest.approx((0.4 - (0.3**2 + 0.1**2) ** 0.5, 0.4 + (0.4**2 + 0.2**2) ** 0.5))
    assert difference_of({**one, "plain_low": None}, other)[1] is None
    assert difference_of({**one, "value": None}, other) == (None, None)


def test_a_report_of_another_version_leads_to_its_file(runs: Served) -> None:
    answer = runs.get(f"/runs/{NEW}")
    assert answer.status_code == 200
    assert f"/runs/{NEW}/files/report.html" in answer.text


@pytest.mark.parametrize("part", ["", "/approval-rates", "/evidence/outcomes", "/quality"])
def test_pages_of_the_report_have_its_words(report: Served, part: str) -> None:
    answer = report.get(f"/runs/{RUN}{part}")
    assert answer.status_code == 200
    assert answer.text.count("<h1>") == 1
    assert "<style" not in answer.text
    assert "style=" not in answer.text
    assert len(answer.content) < 150_000


def test_links_of_the_report_lead_to_pages_that_are_there(report: Served) -> None:
    for part in ("", "/approval-rates", "/evidence/outcomes"):
        found = set(re.findall(r'href="(/[^"#]*)', report.get(f"/runs/{RUN}{part}").text))
        for address in found:
            assert report.get(address).status_code == 200, address


def test_what_the_report_has_not_is_not_there(report: Served) -> None:
    for part in ("/similar-applicants", "/evidence/cst", "/evidence/nothing", "/nothing", "/files/nothing"):
        assert report.get(f"/runs/{RUN}{part}").status_code == 404


def test_lineage_tells_no_rows_and_restricted_pages_are_logged(tmp_path: Path) -> None:
    lake = lake_of_runs(tmp_path / "lake")
    assert "Rows in" not in served(lake.location).get(f"/runs/{NEW}/lineage").text
    one = served(lake.location, by="Ann Lee", restricted=True)
    assert "Rows in" in one.get(f"/runs/{NEW}/lineage").text
    [entry] = [each for each in one.site.known(refresh=True).log.of(NEW) if each.event == "read"]
    assert (entry.by, entry.text) == ("Ann Lee", "lineage: exact rows of stages")


def test_files_are_listed_given_and_zipped(tmp_path: Path) -> None:
    lake: Lake = lake_of_runs(tmp_path / "lake")
    one = served(lake.location)
    assert "report.json" in one.get(f"/runs/{NEW}/files").text
    assert one.get(f"/runs/{NEW}/files/report.json").json()["run"] == NEW
    with zipfile.ZipFile(io.BytesIO(one.get(f"/runs/{NEW}/files.zip").content)) as held:
        assert held.namelist() == [f"{NEW}/report.json"]


def test_definitions_and_glossary(runs: Served) -> None:
    assert runs.get("/glossary").text.count("<h1>") == 1
    assert len(runs.get("/method").content) < 150_000
