"""Pages of a run: what two runs may share, checks that saw no row, sorting, banners, declarations, navigation."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from audited_loans import audited
from lake_of_lenders import lake_of_lenders
from lake_of_runs import NEW, OTHER, lake_of_runs
from sealed_run import RUN, sealed_run
from served_lake import Served, served

from flows.operations.dictionary import TABLES
from flows.runs.index import Run
from flows.serving.pages.lists import STATE_WORDS
from flows.serving.pages.run_report import _checks
from flows.serving.pages.runs import independent
from schemas.questions import STATES
from tasks.reporting.text import Section

GROUP = "audited_loans"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Served:
    return served(lake_of_runs(tmp_path_factory.mktemp("pages") / "lake").location)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> tuple[Served, str]:
    place, run = audited(tmp_path_factory)
    return served(str(place / "lake")), f"/runs/{run}"


ONE = Run("a", "loans", 2023, "within", "", "data", "", {}, {}, (), (), False)
"""A run without partition."""


def of(value: str, **more: object) -> Run:
    return replace(ONE, partition={"column": "lender", "value": value}, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        (ONE, replace(ONE, year=2024, source_sha256="other"), True),
        (ONE, replace(ONE, source_sha256="another edition"), False),
        (ONE, replace(ONE, year=2024), False),
        (ONE, ONE, False),
        (of("A"), of("B"), True),
        (of("A"), of("all"), False),
        (of("all"), of("A"), False),
        (of("A"), of("A"), False),
        (of("A"), of("A", year=2024, source_sha256="other"), True),
        (of("A"), ONE, False),
        (of("A"), replace(ONE, partition={"column": "state", "value": "TX"}), False),
    ],
)
def test_only_runs_that_share_no_application_have_an_interval(one: Run, other: Run, found: bool) -> None:
    assert bool(independent(one, other)) is found
    assert bool(independent(other, one)) is found


def test_two_lenders_of_one_file_are_told_apart_and_have_intervals(tmp_path: Path) -> None:
    lake, _ = lake_of_lenders(tmp_path)
    one = served(lake.location)
    names = {run.partition["value"]: run.run for run in one.site.known().runs.values() if run.partition}
    page = one.get(f"/runs/{names['LEI0']}/compare/{names['LEI1']}").text
    assert "no application in common" in page
    assert re.search(r"\[\N{MINUS SIGN}?[\d.]+, ", page)
    assert '<th scope="col" class="text"><bdi>Attribute</bdi></th>' in page
    whole = one.get(f"/runs/{names['LEI0']}/compare/{names['all']}").text
    assert "may have applications in common" in whole


def test_another_run_is_chosen_by_a_form(runs: Served, tmp_path: Path) -> None:
    page = runs.get(f"/runs/{NEW}/compare").text
    assert f'action="/runs/{NEW}/compare"' in page
    assert '<select id="f-other"' in page
    answer = runs.get(f"/runs/{NEW}/compare?other={OTHER}", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, f"/runs/{NEW}/compare/{OTHER}")
    assert runs.get(f"/runs/{NEW}/compare?other=nothing").status_code == 404


def test_digests_are_not_cut(tmp_path: Path) -> None:
    lake, _ = lake_of_lenders(tmp_path, every=False, small=0)
    one = served(lake.location)
    first, second = list(one.site.known().runs)[:2]
    path = lake.root / "runs" / second / "manifest.json"
    import json

    from flows.runs.index import digest

    said = {**json.loads(path.read_text()), "source_sha256": "0123456789abcdef" * 4}
    del said["sha256"]
    path.write_text(json.dumps({**said, "sha256": digest(said)}))
    assert "0123456789abcdef" * 4 in one.get(f"/runs/{first}/compare/{second}").text


def check(table: str, elements: int | None, **more: object) -> dict[str, object]:
    fixed = {"stage": "ingest", "table": table, "column": "income", "success": True, "quarantined": False}
    rule = {"expectation": "expect_column_values_to_be_between", "expected": '{"min_value": 0.0, "max_value": null}'}
    return {**fixed, **rule, "elements": elements, "unexpected": 0, **more}


def states(section: Section) -> list[str]:
    return [row[-2].text for row in section.tables[0].rows]


def test_an_empty_table_is_an_error_but_for_refusals_which_come_last() -> None:
    rows = [check("refusals", 0), check("applications", 40), check("findings", 0), check("refusal_counts", 0)]
    rows += [check("memberships", 30, success=False, unexpected=2, quarantined=True), check("draws", None)]
    found = _checks(rows, {("ingest", "income"): "failed expectation: 12"}, 1)
    assert states(found) == ["set aside", "no row seen", "held", "held", "nothing refused", "nothing refused"]
    assert "1 failed and 1 saw no row" in found.words[0]
    assert "2 more" in found.words[1]
    assert found.tables[0].rows[0][-1].text == "failed expectation: 12"
    assert found.tables[0].rows[2][-1].text == "–"
    assert found.tables[0].rows[0][3].text == "column values to be between (min value: 0.0)"
    assert not _checks([check("refusals", 0)], {}, 1).notices


def test_the_page_of_quality_tells_rules_in_words(report: tuple[Served, str]) -> None:
    one, place = report
    page = one.get(f"{place}/quality").text
    checks = page[page.index("Checks of every table") :]
    assert "Reasons" in checks
    assert "{&#34;" not in checks
    assert "expect_" not in checks
    assert re.search(r'href="/tables/\w+"', checks)
    assert "nothing refused" in one.get(f"{place}/quality?page=999").text or "come last" in checks
    assert len(page.encode()) < 150_000


def test_exact_rows_have_a_banner_and_published_ones_none(tmp_path: Path) -> None:
    lake = lake_of_runs(tmp_path / "lake")
    assert 'class="restricted"' not in served(lake.location).get(f"/runs/{NEW}/lineage").text
    one = served(lake.location, by="Ann Lee", restricted=True)
    page = one.get(f"/runs/{NEW}/lineage").text
    assert '<p class="restricted">Restricted: exact rows of stages.' in page


def test_tables_of_a_run_lead_to_their_declarations(runs: Served) -> None:
    page = runs.get(f"/runs/{NEW}/lineage").text
    found = set(re.findall(r'href="(/tables/\w+)"', page))
    assert "/tables/published_measures" in found
    for address in found:
        assert "Columns" in runs.get(address).text
    listed = runs.get("/tables").text
    assert all(f'href="/tables/{each.name}"' in listed for each in TABLES)
    assert runs.get("/tables/nothing").status_code == 404
    assert runs.get("/tables/..%2fmanifest").status_code == 404


def test_headers_sort_and_say_so(runs: Served) -> None:
    page = runs.get("/runs?audit=loans").text
    assert "aria-sort" not in page
    assert '<a href="/runs?audit=loans&amp;sort=-year">Year' in page
    falling = runs.get("/runs?audit=loans&sort=-finished").text
    assert re.findall(r'aria-sort="(\w+)"', falling) == ["descending"]
    assert falling.index("loans-2023-0987654321") < falling.index("loans-2023-0123456789")
    rising = runs.get("/runs?audit=loans&sort=finished").text
    assert rising.index("loans-2023-0123456789") < rising.index("loans-2023-0987654321")
    assert runs.get("/runs?sort=nothing").status_code == 200
    measures = runs.get(f"/runs/{NEW}/measures?sort=-value").text
    assert re.findall(r'aria-sort="(\w+)"', measures) == ["descending"]
    assert f'<a href="/runs/{NEW}/measures?sort=value">Value' in measures
    assert "Sort by" not in measures


def test_measures_open_on_the_figures_of_the_questions_in_words(runs: Served) -> None:
    page = runs.get(f"/runs/{NEW}/measures").text
    text = " ".join(re.sub(r"<[^>]*>", " ", page).split())
    assert "Figures of the questions" in text
    assert "Approval rates race: Black" in text
    assert f'href="/runs/{NEW}/measures?every=1"' in page
    assert "approval_rate_ratio" not in text
    every = runs.get(f"/runs/{NEW}/measures?every=1&sort=parameters").text
    assert "burden" in every


def test_a_price_among_the_figures_is_no_figure_of_approval(runs: Served, tmp_path: Path) -> None:
    price = {"theory": "similar_applicants", "group": "Black", "role": "adds", "measure": "rate_spread_effect"}
    price |= {"value": 0.3, "low": 0.2, "high": 0.4, "limit": 0.1, "bias": 0.0, "withheld": False}
    priced = served(lake_of_runs(tmp_path / "lake", rows=(price,)).location)
    pages = [one.get(f"/runs/{NEW}/measures").text for one in (priced, runs)]
    text, without = (" ".join(re.sub(r"<[^>]*>", " ", page).split()) for page in pages)
    line = "Similar applicants, price race: Black lender +0.300 percentage points [+0.200, +0.400]"
    assert f"{line} at most 0.1 percentage points" in text
    assert "A price is in percentage points above the benchmark rate: positive is paid more." in text
    assert "price" not in without


def test_states_and_questions_are_words_and_the_address_keeps_the_code(runs: Served) -> None:
    for path in ("/runs", f"/runs/{NEW}/measures?every=1"):
        page = runs.get(path).text
        assert '<option value="inconclusive">Inconclusive</option>' in page
        assert ">insufficient_evidence<" not in page
    assert {key.value: state.words for key, state in STATES.items()} == dict(STATE_WORDS)
    listed = re.sub(r"<[^>]*>", " ", runs.get("/runs").text)
    assert "Outside the limit: " in listed
    assert not re.search(r"\b(outcome|direct|recourse|approval_rates)\b", listed)


def test_pages_beside_the_report_make_none(report: tuple[Served, str], monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError("a whole report was made")

    monkeypatch.setattr("flows.serving.site.Reports.of", never)
    one, place = report
    fresh = served(one.site.settings.lake)
    for part in ("measures", "lineage", "files", "quality", "review", "compare", "findings"):
        answer = fresh.get(f"{place}/{part}")
        assert answer.status_code == 200, part
        assert f'href="{place}/approval-rates"' in answer.text, part
        assert f'href="{place}/evidence/outcomes"' in answer.text, part


def test_a_short_report_is_made_once_for_its_navigation(tmp_path: Path) -> None:
    from conftest import SPEC, loans

    loans().to_csv(tmp_path / "loans.csv", index=False)
    (tmp_path / "loans.yaml").write_text(SPEC.replace("path: loans.csv", f"path: {tmp_path / 'loans.csv'}"))
    one = served(sealed_run(tmp_path).location)
    assert f'href="/runs/{RUN}/approval-rates"' in one.get(f"/runs/{RUN}/files").text


def test_every_link_of_the_navigation_leads_to_a_page(report: tuple[Served, str]) -> None:
    one, place = report
    page = one.get(f"{place}/files").text
    found = re.findall(r'href="(/[^"]*)"', page[page.index('id="pages"') :])
    assert len(found) > 8
    for address in found:
        assert one.get(address).status_code == 200, address


def test_the_pages_of_a_run_are_reached_from_the_top(report: tuple[Served, str]) -> None:
    one, place = report
    page = one.get(f"{place}/measures").text
    assert page.index('href="#pages"') < page.index("<h1>")
    assert '<nav class="pages" id="pages"' in page
    assert 'href="#pages"' not in one.get("/runs").text
