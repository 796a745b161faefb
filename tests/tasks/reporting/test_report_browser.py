"""Pages of a report in a real browser: words, first screen, narrow screens, zoom, print, nothing loaded or run.

Axe runs where axe-playwright-python is installed.
"""

import html
import json
import re
import shutil
import subprocess

import pytest
from decide_runs import boston, texas
from report_tables import HOSTILE, UNBROKEN, material, renamed
from test_files import many
from visits import violations

from tasks.reporting.pages import files

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="Debian's chromium is not installed: apt-get install chromium"),
]
RUNS = {
    "boston": boston(),
    "texas": texas(),
    "hostile": renamed(boston(), HOSTILE),
    "unbroken": renamed(boston(), UNBROKEN),
    "many": many(),
}
DESKTOP, ZOOMED, PHONE, NARROW = 1280, 640, 390, 320
"""Widths of screens in CSS pixels; at 200 % zoom a desktop has half of them."""
HEIGHTS = {DESKTOP: 800, ZOOMED: 400, PHONE: 844, NARROW: 640}
SCREENS_OF_PHONE = 2.5
PROBE = """
const found = {}, count = each => each ? each.innerText.split(/\\s+/).filter(Boolean).length : 0;
for (const frame of document.querySelectorAll("iframe")) {
  const inside = frame.contentDocument, main = inside.querySelector("main");
  const low = all => Math.max(0, ...[...inside.querySelectorAll(all)].map(each => each.getBoundingClientRect().bottom));
  const seen = {
    main: count(main), h1: count(inside.querySelector("h1")),
    around: ["header", "footer", "nav.pages"].reduce((sum, name) => sum + count(inside.querySelector(name)), 0),
    height: inside.documentElement.scrollHeight, badges: low(".against"), figures: low("svg"), text: main.innerText,
    small: [...inside.querySelectorAll("a, summary")].filter(each => each.getBoundingClientRect().height < 14).length,
  };
  seen.width = inside.documentElement.scrollWidth;
  for (const details of inside.querySelectorAll("details")) details.open = true;
  seen.opened = inside.documentElement.scrollWidth;
  seen.words_opened = count(main);
  const doomed = [...inside.querySelectorAll(".scroll, .numbers")].filter(each => each.scrollWidth > each.clientWidth);
  seen.unreachable = doomed.filter(each => each.tabIndex !== 0 || !each.getAttribute("aria-label")).length;
  found[frame.id] = seen;
}
document.body.dataset.found = JSON.stringify(found);
"""


def browse(folder, name, *options):
    """What chromium makes of a file."""
    quiet = ["--no-sandbox", "--headless", "--disable-gpu", "--enable-logging=stderr", "--v=0"]
    more = [f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=20000", "--allow-file-access-from-files"]
    command = [CHROMIUM, *quiet, *more, *options, (folder / name).as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The files of every run, in a folder each."""
    place = tmp_path_factory.mktemp("reports")
    for name, run in RUNS.items():
        for path, content in files(material(run)).items():
            (place / name / path).parent.mkdir(parents=True, exist_ok=True)
            (place / name / path).write_bytes(content)
    return place


def pages(folder, name="boston"):
    """Paths of the pages of a run, from the folder of all runs."""
    return sorted(str(path.relative_to(folder)) for path in (folder / name).rglob("*.html"))


@pytest.fixture(scope="module")
def seen(folder):
    """What the probe found, by page and width."""
    shown = [*pages(folder), *(f"{name}/report.html" for name in RUNS if name != "boston"), *pages(folder, "many")]
    frames = "".join(
        f'<iframe id="{page}@{width}" src="{page}" width="{width}" height="{height}" frameborder="0"></iframe>'
        for page in dict.fromkeys(shown)
        for width, height in HEIGHTS.items()
    )
    probe = f"<!doctype html><body>{frames}<script>onload = () => {{{PROBE}}}</script>"
    (folder / "probe.html").write_text(probe, encoding="utf-8")
    result = browse(folder, "probe.html", "--dump-dom", "--hide-scrollbars")
    found = re.search(r'data-found="([^"]*)"', result.stdout)
    assert found, result.stderr[-2000:]
    assert [line for line in result.stderr.splitlines() if "CONSOLE" in line] == []
    return {tuple(name.split("@")): each for name, each in json.loads(html.unescape(found[1])).items()}


@pytest.mark.parametrize("name", RUNS)
def test_the_first_page_keeps_its_words(seen, name):
    found = seen[f"{name}/report.html", "1280"]
    assert found["main"] <= 350, found["text"]
    assert found["h1"] <= 25
    assert found["around"] <= 60
    assert found["words_opened"] <= 600


@pytest.mark.parametrize("name", RUNS)
def test_states_and_figures_are_on_the_first_screen(seen, name):
    found = seen[f"{name}/report.html", "1280"]
    assert 0 < found["badges"] <= 1.05 * HEIGHTS[DESKTOP]
    long_names = name == "unbroken"
    assert 0 < found["figures"] <= (1.5 if long_names else 1.1) * HEIGHTS[DESKTOP]
    for part in (
        "What was found",
        "All applicants",
        "Similar applicants",
        "Nearest applicants",
        "Do next",
        "What this cannot show",
    ):
        assert part in found["text"]


@pytest.mark.parametrize("name", ["boston", "texas"])
def test_the_first_page_is_one_screen_and_few_of_a_phone(seen, name):
    desktop, phone = (seen[f"{name}/report.html", str(width)]["height"] for width in (DESKTOP, PHONE))
    assert desktop <= 1.3 * HEIGHTS[DESKTOP], "the last lines are links and the run"
    assert phone <= SCREENS_OF_PHONE * HEIGHTS[PHONE]


def test_no_page_scrolls_sideways(seen):
    wide = {
        name: (each["width"], each["opened"])
        for name, each in seen.items()
        if max(each["width"], each["opened"]) > int(name[1])
    }
    assert wide == {}


def test_tables_that_scroll_can_be_reached_and_are_named(seen):
    assert {name: each["unreachable"] for name, each in seen.items() if each["unreachable"]} == {}


def test_pages_of_questions_keep_their_words(seen):
    most = {"pages": 900, "evidence": 10**6}
    over = {
        name: each["main"]
        for name, each in seen.items()
        if name[1] == "1280" and each["main"] > most.get(name[0].split("/")[1], 6000)
    }
    assert over == {}


def test_nothing_is_asked_of_the_network(folder):
    """Chromium's own calls, such as that for the time, have no origin."""

    def asked(name):
        log = folder / "net.json"
        browse(folder, name, "--dump-dom", f"--log-net-log={log}")
        text = log.read_text(encoding="utf-8", errors="replace")
        return re.findall(r'"initiator":"(?!not an origin).*?"url":"([^"]+)"', text)

    (folder / "asking.html").write_text('<body><img src="http://evenhand.invalid/x.png">', encoding="utf-8")
    assert "http://evenhand.invalid/x.png" in asked("asking.html"), "else this test could not fail"
    for page in (
        "boston/report.html",
        "hostile/report.html",
        "boston/pages/approval-rates.html",
        "boston/evidence/outcomes.html",
    ):
        assert asked(page) == []


def test_no_page_has_a_script(folder):
    assert [str(path) for path in folder.rglob("*/*.html") if "<script" in path.read_text(encoding="utf-8")] == []


def printed(folder, page, paper):
    """A page as chromium prints it."""
    text = (folder / page).read_text(encoding="utf-8")
    name, target = f"{page}.{paper}.html", folder / "printed.pdf"
    (folder / name).write_text(text.replace("</head>", f"<style>@page {{ size: {paper}; }}</style></head>"))
    browse(folder, name, f"--print-to-pdf={target}", "--no-pdf-header-footer")
    (folder / name).unlink()
    return target


@pytest.mark.parametrize("paper", ["A4", "letter"])
@pytest.mark.parametrize("name", ["boston", "texas", "hostile"])
def test_the_first_page_is_one_sheet(folder, name, paper):
    content = printed(folder, f"{name}/report.html", paper).read_bytes()
    assert len(re.findall(rb"/Type /Page\b", content)) == 1


def test_the_run_and_the_page_are_on_every_sheet_but_the_first(folder):
    pypdf = pytest.importorskip("pypdf")
    sheets = pypdf.PdfReader(printed(folder, "many/evidence/outcomes.html", "A4")).pages
    texts = [sheet.extract_text() for sheet in sheets]
    assert len(texts) > 1
    assert "Page 1" not in texts[0]
    for number, text in enumerate(texts[1:], 2):
        assert f"Page {number}" in text
        assert "Run example-1990-0a1b2c3d" in text


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_axe_finds_nothing(folder, width, scheme):
    pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM)
        size = {"width": width, "height": HEIGHTS[width]}
        # the policy of a page would stop axe itself
        view = browser.new_context(viewport=size, color_scheme=scheme, bypass_csp=True).new_page()
        for page in (*pages(folder), "hostile/report.html", "many/report.html"):
            view.goto((folder / page).as_uri())
            for opened in (False, True):
                view.evaluate(
                    f"document.querySelectorAll('details').forEach(each => each.open = {str(opened).lower()})"
                )
                assert violations(view) == [], page
        browser.close()
