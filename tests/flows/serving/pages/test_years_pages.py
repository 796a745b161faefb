"""Years of an audit: verdict and today apart, no folder in a reason, damaged manifests, failures, partitions."""

import json
import re
import shutil
from pathlib import Path

import pytest
from audited_loans import audited, copy_of
from lake_of_lenders import LENDERS, add_run, lake_of_lenders, people
from lake_of_runs import NEW, OLD, lake_of_runs
from served_lake import failed, served

from flows.partitions.attempts import YearState
from flows.partitions.partition_list import Listed, keep_listing
from flows.serving.pages import years
from flows.serving.pages.lists import shareable
from flows.serving.pages.years import ROOM, fitted, today
from flows.serving.site import Page, made
from tasks.lake.store import Lake
from tasks.reporting.material import Measure
from tasks.reporting.text import Section

GROUP = "audited_loans"

FAR = "no file at source.path: loans.csv (from /srv/a b/main); name it with --set source.path=FILE"


def text(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page[page.index("<main") :]))


@pytest.fixture(scope="module")
def lenders(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return lake_of_lenders(tmp_path_factory.mktemp("lenders"))[0]


def test_where_the_data_are_not_there_the_verdict_stays_and_no_folder_is_told(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    place, run = audited(tmp_path_factory)
    lake = Lake(place / "lake")
    page = served(lake.location).get("/audits/loans/years").text
    assert "stands" in text(page)
    state = served(lake.location).site.known().runs[run].state
    (place / "loans.csv").rename(place / "away.csv")
    try:
        page = served(lake.location).get("/audits/loans/years").text
    finally:
        (place / "away.csv").rename(place / "loans.csv")
    assert f'class="badge {state}"' in page
    assert "cannot be told from this server" in page
    assert str(place) not in page
    assert "--set" not in page
    assert "stale" not in text(page)
    row = text(page)[text(page).index("Stages of each year") :]
    assert f"ok run {run.rpartition('-')[2]}" in row, "each cell of the matrix names its run"


@pytest.mark.parametrize(
    "reason", [FAR, "the lake /srv/x/lake cannot be written; give another with --lake", "s3://b/x"]
)
def test_a_reason_names_no_folder_and_no_option(reason: str) -> None:
    assert "/" not in shareable(reason)
    assert "--" not in shareable(reason)


def test_a_running_year_loads_its_page_again_and_no_other_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = lake_of_runs(tmp_path / "lake")
    one = served(lake.location)
    every = ("/", "/runs", "/audits/loans/years", "/audits/cards/years", f"/runs/{NEW}/review", "/search?q=loans")
    assert not any("refresh" in one.get(path).headers for path in every)
    failed(lake, "loans", 2022, state=YearState.RUNNING, message="")
    monkeypatch.setattr("flows.partitions.attempts.held", lambda *_: True)
    one = served(lake.location)
    found = [path for path in every if one.get(path).headers.get("refresh") == "10"]
    assert found == ["/audits/loans/years"]


def test_a_damaged_manifest_takes_no_other_year_away(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    place, run = audited(tmp_path_factory)
    lake = copy_of(place / "lake", tmp_path / "lake")
    other = run.replace("2024", "2023")
    manifest = json.loads((lake.root / "runs" / run / "manifest.json").read_text())
    shutil.copytree(lake.root / "runs" / run, lake.root / "runs" / other)
    (lake.root / "runs" / other / "manifest.json").write_text(json.dumps({**manifest, "run": other, "year": 2023}))
    summary = lake.root / "runs" / other / "summary.json"
    summary.write_text(summary.read_text().replace(run, other).replace('"year":2024', '"year":2023'))
    one = served(lake.location)
    assert other in one.site.known().runs
    years = one.get("/audits/loans/years")
    assert years.status_code == 200
    assert "cannot be read" in text(years.text)
    assert {run, other} <= set(re.findall(r"loans-\d{4}-[0-9a-f]{10}", years.text))
    trend = one.get("/audits/loans/trend")
    assert trend.status_code == 200
    assert "its run cannot be read" in text(trend.text)
    (lake.root / "runs" / run / "manifest.json").write_text("{}")
    assert served(lake.location).get("/audits/loans/trend").status_code == 409


def test_an_audit_that_only_failed_is_shown(tmp_path: Path) -> None:
    lake = lake_of_runs(tmp_path / "lake")
    failed(lake, "mortgages", 2020, message="column income: 3 of 500 values; rows A17")
    one = served(lake.location)
    home = text(one.get("/").text)
    assert "mortgages" in home
    assert "no run yet" in home
    assert "A17" not in home
    years = one.get("/audits/mortgages/years")
    assert years.status_code == 200
    assert "failed" in text(years.text)
    assert "A17" not in years.text
    assert one.get("/audits/mortgages/trend").status_code == 404
    assert one.get("/audits/nothing/years").status_code == 404


def test_partitions_that_were_audited_alone_are_counted_by_state(lenders: Lake) -> None:
    one = served(lenders.location)
    page = one.get("/audits/loans/years")
    assert "Outside the limit" in text(page.text)
    assert "6 of 6" in text(page.text)
    assert "/runs?audit=loans&amp;year=2024&amp;partition=LEI3" in page.text
    home = text(one.get("/").text)
    assert "6 partitions of 2024: Outside the limit: 6" in home
    found = one.get("/runs?audit=loans&year=2024&partition=LEI3").text
    assert len(set(re.findall(r"loans-2024-LEI\d", found))) == 1
    assert 'name="partition"' in found


def test_without_partitions_runs_have_no_such_filter(tmp_path: Path) -> None:
    lake = lake_of_runs(tmp_path / "lake")
    assert 'name="partition"' not in served(lake.location).get("/runs").text


def test_back_filled_partitions_have_failures_first_and_at_most_fifty(tmp_path: Path) -> None:
    lake = lake_of_runs(tmp_path / "lake")
    listed = [Listed("all", 9_000, 9_000, ""), *(Listed(f"LEI{n:02d}", 900 - n, 900 - n, "") for n in range(80))]
    keep_listing(lake, "loans", 2022, "lender", listed)
    failed(lake, "loans", 2022, "LEI77", message="column income: at least 0: 3 of 500 values; rows A17")
    failed(lake, "loans", 2022, "LEI03", state=YearState.TOO_FEW, message="41 people")
    page = served(lake.location).get("/audits/loans/years?year=2022")
    said = text(page.text)
    assert "1 of 81" in said
    assert said.index("LEI77") < said.index(" all ") < said.index("LEI00")
    assert "LEI60" not in said
    assert "column income" in said
    assert "A17" not in said
    assert "The first 50 of 81" in said
    assert len(page.content) < 150_000


def test_what_a_back_fill_of_a_running_partition_says_loads_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = lake_of_runs(tmp_path / "lake")
    keep_listing(lake, "loans", 2022, "lender", [Listed("A", 900, 900, "")])
    failed(lake, "loans", 2022, "A", state=YearState.RUNNING)
    monkeypatch.setattr("flows.partitions.attempts.held", lambda *_: True)
    assert served(lake.location).get("/audits/loans/years").headers["refresh"] == "10"


def test_the_trend_is_of_all_rows_and_of_one_lender_on_request(lenders: Lake) -> None:
    one = served(lenders.location)
    whole = one.get("/audits/loans/trend")
    assert whole.status_code == 200
    assert '<option value="all" selected>' in whole.text
    alone = one.get("/audits/loans/trend?partition=LEI1").text
    assert "Loans by lender: LEI1" in alone
    assert one.get("/audits/loans/trend?partition=LEI9").status_code == 404
    assert one.site.known().values_of["loans"][0] == "all"


def test_many_partitions_are_written_and_not_chosen(tmp_path: Path) -> None:
    lake, spec = lake_of_lenders(tmp_path, {"LEI0": LENDERS["LEI0"]}, every=False)
    for n in range(201):
        add_run(lake, spec, f"B{n:03d}", people((60 + n, 540), (60, 140), (20, 80)))
    page = served(lake.location).get("/audits/loans/trend").text
    assert '<input id="f-partition"' in page
    assert '<select id="f-partition"' not in page


def test_two_lenders_of_one_year_are_two_lines_of_the_terminal_s_status(lenders: Lake) -> None:
    from flows.operations.status import status

    found = status(lenders, "loans")
    assert [each.partition for each in found] == [*sorted(LENDERS), "all"]
    assert len({each.run for each in found}) == 6
    assert {today(each) for each in found} <= {"stale", "stands", "cannot be told from this server"}


def large_trend() -> Section:
    """Eight groups over twelve years, in six measures and a chapter of limits."""
    from year_verdicts import many_years

    from tasks.metrics.algorithm.monitoring import MonitoringRule
    from tasks.reporting.trend_pages import trend_section
    from tasks.reporting.trends import YearResult, chapter, follow

    groups, rule = [f"group {n}" for n in range(8)], MonitoringRule()
    names = ("approval_rate", "denial_rate", "approval_rate_ratio", "approval_rate_difference")
    fixed = {"dataset": "a", "method": "outcomes", "decision_maker": "lender", "protected_attribute": "race"}
    rest = {"reference_group": None, "subgroup": 0, "parameters": "{}", "events": None, "p": None, "q": None}
    said = {"state": "within", "reason": "", "low": 0.5, "high": 0.7, "value": 0.6, "n": 500}

    def year(number: int) -> YearResult:
        more = {**fixed, **rest, **said, "year": number}
        measures = tuple(Measure(**more, measure=name, group=group) for name in names for group in groups)
        return YearResult(number, f"a-{number}-0", "snapshot", "snapshot", "within", rows=500, measures=measures)

    seen = follow(many_years(12, groups), rule)
    years = [year(2007 + n) for n in range(12)]
    return trend_section("Loans", years, {"race": "group 0"}, False, [], chapter(seen, rule))


def test_a_trend_of_eight_groups_and_twelve_years_fits_its_page() -> None:
    from tasks.reporting.charts.layout import element

    section = large_trend()
    drawn = [figure for chapter in section.parts for part in chapter.parts for figure in part.figures]
    assert sum(len(element(each.chart, "x")) for each in drawn) > 300_000
    page = fitted(section)
    kept = [figure for chapter in page.parts for part in chapter.parts for figure in part.figures]
    assert kept
    assert sum(len(element(each.chart, "x")) for each in kept) < ROOM
    body = made(Page("Loans", page)).body
    assert 50_000 < len(body) < 150_000
    small = fitted(section, 20_000)
    assert small.parts[-1].anchor == "not-shown"
    assert len(made(Page("Loans", small)).body) < 45_000


def test_pages_of_partitions_keep_what_they_asked(lenders: Lake) -> None:
    site = served(lenders.location).site
    held = years.Partitions()
    assert [each.year for each in held.of(site, "loans")] == [2024]
    assert held.of(site, "loans")[0].done == 6
    assert OLD not in {part.run for part in held.of(site, "loans")[0].parts}
