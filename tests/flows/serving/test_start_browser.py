"""From a table to the first page in Debian's chromium, by the forms of the pages alone: clicks, axe, widths, memory."""

import re
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest
from conftest import SHARED, evenhand_process, loans
from test_server import serving
from visits import Visit, violations

from tasks.lake.store import Lake

CHROMIUM = shutil.which("chromium")
api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="Debian's chromium is not installed: apt-get install chromium"),
]
WIDTHS = (1280, 390)
MOST_CLICKS = 8
MOST_MEMORY = 300 * 10**6
PATIENCE = 600_000
"""Milliseconds for a table to be read or a run to end, on a machine that does other work."""
TABLES = "corpus/intake/tables"
CORPUS = ("01-us-export.csv", "03-german-cp1252.csv", "05-excel-title-total.xlsx")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with api.sync_playwright() as play:
        opened = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@dataclass
class Hand:
    """Someone who clicks, and whose clicks are counted; each page on the way is read by axe at two widths."""

    visit: Visit
    clicks: int = 0
    faults: dict[tuple[str, int], Any] = field(default_factory=dict)

    def click(self, found: Any) -> None:
        self.clicks += 1
        found.click()

    def look(self, name: str) -> None:
        page = self.visit.page
        assert "<script" not in page.content()
        assert page.locator("h1").count() == 1
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            if found := violations(page):
                self.faults[name, width] = found
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (name, width)

    def begin(self, table: Path) -> None:
        page = self.visit.page
        self.click(page.get_by_role("link", name="New audit"))
        self.look("new")
        self.clicks += 1
        page.get_by_label("A table as it was exported").set_input_files(table)
        self.click(page.get_by_role("button", name="Send the table"))
        page.get_by_role("link", name="Keep it still").wait_for()

    def answer(self) -> None:
        """Take the answers that intake proposes: one click for each question without a choice, one for all others."""
        page = self.visit.page
        page.get_by_role("button", name="Use and run").wait_for(timeout=PATIENCE)
        self.look("questions")
        page.get_by_role("button", name="Use, and do not run yet").click()  # of nothing that was read: it is refused
        assert page.get_by_role("alert").count() == 1
        self.look("questions without an answer")
        for fieldset in page.locator("fieldset").all():
            if fieldset.locator("input:checked").count() == 0:
                self.click(fieldset.get_by_label("yes").first)
        self.click(page.get_by_label("I have read the answers that were chosen already"))
        self.click(page.get_by_role("button", name="Use and run"))

    def follow(self, server: "subprocess.Popen[str]") -> int:
        """Wait for the first page; gives the most memory that the server was seen to hold meanwhile."""
        page, most, stage = self.visit.page, 0, ""
        at_work = page.url
        for _ in range(PATIENCE // 500):
            most = max(most, psutil.Process(server.pid).memory_info().rss)
            if "/runs/" in page.url:
                break
            text = page.locator("main").inner_text() if page.locator("main").count() else ""
            found = re.search(r"Stage \d+ of \d+", text)
            if found and not stage:
                stage = found[0]
                page.goto(f"{at_work}?still=1")
                self.look("progress")
                page.goto(at_work)
            assert "failed" not in page.title(), text
            page.wait_for_timeout(500)
        assert stage
        assert "/runs/" in page.url
        self.look("first page")
        return most


def journey(place: Path, table: Path, browser: Any) -> None:
    """A table to its first page, the spec of it, and the same run of that spec on a terminal."""
    lake = Lake(place / "lake")
    with serving(lake.root, "--start") as (server, address):
        hand = Hand(Visit(browser, address, bypass_csp=True))  # the policy of a page would stop axe itself
        hand.look("audits")
        hand.begin(table)
        hand.answer()
        begun = hand.visit.page.url
        most = hand.follow(server)
        run = hand.visit.page.url.rpartition("/")[2]
        spec = hand.visit.context.request.get(f"{begun}/spec.yaml")
    (place / "walked.txt").write_text(f"{table.name}: {hand.clicks} clicks, server {most / 1e6:.0f} MB\n")
    assert hand.faults == {}
    assert hand.visit.outside == []
    assert hand.clicks <= MOST_CLICKS
    assert most < MOST_MEMORY
    assert spec.ok
    own = place / "own"
    own.mkdir()
    shutil.copy(table, own)
    (own / "own.yaml").write_bytes(spec.body())
    done = evenhand_process("audit", "own.yaml", "--lake", str(lake.root), "--quiet", cwd=own)
    assert done.returncode in (0, 1, 3), done.stderr
    assert f"run     {run}\n" in done.stdout
    with closing(
        sqlite3.connect(lake.root / "prefect" / "prefect.db")
    ) as flow_runs:  # of the embedded server of the run
        assert flow_runs.execute("SELECT state_type FROM flow_run").fetchall() == [("COMPLETED",)]


def test_a_table_of_our_own_becomes_a_first_page_in_eight_clicks(tmp_path: Path, browser: Any) -> None:
    table = tmp_path / "loans of 2024.csv"
    loans(400).to_csv(table, index=False)
    journey(tmp_path, table, browser)


@pytest.mark.long
@pytest.mark.data(*(f"{TABLES}/{name}" for name in CORPUS))
@pytest.mark.parametrize("name", CORPUS)
def test_messy_tables_become_first_pages_in_eight_clicks(name: str, tmp_path: Path, browser: Any) -> None:
    journey(tmp_path, SHARED / TABLES / name, browser)
