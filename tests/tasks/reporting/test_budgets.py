"""What counts as a word, a chart, an outside request and a row, and when a file is over its budget."""

import zlib

import pytest

from tasks.reporting.exports.single_file import BUDGETS, TOTAL, Size, budget_lines, sheets_of, size_of

CHART = '<svg class="wide" role="img"><title>no</title><desc>no no</desc><text>in chart</text></svg>'
NARROW = '<svg class="narrow" role="img" display="none"><text>no no</text></svg>'
TABLE = "<table><thead><tr><th>h</th></tr></thead><tbody>{}</tbody></table>"


def page(main: str, head: str = "") -> bytes:
    body = f"<p>not this</p><main>{main}</main><footer>nor this</footer>"
    return f"<html><head>{head}</head><body>{body}</body></html>".encode()


@pytest.mark.parametrize(
    ("main", "words"),
    [
        ("<p>one two</p><p>three</p>", 3),
        ("<p>o<b>n</b>e<bdi>s</bdi>, two</p>", 2),
        ("<td>one</td><td>two</td>", 2),
        ("<details><summary>one two</summary><p>no</p></details><p>three</p>", 3),
        ("<details open><summary>one</summary><p>two</p></details>", 2),
        ("<details><summary>one</summary><details open><summary>no</summary><p>no</p></details></details>", 1),
        ("<p hidden>no</p><script>no</script><style>no</style><template>no</template>", 0),
        (CHART + NARROW, 2),
        ("<p>one<br>two<img src='data:x'>three</p>", 3),
        ("<p>one<p>two<li>three", 3),
        ("&lt;script&gt; &amp; one", 3),
    ],
)
def test_words_are_those_shown_in_main(main: str, words: int) -> None:
    assert size_of(page(main)).words == words


def test_closed_details_and_tables_count_where_the_budget_says_so() -> None:
    text = page(f"<details><summary>one</summary><p>two</p></details>{TABLE.format('<tr><td>three</td></tr>')}")
    assert size_of(text).words == 3
    assert size_of(text, opened=True).words == 4
    assert size_of(text, tables=False).words == 1


def test_a_chart_that_is_drawn_twice_counts_once() -> None:
    assert size_of(page(CHART + NARROW)).charts == 1


@pytest.mark.parametrize(
    ("main", "head", "requests"),
    [
        ("<a href='https://x.org'>x</a><img src='data:image/png;base64,AA=='><use href='#a'/>", "", 0),
        ("<img src='a.png'>", "", 1),
        ("<p style=\"background: url('https://x.org/a')\">x</p>", "", 1),
        ("", "<link rel='stylesheet' href='a.css'>", 1),
        ("", "<style>@import 'a.css'; p { background: url(b.png) } q { mask: url(#c) }</style>", 2),
        ("<script>1</script>", "", 1),
    ],
)
def test_what_a_page_loads_is_counted_and_so_is_every_script(main: str, head: str, requests: int) -> None:
    assert size_of(page(main, head)).requests == requests


def test_rows_are_those_of_the_longest_table_without_its_head() -> None:
    assert size_of(page(TABLE.format("<tr></tr>" * 3) + TABLE.format("<tr></tr>" * 2))).rows == 3


def test_sheets_are_counted_in_compressed_streams_too() -> None:
    packed = zlib.compress(b"<< /Type /Page >> << /Type /Pages >>")
    assert sheets_of(b"<< /Type /Page >> 1 0 obj\nstream\n" + packed + b"\nendstream stream\nnone\nendstream") == 2


def test_each_file_is_held_against_its_own_budget_and_all_together_against_theirs() -> None:
    files = {
        "report.html": page("<p>" + "Whatever word. " * 176 + "</p>"),
        "pages/approval-rates.html": page("word " * 301),
        "pages/quality.html": page(CHART * 7),
        "evidence/cst.html": page(TABLE.format("<tr></tr>" * 26)),
        "report.json": b" " * 300_001,
        "measures.parquet": b" " * 10_000_000,
    }
    found = {line.path: line.over for line in budget_lines(files)}
    assert found == {
        "report.html": ("words", "ease", "banned", "faults"),
        "pages/approval-rates.html": (),
        "pages/quality.html": ("charts",),
        "evidence/cst.html": ("rows",),
        "report.json": ("bytes",),
        "measures.parquet": (),
        TOTAL: ("bytes",),
    }


def test_the_budgets_are_those_of_the_specification() -> None:
    most = {budget.files: budget.most for budget in BUDGETS}
    assert (most["report.html"].words, most["report.html"].bytes) == (350, 60_000)
    first = most["report.html"]
    assert (first.sentence, first.ease, first.banned, first.faults) == (25, 60, 0, 0)
    assert most["pages/*.html"] == Size(900, 250_000, 6, 0)
    assert (most["evidence/*.html"].bytes, most["evidence/*.html"].charts, most["evidence/*.html"].rows) == (
        1_500_000,
        12,
        25,
    )
    assert (most["report.json"].bytes, most["measures.xlsx"].bytes) == (300_000, 1_500_000)
    assert (most["report.pdf"].bytes, most["report.pdf"].sheets) == (1_000_000, 12)
