"""The files of a report: which there are, that links join them, and that equal tables give equal bytes."""

import posixpath
import re
from dataclasses import replace
from html import unescape
from io import BytesIO
from zipfile import ZipFile

import pytest
from decide_runs import boston, texas
from report_tables import HOSTILE, RUN, UNBROKEN, material, renamed, settings, spec

from tasks.reporting.first_page.facts import Group, Run
from tasks.reporting.material import RESTRICTED, Material
from tasks.reporting.pages import FIRST, METHOD, files
from tasks.reporting.plain_words import banned_in

HIRING = {"favourable": "hired", "unfavourable": "rejected", "unit": "candidates"}
LENDING_WORDS = re.compile(r"(?<![\w/-])(?:approved|denied|applicants?)(?![\w/-])", re.IGNORECASE)
DRAFT = "Draft. Prepared by: open. Reviewed by: open. Approved by: open."
ALWAYS = {"report.html", "pages/quality.html", "evidence/outcomes.html", "method.html", "report.json", "measures.xlsx"}
BUDGETS = {"report": 60_000, "pages": 250_000, "evidence": 1_500_000}


def many(n=40):
    """Groups with names of 80 letters, in words and without a space."""
    names = [f"{'w' * 70} {i}" if i % 2 else f"{i} {'many words of a name ' * 4}"[:80] for i in range(n)]
    row = next(row for row in boston().rows if row.measure == "adjusted_effect")
    rows = tuple(replace(row, group=name) for name in names)
    groups = (boston().groups[0], *(Group("race", name, 100 + i, 0.7) for i, name in enumerate(names)))
    wholes = tuple(row for row in boston().rows if row.role == "theory")
    return Run((*wholes, *rows), groups)


RUNS = {
    "boston": boston(),
    "texas": texas(),
    "hostile": renamed(boston(), HOSTILE),
    "unbroken": renamed(boston(), UNBROKEN),
    "many": many(),
    "nothing": Run((), ()),
}


@pytest.fixture(scope="module")
def made():
    return {name: files(material(run)) for name, run in RUNS.items()}


def pages(found):
    return {path: content.decode() for path, content in found.items() if path.endswith(".html")}


def test_the_first_page_comes_first_and_files_for_machines_last(made):
    names = list(made["boston"])
    assert names[0] == FIRST
    assert names[-3:] == ["method.html", "report.json", "measures.xlsx"]
    assert set(names) >= ALWAYS


def test_every_page_uses_the_words_of_the_decision():
    hiring = spec(
        decision={"column": "action_taken", "favourable": [1, 2], "unfavourable": [3], "words": HIRING},
        protected=[{"name": "race", "columns": ["race"], "reference": "white"}],
    )
    found = pages(files(material(boston(), hiring)))
    assert {"method.html", "evidence/outcomes.html", "pages/similar-applicants.html"} <= set(found)
    said = {
        path: LENDING_WORDS.findall(re.sub(r"<[^>]+>|<style.*?</style>", " ", text)) for path, text in found.items()
    }
    assert {path: words for path, words in said.items() if words} == {}
    assert "candidates" in found["method.html"]


@pytest.mark.parametrize("name", RUNS)
def test_every_link_leads_to_a_file_of_the_run_and_a_place_in_it(made, name):
    found = pages(made[name])
    for path, text in found.items():
        for href in re.findall(r'<a [^>]*href="([^"]+)"', text):
            target, _, place = unescape(href).partition("#")
            whole = posixpath.normpath(posixpath.join(posixpath.dirname(path), target)) if target else path
            assert whole in made[name], (path, href)
            assert not place or whole not in found or f'id="{place}"' in found[whole], (path, href)


@pytest.mark.parametrize("name", RUNS)
def test_sizes_of_pages_are_within_their_budgets(made, name):
    over = {
        path: len(content)
        for path, content in made[name].items()
        if len(content) > BUDGETS.get(path.partition("/")[0].partition(".")[0], 10**7)
    }
    assert over == {}


@pytest.mark.parametrize("name", RUNS)
def test_ids_are_unique_and_every_page_has_one_first_heading(made, name):
    for path, text in pages(made[name]).items():
        ids = re.findall(r'<[^>]+ id="([^"]+)"', text)
        assert len(ids) == len(set(ids)), (path, sorted({each for each in ids if ids.count(each) > 1}))
        assert text.count("<h1>") == 1, path


def test_names_of_groups_are_text_on_every_page(made):
    usual = pages(made["boston"])
    for path, text in pages(made["hostile"]).items():
        assert "<script" not in text, path
        assert "<b>reference" not in text, path
        assert text.count("<td") == usual[path].count("<td"), path
    first = made["hostile"][FIRST].decode()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in first


def test_nothing_loads_and_nothing_runs(made):
    for name, found in made.items():
        for path, text in pages(found).items():
            assert "default-src 'none'" in text, (name, path)
            assert not re.search(r"<(script|link|img|iframe|object)\b|\ssrc=|url\(", text), (name, path)


def words_of(text):
    """What a reader sees of a page, without style and drawings."""
    body = re.sub(r"<style>.*?</style>|<(nav|footer)\b.*?</\1>", "", text, flags=re.S)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())


@pytest.mark.parametrize("name", ["boston", "texas", "nothing"])
def test_the_first_page_says_no_banned_word(made, name):
    said = words_of(made[name][FIRST].decode())
    assert not banned_in([said])


def test_the_first_page_holds_its_parts_in_order(made):
    said = words_of(made["boston"][FIRST].decode())
    parts = (
        "Mortgage applications, an example, 1990 · 1,988 decisions",
        "audited 27 November 2026 · not signed yet",
        "Mortgage applications, an example, 1990: Black applicants were approved less often",
        *("What was found", "Question", "Result (95 % interval)", "Against the limit", "How reliable"),
        *(
            "Approved per 100: Black 68, Hispanic 77, white 91.",
            "Outside the limit",
            "What the words mean",
        ),
        *("Points of approval: Black minus white", "−23 [−30, −17]", "−14 [−20, −7]", "−18 [−25, −12]"),
        *("Do next", "What this cannot show"),
    )
    places = [said.index(part) for part in parts]
    assert places == sorted(places)


def test_a_figure_that_is_missing_says_so(made):
    said = words_of(made["nothing"][FIRST].decode())
    assert "no group has enough applicants for a result." in said
    assert said.count("Not run: no figure.") >= 3
    assert "Nothing to do now." in said


def test_limits_are_drawn_as_they_are_printed(made):
    said = words_of(made["boston"][FIRST].decode())
    assert "limit −5" in said
    assert not re.search(r"limit −\d+\.\d\d", said)


def test_definitions_are_the_same_bytes_for_every_run(made):
    assert len({found[METHOD] for found in made.values()}) == 1
    assert RUN.encode() not in made["boston"][METHOD]


def test_equal_tables_give_equal_bytes(made):
    assert files(material(boston())) == made["boston"]


def test_a_hostile_title_is_text_and_no_path_of_a_machine_is_told():
    audit = spec(title="</title><script>alert(2)</script>")
    usual = material()
    found = files(Material(settings(audit), usual.measures, usual.tables))
    for path, text in pages(found).items():
        assert "<script" not in text, path
        assert "secret place" not in text, path
    assert b"secret place" not in found["report.json"]


def test_every_page_leads_to_the_first_one_and_names_its_run(made):
    for path, text in pages(made["boston"]).items():
        if path != METHOD:
            assert f"Run {RUN}" in text, path
        if path != FIRST:
            assert re.search(r'href="(\.\./)?report\.html"', text), path


def test_nothing_of_an_internal_run_may_be_passed_on_and_every_file_says_so():
    usual = material()
    own = usual.settings.disclosure.model_copy(update={"profile": "internal"})
    internal = replace(usual, settings=usual.settings.model_copy(update={"disclosure": own}))
    for name, content in files(internal).items():
        if name == "method.html":
            continue  # the same for every run
        if name.endswith(".xlsx"):
            with ZipFile(BytesIO(content)) as workbook:
                content = b"".join(workbook.read(part) for part in workbook.namelist())
        assert RESTRICTED.encode() in content, name
    assert not any(RESTRICTED.encode() in content for content in files(usual).values())
