"""Pages joined in one file, and that file as PDF."""

import os
import re
import sys
import time

import pytest
from exported_run import material

from schemas.errors import InfrastructureError
from schemas.terms import ExitCode
from tasks.reporting.exports.single_file import pdf, sheets_of, single
from tasks.reporting.pages import files

HEAD = '<head><meta charset="utf-8"><title>T</title><style>p { margin: 0 }</style></head>'


def page(kind: str, main: str) -> bytes:
    header = f'<a class="skip" href="#main">Skip</a><header><h1>{kind}</h1></header>'
    footer = '<nav><a href="method.html">M</a></nav><footer><p>Run r.</p></footer>'
    body = f'<body class="{kind}">{header}<main id="main" tabindex="-1">{main}</main>{footer}</body>'
    return f'<!doctype html><html lang="en">{HEAD}{body}</html>'.encode()


FIRST = page(
    "decide",
    '<section aria-labelledby="x y"><h2 id="x">Found</h2><a href="pages/approval-rates.html#x">one</a>'
    '<a href="pages/approval-rates.html">two</a>'
    ' <a href="#x">three</a> <a href="evidence/cst.html#x">four</a></section>'
    "<p>a id=&#34;x&#34; &lt;b href=&#34;u&#34;&gt;</p>",
)
GAP = page("long", '<h2 id="x">Gap</h2><label for="x">l</label><a href="../report.html#x">back</a>')
QUALITY = page("long", "<p>Rows in and out.</p>")
FILES = {
    "report.html": FIRST,
    "pages/approval-rates.html": GAP,
    "pages/quality.html": QUALITY,
    "evidence/cst.html": QUALITY,
}


@pytest.fixture(scope="module")
def text() -> str:
    return single(FILES).decode()


def test_ids_are_unique_and_every_reference_has_its_target(text: str) -> None:
    ids = re.findall(r'\sid="([^"]*)"', text)
    assert len(ids) == len(set(ids))
    links = re.findall(r'href="([^"]*)"', text)
    assert links == ["#approval-rates-x", "#approval-rates", "#report-x", "#report-x"]
    assert {link.removeprefix("#") for link in links} <= set(ids)
    assert 'aria-labelledby="report-x report-y"' in text
    assert 'for="approval-rates-x"' in text


def test_it_holds_the_first_page_and_the_questions_alone(text: str) -> None:
    assert text.count("<main") == text.count("<head>") == text.count("<footer>") == 1
    assert re.findall(r"<h1>(.*?)</h1>", text) == ["decide", "long"]
    assert "Rows in and out" not in text
    assert "<a>four</a>" in text, "a style hides it"


def test_text_of_users_is_left_as_it_is(text: str) -> None:
    assert "a id=&#34;x&#34; &lt;b href=&#34;u&#34;&gt;" in text


def test_without_weasyprint_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "weasyprint", None)
    with pytest.raises(InfrastructureError, match=r"pip install 'evenhand\[pdf\]'") as error:
        pdf(FILES)
    assert error.value.exit_code == ExitCode.INFRASTRUCTURE


@pytest.mark.parametrize("paper", ["a4", "letter"])
def test_a_pdf_reads_no_file_and_repeats_its_bytes(paper: str, caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("weasyprint", exc_type=(ImportError, OSError))  # type: ignore[arg-type]
    reading = page("decide", '<img src="file:///etc/hostname" alt="none"><p>text</p>')
    made = pdf({**FILES, "report.html": reading}, paper)  # type: ignore[arg-type]
    assert "disallowed protocol" in caplog.text
    assert sheets_of(made) == 2
    time.sleep(1.1)  # fonts hold a time in whole seconds
    assert made == pdf({**FILES, "report.html": reading}, paper)  # type: ignore[arg-type]
    assert "SOURCE_DATE_EPOCH" not in os.environ


@pytest.mark.long
def test_many_groups_with_long_names_keep_the_sheets_of_a_pdf() -> None:
    pytest.importorskip("weasyprint", exc_type=(ImportError, OSError))  # type: ignore[arg-type]
    names = tuple(f"{i} {'W' * 77}" for i in range(12))
    made = files(material(names, ("race", "sex", "age")))
    assert sheets_of(pdf(made)) <= 12
    assert sheets_of(pdf(made, "letter")) <= 12
