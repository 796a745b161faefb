"""Drawings in a real browser, wide and on telephones: one layout, letters of 12 pixels, nothing over anything.

Axe runs where axe-playwright-python is installed.
"""

import html
import json
import re
import shutil
import subprocess

import pytest
from drawn_charts import CHARTS, page
from visits import violations

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="Debian's chromium is not installed: apt-get install chromium"),
]
WIDTHS = (1280, 800, 390, 320)
PROBE = """
const found = {};
const box = each => each.getBoundingClientRect();
for (const frame of document.querySelectorAll("iframe")) {
  const inside = frame.contentDocument, view = frame.contentWindow, wrong = [], shown = [];
  for (const details of inside.querySelectorAll("details")) details.open = frame.dataset.open === "yes";
  for (const drawing of inside.querySelectorAll(".drawing")) {
    const visible = [...drawing.querySelectorAll("svg")].filter(svg => view.getComputedStyle(svg).display !== "none");
    shown.push(visible.map(svg => svg.getAttribute("class")).join(" "));
    for (const svg of visible) {
      const area = box(svg), scale = area.width / svg.viewBox.baseVal.width;
      const texts = [...svg.querySelectorAll("text")].map(text => [text, box(text)]);
      for (const [text, b] of texts) {
        if (b.left < area.left - 0.5 || b.right > area.right + 0.5 || b.bottom > area.bottom + 0.5)
          wrong.push("outside: " + text.textContent);
        if (parseFloat(view.getComputedStyle(text).fontSize) * scale < 11.99) wrong.push("small: " + text.textContent);
      }
      for (let i = 0; i < texts.length; i++) for (let j = i + 1; j < texts.length; j++) {
        const a = texts[i][1], b = texts[j][1];
        const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (wide > 1 && high > 5) wrong.push(texts[i][0].textContent + " lies on " + texts[j][0].textContent);
      }
    }
  }
  const first = inside.querySelector("svg text");
  found[frame.id] = {wrong, shown, width: inside.documentElement.scrollWidth, ink: view.getComputedStyle(first).fill};
}
document.body.dataset.found = JSON.stringify(found);
"""


def browse(folder, content, *options):
    """The page after its script, and what chromium said."""
    (folder / "probe.html").write_text(content, encoding="utf-8")
    quiet = ["--no-sandbox", "--headless", "--disable-gpu", "--enable-logging=stderr", "--v=0"]
    profile = f"--user-data-dir={folder / 'profile'}"
    command = [CHROMIUM, *quiet, profile, "--virtual-time-budget=20000", "--allow-file-access-from-files", *options]
    command += ["--dump-dom", (folder / "probe.html").as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """What the probe found, by page, width, and whether tables are open."""
    folder = tmp_path_factory.mktemp("drawings")
    for scheme in ("light", "dark"):
        (folder / f"{scheme}.html").write_text(page(scheme=scheme), encoding="utf-8")
    small = "<style>.drawing svg { max-width: 150px !important }</style>"
    (folder / "shrunk.html").write_text(page(only="decide").replace("</head>", small + "</head>"), encoding="utf-8")
    frames = [
        (name, width, opened) for name in ("light", "dark", "shrunk") for width in WIDTHS for opened in ("no", "yes")
    ]
    content = "<!doctype html><body>" + "".join(
        f'<iframe id="{name}-{width}-{opened}" data-open="{opened}" src="{name}.html" width="{width}" height="900"'
        ' frameborder="0"></iframe>'
        for name, width, opened in frames
    )
    result = browse(folder, f"{content}<script>onload = () => {{{PROBE}}}</script>")
    found = re.search(r'data-found="([^"]*)"', result.stdout)
    assert found, result.stderr[-2000:]
    assert [line for line in result.stderr.splitlines() if "CONSOLE" in line] == []
    return json.loads(html.unescape(found[1]))


@pytest.mark.parametrize("opened", ["no", "yes"])
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_overflows_and_letters_have_12_pixels(seen, width, opened):
    found = seen[f"light-{width}-{opened}"]
    assert found["wrong"] == []
    assert found["width"] <= width


@pytest.mark.parametrize("width", WIDTHS)
def test_one_layout_is_shown(seen, width):
    layout = "narrow" if width < 520 else "wide"
    expected = {layout} if width != 800 else {"wide"}
    assert set(seen[f"light-{width}-no"]["shown"]) == expected
    assert len(seen[f"light-{width}-no"]["shown"]) == len(CHARTS)


def test_the_probe_sees_letters_that_are_too_small(seen):
    assert any(line.startswith("small") for line in seen["shrunk-1280-no"]["wrong"])


def test_colours_follow_the_scheme_of_the_page(seen):
    assert seen["light-1280-no"]["ink"] == "rgb(28, 32, 36)"
    assert seen["dark-1280-no"]["ink"] == "rgb(236, 238, 240)"


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(tmp_path, width, scheme):
    pytest.importorskip("axe_playwright_python.sync_playwright")
    playwright = pytest.importorskip("playwright.sync_api")
    grounds = {"light": "#f5f6f8", "dark": "#14171a"}
    (tmp_path / "page.html").write_text(page(scheme=scheme, ground=grounds[scheme]), encoding="utf-8")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM)
        view = browser.new_page(viewport={"width": width, "height": 900})
        view.goto((tmp_path / "page.html").as_uri())
        for opened in (False, True):
            view.evaluate(f"document.querySelectorAll('details').forEach(each => each.open = {str(opened).lower()})")
            assert violations(view) == []
