"""Journeys of an analyst in Debian's chromium, against a real server: read, be sure, note, sign; and what may go wrong.

The lake has an audit of two years, one with a group of a hostile name. Axe reads each route at two widths.
"""

import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from conftest import evenhand
from lake_of_lenders import lake_of_lenders
from served_lake import failed
from test_server import serving
from visits import HOSTILE, Visit, audits, run_of, violations

from tasks.lake import log
from tasks.lake.store import open_lake

CHROMIUM = shutil.which("chromium")
api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="Debian's chromium is not installed: apt-get install chromium"),
]
WIDTHS = (1280, 390)
NARROWEST = 320


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return audits(tmp_path_factory.mktemp("journeys"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with api.sync_playwright() as play:
        opened = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def servers(lake: Path) -> Iterator[dict[str, str]]:
    """Name of a person -> the address of a server of theirs; two on one lake."""
    with ExitStack() as stack:
        yield {
            "Ann Lee": stack.enter_context(serving(lake, "--as", "Ann Lee", "--sign"))[1],
            "Bob Ray": stack.enter_context(serving(lake, "--as", "Bob Ray", "--sign", "--restricted"))[1],
        }


def routes(lake: Path) -> list[str]:
    """One address of every route."""
    run, hostile = run_of(lake, 2019), run_of(lake, 2018)
    parts = ("gap", "similar", "otherwise", "measures", "compare", "findings", "quality", "lineage", "files", "review")
    own = [f"/runs/{run}", *(f"/runs/{run}/{part}" for part in (*parts, "evidence/cst", "evidence/outcomes"))]
    others = [
        f"/runs/{hostile}",
        *(f"/runs/{hostile}/{part}" for part in ("similar", "measures", "evidence/cst", "findings")),
    ]
    fixed = ["/", "/runs", "/runs?state=within", "/search?q=script", "/method", "/glossary", "/nothing"]
    more = ["/runs?sort=-year", f"/runs/{run}/measures?sort=-value", "/tables", "/tables/published_measures"]
    trends = ["/audits/loans/years", "/audits/loans/trend", "/audits/loans/trend?measure=denial_rate"]
    return [*fixed, *more, *trends, *own, *others, f"/runs/{run}/compare/{hostile}"]


def test_from_the_address_to_the_breach_and_how_sure_it_is(lake: Path, servers: dict[str, str], browser: Any) -> None:
    visit = Visit(browser, servers["Ann Lee"])
    page, run = visit.page, run_of(lake, 2019)
    assert "token" not in page.url
    page.get_by_role("link", name="loans", exact=True).click()
    page.get_by_label("Year").select_option("2019")
    page.get_by_role("button", name="Show").click()
    assert "year=2019" in page.url
    page.get_by_role("link", name=run).click()
    assert page.locator("h1").inner_text()
    page.get_by_role("link", name="Were similar applicants approved equally often?").click()
    assert "How sure" in page.locator("main").inner_text()
    page.go_back()
    assert page.url.endswith(run)
    page.reload()
    assert page.get_by_role("link", name="Review", exact=True).count() == 1
    assert visit.go(f"/runs/{run}/findings/1") == 403
    assert "--restricted" in page.locator("main").inner_text()


def test_twins_stand_side_by_side_and_the_reading_is_logged(lake: Path, servers: dict[str, str], browser: Any) -> None:
    visit, run = Visit(browser, servers["Bob Ray"]), run_of(lake, 2019)
    visit.go(f"/runs/{run}/findings")
    visit.page.get_by_role("link", name="number 1", exact=True).click()
    text = visit.page.locator("main").inner_text()
    assert "Own group 1" in text
    assert "Reference group 1" in text
    assert "differs: " in text
    assert not re.search(r"\bL\d{4}\b", visit.page.content())
    visit.page.get_by_role("link", name="Show identifiers of rows").click()
    assert re.search(r"\bL\d{4}\b", visit.page.locator("main").inner_text())
    visit.page.get_by_role("link", name="Hide identifiers of rows").click()
    assert not re.search(r"\bL\d{4}\b", visit.page.content())
    seen = [entry.text for entry in log.entries(open_lake(str(lake)), run) if entry.event == "read"]
    one = "findings, number 1 of cst"
    assert seen == ["findings of cst, page 1", one, f"{one}, with ids", one]


def sign(visit: Visit, run: str, role: str) -> None:
    visit.go(f"/runs/{run}/review")
    visit.page.get_by_label("Role in which").select_option(role)
    visit.page.get_by_role("button", name="Sign").click()


def test_a_note_and_signatures_by_the_page_s_own_forms(lake: Path, servers: dict[str, str], browser: Any) -> None:
    ann, bob = Visit(browser, servers["Ann Lee"]), Visit(browser, servers["Bob Ray"])
    run = run_of(lake, 2019)
    ann.go(f"/runs/{run}/review")
    ann.page.get_by_label("Note by Ann Lee").fill(f"seen {HOSTILE}")
    ann.page.get_by_role("button", name="Enter the note").click()
    assert HOSTILE in ann.page.locator("main").inner_text()
    sign(ann, run, "prepared")
    sign(ann, run, "approved")
    assert "was prepared by Ann Lee alone" in ann.page.locator("#sign-role-wrong").inner_text()
    assert ann.page.evaluate("document.activeElement.id") == "sign-role"
    ann.page.reload()
    sign(ann, run, "prepared")
    assert "signed as prepared by Ann Lee already" in ann.page.locator("#sign-role-wrong").inner_text()
    sign(bob, run, "approved")
    assert "State: approved." in bob.page.locator("main").inner_text()
    bob.go(f"/runs/{run}")
    assert "Approved by: Bob Ray" in bob.page.locator("footer").inner_text()
    assert ann.page.title() != "taken"


def notes_of(lake: Path, run: str, text: str) -> int:
    return sum(entry.text == text for entry in log.entries(open_lake(str(lake)), run))


def test_a_note_is_entered_once_by_a_double_click_a_reload_and_the_back_button(
    lake: Path, servers: dict[str, str], browser: Any
) -> None:
    ann, run = Visit(browser, servers["Ann Lee"]), run_of(lake, 2019)
    ann.go(f"/runs/{run}/review")
    ann.page.get_by_label("Note by Ann Lee").fill("twice")
    ann.page.get_by_role("button", name="Enter the note").dblclick()
    ann.page.wait_for_load_state()
    ann.page.get_by_text("twice", exact=True).wait_for()
    ann.page.reload()
    ann.page.go_back()
    ann.page.go_forward()
    ann.page.reload()
    assert notes_of(lake, run, "twice") == 1


def test_an_error_is_beside_its_field_and_a_remediation_is_closed(
    lake: Path, servers: dict[str, str], browser: Any
) -> None:
    ann, run = Visit(browser, servers["Ann Lee"], bypass_csp=True), run_of(lake, 2019)  # for axe
    page = ann.page
    ann.go(f"/runs/{run}/review")
    page.get_by_label("Note by Ann Lee").fill("retrain")
    page.get_by_label("Owner").fill("Bob Ray")
    page.get_by_label("Last day").fill("31.12.2030")
    page.get_by_role("button", name="Enter the note").click()
    due = page.get_by_label("Last day")
    assert "Last day: '31.12.2030' is no day" in page.locator(f"#{due.get_attribute('aria-describedby')}").inner_text()
    assert violations(page) == []
    due.fill("2999-12-31")
    page.get_by_role("button", name="Enter the note").click()
    page.get_by_label("Text: what was done").fill("model 7")
    page.get_by_role("button", name="Close it").click()
    assert "remediation done" in page.locator("main").inner_text()
    assert page.get_by_role("button", name="Close it").count() == 0


def test_two_tabs_write_and_sign_at_once_and_an_altered_entry_is_seen(
    lake: Path, servers: dict[str, str], browser: Any
) -> None:
    one, run = Visit(browser, servers["Ann Lee"]), run_of(lake, 2018)
    tabs = [one.page, one.context.new_page()]
    for tab in tabs:
        tab.goto(f"{one.place}/runs/{run}/review")
        tab.get_by_label("Note by Ann Lee").fill("from two tabs")
    for tab in tabs:
        tab.get_by_role("button", name="Enter the note").click()
    assert notes_of(lake, run, "from two tabs") == 2
    for tab in tabs:
        tab.goto(f"{one.place}/runs/{run}/review")
        tab.get_by_label("Role in which").select_option("reviewed")
    for tab in tabs:
        tab.get_by_role("button", name="Sign").click()
    held = open_lake(str(lake))
    signed = [entry for entry in log.entries(held, run) if entry.role == "reviewed"]
    assert len(signed) == 1
    assert list(log.problems(held)) == []
    path = lake / log.path_of(signed[0].n - 1)
    sound = path.read_bytes()
    path.write_bytes(sound.replace(b"from two tabs", b"from one tab"))
    try:
        assert evenhand("log", "verify", "--lake", str(lake)).returncode == 6
        tabs[0].wait_for_timeout(5100)
        tabs[0].goto(f"{one.place}/runs/{run}/review")
        assert "The log cannot be relied on" in tabs[0].locator("main").inner_text()
        assert tabs[0].locator("form.write").count() == 0
    finally:
        path.write_bytes(sound)


def test_every_route_is_read_by_assistive_software_and_fits_a_narrow_screen(
    lake: Path, servers: dict[str, str], browser: Any
) -> None:
    visit = Visit(browser, servers["Ann Lee"], bypass_csp=True)  # the policy of a page would stop axe itself
    found = {}
    for path in routes(lake):
        visit.go(path)
        for width in WIDTHS:
            visit.page.set_viewport_size({"width": width, "height": 900})
            found[path, width] = violations(visit.page)
        visit.page.set_viewport_size({"width": NARROWEST, "height": 640})
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= NARROWEST, path
        assert visit.page.locator("h1").count() == 1, path
        assert visit.page.title().endswith("Evenhand"), path
    assert {place: faults for place, faults in found.items() if faults} == {}
    assert visit.outside == []
    assert [line for line in visit.said if "404" not in line] == []


def test_pages_of_partitions_are_read_by_assistive_software_and_fit_a_narrow_screen(
    tmp_path: Path, browser: Any
) -> None:
    lake, _ = lake_of_lenders(tmp_path)
    failed(lake, "mortgages", 2020)
    run = next(path.name for path in (lake.root / "runs").iterdir())
    with serving(lake.root) as (_, address):
        visit = Visit(browser, address, bypass_csp=True)
        for path in ("/", "/runs?partition=LEI1", "/audits/loans/years", "/audits/loans/trend", f"/runs/{run}/compare"):
            assert visit.go(path) == 200
            for width in (*WIDTHS, NARROWEST):
                visit.page.set_viewport_size({"width": width, "height": 900})
                assert violations(visit.page) == [], (path, width)
            assert visit.page.evaluate("document.documentElement.scrollWidth") <= NARROWEST, path


def test_all_is_reached_by_keyboard(servers: dict[str, str], browser: Any) -> None:
    visit = Visit(browser, servers["Ann Lee"])
    visit.page.keyboard.press("Tab")
    assert visit.page.evaluate("document.activeElement.textContent") == "Skip to the content"
    visit.page.keyboard.press("Enter")
    assert visit.page.evaluate("document.activeElement.id") == "main"
    visit.page.keyboard.press("Tab")
    ring = visit.page.evaluate("getComputedStyle(document.activeElement).outlineWidth")
    assert float(ring.removesuffix("px")) >= 2


def test_the_report_s_own_file_keeps_its_style(lake: Path, servers: dict[str, str], browser: Any) -> None:
    visit = Visit(browser, servers["Ann Lee"])
    visit.go(f"/runs/{run_of(lake, 2019)}/files/report.html")
    assert visit.page.evaluate("getComputedStyle(document.querySelector('table.found')).borderCollapse") == "collapse"
    assert visit.said == []
    visit.page.get_by_role("link", name="Definitions").click()
    assert visit.page.url.endswith("/files/method.html")
