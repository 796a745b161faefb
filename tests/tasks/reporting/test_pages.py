"""Pages: nothing loads or runs, text is escaped, landmarks and tables are whole, links lead to files that there are."""

import re
from collections import Counter
from html.parser import HTMLParser

import pytest

from schemas.questions import STATES
from tasks.reporting.charts.layout import DARK, LIGHT
from tasks.reporting.charts.rows import Forest
from tasks.reporting.charts.values import POINTS, Mark
from tasks.reporting.frame import Frame, coded, in_style, page, relative_to
from tasks.reporting.text import Cell, Figure, Link, Listing, Notice, Section, TableView, number_cell, state_cell

HOSTILE = "<script>alert('x')</script> & \"quoted\" ]]> -->"
HEBREW = "קבוצת המבקשים"
LINKS = (("report.html", "First page"), ("pages/approval-rates.html", "Approvals"), ("method.html", "Definitions"))
FRAME = Frame("An audit", "audit-1990-0a1b", LINKS, "Aggregates only.")
VOID = {"meta", "br", "hr", "img", "input", "link"}


class Reader(HTMLParser):
    """Tags with their attributes, ids, and the levels of headings; fails on tags that do not nest."""

    def __init__(self, content):
        super().__init__()
        self.tags, self.open = [], []
        self.feed(content.decode())
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def of(self, *names):
        return [attrs for tag, attrs in self.tags if tag in names]

    @property
    def ids(self):
        return [attrs["id"] for _, attrs in self.tags if "id" in attrs]

    @property
    def levels(self):
        return [int(tag[1]) for tag, _ in self.tags if re.fullmatch(r"h[1-6]", tag)]


def table(name="white", **more):
    rows = (
        (Cell(name), number_cell("1,681"), state_cell("outside")),
        (Cell(HEBREW), Cell("withheld", "none"), Cell("")),
    )
    return TableView(f"By group: {name}", ("Group", "n", "State"), rows, "A note.", **more)


def forest(name="white"):
    marks = (
        Mark(label=name, value=-5.0, low=-9.0, high=-1.0, n=40, state="outside"),
        Mark(label="none", state="not_run"),
    )
    return Figure(Forest(title=f"Points of {name}", unit=POINTS, rows=marks, limit=-2.0), f"Caption of {name}.")


def section(name="white"):
    inner = Section(
        "Inside", "inside", parts=(Section("Deeper", "deeper", (name,), tables=(table(name, folded=True),)),)
    )
    more = tuple(Section(f"Part {i}", f"part-{i}", figures=(forest(name),)) for i in range(3))
    return Section(
        f"Do approvals of {name} differ?",
        "gap",
        ("An answer.",),
        (f"{name}: outside.",),
        (Notice("Mind", name, ("a point",)),),
        (forest(name),),
        (table(name),),
        (Listing("Spec", f"name: {name}\n"),),
        (Link("How it works", "method.html#gap"), Link("Not there", "pages/none.html")),
        (inner, *more),
    )


def made(path="pages/approval-rates.html", name="white", frame=FRAME):
    return page("page.html.j2", path, frame=frame, section=section(name))


def test_a_page_lets_nothing_load_and_runs_nothing():
    text = made().decode()
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', text)
    assert policy.startswith("default-src 'none';")
    assert "script" not in policy
    read = Reader(made())
    assert not read.of("script", "link", "img", "iframe", "object", "base")
    assert not [name for _, attrs in read.tags for name in attrs if name.startswith("on") or name == "src"]
    assert not re.findall(r"url\(|@import|https?://(?!www\.w3\.org)", text)


def _counted(read, without):
    return Counter(tag for tag, _ in read.tags if tag not in without)


@pytest.mark.parametrize("name", [HOSTILE, "</style><b>", "{{ 70 * 77 }}"])
def test_names_are_text_everywhere(name):
    read, usual = Reader(made(name=name)), Reader(made())
    drawn = {"text", "title", "path"}  # a drawing breaks a long name into lines
    assert {tag for tag, _ in read.tags} == {tag for tag, _ in usual.tags}
    assert _counted(read, drawn) == _counted(usual, drawn)
    assert "5390" not in made(name=name).decode()


def test_a_hostile_run_ends_neither_string_nor_sheet():
    assert in_style('a"b</style>é') == '"a\\000022b\\00003c\\00002fstyle\\00003e\\0000e9"'
    bad = made(frame=Frame("t", '"; } </style><script>', LINKS))
    assert len(Reader(bad).tags) == len(Reader(made()).tags)


def test_landmarks_are_whole_and_their_names_differ():
    read = Reader(made())
    assert [len(read.of(name)) for name in ("main", "header", "footer", "h1")] == [1, 1, 1, 1]
    names = [attrs["aria-label"] for attrs in read.of("nav")]
    assert names == ["On this page", "Pages and files"]
    assert read.of("a")[0] == {"class": "skip", "href": "#main"}
    assert "main" in read.ids


def test_ids_are_unique_and_headings_skip_no_level():
    read = Reader(made())
    assert [name for name, times in Counter(read.ids).items() if times > 1] == []
    assert all(after <= before + 1 for before, after in zip(read.levels, read.levels[1:], strict=False))
    deep = Section("1", "s1", parts=(Section("2", "s2", parts=(section(),)),))
    assert max(Reader(page("page.html.j2", "x.html", frame=FRAME, section=deep)).levels) <= 6


def test_tables_have_captions_scopes_and_a_region_that_can_be_reached():
    read = Reader(made())
    tables = len(read.of("table"))
    assert tables == len(read.of("caption")) >= 2
    assert all(attrs.get("scope") in ("col", "row") for attrs in read.of("th"))
    regions = [attrs for attrs in read.of("div") if attrs.get("role") == "group"]
    assert len(regions) == tables
    assert all(attrs["tabindex"] == "0" and attrs["aria-label"] for attrs in regions)


def test_an_empty_header_is_no_header():
    view = TableView("t", ("", "n"), ((Cell("a"), number_cell("1")),))
    text = page("page.html.j2", "x.html", frame=FRAME, section=Section("s", "s", tables=(view,))).decode()
    assert "<tr><td></td><th" in text


def test_a_column_is_one_kind_whatever_is_missing_in_its_rows():
    rows = ((Cell("a"), Cell("–", "none"), Cell("–", "none")), (Cell("b"), number_cell("1"), state_cell("within")))
    view = TableView("t", ("Group", "n", "State"), rows)
    text = page("page.html.j2", "x.html", frame=FRAME, section=Section("s", "s", tables=(view,))).decode()
    assert re.findall(r'<t[hd][^>]* class="([^"]+)"', text) == [
        *("text", "number", "state", "text", "number none", "state none", "text", "number", "state"),
    ]


def test_names_of_another_direction_are_isolated():
    assert f"<bdi>{HEBREW}</bdi>" in made().decode()


def test_links_are_relative_and_only_to_files_that_there_are():
    hrefs = [attrs["href"] for attrs in Reader(made()).of("a")]
    assert {"../report.html", "../method.html", "../method.html#gap"} <= set(hrefs)
    assert not [href for href in hrefs if "none" in href or href.endswith("gap.html")]
    assert "Not there" not in made().decode()
    assert relative_to("report.html")("pages/approval-rates.html") == "pages/approval-rates.html"
    assert relative_to("evidence/cst.html")("pages/approval-rates.html") == "../pages/approval-rates.html"


def test_the_run_is_on_every_sheet_but_the_first_and_in_the_footer():
    text = made().decode()
    assert '@bottom-left { content: "Run audit-1990-0a1b"; }' in text
    assert "@page :first { @bottom-left { content: none; }" in text
    assert "Run audit-1990-0a1b." in text[text.index("<footer>") :]
    assert "Run " not in made(frame=Frame("", links=LINKS)).decode()


def test_the_first_rows_of_a_long_table_say_where_all_are():
    text = page("page.html.j2", "x.html", frame=FRAME, section=Section("s", "s", tables=(table(whole=1234),))).decode()
    assert "The first 2 of 1,234 rows, by size of effect; measures.xlsx" in text
    assert "The first" not in made().decode()


def test_every_state_has_a_badge_of_its_own():
    sheet = made().decode()
    marks = {state: re.search(rf"\.badge\.{state}::before[^}}]*content: ([^;]+);", sheet) for state in STATES}
    shapes = [mark[1] for mark in marks.values() if mark]
    assert len(shapes) == len(set(shapes)) == len(STATES) - 1, "no limit has the plain one"


def colours(text):
    """Variables of a block of style."""
    return dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", text))


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(weight * p for weight, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize(("at", "drawn"), [(":root { --ink", LIGHT), ("(prefers-color-scheme: dark)", DARK)])
def test_text_can_be_read_in_both_schemes_and_colours_are_those_of_charts(at, drawn):
    text = made().decode()
    found = colours(text[text.index(at) :].split("}")[0])
    assert {name: found[name] for name in drawn} == drawn
    for ground in ("paper", "wash"):
        for ink in ("ink", "soft", "accent", "breach", "few", "ok"):
            assert contrast(found[ink], found[ground]) >= 4.5, (ink, ground)


def test_what_a_template_is_not_given_is_an_error():
    with pytest.raises(Exception, match="undefined"):
        page("page.html.j2", "x.html", frame=FRAME)


def test_what_stands_between_backticks_is_code_and_escaped():
    assert coded("See `a <b>` and <i>.") == "See <code>a &lt;b&gt;</code> and &lt;i&gt;."
    assert coded("One ` alone <b>") == "One ` alone &lt;b&gt;"
