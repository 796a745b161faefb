"""The page of a league in a real browser: axe, narrow screens, and names of lenders that are hostile or long.

Axe runs where axe-playwright-python is installed.
"""

import shutil

import pytest
from test_league_page import HOSTILE, content
from visits import violations

from tasks.reporting.league import league_page

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="Debian's chromium is not installed: apt-get install chromium"),
]
PAGES = {"few": content(6, names=(HOSTILE, "W" * 80)), "many": content(60)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("league")
    for name, each in PAGES.items():
        (made / f"{name}.html").write_bytes(league_page(each))
    return made


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (320, "dark")])
def test_axe_finds_nothing_and_nothing_is_wider_than_the_screen(folder, width, scheme):
    pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM)
        # the policy of a page would stop axe itself
        size = {"width": width, "height": 800}
        view = browser.new_context(viewport=size, color_scheme=scheme, bypass_csp=True).new_page()
        for name in PAGES:
            view.goto((folder / f"{name}.html").as_uri())
            view.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
            assert violations(view) == [], name
            assert view.evaluate("document.documentElement.scrollWidth") <= width
        browser.close()
