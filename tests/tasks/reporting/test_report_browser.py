"""The report in a real browser: no error, interactive figures with scripts, figures all the same without.

It holds the chapters of all methods, since a figure that fails in a browser fails nowhere else.
"""

import re
import shutil
import struct
import subprocess
import zlib

import pytest
import report_cst

from tasks.pipeline.registry import METHODS
from tasks.reporting.stage import report

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="Debian's chromium is not installed: apt-get install chromium"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("report")
    files = report.function(*report_cst.tables_of_all(), settings=report_cst.settings(report_cst.of_all())).files
    for name, content in files.items():
        (path / name).write_bytes(content)
    return path


def _browse(folder, *options, name="report.html"):
    quiet = ["--no-sandbox", "--headless", "--disable-gpu", "--enable-logging=stderr", "--v=0"]
    profile = f"--user-data-dir={folder / 'profile'}"
    command = [CHROMIUM, *quiet, profile, "--virtual-time-budget=20000", *options, (folder / name).as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)


def _pixels(path):
    """The bytes of a PNG's scan lines; filters do not matter to tell a blank page from a full one."""
    data, at, packed = path.read_bytes(), 8, b""
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        if data[at + 4 : at + 8] == b"IDAT":
            packed += data[at + 8 : at + 8 + length]
        at += 12 + length
    return zlib.decompress(packed)


@pytest.fixture(scope="module")
def live(folder):
    return _browse(folder, "--dump-dom")


def test_no_console_message(live):
    assert [line for line in live.stderr.splitlines() if "CONSOLE" in line] == []


def _asked(folder, name):
    """What the page asks of the network; chromium's own calls, such as that for the time, have no origin."""
    log = folder / "net.json"
    _browse(folder, "--dump-dom", f"--log-net-log={log}", name=name)
    text = log.read_text(encoding="utf-8", errors="replace")
    return re.findall(r'"initiator":"(?!not an origin).*?"url":"([^"]+)"', text)


def test_nothing_is_asked_of_the_network(folder):
    (folder / "asking.html").write_text('<body><img src="http://evenhand.invalid/x.png">', encoding="utf-8")
    assert "http://evenhand.invalid/x.png" in _asked(folder, "asking.html"), "else this test could not fail"
    assert not _asked(folder, "report.html")
    assert not _asked(folder, "quality.html")


def test_the_chapters_of_all_methods_are_drawn(live):
    for name in METHODS:
        chapter = live.stdout[live.stdout.index(f'<section id="{name}">') :]
        assert 'data-live="true"' in chapter
    graph = live.stdout[
        live.stdout.index('<section id="cst-causes">') : live.stdout.index('<section id="cst-imagined">')
    ]
    assert 'class="panel full"' in graph
    assert 'data-live="true"' in graph


def test_every_figure_becomes_interactive(live, folder):
    panels = len(re.findall(r'class="chart"', (folder / "report.html").read_text(encoding="utf-8")))
    assert 'data-figures="live"' in live.stdout
    assert live.stdout.count('data-live="true"') == panels
    assert live.stdout.count("vega-embed") >= panels


def test_no_script_of_a_group_name_ran(live):
    assert "<script>alert" not in live.stdout
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in live.stdout


def test_the_page_is_not_blank(folder):
    shot = folder / "shot.png"
    _browse(folder, f"--screenshot={shot}", "--window-size=1280,1600", "--hide-scrollbars")
    pixels = _pixels(shot)
    assert len(pixels) > 1280 * 1600 * 3
    assert len(set(pixels[::997])) > 20


def test_nothing_is_wider_than_a_telephone(folder):
    """Tables and figures scroll or shrink inside the page: the page itself never scrolls sideways.

    Chromium gives a window no less than 500 pixels, so the page is looked at in a frame.
    """
    probe = folder / "narrow.html"
    probe.write_text(
        "<body><iframe id=f width=400 height=800 src=report.html></iframe><script>onload = () => setTimeout(() => {"
        "const d = f.contentDocument.documentElement; document.title = d.scrollWidth; }, 3000)</script>",
        encoding="utf-8",
    )
    dom = _browse(folder, "--dump-dom", "--allow-file-access-from-files", name="narrow.html").stdout
    width = re.search(r"<title>(\d+)</title>", dom)
    assert width, dom[:500]
    assert int(width[1]) <= 400


def test_the_quality_page_opens_too(folder):
    found = _browse(folder, "--dump-dom", name="quality.html")
    assert "Every expectation" in found.stdout or "every expectation" in found.stdout
    assert "CONSOLE" not in found.stderr
